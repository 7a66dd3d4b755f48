"""The table of thresholds: what a user may change, and how."""

import pytest
from dashboards.alerts import alerts
from dashboards.recordings import Recordings
from dashboards.rules import rules
from dashboards.thresholds import TABLE, Settings, duration


def test_every_number_has_a_reason() -> None:
    """No number stands in the table without the reason for it."""
    for row in TABLE.values():
        assert {"for", "keep"} <= set(row.numbers)
        assert all(len(number.why) > 10 for number in row.numbers.values())


def test_an_override_reaches_the_rule() -> None:
    """`ALERT.NUMBER=VALUE` changes that number in that rule and nothing else."""
    settings = Settings().override(["SSEStreamStuck.streak=20", "SSEStreamStuck.for=90s"])
    book = Recordings(settings)
    changed = {alert.name: alert for alert in alerts(settings, book)}
    plain = {alert.name: alert for alert in alerts(Settings(), Recordings(Settings()))}

    assert changed["SSEStreamStuck"].expr.endswith(">= 20")
    assert changed["SSEStreamStuck"].hold == 90
    assert {name for name in plain if plain[name] != changed[name]} == {"SSEStreamStuck"}


def test_severity_of_a_page() -> None:
    """`--severity-page` renames what pages; a single alert can be given another severity."""
    settings = Settings(severity_page="page").override(["SSEEmptyReplayLoop.severity=warning"])
    severities = {
        alert.name: alert.severity for alert in alerts(settings, Recordings(settings)) if not alert.variant
    }

    assert severities["SSEStreamStuck"] == "page"
    assert severities["SSEEmptyReplayLoop"] == "warning"
    assert severities["SSEReconnectStorm"] == "warning"


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("SSEStreamStuck", "not of the form"),
        ("SSEStreamStuck=3", "not of the form"),
        ("SSENothing.streak=3", "no alert 'SSENothing'"),
        ("SSEStreamStuck.height=3", "no number 'height'"),
        ("SSEStreamStuck.streak=many", "'many' is no streak"),
        ("SSEStreamStuck.for=4x", "'4x' is no window"),
        ("SSEStreamStuck.for=", "'' is no window"),
    ],
)
def test_a_wrong_override_says_what_is_wrong(assignment: str, complaint: str) -> None:
    """An override that names nothing, or no number, is refused with what there is."""
    with pytest.raises(ValueError, match=complaint):
        Settings().override([assignment])


def test_scaled_rules_are_rules() -> None:
    """On a faster clock windows, ages and volumes shrink together; streaks, ratios and rates stay."""
    scaled = Settings().scaled(1 / 20)

    assert scaled.table["SSEReconnectStorm"]["long"] == 30
    assert scaled.table["SSEReconnectStorm"]["volume"] == 2
    assert scaled.table["SSEReconnectStorm"]["rate"] == 3
    assert scaled.table["SSEStreamStuck"]["streak"] == 10
    assert "increase42s" in rules(scaled)
    assert "interval: 1s" in rules(scaled)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.5, "500ms"), (1, "1s"), (90, "90s"), (840, "14m"), (7200, "2h")]
)
def test_durations(seconds: float, text: str) -> None:
    """Durations are written in the largest unit that fits whole."""
    assert duration(seconds) == text
