# make demo    real clients against a faulty server, and the metrics that name each fault
# make test    everything: checks, stories, real peers, real Prometheus
# make check   the fast part: lint, types, layers, unit and property tests
# make bench   what watching costs, as ratios
# make output  write the generated dashboards, rules and diagrams anew

PYTHON ?= python3
RUN := .venv/bin
PYTHONS := python-3.10 python-3.12 python-3.13 python-3.14

.PHONY: demo test check lint bench output format system environments suite suite-dashboards versions $(PYTHONS) matrix clean

demo: .venv/ready
	$(RUN)/python -m tests.e2e.demo

# The two halves of the suite run side by side, then the matrix: half of their time they wait, for packages, for
# alerts, or for streams that have nothing to say. One that fails does not hide what the others have to say.
test: system lint environments
	$(MAKE) --keep-going --jobs=2 --output-sync=target suite-dashboards suite versions $(PYTHONS)

# Real processes on a busy machine may miss a moment: what failed is told again, alone, and has to hold then.
suite: .venv/ready
	$(RUN)/python -m pytest -q -o cache_dir=.cache/$@ --ignore=tests/dashboards \
	    || $(RUN)/python -m pytest -q -o cache_dir=.cache/$@ --ignore=tests/dashboards --last-failed

suite-dashboards: .venv/ready
	$(RUN)/python -m pytest -q -o cache_dir=.cache/$@ tests/dashboards \
	    || $(RUN)/python -m pytest -q -o cache_dir=.cache/$@ tests/dashboards --last-failed

versions: .venv/ready
	$(RUN)/nox -f tests/noxfile.py --non-interactive -t $@

$(PYTHONS): .venv/ready
	$(RUN)/nox -f tests/noxfile.py --non-interactive -s $@

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
