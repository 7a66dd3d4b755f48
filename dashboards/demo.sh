#!/bin/sh
# An unmodified MCP client, watched, against a server with one fault: what compose.yaml shows on its dashboards.
# Needs a checkout as its working directory; installs what is missing. Metrics are on localhost:9464.
set -eu

command -v opentelemetry-instrument >/dev/null ||
    pip install --quiet --disable-pip-version-check "$PWD[prometheus]" 'mcp >= 2.3, < 3' 'httpx2 >= 2, < 3' uvicorn

# The server lives as long as its standard input is open: as long as this script, then the client.
folder=$(mktemp -d)
mkfifo "$folder/alive"
python -m tests.e2e.demo.server --fault "${DEMO_FAULT:-empty-resume}" --seconds 86400 \
    <"$folder/alive" >"$folder/told" &
exec 3>"$folder/alive"
until [ -s "$folder/told" ]; do sleep 0.2; done
url=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$folder/told")

export OTEL_METRICS_EXPORTER=prometheus OTEL_TRACES_EXPORTER=none OTEL_LOGS_EXPORTER=none
exec opentelemetry-instrument python -m tests.e2e.demo.client_mcp2 "$url" \
    --tool "${DEMO_TOOL:-report}" --seconds 86400
