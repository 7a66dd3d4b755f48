"""A real Prometheus and a real Alertmanager on loopback ports, with the rules on a clock that runs faster.

    with live.stack(settings=Settings().scaled(1 / 20)) as stack:
        stack.watch("127.0.0.1:9464")
        alert = stack.wait_for("SSEStreamStuck", seconds=60)

Targets are scraped and rules evaluated every second. What Alertmanager sends arrives in `stack.inbox`, so a test
sees the whole way: series, rule, route, message. Ports are free ones; all processes end with the block.
"""

import http.server
import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from dashboards.rules import absent_rules, alertmanager, rules
from dashboards.thresholds import Settings
from tests.ports import free_port

JOB: Final = "agents"
SCALE: Final = 1 / 20
"""Ten minutes pass in thirty seconds."""

STARTING: Final = 30.0
PACE: Final = 0.3
_T = TypeVar("_T")

Alert = Mapping[str, Any]


class NotInTimeError(AssertionError):
    """Something did not happen within the time that it was given; the message says what was there instead."""


@dataclass(slots=True)
class Inbox:
    """Messages of Alertmanager, each with the receiver that it was for."""

    url: str
    messages: list[tuple[str, Alert]] = field(default_factory=list)

    def names(self, receiver: str) -> set[str]:
        """The alerts of which a receiver was told."""
        return {alert["labels"]["alertname"] for to, alert in self.messages if to == receiver}


@dataclass(slots=True)
class Stack:
    """Both servers, while they run."""

    prometheus: str
    alertmanager: str
    inbox: Inbox
    targets: Path
    _addresses: list[str] = field(default_factory=list)

    def watch(self, *addresses: str) -> None:
        """Scrape these from now on as well, `host:port` each."""
        self._addresses += addresses
        fresh = self.targets.with_suffix(".new")
        fresh.write_text(json.dumps([{"targets": self._addresses}]), encoding="utf-8")
        fresh.replace(self.targets)

    def query(self, expr: str) -> list[tuple[dict[str, str], float]]:
        """What an expression is now: labels and value of each series."""
        answer = _get(f"{self.prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": expr}))
        return [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]

    def alerts(self, **labels: str) -> list[Alert]:
        """The alerts that Alertmanager has now, held back ones included."""
        everything = _get(f"{self.alertmanager}/api/v2/alerts")
        return [alert for alert in everything if labels.items() <= alert["labels"].items()]

    def held_back(self) -> set[str]:
        """The names of alerts that are not sent because of another."""
        return {a["labels"]["alertname"] for a in self.alerts() if a["status"]["inhibitedBy"]}

    def fired(self, minutes: float = 60) -> set[str]:
        """The names of all alerts that fired at any time."""
        expr = f'count by (alertname) (count_over_time(ALERTS{{alertstate="firing"}}[{minutes:g}m]))'
        return {labels["alertname"] for labels, _ in self.query(expr)}

    def wait_for(self, alertname: str, *, seconds: float, **labels: str) -> Alert:
        """The first such alert that reaches Alertmanager."""
        return self._soon(
            lambda: next(iter(self.alerts(alertname=alertname, **labels)), None),
            seconds,
            f"{alertname} {labels or ''} did not reach Alertmanager",
        )

    def wait_until_over(self, alertname: str, *, seconds: float, **labels: str) -> None:
        """Until Prometheus has no such alert any more, firing or pending."""
        matchers = ", ".join(f'{key}="{value}"' for key, value in {"alertname": alertname, **labels}.items())
        self._soon(
            lambda: not self.query(f"ALERTS{{{matchers}}}") or None, seconds, f"{alertname} {labels} stays"
        )

    def wait_until_scraped(self, address: str, *, seconds: float = STARTING) -> None:
        """Until a target has answered once."""
        self._soon(
            lambda: self.query(f'up{{instance="{address}"}} == 1') or None,
            seconds,
            f"{address} was not scraped",
        )

    def _soon(self, look: Callable[[], _T | None], seconds: float, complaint: str) -> _T:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if (found := look()) is not None:
                return found
            time.sleep(PACE)
        now = [(labels, value) for labels, value in self.query("ALERTS")]
        raise NotInTimeError(f"{complaint} within {seconds:g} s; there are {now}")


