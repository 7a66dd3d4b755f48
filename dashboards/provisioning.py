"""What Grafana needs to load the rest by itself, and a compose file that starts everything.

All containers share one network: `localhost` means the same in every file, in the examples and on a desk.
"""

from pathlib import Path
from typing import Final

from .frame import TAG
from .grafana_rules import FOLDER
from .text import GENERATED, Data, yaml
from .thresholds import Settings, duration

DATASOURCE_FILE: Final = "datasources/sse-client.yaml"
"""Not in the folder `grafana`, which is copied whole into a Grafana that may have its data sources already."""

DASHBOARDS_FILE: Final = "grafana/provisioning/dashboards/sse-client.yaml"
COMPOSE_FILE: Final = "compose.yaml"
DEMO_FILE: Final = "demo.sh"
"""Written by hand; the only file here that is."""

SCRAPE: Final = 15.0
"""Seconds between scrapes of the example; over OTLP put the export interval here, 60 s unless it was changed."""

DASHBOARDS: Final = "/etc/grafana/dashboards"
RUNBOOKS: Final = "/etc/grafana/runbooks"
IMAGES: Final = {
    "prometheus": "prom/prometheus:v3.5.0",
    "alertmanager": "prom/alertmanager:v0.28.1",
    "grafana": "grafana/grafana:12.2.0",
    "demo": "python:3.12-slim",
}


def files(settings: Settings) -> dict[str, str]:
    """Every file of this part by its path under `dashboards/`."""
    return {
        DATASOURCE_FILE: datasource(settings),
        DASHBOARDS_FILE: dashboards(),
        COMPOSE_FILE: compose(),
        DEMO_FILE: (Path(__file__).parent / DEMO_FILE).read_text(encoding="utf-8"),
    }


def datasource(settings: Settings) -> str:
    """What compose's Grafana asks, and an example for one that has no data source yet.

    It is not the default: a Grafana with two of those does not start, and an only one is chosen all the same.
    """
    head = (
        GENERATED
        + "# For a Grafana that has no data source for your Prometheus yet; write its address into url.\n"
        "# timeInterval is the time between two samples. Grafana works $__rate_interval out of it: too\n"
        "# short a value leaves panels empty. Over OTLP it is the interval of the export, 60s by default.\n"
    )
    source: dict[str, Data] = {
        "name": "Prometheus (SSE client)",
        "uid": settings.datasource,
        "type": "prometheus",
        "access": "proxy",
        "url": "http://localhost:9090",
        "isDefault": False,
        "editable": False,
        "jsonData": {
            "httpMethod": "POST",
            "prometheusType": "Prometheus",
            "timeInterval": duration(SCRAPE),
        },
    }
    return yaml({"apiVersion": 1, "datasources": [source]}, head=head)


def dashboards() -> str:
    """Dashboards and runbooks, each in a folder of its own."""
    return yaml(
        {
            "apiVersion": 1,
            "providers": [
                _provider(TAG, FOLDER, DASHBOARDS),
                _provider(f"{TAG}-runbooks", f"{FOLDER}: runbooks", RUNBOOKS),
            ],
        }
    )


def _provider(name: str, folder: str, path: str) -> Data:
    return {
        "name": name,
        "orgId": 1,
        "folder": folder,
        "type": "file",
        "disableDeletion": False,
        "updateIntervalSeconds": 30,
        "allowUiUpdates": False,
        "options": {"path": path, "foldersFromFilesStructure": False},
    }


# ------------------------------------------------------------------ compose

_COMPOSE_HEAD: Final = (
    GENERATED
    + """\
# Prometheus on 9090, Alertmanager on 9093, Grafana on 3000 (no login), and a demo to look at: an unmodified MCP
# client against a server that answers every resume with nothing.
#
#   docker compose up
#   DEMO_FAULT=healthy-polling DEMO_TOOL=report_later docker compose up
#
# The demo is run from a checkout, by default the folder above this one: SSE_CHECKOUT names another. To watch
# programs of your own, take the demo out and write their addresses into prometheus/prometheus.yml.
"""
)


def compose() -> str:
    beside: dict[str, Data] = {"network_mode": "service:prometheus", "restart": "unless-stopped"}
    services: dict[str, Data] = {
        "prometheus": {
            "image": IMAGES["prometheus"],
            "command": ["--config.file=/etc/prometheus/prometheus.yml", "--web.enable-lifecycle"],
            "volumes": ["./prometheus:/etc/prometheus:ro"],
            "ports": ["127.0.0.1:9090:9090", "127.0.0.1:9093:9093", "127.0.0.1:3000:3000"],
            "restart": "unless-stopped",
        },
        "alertmanager": {
            "image": IMAGES["alertmanager"],
            "command": ["--config.file=/etc/alertmanager/alertmanager.yml"],
            "volumes": ["./alertmanager:/etc/alertmanager:ro"],
            **beside,
        },
        "grafana": {
            "image": IMAGES["grafana"],
            "environment": {
                "GF_AUTH_ANONYMOUS_ENABLED": "true",
                "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
                "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": f"{DASHBOARDS}/sse-overview.json",
            },
            "volumes": [
                "./grafana/provisioning/alerting:/etc/grafana/provisioning/alerting:ro",
                "./grafana/provisioning/dashboards:/etc/grafana/provisioning/dashboards:ro",
                "./datasources:/etc/grafana/provisioning/datasources:ro",
                f"./grafana/dashboards:{DASHBOARDS}:ro",
                f"./grafana/runbooks:{RUNBOOKS}:ro",
            ],
            **beside,
        },
        "demo": {
            "image": IMAGES["demo"],
            "working_dir": "/src",
            "environment": {
                "DEMO_FAULT": "${DEMO_FAULT:-empty-resume}",
                "DEMO_TOOL": "${DEMO_TOOL:-report}",
                "OTEL_METRICS_EXPORTER": "prometheus",
                "OTEL_TRACES_EXPORTER": "none",
                "OTEL_LOGS_EXPORTER": "none",
                "OTEL_SERVICE_NAME": "sse-demo",
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            "command": ["sh", f"/{DEMO_FILE}"],
            "init": True,
            "volumes": ["${SSE_CHECKOUT:-..}:/src:ro", f"./{DEMO_FILE}:/{DEMO_FILE}:ro"],
            **beside,
        },
    }
    return yaml({"name": TAG, "services": services}, head=_COMPOSE_HEAD)
