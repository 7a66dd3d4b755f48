"""The runbooks: a page for every alert, with every part that somebody needs at night, and nothing out of date."""

import json
import re
from pathlib import Path

import pytest
from dashboards.alerts import absent_alerts, alerts
from dashboards.catalogue import CLOSED
from dashboards.export import dashboards
from dashboards.pages import HEADING, HOME, files
from dashboards.recordings import Recordings
from dashboards.thresholds import TABLE, Settings, duration
from tests.dashboards.promtool.expressions import problems
from tests.dashboards.promtool.runner import run

PARTS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "False positives", "Numbers")
SIDES = ("Server side.", "Proxy side.", "Client side.", "The guard.")
QUERY = re.compile(r"```promql\n(.*?)```", re.DOTALL)
PROMISES = re.compile(r"`([A-Z][A-Z0-9_]{6,})(?:=[^`]*)?`")
VARIABLES = {
    "OTEL_PYTHON_HTTPX_SSE_GUARD",
    "OTEL_PYTHON_HTTPX_SSE_GUARD_DISABLED",
    "OTEL_PYTHON_HTTPX_SSE_SEMCONV_METRICS",
    "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS",
    "OTEL_EXPORTER_PROMETHEUS_PORT",
    "OTEL_EXPORTER_PROMETHEUS_HOST",
    "OTEL_TRACES_EXPORTER",
    "OTEL_LOGS_EXPORTER",
}
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HOME.glob("*.md"))}
ALERTS = [name for name in PAGES if name != "README"]


def test_a_page_for_each_alert() -> None:
    """Every alert has a page, every page an alert, and the first page lists them all."""
    listed = set(re.findall(r"^\| \[(\w+)\]\(\1\.md\)", PAGES["README"], re.MULTILINE))

    assert set(ALERTS) == set(TABLE) == listed


@pytest.mark.parametrize("alert", ALERTS)
def test_parts(alert: str) -> None:
    """A page has all parts, in the same order, none of them empty, and a mitigation for each side."""
    text = PAGES[alert]
    parts = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))

    assert text.startswith(f"# {alert}\n")
    assert tuple(parts) == PARTS
    assert all(part.strip() for part in parts.values())
    assert tuple(re.findall(r"^\*\*(.+?)\*\*", parts["Mitigation"], re.MULTILINE)) == SIDES
    assert "n the trace" in parts["Diagnosis"]
    assert QUERY.search(parts["Diagnosis"])


@pytest.mark.parametrize("alert", ALERTS)
def test_queries(alert: str) -> None:
    """Every query can be pasted as it is: it parses, and whatever it names exists."""
    for query in QUERY.findall(PAGES[alert]):
        assert problems(query.strip()) == []


@pytest.mark.parametrize("alert", ALERTS)
def test_numbers(alert: str) -> None:
    """The table at the end is that of the settings; with other settings it has other numbers."""
    changed = Settings().override([f"{alert}.for=77m"])

    assert files(Settings())[f"runbooks/{alert}.md"] == PAGES[alert]
    assert "| `for` | 77m |" in files(changed)[f"runbooks/{alert}.md"].partition(HEADING)[2]


CHANGED = Settings().override(
    f"{alert}.{key}={number.value + 7 + i}"
    for alert, row in TABLE.items()
    for i, (key, number) in enumerate(row.numbers.items())
)
"""Every number another one."""


@pytest.mark.parametrize("alert", ALERTS)
def test_queries_have_the_numbers_of_the_settings(alert: str) -> None:
    """With every number changed no query compares with an old one or looks back over an old window."""
    queries = "\n".join(QUERY.findall(files(CHANGED)[f"runbooks/{alert}.md"]))
    compared = {float(number) for number in re.findall(r"[<>]=? *([\d.]+)", queries)}
    looked_back = set(re.findall(r"\[(\w+)\]", queries))
    own = {key: number for key, number in TABLE[alert].numbers.items() if key not in {"for", "keep"}}

    assert not compared & {number.value for number in own.values() if number.value}
    assert not looked_back & {duration(number.value) for number in own.values() if number.unit == "window"}


@pytest.mark.parametrize("alert", ALERTS)
def test_a_reason_is_that_of_the_default(alert: str) -> None:
    """A number of one's own stands beside the one that its reason is about."""
    told = files(CHANGED)[f"runbooks/{alert}.md"].partition(HEADING)[2]

    assert told.count("| instead of ") == len(TABLE[alert].numbers)
    assert "instead of" not in PAGES[alert].partition(HEADING)[2]


@pytest.mark.parametrize("alert", ALERTS)
def test_prose_calls_numbers_by_name(alert: str) -> None:
    """No sentence has a window or hold of its alert in words."""
    prose = PAGES[alert].partition(HEADING)[0]

    assert not re.search(r"quarter of an hour|\bten in a row|\b10 in a row", prose)


