"""Every query of every panel, asked of a real Prometheus that has an hour in which everything happened."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from dashboards import endpoint, overview
from dashboards.rules import rules
from dashboards.thresholds import Settings
from tests.dashboards import lint
from tests.dashboards import recorded as recording
from tests.dashboards.look import sample
from tests.dashboards.look.render import Prometheus, answers

END = 1_790_000_000.0
ILL = next(server.address for server in sample.SERVERS if server.ill)
CHOICES = {"overview": (overview, {}), "endpoint": (endpoint, {"server": ILL})}

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not (shutil.which("prometheus") and shutil.which("promtool")), reason="Prometheus is not installed"
    ),
]


@contextmanager
def serving(data: Path) -> Iterator[str]:
    """A Prometheus over a folder of blocks; its URL."""
    config = data.parent / "prometheus.yml"
    config.write_text("{}", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    host = "{}:{}".format(*address)
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}"]
    # The hour stands still while time goes on: without this it would be too old one day.
    command += [f"--web.listen-address={host}", "--storage.tsdb.retention.time=100y"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            wait(f"http://{host}")
            yield f"http://{host}"
        finally:
            server.terminate()


def wait(url: str, seconds: float = 60) -> None:
    """Until it answers questions; it listens before that."""
    limit = time.monotonic() + seconds
    while not ready(url):
        assert time.monotonic() < limit
        time.sleep(0.1)


def ready(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/-/ready", timeout=5).close()  # noqa: S310 - our own
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One that has the invented hour."""
    with having(tmp_path_factory.mktemp("prometheus"), "instance") as found:
        yield found


@contextmanager
def having(folder: Path, instance: str) -> Iterator[Prometheus]:
    """A Prometheus that has the invented hour and what rules record of it; `instance` names the process."""
    hour, data = folder / "hour.om", folder / "data"
    with hour.open("w", encoding="utf-8") as out:
        sample.write(out, END)
    hour.write_text(hour.read_text(encoding="utf-8").replace('instance="', f'{instance}="'), encoding="utf-8")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(hour), str(data)]
    subprocess.run(command, check=True, capture_output=True)
    hour.unlink()
    recording.record(rules(Settings()), data, serving, start=END - 3600, end=END)
    with serving(data) as url:
        yield Prometheus(url)


def asked(
    prometheus: Prometheus, name: str, *, end: float, span: int, **variables: str
) -> dict[str, tuple[str, Any]]:
    """The answer to each query, with the title of its panel."""
    module, chosen = CHOICES[name]
    dashboard = module.build(Settings())
    values = {"__rate_interval": "5m", **chosen, **variables}
    found = answers(dashboard, prometheus, end=end, span=span, step=30, values=values)
    return {
        key: (panel["title"], found[key]["result"])
        for panel, target in lint.targets(dashboard)
        for key in [f"{panel['id']}:{target['refId']}"]
    }


@pytest.mark.parametrize("name", CHOICES)
def test_every_query_has_an_answer_when_everything_goes_wrong(prometheus: Prometheus, name: str) -> None:
    """No panel is empty because of its query, and no query is refused."""
    empty = [title for title, result in asked(prometheus, name, end=END, span=3600).values() if not result]

    assert empty == []


Seen = dict[frozenset[tuple[str, str]], float]


def shown(result: Any) -> Seen:
    """The mean of each line and the number of each row, where there is something to show."""
    points = max((len(one.get("values", ())) for one in result), default=0)
    values = {
        frozenset(one["metric"].items()): sum(float(value) for _, value in one["values"]) / points
        if "values" in one
        else float(one["value"][1])
        for one in result
    }
    return {labels: value for labels, value in values.items() if value}


APART: Final = 1 / 3
"""How far recorded rates may be from the series: they are of other minutes, and of few events at times."""

PROCESSES_COUNTED: Final = ("Processes that report", "Versions that report")
"""Panels that cannot know how many processes there are when nothing tells them apart."""


