"""`python -m opentelemetry.instrumentation.httpx_sse export`: from the checkout, and from the wheel alone."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml
from dashboards import __main__ as generate
from dashboards import export
from dashboards.thresholds import Settings

from opentelemetry.instrumentation.httpx_sse import __main__ as command
from opentelemetry.instrumentation.httpx_sse import dashboards as packaged

CHECKOUT = Path(__file__).resolve().parents[2]
COMMITTED = CHECKOUT / "dashboards"


def written(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_export_without_options_is_the_committed_output(tmp_path: Path) -> None:
    """What is in the repository is what a user gets."""
    assert command.main(["export", str(tmp_path)]) == 0

    found = written(tmp_path)
    assert found == {path: (COMMITTED / path).read_text(encoding="utf-8") for path in found}
    assert set(found) == set(export.files(Settings()))


def test_the_package_has_the_generators_of_the_checkout() -> None:
    """One folder under two names: a link, followed by an editable install."""
    assert packaged.__file__ is not None
    assert Path(packaged.__file__).resolve().parent == COMMITTED


def test_an_export_keeps_what_is_not_its_own(tmp_path: Path) -> None:
    """A file of the user's beside ours stays, a second export replaces the first."""
    mine = tmp_path / "grafana" / "dashboards" / "mine.json"
    mine.parent.mkdir(parents=True)
    mine.write_text("{}", encoding="utf-8")

    for _ in range(2):
        assert command.main(["export", str(tmp_path)]) == 0

    assert mine.read_text(encoding="utf-8") == "{}"


def test_options_reach_every_file(tmp_path: Path) -> None:
    """Job, severity, numbers and addresses of one's own are in rules, Grafana rules and dashboards alike."""
    options = ["--job", "agents", "--job", "team.a", "--severity-page", "page"]
    options += ["--threshold", "SSEStreamStuck.streak=23", "--threshold", "SSEReconnectStorm.for=7m"]
    options += ["--datasource", "mimir-1"]
    options += ["--grafana", "https://grafana.example.org/", "--runbooks", "https://wiki.example.org/sse"]

    assert command.main(["export", str(tmp_path), *options]) == 0

    found = written(tmp_path)
    groups = yaml.safe_load(found["prometheus/sse-client.rules.yml"])["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    stuck = next(rule for rule in rules if rule.get("alert") == "SSEStreamStuck")
    storm = next(rule for rule in rules if rule.get("alert") == "SSEReconnectStorm")
    assert stuck["labels"]["severity"] == "page"
    assert stuck["expr"].endswith(">= 23")
    assert 'job=~"agents|team[.]a"' in stuck["expr"]
    assert stuck["annotations"]["dashboard"].startswith("https://grafana.example.org/d/")
    assert stuck["annotations"]["runbook_url"].startswith("https://wiki.example.org/sse/")
    assert storm["for"] == "7m"
    assert ">= 23" in found["grafana/provisioning/alerting/sse-client.yaml"]
    assert "datasourceUid: mimir-1\n" in found["grafana/provisioning/alerting/sse-client.yaml"]
    assert "datasourceUid: prometheus\n" not in found["grafana/provisioning/alerting/sse-client.yaml"]
    assert "uid: mimir-1\n" in found["datasources/sse-client.yaml"]
    overview = found[export.OVERVIEW_FILE]
    assert '"value": 23' in overview
    assert '"allValue": "agents|team[.]a"' in overview
    assert "https://wiki.example.org/sse/SSEStreamStuck.md" in overview


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--threshold", "SSEStreamStuc.streak=20"],
            "no alert 'SSEStreamStuc'; there are SSEReconnectStorm,",
        ),
        (
            ["--threshold", "SSEStreamStuck.steak=20"],
            "SSEStreamStuck has no number 'steak'; it has severity,",
        ),
        (["--threshold", "SSEStreamStuck.streak=many"], "'many' is no streak"),
        (["--threshold", "SSEStreamStuck"], "is not of the form ALERT.NUMBER=VALUE"),
        (["--severity-page", "wake me"], "'wake me' is no value for a label"),
        (["--job", 'a"b'], "is no name of a job"),
        (["--datasource", "my prometheus"], "is no uid of Grafana"),
        (["--runbooks", "ftp://here"], "is no http or https URL"),
        (["--no-such-option"], "unrecognized arguments"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_bad_option_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    """The exit status is 2, the message names what is wrong, nothing is written and no traceback shown."""
    folder = tmp_path / "out"
    try:
        status: object = command.main(["export", str(folder), *options])
    except SystemExit as end:
        status = end.code

    told = capsys.readouterr().err
    assert status == 2
    assert said in told
    assert "Traceback" not in told
    assert not folder.exists()


def test_a_file_is_no_folder_to_write_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told before anything is written."""
    (tmp_path / "file").touch()

    with pytest.raises(SystemExit, match="2"):
        command.main(["export", str(tmp_path / "file")])

    assert "is no folder" in capsys.readouterr().err


def test_check_says_which_file_is_old(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m dashboards --check` changes nothing; without the option it writes."""
    monkeypatch.setattr(generate, "HERE", tmp_path)

    assert generate.main(["--check"]) == 1
    assert f"not current: {export.OVERVIEW_FILE}" in capsys.readouterr().err
    assert written(tmp_path) == {}

    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_wheel_alone_can_export(tmp_path: Path) -> None:
    """Built through the source archive and installed into an empty environment, it writes the same files."""
    built, fresh, out = tmp_path / "built", tmp_path / "fresh", tmp_path / "out"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}

    def run(*words: str | Path) -> None:
        done = subprocess.run(words, cwd=tmp_path, env=clean, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    run(sys.executable, "-m", "build", "--outdir", built, CHECKOUT)
    (wheel,) = built.glob("*.whl")
    venv.create(fresh, with_pip=True)
    python = fresh / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    run(python, "-m", "opentelemetry.instrumentation.httpx_sse", "export", out)

    assert written(out) == export.files(Settings())
