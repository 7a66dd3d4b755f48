"""How every metric of `_names` looks in Prometheus: series names, labels and the values of a label.

The rules of translation are those of the OpenTelemetry exporters: dots become underscores, seconds add
`_seconds`, monotonic sums add `_total`, histograms fall apart into `_bucket`, `_sum` and `_count`; units in
braces add nothing. Queries are written with the functions at the end, so that a name, a label or a value that
does not exist is an error while the dashboards are built, not an empty panel.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from opentelemetry.instrumentation.httpx_sse import _names

SeriesKind = Literal["counter", "gauge", "bucket"]
Part = Literal["", "_bucket", "_sum", "_count"]
"""Which series of a histogram; other metrics have one."""

SERVER_LABELS: Final = ("server_address", "server_port")
TARGET_LABELS: Final = ("job", "instance")
"""Set by whoever collects, not by the program. Over OTLP `instance` may be missing."""

SCOPE_LABELS: Final = ("otel_scope_name", "otel_scope_version", "otel_scope_schema_url")
"""On every series. They change with a release, so a query aggregates them away and never selects by them."""

OVERFLOW_LABEL: Final = "otel_metric_overflow"
"""`"true"` on the one series that takes what is past the SDK's limit of label sets."""

EVERY_METRIC: Final = "sse_client_.+|mcp_client_.+"
"""The one pattern that may stand for a metric's name: all that this package exports."""

_SUFFIX: Final = {
    "counter": "_total",
    "observable_counter": "_total",
    "up_down_counter": "",
    "observable_gauge": "",
    "histogram": "",
}
_UNIT_SUFFIX: Final = {"s": "_seconds"}

# Values that are closed by meaning although `reachable` of their metric is open.
_CLOSED_ELSEWHERE: Final = {_names.NETWORK_TRANSPORT: frozenset({"tcp"})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One name that can be selected in Prometheus.

    `labels` are the metric's own, the server's and, on a bucket, `le`. `values` has an entry for each label
    whose values are known beforehand; `combinations` has every label set that can occur, ordered as `own`.
    """

    name: str
    kind: SeriesKind
    metric: _names.Metric | None
    own: tuple[str, ...] = ()
    labels: frozenset[str]
    values: Mapping[str, frozenset[str]]
    combinations: frozenset[tuple[str, ...]] = frozenset()

    @property
    def zeroed(self) -> frozenset[tuple[str, ...]]:
        """Label sets that are exported as 0 before anything happens."""
        return frozenset(self.metric.zeroed) if self.metric else frozenset()


def label(attribute: str) -> str:
    """An attribute's name as a label."""
    return attribute.replace(".", "_")


def exported(metric: _names.Metric) -> str:
    """A metric's name in Prometheus, without the suffixes that a histogram's parts have."""
    return label(metric.name) + _UNIT_SUFFIX.get(metric.unit, "") + _SUFFIX[metric.instrument]


def _bounds(metric: _names.Metric) -> frozenset[str]:
    return frozenset(str(float(bound)) for bound in metric.buckets) | {"+Inf"}


def _series_of(metric: _names.Metric) -> Iterable[Series]:
    own = tuple(label(attribute) for attribute in metric.attributes)
    optional = {label(attribute) for attribute in metric.optional}
    values = {
        own[i]: frozenset(combination[i] for combination in metric.reachable)
        for i in range(len(own))
        if metric.reachable
    }
    values |= {label(a): v for a, v in _CLOSED_ELSEWHERE.items() if a in metric.attributes}
    labels = frozenset(own) | optional | frozenset(SERVER_LABELS if metric.by_server else ())
    name = exported(metric)

    def part(suffix: str, kind: SeriesKind, extra: Mapping[str, frozenset[str]]) -> Series:
        return Series(
            name=name + suffix,
            kind=kind,
            metric=metric,
            own=own,
            labels=labels | frozenset(extra),
            values=MappingProxyType(values | dict(extra)),
            combinations=frozenset(metric.reachable),
        )

    if metric.instrument == "histogram":
        yield part("_bucket", "bucket", {"le": _bounds(metric)})
        yield part("_sum", "counter", {})
        yield part("_count", "counter", {})
    else:
        yield part("", "counter" if name.endswith("_total") else "gauge", {})


def _foreign(name: str, kind: SeriesKind, *labels: str, **values: frozenset[str]) -> Series:
    return Series(
        name=name, kind=kind, metric=None, labels=frozenset(labels), values=MappingProxyType(values)
    )


METRICS: Final = MappingProxyType({**_names.METRICS, **_names.MCP_METRICS})

SERIES: Final[Mapping[str, Series]] = MappingProxyType(
    {series.name: series for metric in METRICS.values() for series in _series_of(metric)}
)
"""Everything that this package exports, by the name to select it with."""

FOREIGN: Final[Mapping[str, Series]] = MappingProxyType(
    {
        series.name: series
        for series in (
            _foreign("up", "gauge"),
            _foreign("scrape_duration_seconds", "gauge"),
            _foreign("scrape_samples_scraped", "gauge"),
            _foreign("process_start_time_seconds", "gauge"),
            _foreign(
                "target_info",
                "gauge",
                "service_name",
                "service_instance_id",
                "telemetry_auto_version",
                "telemetry_sdk_version",
            ),
            _foreign(
                "ALERTS",
                "gauge",
                "alertname",
                "alertstate",
                "severity",
                *SERVER_LABELS,
                alertstate=frozenset({"pending", "firing"}),
            ),
        )
    }
)
"""Series of Prometheus, of its client library and of the SDK that queries may also use."""

CLOSED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        label(attribute): get_args(values)
        for attribute, values in (
            (_names.STREAM_KIND, _names.StreamKind),
            (_names.STREAM_STATE, _names.StreamState),
            (_names.STREAM_END, _names.StreamEnd),
            (_names.EVENT_TYPE, _names.EventType),
            (_names.RECONNECT_CAUSE, _names.ReconnectCause),
            (_names.RECONNECT_CURSOR, _names.ReconnectCursor),
            (_names.RECONNECT_OUTCOME, _names.ReconnectOutcome),
            (_names.RECONNECT_RETRY_HINT, _names.RetryHint),
            (_names.REQUEST_STATE, _names.RequestState),
            (_names.DISPOSITION, _names.Disposition),
            (_names.FAILURE_POINT, _names.FailurePoint),
            (_names.FAILURE_REASON, _names.FailureReason),
            (_names.LOSS_REASON, _names.LossReason),
            (_names.PROBE_KIND, _names.ProbeKind),
            (_names.PROBE_OUTCOME, _names.ProbeOutcome),
            (_names.PROBE_CONTEXT, _names.ProbeContext),
            (_names.SESSION_PHASE, _names.SessionPhase),
            (_names.SESSION_SIGNAL, _names.SessionSignal),
            (_names.PROMPT_DELIVERY, _names.PromptDelivery),
            (_names.PROMPT_LIVENESS, _names.PromptLiveness),
            (_names.REPROMPT_TRIGGER, _names.RepromptTrigger),
            (_names.ANSWER_OUTCOME, _names.AnswerOutcome),
            (_names.ANSWER_TIMING, _names.AnswerTiming),
            (_names.RESPONSE_DELIVERY, _names.ResponseDelivery),
            (_names.INSTRUMENTATION_SITE, _names.Site),
            (_names.INSTRUMENTATION_TABLE, _names.EvictedTable),
        )
    }
)
"""The values of each closed set by label, in the order in which a legend shows them."""