def differences(one: dict[str, tuple[str, Any]], other: dict[str, tuple[str, Any]]) -> list[str]:
    """Panels whose two answers are about different things, or tell another number of one of them."""
    return [
        f"{title} {key}: {left} is not {right}"
        for key, (title, result) in one.items()
        for left, right in [(shown(result), shown(other[key][1]))]
        if left.keys() != right.keys()
        or any(left[k] != pytest.approx(right[k], rel=APART, abs=2) for k in left)
    ]


@pytest.mark.parametrize("name", CHOICES)
def test_every_process_by_name_is_what_all_is(prometheus: Prometheus, name: str) -> None:
    """A recording about whole servers and the series of the processes that were chosen tell the same."""
    every = asked(prometheus, name, end=END, span=1200)
    named = asked(prometheus, name, end=END, span=1200, instance=f"({'|'.join(sample.PROCESSES)})")

    assert differences(every, named) == []


@pytest.mark.parametrize("name", CHOICES)
def test_one_process_is_told_from_the_others(prometheus: Prometheus, name: str) -> None:
    """No panel goes on showing all processes when one is chosen: its numbers are smaller."""
    every = asked(prometheus, name, end=END, span=1200)
    one = asked(prometheus, name, end=END, span=1200, instance=sample.PROCESSES[1])
    (total,) = [result for title, result in every.values() if title == "Streams"]
    (part,) = [result for title, result in one.values() if title == "Streams"]

    assert 0 < shown(part)[frozenset()] < shown(total)[frozenset()]
    for key, (title, result) in one.items():
        if title.endswith("per minute") or "per minute, by" in title:
            seen = shown(every[key][1])
            assert all(value <= seen[k] * 1.1 for k, value in shown(result).items()), title
            assert sum(shown(result).values()) < sum(seen.values()), title


@pytest.mark.parametrize("name", CHOICES)
def test_series_without_an_instance_are_seen(prometheus: Prometheus, tmp_path: Path, name: str) -> None:
    """Over OTLP a series may have no `instance`: nothing is missing, nothing is counted twice."""
    scraped = asked(prometheus, name, end=END, span=1200)
    with having(tmp_path, "host_name") as pushed:
        found = asked(pushed, name, end=END, span=1200)
    about_servers = {
        key: (title, result)
        for key, (title, result) in scraped.items()
        if "instance" not in str(result) and title not in PROCESSES_COUNTED
    }

    assert len(about_servers) > len(scraped) / 2
    assert differences(about_servers, found) == []


@pytest.mark.parametrize("name", CHOICES)
def test_no_tile_is_amber_or_red_while_all_is_well(prometheus: Prometheus, name: str) -> None:
    """Before the fault began there is nothing to see: a healthy fleet does not cry wolf."""
    module, _ = CHOICES[name]
    dashboard = module.build(Settings())
    found = asked(prometheus, name, end=END - sample.FAULT - 60, span=600)
    for panel in dashboard["panels"]:
        if panel["type"] == "stat":
            _, result = found[f"{panel['id']}:A"]
            values = [float(series["values"][-1][1]) for series in result]
            first_step = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1:2]
            assert all(value < step["value"] for value in values for step in first_step), panel["title"]


def test_the_line_of_the_ill_server_is_first_in_the_table(prometheus: Prometheus) -> None:
    """Whoever looks at the last table finds the server that has the faults."""
    found = asked(prometheus, "overview", end=END, span=3600)
    (faults,) = [
        result for key, (title, result) in found.items() if title.startswith("Servers") and key.endswith("A")
    ]
    worst = max(faults, key=lambda row: float(row["value"][1]))

    assert worst["metric"]["server_address"] == ILL


def test_idle_limits_are_told_apart(prometheus: Prometheus) -> None:
    """Streams that were cut after 60 and after 300 s of silence are counted under these limits, all together."""
    found = asked(prometheus, "overview", end=END, span=3600)
    (cut,) = [result for title, result in found.values() if title.startswith("Streams that were cut")]
    counts: dict[str, float] = {}
    for row in cut:
        if row["metric"]["server_address"] == ILL:
            counts[row["metric"]["limit"]] = float(row["value"][1])

    assert set(counts) == {"60 s", "under 25 s", "300 s", "125 s", "no known limit"}
    assert counts["60 s"] == pytest.approx(2 * counts["under 25 s"], rel=0.1)
