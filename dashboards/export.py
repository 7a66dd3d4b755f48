"""Write everything out: dashboards, rules, alerts, provisioning, runbooks and examples, with the user's own numbers.

python -m opentelemetry.instrumentation.httpx_sse export DIR --job agents --threshold SSEStreamStuck.streak=20
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from . import endpoint, grafana_rules, overview, pages, provisioning, rules
from .panels import json_text
from .thresholds import Settings

OVERVIEW_FILE: Final = "grafana/dashboards/sse-overview.json"
ENDPOINT_FILE: Final = "grafana/dashboards/sse-endpoint.json"

_JOB: Final = re.compile(r"[\w./:@ -]+")
_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_URL: Final = re.compile(r"https?://[^\s\"'<>{}$]+")


def dashboards(settings: Settings) -> dict[str, str]:
    """Every file of the dashboards by its path under `dashboards/`."""
    return {
        OVERVIEW_FILE: json_text(overview.build(settings)),
        ENDPOINT_FILE: json_text(endpoint.build(settings)),
    }


PARTS: Final[tuple[Callable[[Settings], Mapping[str, str]], ...]] = (
    dashboards,
    provisioning.files,
    rules.files,
    grafana_rules.files,
    pages.files,
)


def files(settings: Settings) -> dict[str, str]:
    """Everything that is written, by its path."""
    return {path: text for part in PARTS for path, text in part(settings).items()}


def write(folder: Path, settings: Settings) -> list[Path]:
    written = []
    for path, text in files(settings).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def outdated(folder: Path, settings: Settings) -> list[str]:
    """Paths whose file is missing or says something else."""
    return [
        path
        for path, text in files(settings).items()
        if not (folder / path).is_file() or (folder / path).read_text(encoding="utf-8") != text
    ]


# ------------------------------------------------------------------ the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Settings()
    parser.add_argument("folder", metavar="DIR", type=_folder, help="where to write; made if it is missing")
    parser.add_argument(
        "--job",
        action="append",
        default=[],
        type=_job,
        metavar="NAME",
        help="the `job` of your clients, several times for several; every job by default",
    )
    parser.add_argument(
        "--severity-page",
        default=defaults.severity_page,
        metavar="VALUE",
        help=f"what the `severity` label says when somebody is to be woken ({defaults.severity_page})",
    )
    parser.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="ALERT.NUMBER=VALUE",
        help="another number for an alert, such as SSEStreamStuck.streak=20, SSEReconnectStorm.for=10m or "
        "SSERequestsLost.severity=info; several times for several",
    )
    parser.add_argument(
        "--grafana",
        default=defaults.grafana,
        type=_url,
        metavar="URL",
        help=f"what links in alerts begin with ({defaults.grafana})",
    )
    parser.add_argument(
        "--datasource",
        default=defaults.datasource,
        type=_uid,
        metavar="UID",
        help=f"the uid of the data source in Grafana that has the series ({defaults.datasource})",
    )
    parser.add_argument(
        "--runbooks",
        type=_url,
        metavar="URL",
        help="where you serve the runbooks; by default Grafana shows them, beside the dashboards",
    )


def _folder(text: str) -> Path:
    folder = Path(text)
    if folder.exists() and not folder.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no folder")
    return folder


def _job(text: str) -> str:
    if not _JOB.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a job: letters, digits and . _ / : @ -")
    return text


def _pattern(job: str) -> str:
    """A regular expression for one job. `[.]` needs no backslash, which PromQL, JSON and Grafana read differently."""
    return job.replace(".", "[.]")


def _uid(text: str) -> str:
    if not _UID.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no uid of Grafana: 40 letters, digits, _ and - at most"
        )
    return text


def _url(text: str) -> str:
    if not _URL.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no http or https URL")
    return text.rstrip("/")


def settings_of(given: argparse.Namespace) -> Settings:
    """Settings as the options say. Raises `ValueError` with a sentence for the user."""
    if not re.fullmatch(r"\w[\w.-]*", given.severity_page):
        raise ValueError(f"--severity-page: {given.severity_page!r} is no value for a label")
    defaults = Settings()
    jobs = tuple(dict.fromkeys(given.job))
    chosen = Settings(
        job="|".join(_pattern(job) for job in jobs),
        absent_jobs=jobs or defaults.absent_jobs,
        severity_page=given.severity_page,
        grafana=given.grafana,
        datasource=given.datasource,
        runbooks=given.runbooks or defaults.runbooks,
    )
    try:
        return chosen.override(given.threshold)
    except ValueError as error:
        raise ValueError(f"--threshold: {error}") from None


def run(given: argparse.Namespace) -> int:
    try:
        settings = settings_of(given)
        written = write(given.folder, settings)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(written)} files in {given.folder}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    return run(parser.parse_args(arguments))