_OPERATORS: Final = {
    (False, False): "=",
    (False, True): "=~",
    (True, False): "!=",
    (True, True): "!~",
}


def name_of(metric: str, part: Part = "") -> str:
    """The series of a metric given by its OpenTelemetry name; `part` of a histogram."""
    name = exported(METRICS[metric]) + part
    if name not in SERIES:
        raise KeyError(f"{metric} has no series {name}")
    return name


def values_of(label_name: str, *values: str) -> str:
    """Some values of a closed set, as the pattern of a `=~` matcher."""
    unknown = sorted(set(values) - set(CLOSED[label_name]))
    if unknown:
        raise KeyError(f"{label_name} is never {', '.join(unknown)}")
    return "|".join(values)


def values_but(label_name: str, *values: str) -> str:
    """All values of a closed set but some, as the pattern of a `=~` matcher."""
    values_of(label_name, *values)
    return "|".join(value for value in CLOSED[label_name] if value not in values)


def select(metric: str, part: Part = "", /, *raw: str, **equals: str) -> str:
    """A selector: `select("sse.client.reconnects", sse_reconnect_cause="server_poll")`.

    `raw` are matchers that are taken as they are, such as `job=~"$job"`.
    """
    matchers = (*raw, *matching(metric, part, **equals))
    return name_of(metric, part) + (f"{{{', '.join(matchers)}}}" if matchers else "")


def matching(metric: str, part: Part = "", /, **equals: str) -> tuple[str, ...]:
    """Matchers of a metric's labels: a value with `|` becomes a pattern, one that begins with `!` is excluded."""
    series = SERIES[name_of(metric, part)]
    matchers = []
    for key, given in equals.items():
        if key not in series.labels:
            raise KeyError(f"{series.name} has no label {key}")
        negated, value = given.startswith("!"), given.removeprefix("!")
        known = series.values.get(key)
        unknown = sorted(set(value.split("|")) - known) if known is not None else ()
        if unknown:
            raise KeyError(f"{key} of {series.name} is never {', '.join(unknown)}")
        operator = _OPERATORS[negated, "|" in value]
        matchers.append(f'{key}{operator}"{value}"')
    return tuple(matchers)
