#!/bin/sh
# What the tests need beside Python: Prometheus, Alertmanager. Debian's packages, where apt is there
# and may be used; otherwise the tests that need them say so and are skipped.
set -eu

missing=""
command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
command -v amtool >/dev/null 2>&1 || missing="$missing prometheus-alertmanager"
[ -n "$missing" ] || exit 0

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "not installed, and apt-get is not at hand:$missing" >&2
fi
