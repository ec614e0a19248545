# `make verify` and `make test` set up everything they need in a virtual environment.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# Without a C++ compiler on PATH, pip's ziglang serves (extra `cpu`).
COMPILER := $(firstword $(foreach c,c++ g++ clang++,$(shell command -v $(c) 2>/dev/null)))
comma := ,
EXTRAS := test$(if $(COMPILER),,$(comma)cpu)
STAMP := $(VENV)/.installed-$(if $(COMPILER),host,zig)

.PHONY: verify test test-all lint fmt types bench docs release clean help

help:
	@echo "make verify   set up, run the main job, print where the report is"
	@echo "make test     set up, lint, types, the tests that take no minutes"
	@echo "make test-all set up, lint, types, all tests, and which lines they ran"
	@echo "make lint     ruff and mypy only"
	@echo "make fmt      format the sources"
	@echo "make bench    measure, ratios side by side"
	@echo "make docs     build the pages of the documentation as a site, and print where it is"
	@echo "make release  build wheel and sdist into dist, try them in empty environments of PYTHONS"
	@echo "make clean    remove the virtual environment and caches of this checkout"

$(STAMP): pyproject.toml tokitai_cli/cli/launcher.sh
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tokitai needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@

verify: $(STAMP)
	$(BIN)/tokitai verify gemm-bw --m 64

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fmt: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

test-all: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov

bench: $(STAMP)
	$(BIN)/python -m bench

# The pages, and all files of the checkout that they link to, under the same names.
PAGES := README.md CHANGELOG.md LICENSE docs formulas kernels reports/generated reports/samples specs tests
SITE := build/docs

docs: $(STAMP)
	rm -rf $(SITE)
	mkdir -p $(SITE)/pages
	tar -cf - --exclude=__pycache__ $(PAGES) | tar -xf - -C $(SITE)/pages
	cp mkdocs.yml $(SITE)
	$(BIN)/python -m bench.gallery $(SITE)/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file $(SITE)/mkdocs.yml
	@echo "$(SITE)/site/index.html"

# The versions that are supported.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14

release: $(STAMP)
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	bench/release.sh dist $(PYTHONS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist
	find . -name __pycache__ -prune -exec rm -rf {} +
