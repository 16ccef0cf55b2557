# The verbs of this repository. `make` alone lists them.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint format bench newcomer versus report soak interop interop-franz interop-iggy interop-librdkafka interop-spark protos stubs clean java kernels

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PYTHON := $(shell for python in python3.11 python3 python3.12 python3.13; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		&& { command -v $$python; break; }; done)
PROTOS := $(shell find src -name '*.proto')
SOURCES := src tests benchmarks
SCALE := quick
RESULT := docs/benchmarks/versus.json

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) java kernels ## Flights in through three clients, out through three, and a table in Spark
	$(BIN)/penstock demo

test: $(INSTALLED) java kernels ## All tests but the long runs
	$(BIN)/pytest

lint: $(INSTALLED) ## Style, formatting and types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

format: $(INSTALLED) ## Format the source and repair what can be repaired
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(INSTALLED) kernels ## Throughput, broker CPU, start-up, memory; FLAGS=--save keeps it to compare with
	$(BIN)/python benchmarks/startup.py $(FLAGS)
	$(BIN)/python benchmarks/throughput.py $(FLAGS)
	$(BIN)/python benchmarks/request_cost.py $(FLAGS)
	$(BIN)/python benchmarks/produce_cost.py $(FLAGS)
	$(BIN)/python benchmarks/fetch_sessions.py $(FLAGS)
	$(BIN)/python benchmarks/iggy_dialects.py $(FLAGS)
	$(BIN)/python benchmarks/log_append.py
	$(BIN)/python benchmarks/records_convert.py

newcomer: $(INSTALLED) ## Install it in five ways and use it for the first time; FLAGS=3.12 for one
	$(BIN)/python benchmarks/newcomer.py $(FLAGS)

versus: $(INSTALLED) kernels ## Beside Kafka, Pulsar and Iggy: SCALE=medium or full takes hours, FLAGS=--help; SPARK=1: Spark's source
	PYTHONPATH=benchmarks:tests/support $(BIN)/python -m versus$(if $(SPARK),.spark) --scale $(SCALE) $(FLAGS)

report: $(INSTALLED) ## docs/benchmarks.md and its plots, from RESULT=file of `make versus`
	PYTHONPATH=benchmarks $(BIN)/python -m versus.report $(RESULT)

soak: $(INSTALLED) java kernels ## The long runs: 100 crashes, many more random cases
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -m "soak or hypothesis" --timeout 3600

interop: $(INSTALLED) kernels ## What each real client writes, each real client reads, old ones too: many more cases
	HYPOTHESIS_PROFILE=interop $(BIN)/pytest tests/interop -m "soak or not soak" --timeout 3600

interop-iggy: $(INSTALLED) java kernels ## Iggy's clients of 2023 to 0.9, of Java too, and their suites (takes cargo, libssl-dev, mvn)
	PYTHONPATH=tests/support:benchmarks $(BIN)/python -m iggy_suites
	OPENSSL_NO_VENDOR=1 cargo build --quiet --target-dir build/early-iggy \
		--manifest-path tests/support/early_iggy/Cargo.toml
	$(BIN)/pytest tests/interop/test_older_iggy.py tests/interop/test_early_iggy.py \
		tests/interop/test_java_iggy.py tests/interop/test_published_iggy_suites.py \
		-m "soak or not soak" --timeout 1800

interop-franz: $(INSTALLED) kernels ## The tests of franz-go, a client in Go, from its module (takes go)
	PYTHONPATH=tests/support $(BIN)/python -m franz_suite
	$(BIN)/pytest tests/interop/test_published_franz_suite.py -m "soak or not soak"

interop-librdkafka: $(INSTALLED) kernels ## librdkafka's own tests, from Debian's source package of it; FLAGS=0081 for one
	PYTHONPATH=tests/support $(BIN)/python -m librdkafka_suite $(FLAGS)

interop-spark: $(INSTALLED) java kernels ## Spark 4.2 and 4.3, Connect and a cluster, with Python 3.11, 3.12 and 3.13
	PYTHONPATH=tests/support $(BIN)/python -m spark_environments
	$(BIN)/pytest tests/pipeline/places -m soak

protos: $(INSTALLED) ## Compile the protobuf declarations again
	for proto in $(PROTOS); do \
		$(BIN)/python -m grpc_tools.protoc --plugin=$(BIN)/protoc-gen-mypy \
			-I src --python_out=src --mypy_out=src $$proto || exit 1; \
	done

stubs: $(INSTALLED) ## Write the type stubs of Kafka's messages again
	$(BIN)/python -m penstock.kafka.wire.stubs

clean: ## Remove what was built, but no data folder
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist \
		src/penstock/records/kernels/compiled
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
ifeq ($(PYTHON),)
	@echo "Penstock needs Python 3.11 or later: on Debian, apt-get install python3 python3-venv" >&2
	@exit 1
endif
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "venv is missing: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV), once; this takes a minute or two."
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@

# A minute, once for each state of the source of `records`.
kernels: $(INSTALLED)
	@$(BIN)/python -m kernel_compiler

java:
	@java -version >/dev/null 2>&1 || { \
		echo "Spark needs a Java runtime, 17 or later: on Debian," \
			"apt-get install openjdk-17-jre-headless" >&2; exit 1; }
