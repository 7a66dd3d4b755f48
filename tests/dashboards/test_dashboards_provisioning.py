"""What is around the dashboards: provisioning, the compose file, and that the files agree with each other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboards import export, provisioning
from dashboards.frame import TAG
from dashboards.thresholds import Settings
from tests.e2e.demo.faults import FAULTS
from tests.e2e.demo.scenarios import SCENARIOS

HERE = Path(export.__file__).parent
FILES = export.files(Settings())


def read(path: str) -> Any:
    return yaml.safe_load(FILES[path])


COMPOSE = read(provisioning.COMPOSE_FILE)
SERVICES: dict[str, Any] = COMPOSE["services"]


def test_the_data_source_knows_how_often_it_is_fed() -> None:
    """Grafana works its rate interval out of `timeInterval`: it is the scrape interval of the example."""
    (source,) = read(provisioning.DATASOURCE_FILE)["datasources"]

    assert (
        source["jsonData"]["timeInterval"] == read("prometheus/prometheus.yml")["global"]["scrape_interval"]
    )
    assert source["type"] == "prometheus"
    assert source["access"] == "proxy"


def test_a_grafana_with_data_sources_keeps_them() -> None:
    """What is copied into Grafana as a whole has no data source, and the example's is never the default."""
    (source,) = read(provisioning.DATASOURCE_FILE)["datasources"]

    assert not any(path.startswith("grafana/provisioning/datasources/") for path in FILES)
    assert source["isDefault"] is False
    assert all("sse-client" in Path(path).name for path in FILES if path.startswith("grafana/provisioning/"))


def test_grafana_rules_ask_the_provisioned_data_source() -> None:
    """The uid in every rule is that of the data source; an expression has its own."""
    (source,) = read(provisioning.DATASOURCE_FILE)["datasources"]
    (group,) = read("grafana/provisioning/alerting/sse-client.yaml")["groups"]
    uids = {query["datasourceUid"] for rule in group["rules"] for query in rule["data"]}

    assert uids == {source["uid"], "__expr__"}


def test_dashboards_are_provided_from_the_folder_that_compose_mounts() -> None:
    """A provider's path is where the container has the committed JSON, runbooks beside; nobody edits it there."""
    providers = read(provisioning.DASHBOARDS_FILE)["providers"]
    paths = [provider["options"]["path"] for provider in providers]

    for folder, path in zip(("dashboards", "runbooks"), paths, strict=True):
        assert f"./grafana/{folder}:{path}:ro" in SERVICES["grafana"]["volumes"]
        assert any(name.startswith(f"grafana/{folder}/") for name in FILES)
    assert len({provider["name"] for provider in providers}) == len({*paths}) == len(providers)
    assert all(provider["type"] == "file" and not provider["allowUiUpdates"] for provider in providers)
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (HERE / "grafana/dashboards" / Path(home).name).is_file()


def test_compose_starts_all_four_and_the_demo_is_scraped() -> None:
    """Prometheus, Alertmanager, Grafana and the demo share one network, so `localhost` is right everywhere."""
    scraped = read("prometheus/prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"]

    assert COMPOSE["name"] == TAG
    assert set(SERVICES) == {"prometheus", "alertmanager", "grafana", "demo"}
    shared = {name for name, service in SERVICES.items() if service.get("network_mode")}
    assert shared == {"alertmanager", "grafana", "demo"}
    assert {SERVICES[name]["network_mode"] for name in shared} == {"service:prometheus"}
    assert scraped == ["localhost:9464"]
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["prometheus"]["ports"])


def test_images_are_pinned() -> None:
    """The same files start the same programs next year."""
    for service in SERVICES.values():
        name, _, tag = service["image"].partition(":")
        assert name
        assert re.search(r"\d", tag)


@pytest.mark.parametrize("service", SERVICES)
def test_what_compose_mounts_is_there(service: str) -> None:
    """Every file and folder that a container mounts is among the output, and read-only."""
    for volume in SERVICES[service]["volumes"]:
        outside, _, mode = volume.rpartition(":")
        outside = outside.rpartition(":")[0]
        assert mode == "ro"
        if not outside.startswith("${"):
            assert (HERE / outside).exists()
            assert any(path.startswith(outside.removeprefix("./")) for path in FILES)
    for argument in SERVICES[service].get("command", ()):
        folder, equals, path = argument.partition("--config.file=/etc/")
        assert folder or not equals or path in FILES


def test_the_demo_of_compose_is_one_that_exists() -> None:
    """Its defaults, and those that the file's head recommends, are a fault and its tool."""
    told = "\n".join((FILES[provisioning.COMPOSE_FILE], FILES[provisioning.DEMO_FILE]))
    tools = {scenario.fault: scenario.tool for scenario in SCENARIOS}
    faults = set(re.findall(r"DEMO_FAULT(?::-|=)([a-z-]+)", told))

    assert faults == {"empty-resume", "healthy-polling"}
    assert faults <= set(FAULTS)
    assert {tools[fault] for fault in faults} == set(re.findall(r"DEMO_TOOL(?::-|=)([a-z_]+)", told))


def test_the_script_of_the_demo_is_a_script() -> None:
    """The shell can read it."""
    subprocess.run(["sh", "-n", HERE / provisioning.DEMO_FILE], check=True)