def missing() -> str:
    """Which program of Debian's packages is not installed; nothing if all are."""
    programs = ("prometheus", "prometheus-alertmanager", "promtool", "amtool")
    return ", ".join(name for name in programs if shutil.which(name) is None)


@contextmanager
def stack(settings: Settings | None = None) -> Iterator[Stack]:
    """Start both servers, wait until they are ready, and end them with the block."""
    chosen = settings or Settings(absent_jobs=(JOB,)).scaled(SCALE)
    with ExitStack() as stacked:
        home = Path(stacked.enter_context(tempfile.TemporaryDirectory(prefix="sse-live-")))
        inbox = stacked.enter_context(_inbox())
        ports = {name: free_port() for name in ("prometheus", "alertmanager")}
        targets = home / "targets.json"
        targets.write_text("[]", encoding="utf-8")
        _write(home, chosen, inbox, ports["alertmanager"], targets)
        started = Stack(
            prometheus=f"http://127.0.0.1:{ports['prometheus']}",
            alertmanager=f"http://127.0.0.1:{ports['alertmanager']}",
            inbox=inbox,
            targets=targets,
        )
        stacked.enter_context(
            _process(
                home / "alertmanager.log",
                "prometheus-alertmanager",
                f"--config.file={home / 'alertmanager.yml'}",
                f"--storage.path={home / 'alertmanager'}",
                f"--web.listen-address=127.0.0.1:{ports['alertmanager']}",
                "--cluster.listen-address=",
            )
        )
        stacked.enter_context(
            _process(
                home / "prometheus.log",
                "prometheus",
                f"--config.file={home / 'prometheus.yml'}",
                f"--storage.tsdb.path={home / 'data'}",
                f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
                "--rules.alert.resend-delay=1s",
            )
        )
        for url, log in (
            (f"{started.alertmanager}/-/ready", home / "alertmanager.log"),
            (f"{started.prometheus}/-/ready", home / "prometheus.log"),
        ):
            _ready(url, log)
        yield started


def _write(home: Path, settings: Settings, inbox: Inbox, port: int, targets: Path) -> None:
    (home / "rules.yml").write_text(rules(settings), encoding="utf-8")
    (home / "absent.yml").write_text(absent_rules(settings), encoding="utf-8")
    second = f"{settings.interval:g}s"
    config = {
        "global": {"scrape_interval": second, "scrape_timeout": second, "evaluation_interval": second},
        "rule_files": ["rules.yml", "absent.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]},
        "scrape_configs": [
            {"job_name": JOB, "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}]}
        ],
    }
    (home / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    routing = yaml.safe_load(alertmanager(settings))
    routing["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    for receiver in routing["receivers"]:
        receiver["webhook_configs"] = [{"url": f"{inbox.url}/{receiver['name']}"}]
    (home / "alertmanager.yml").write_text(yaml.safe_dump(routing), encoding="utf-8")


@contextmanager
def _process(log: Path, *command: str) -> Iterator[None]:
    with log.open("w") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def _inbox() -> Iterator[Inbox]:
    box = Inbox(url="")

    class Receiver(http.server.BaseHTTPRequestHandler):
        """Takes what Alertmanager posts; the path is the receiver."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            box.messages += [(self.path.strip("/"), alert) for alert in body["alerts"]]
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        box.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join()


def _ready(url: str, log: Path) -> None:
    limit = time.monotonic() + STARTING
    while time.monotonic() < limit:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - a loopback address of ours
                if answer.status == http.HTTPStatus.OK:
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):  # noqa: PERF203 - it waits anyway
            time.sleep(PACE)
    raise NotInTimeError(f"{url} is not ready:\n{log.read_text(encoding='utf-8')[-2000:]}")


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - as above
        return json.load(answer)