def test_texts_have_the_numbers_of_the_settings() -> None:
    """Descriptions of alerts and panels do not speak of a window or number that is not theirs."""
    for built in (*alerts(CHANGED, Recordings(CHANGED)), *absent_alerts(CHANGED)):
        assert "quarter of an hour" not in built.description
        assert "more than 80 %" not in built.description
    panels = "".join(dashboards(CHANGED).values())
    assert not re.search(r"\b(two|three|3) (such )?(answers )?or more", panels)


WORDS = {
    "outcome": "sse_reconnect_outcome",
    "cause": "sse_reconnect_cause",
    "kind": "sse_stream_kind",
    "end": "sse_stream_end",
}


@pytest.mark.parametrize("word", WORDS)
def test_words_can_be_looked_up(word: str) -> None:
    """The first page explains each value that a legend shows, in one row and no other."""
    rows = re.findall(rf"^\| {word} ([^|]+)\|", PAGES["README"], re.MULTILINE)
    told = [value for row in rows for value in re.findall(r"`(\w+)`", row)]

    assert sorted(told) == sorted(CLOSED[WORDS[word]])


def test_terms_of_panels_can_be_looked_up() -> None:
    """Terms that descriptions of panels use are in the same table."""
    panels = "".join(dashboards(Settings()).values())
    for term in ("priming event", "standing stream", "SEP-1699"):
        assert term in panels
        assert f"**{term}**" in PAGES["README"]


def test_every_cause_of_a_storm_is_explained() -> None:
    """The page has each cause that its query can show."""
    asked = PAGES["SSEReconnectStorm"].partition("What is the cause?")[2].partition("```")[0]

    assert set(re.findall(r"`(\w+)`:", asked)) == {*CLOSED["sse_reconnect_cause"]} - {"server_poll"}


@pytest.mark.parametrize("alert", [*ALERTS, "README"])
def test_nothing_that_does_not_exist(alert: str) -> None:
    """Environment variables, values of attributes and links in the prose are real."""
    text = PAGES[alert]
    links = re.findall(r"\]\((\w+\.md)\)", text)

    assert set(PROMISES.findall(text)) <= VARIABLES
    assert all((HOME / link).is_file() for link in links)


@pytest.mark.parametrize("alert", [*ALERTS, "README"])
def test_a_page_that_grafana_shows(alert: str) -> None:
    """The link of an alert leads to a page that is provisioned beside the dashboards, and says what the file says."""
    shown = json.loads(files(Settings())[f"grafana/runbooks/{alert}.json"])
    (panel,) = shown["panels"]
    words = re.findall(r"\w+", re.sub(r"\(/d/sse-client-(\w+)\)", r"(\1.md)", panel["options"]["content"]))

    assert f"/d/{shown['uid']}" == Settings().runbook_link(alert)
    assert len(shown["uid"]) <= 40
    assert panel["type"] == "text"
    assert panel["options"]["mode"] == "markdown"
    assert words == re.findall(r"\w+", PAGES[alert].partition("\n")[2])
    assert "$" not in panel["options"]["content"]


def test_runbooks_that_are_served_elsewhere() -> None:
    """With an address of one's own every link leads there, in pages and in dashboards alike."""
    settings = Settings(runbooks="https://wiki.example.org/sse")

    assert settings.runbook("SSEStreamStuck") == "https://wiki.example.org/sse/SSEStreamStuck.md"
    assert settings.runbook_link("SSEStreamStuck") == settings.runbook("SSEStreamStuck")


def test_the_last_one_is_found(tmp_path: Path) -> None:
    """The query for when a job last reported gives that moment, also when it is hours ago."""
    (query,) = [q for q in QUERY.findall(PAGES["SSETelemetryAbsent"]) if "timestamp" in q]
    series = (
        'sse_client_instrumentation_errors_total{job="agents", instance="a", sse_instrumentation_site="head"}'
    )
    asked = {"expr": query.strip(), "eval_time": "300m"}
    asked["exp_samples"] = [{"labels": '{job="agents"}', "value": 30 * 60}]
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": "0x30"}],
        "promql_expr_test": [asked],
    }
    (tmp_path / "tests.yml").write_text(json.dumps({"rule_files": [], "tests": [test]}), encoding="utf-8")

    done = run("promtool", "test", "rules", "tests.yml", cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_paths_exist() -> None:
    """Files that the pages name are shipped."""
    for text in PAGES.values():
        for path in re.findall(r"`(prometheus/[\w.-]+)`", text):
            assert (Path(HOME).parent / path).is_file()
