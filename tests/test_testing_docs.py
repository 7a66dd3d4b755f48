"""The example of `testing`, run as it stands."""

import textwrap
from typing import Any

import pytest

from opentelemetry.instrumentation.httpx_sse import testing


def _example() -> dict[str, Any]:
    """What the example defines when it is pasted into a file."""
    assert testing.__doc__ is not None
    lines = [line for line in testing.__doc__.splitlines() if not line or line.startswith("    ")]
    names: dict[str, Any] = {}
    exec(compile(textwrap.dedent("\n".join(lines)), "example", "exec"), names)  # noqa: S102 - our own text
    return names


def test_the_example_passes() -> None:
    """Its test passes, with nothing but what it imports."""
    _example()["test_the_resume_recovers"]()


def test_the_example_can_fail() -> None:
    """A server that answers the resume with nothing is found by the same lines."""
    names = _example()
    httpx = names["httpx"]

    def serve(request: Any) -> Any:
        events = "" if "Last-Event-ID" in request.headers else "id: 1\ndata:\n\n"
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, text=events)

    names["serve"] = serve
    with pytest.raises(AssertionError):
        names["test_the_resume_recovers"]()
