"""The words in which panels ask: selectors that follow the dashboard's variables, and what is done with them."""

from collections.abc import Mapping
from typing import Final, Literal

from .catalogue import FOREIGN, METRICS, select

PROCESS: Final = ('job=~"$job"', 'instance=~"$instance"')
SERVER: Final = ('server_address=~"$server"', 'server_port=~"$port"')
INTERVAL: Final = "$__rate_interval"
RANGE: Final = "$__range"

MANY: Final = 5
"""Lines in a panel that has one for each server or process: the highest."""

Part = Literal["", "_bucket", "_sum", "_count"]


def of(metric: str, part: Part = "", /, *raw: str, **equals: str) -> str:
    """A selector that follows the variables of the dashboard."""
    scope = (*PROCESS, *SERVER) if METRICS[metric].by_server else PROCESS
    return select(metric, part, *scope, *raw, **equals)


def by(*labels: str) -> str:
    return f" by ({', '.join(labels)})" if labels else ""


def per_minute(metric: str, *labels: str, part: Part = "", window: str = INTERVAL, **equals: str) -> str:
    return f"60 * sum{by(*labels)} (rate({of(metric, part, **equals)}[{window}]))"


def count(metric: str, *labels: str, part: Part = "", window: str = RANGE, **equals: str) -> str:
    """How often it happened within a window."""
    return f"sum{by(*labels)} (increase({of(metric, part, **equals)}[{window}]))"


def total(metric: str, *labels: str, **equals: str) -> str:
    return f"sum{by(*labels)} ({of(metric, **equals)})"


def highest(metric: str, *labels: str, **equals: str) -> str:
    return f"max{by(*labels)} ({of(metric, **equals)})"


def quantile(q: float, metric: str, *labels: str, **equals: str) -> str:
    """Nothing, rather than no number, where nothing was measured."""
    buckets = f"rate({of(metric, '_bucket', **equals)}[{INTERVAL}])"
    return f"histogram_quantile({q}, sum{by('le', *labels)} ({buckets})) >= 0"


def share(part: str, whole: str) -> str:
    """Of two counts; 0 where there is nothing to divide by."""
    return f"({part}) / clamp_min({whole}, 1)"


def seen(expression: str) -> str:
    """Only what did happen: a legend of it names nothing that did not."""
    return f"({expression}) > 0"


def most(expression: str, many: int = MANY) -> str:
    return f"topk({many}, {expression})"


def worst(expression: str, *labels: str) -> str:
    """One number for all, or a line for each that has something to show."""
    return most(seen(expression)) if labels else expression


def tagged(expression: str, **labels: str) -> str:
    for label, value in labels.items():
        expression = f'label_replace({expression}, "{label}", "{value}", "", "")'
    return expression


def told_apart(label: str, expressions: Mapping[str, str]) -> str:
    """Several questions as one answer, each named by a label."""
    return " or ".join(tagged(expression, **{label: name}) for name, expression in expressions.items())


def foreign(name: str, *matchers: str) -> str:
    """A series that is not ours. `ALERTS_FOR_STATE` has the labels of `ALERTS`."""
    if name.removesuffix("_FOR_STATE") not in FOREIGN:
        raise KeyError(name)
    return f"{name}{{{', '.join(matchers)}}}"
