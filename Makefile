# make demo    real clients against a faulty server, and the metrics that name each fault
# make test    everything: checks, stories, real peers, real Prometheus
# make check   the fast part: lint, types, layers, unit and property tests
# make bench   what watching costs, as ratios
# make output  write the generated dashboards, rules and diagrams anew

PYTHON ?= python3
RUN := .venv/bin

.PHONY: demo test check lint bench output format system environments pythons versions matrix clean

demo: .venv/ready
	$(RUN)/python -m tests.e2e.demo

test: system lint environments
	$(MAKE) --jobs=2 pythons versions
	$(RUN)/python -m pytest

# Two parts of the matrix that run side by side: a cell waits for packages half of its time.
pythons versions: .venv/ready
	$(RUN)/nox -f tests/noxfile.py --non-interactive -t $@

environments: .venv/ready
	$(RUN)/python tests/e2e/environments.py

check: lint
	$(RUN)/python -m pytest -m "not e2e" -q

lint: .venv/ready
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/mypy
	$(RUN)/lint-imports --no-logo

matrix: .venv/ready
	$(RUN)/nox -f tests/noxfile.py --non-interactive

bench: .venv/ready
	$(RUN)/python -m tests.bench

output: .venv/ready
	$(RUN)/python -m dashboards
	$(RUN)/python -m tests.readme

format: .venv/ready
	$(RUN)/ruff format
	$(RUN)/ruff check --fix

system:
	sh tests/system.sh

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(RUN)/python -m pip install --quiet --upgrade pip
	$(RUN)/python -m pip install --quiet --group test --editable ".[prometheus]"
	touch $@

clean:
	rm -rf .venv .environments .cache .nox build dist
