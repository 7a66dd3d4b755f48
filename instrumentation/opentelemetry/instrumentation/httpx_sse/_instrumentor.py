"""Switching on and off: the only module, with `_patching`, that knows which libraries there are."""

import importlib
import logging
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, ClassVar, Final, TypeVar

from opentelemetry.instrumentation.dependencies import DependencyConflict, get_dependency_conflicts
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
from opentelemetry.metrics import NoOpMeter
from opentelemetry.trace import NoOpTracer, Tracer, get_tracer
from opentelemetry.util.http import parse_excluded_urls

from ._containment import Containment
from ._gauges import Showing, showing_of
from ._ledger import Thresholds
from ._names import SCOPE
from ._observer import Observer
from ._options import Options, read_options
from ._patching import LIBRARIES, TRANSPORTS, Patch, patched
from ._spans import Identifiers, Spans
from ._telemetry import Telemetry
from ._transport import Watch
from .package import _instruments, _instruments_any
from .version import __version__

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)


def _made(make: Callable[[], T]) -> T | None:
    """What a provider gives; a broken one must not stop the program."""
    try:
        made = make()
    except Exception as error:  # noqa: BLE001 - the provider's own
        why = f"raised {type(error).__name__}"
    else:
        if made is not None:
            return made
        why = "gave nothing"
    _LOG.warning("a provider %s: its signal is not recorded", why)
    return None


def _imported(name: str) -> ModuleType | None:
    """The library, or None when it is not there or cannot be imported."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001 - whatever a broken library raises must not stop the program
        _LOG.warning("%s cannot be imported (%s): it is not watched", name, type(error).__name__)
        return None


class Installation:
    """One set of options at work: an observer, its telemetry, and who watches."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.containment = Containment()
        no_tracer: Tracer = NoOpTracer()
        tracer = _made(lambda: get_tracer(SCOPE, __version__, options.tracer_provider)) or no_tracer
        showing = _made(lambda: showing_of(options.meter_provider)) or Showing(NoOpMeter(SCOPE))
        server = partial(showing.servers.name, limit=options.server_limit)
        identifiers = Identifiers(options.capture_ids, options.hash_key)
        spans = Spans(tracer, identifiers, server, self.containment, options.verdict_hook)
        self.telemetry = Telemetry(
            showing,
            spans,
            server,
            self.containment,
            semconv=options.semconv_metrics != "off",
            tool_names=options.semconv_metrics == "tools",
        )
        self.observer = Observer(
            self.telemetry,
            thresholds=Thresholds(
                idle_threshold=options.idle_threshold,
                quiet_threshold=options.quiet_threshold,
                give_up_after=options.give_up_after,
                submission_deadline=options.submission_deadline,
            ),
            liveness_key=options.liveness_key,
        )
        self.telemetry.observe_through(self.observer)
        excluded = parse_excluded_urls(options.excluded_urls or "")
        self._is_excluded = excluded.url_disabled if options.excluded_urls else None
        self._guarded: Watch | None = None
        self.watch = self.guarded() if options.guard else self._watch()

    def _watch(self, guard: Any = None) -> Watch:
        return Watch(self.observer, self.containment, self._is_excluded, guard)

    def guarded(self) -> Watch:
        """Who watches and acts, whether that was asked for everybody or only by a transport of the guard's own."""
        if self._guarded is None:
            # The guard stands above all this; it is loaded when somebody wants it.
            module = importlib.import_module(f"{__package__}.guard")
            self.guard = module.guard_of(self.observer, self.containment, self.options)
            self._guarded = self._watch(self.guard)
        return self._guarded


@dataclass(frozen=True)
class Watching:
    """What a client carries that is watched by itself."""

    installation: Installation
    patches: ExitStack
    """Closed to take them off."""


_OURS: Final = "_otel_httpx_sse"
"""Under which attribute."""


class HTTPXSSEInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Watches every server-sent event stream of httpx and httpx2, and changes nothing.

    The entry point is `httpx_sse`, which is also the name for `OTEL_PYTHON_DISABLED_INSTRUMENTATIONS`.
    """

    configuration = Options
    _installation: ClassVar[Installation | None] = None
    _patches: ClassVar[list[Patch]] = []

    def instrumentation_dependencies(self) -> Collection[str]:
        """Nothing that must be there: one of two libraries is enough."""
        return _instruments

    def _check_dependency_conflicts(self) -> DependencyConflict | None:
        return get_dependency_conflicts(_instruments, _instruments_any)

    def _instrument(self, **kwargs: Any) -> None:
        """Watch all clients.

        Args:
            **kwargs: the fields of `Options`.

        Raises:
            TypeError: an unknown option.
            ModuleNotFoundError: neither httpx nor httpx2 is there.
        """
        options = read_options(kwargs)
        libraries = {name: _imported(name) for name in LIBRARIES}
        if not any(libraries.values()):
            raise ModuleNotFoundError("neither httpx nor httpx2 is installed")
        cls = HTTPXSSEInstrumentor
        installation = Installation(options)
        for name, library in libraries.items():
            for transport, method in TRANSPORTS if library is not None else ():
                owner = getattr(library, transport, None)
                if owner is None or method not in vars(owner):
                    _LOG.warning("%s has no %s.%s: it is not watched", name, transport, method)
                    continue
                cls._patches.append(Patch(owner, method, installation.watch))
        cls._installation = installation

    def _uninstrument(self, **_: Any) -> None:
        """Watch no client any more. Streams that are open now are still watched to their end."""
        cls = HTTPXSSEInstrumentor
        for patch in cls._patches:
            patch.remove()
        cls._patches = []
        cls._installation = None

    @staticmethod
    def instrument_client(client: Any, **options: Any) -> None:
        """Watch one client, whatever its transports are: ASGI, mock and third-party ones too.

        Args:
            client: a client of httpx or httpx2, sync or async.
            **options: the fields of `Options`; without any, those of `instrument()` if that was called.

        Raises:
            TypeError: an unknown option, or a transport that takes no attributes.
        """
        cls = HTTPXSSEInstrumentor
        if _OURS in vars(client):
            _LOG.warning("Attempting to instrument a client that is already instrumented")
            return
        shared = cls._installation if not options else None
        installation = shared or Installation(read_options(options))
        # On the client itself: an installation of its own must live as long as it does, and no longer.
        setattr(client, _OURS, Watching(installation, patched(client, installation.watch)))

    @staticmethod
    def uninstrument_client(client: Any) -> None:
        """Undo `instrument_client`.

        Args:
            client: the same client.
        """
        watching: Watching | None = vars(client).pop(_OURS, None)
        if watching is not None:
            watching.patches.close()
