# make help lists the targets.

# mpi-sys does not notice another MPICC, hence one target directory per MPI library.
MPICC ?= $(shell command -v mpicc.openmpi || echo mpicc)
MPIEXEC ?= $(shell command -v mpirun.openmpi || echo mpirun)
PREFIX ?= /usr/local
DESTDIR ?=
CARGO_TARGET_DIR ?= target
export MPICC MPIEXEC

# Open MPI refuses to run as root unless told twice. More ranks than cores is what tests do.
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
endif
export OMPI_MCA_rmaps_base_oversubscribe = 1
export OMPI_MCA_hwloc_base_binding_policy = none

.DEFAULT_GOAL := build
.PHONY: help setup demo test bench install build doc fmt lint record clean

help: ## this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

setup: ## installs what is missing, or says what is
	@scripts/setup.sh

build: ## the program, optimised: target/release/clc-replay
	cargo build --release --locked

demo: ## records a trace, corrects it, shows before and after (in demo-out/)
	scripts/demo.sh

test: setup ## everything that has to hold, on Open MPI and on MPICH
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --locked --no-deps
	cargo build --locked
	cargo test --locked
	@command -v mpicc.mpich mpiexec.mpich >/dev/null || { echo "make test: MPICH is missing (scripts/setup.sh --check)"; exit 1; }
	MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich CARGO_TARGET_DIR=target-mpich cargo test --locked --test mpi_runs

bench: setup ## how fast it is on this machine
	scripts/bench.sh

install: build ## into PREFIX (/usr/local), below DESTDIR
	install -d "$(DESTDIR)$(PREFIX)/bin"
	install -m 755 "$(CARGO_TARGET_DIR)/release/clc-replay" "$(DESTDIR)$(PREFIX)/bin/clc-replay"

doc: ## the documentation of the library: target/doc/clc_replay/index.html
	RUSTDOCFLAGS=-Dwarnings cargo doc --locked --no-deps

fmt: ## formats the code
	cargo fmt

lint: ## formatting, clippy, and shellcheck where it is installed
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/*.sh .ci/run; else echo "lint: no shellcheck"; fi

record: setup ## records the traces in tests/data again
	scripts/record_fixtures.sh

clean: ## removes everything that was built or made
	cargo clean
	rm -rf target-mpich demo-out
