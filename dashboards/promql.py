"""The words in which panels ask: selectors that follow the dashboard's variables, and what is done with them.

A question about whole servers is answered by a recording, where there is one; a question about processes that
were chosen by name, by their own series. Both are asked in one expression, `either`: the selectors of one of
them match nothing, which costs nothing.
"""

from collections.abc import Mapping
from typing import Final, Literal

from .catalogue import FOREIGN, METRICS, SERVER_LABELS, TARGET_LABELS, Part, matching, select
from .details import DETAILS, EVERY

PROCESS: Final = ('job=~"$job"', 'instance=~"$instance"')
CHOSEN: Final = (*PROCESS, 'instance!~".$instance."')
"""Only processes that were chosen by name. While all are, `$instance` is `.*`, and the last matcher excludes each."""
SERVER: Final = ('server_address=~"$server"', 'server_port=~"$port"')
INTERVAL: Final = "$__rate_interval"
RANGE: Final = "$__range"

MANY: Final = 5
"""Lines in a panel that has one for each server or process: the highest."""

Ask = Literal["rate", "increase"]


def of(metric: str, part: Part = "", /, *raw: str, **equals: str) -> str:
    """A selector that follows the variables of the dashboard."""
    return _scoped(PROCESS, metric, part, *raw, **equals)


def chosen(metric: str, part: Part = "", /, *raw: str, **equals: str) -> str:
    """A selector of processes that were chosen by name; it matches nothing while all are."""
    return _scoped(CHOSEN, metric, part, *raw, **equals)


def _scoped(scope: tuple[str, ...], metric: str, part: Part, /, *raw: str, **equals: str) -> str:
    servers = SERVER if METRICS[metric].by_server else ()
    return select(metric, part, *scope, *servers, *raw, **equals)


def by(*labels: str) -> str:
    return f" by ({', '.join(labels)})" if labels else ""


def recorded(name: str, *raw: str) -> str:
    """A selector of a recording, for whole servers: those have no `instance`, so none is in sight of a chosen one."""
    return f"{name}{{{', '.join((*PROCESS, *SERVER, *raw))}}}"


def added_up(rates: str, *labels: str, window: str) -> str:
    """How often it happened within a window, out of recorded rates."""
    return f"{EVERY:g} * sum{by(*labels)} (sum_over_time({rates}[{window}]))"


def either(of_all: str, of_chosen: str) -> str:
    return f"({of_all} or {of_chosen})"


def summed(
    ask: Ask, metric: str, window: str, labels: tuple[str, ...], part: Part = "", /, *raw: str, **equals: str
) -> str:
    """The sum of a counter's rate or increase.

    Over a window that Grafana works out a recording is read where there is one: a rate as it stands, an increase
    as the sum of what each evaluation adds.
    """
    detail = DETAILS.get((metric, part))
    if detail is None or window not in {INTERVAL, RANGE}:
        return f"sum{by(*labels)} ({ask}({of(metric, part, *raw, **equals)}[{window}]))"
    lost = {*labels, *equals} - {*detail.labels, *TARGET_LABELS, *SERVER_LABELS, "le"}
    if lost:
        raise KeyError(f"no recording of {metric} keeps {', '.join(sorted(lost))}")

    def read(name: str) -> str:
        rates = recorded(name, *raw, *matching(metric, part, **equals))
        return f"sum{by(*labels)} ({rates})" if ask == "rate" else added_up(rates, *labels, window=window)

    if "instance" in labels:
        return read(detail.of_process)
    own = f"sum{by(*labels)} ({ask}({chosen(metric, part, *raw, **equals)}[{window}]))"
    return either(read(detail.of_server), own)


def per_minute(metric: str, *labels: str, part: Part = "", window: str = INTERVAL, **equals: str) -> str:
    return f"60 * {summed('rate', metric, window, labels, part, **equals)}"


def count(metric: str, *labels: str, window: str = RANGE, **equals: str) -> str:
    """How often it happened within a window."""
    return summed("increase", metric, window, labels, **equals)


def count_chosen(metric: str, *labels: str, window: str, **equals: str) -> str:
    """The same of processes that were chosen by name."""
    return f"sum{by(*labels)} (increase({chosen(metric, **equals)}[{window}]))"


def total(metric: str, *labels: str, **equals: str) -> str:
    return f"sum{by(*labels)} ({of(metric, **equals)})"


def highest(metric: str, *labels: str, **equals: str) -> str:
    return f"max{by(*labels)} ({of(metric, **equals)})"


def quantile(q: float, metric: str, *labels: str, **equals: str) -> str:
    """Nothing, rather than no number, where nothing was measured."""
    buckets = summed("rate", metric, INTERVAL, ("le", *labels), "_bucket", **equals)
    return f"histogram_quantile({q}, {buckets}) >= 0"


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
