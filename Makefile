# make help lists the targets.

# The MPI library is chosen by its compiler wrapper. mpi-sys does not notice a change: use one CARGO_TARGET_DIR each.
MPICC ?= $(shell command -v mpicc.openmpi || echo mpicc)
export MPICC
PREFIX ?= /usr/local
DESTDIR ?=
CARGO_TARGET_DIR ?= target

.DEFAULT_GOAL := build
.PHONY: help setup demo test soak fuzz miri memcheck asan bench scaling accuracy install install-built build doc fmt lint record clean

help: ## this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

setup: ## installs what is missing for the program and its tests, or says what is
	@scripts/setup.sh --tests

build: ## the program, optimised: target/release/clc-replay
	cargo build --release --locked

demo: ## records an application with wrong clocks, corrects it, shows before and after against the truth (in demo-out/)
	scripts/demo.sh

test: ## everything that has to hold, on Open MPI and on MPICH
	scripts/test.sh

soak: build ## corrects 1,000 random traces on both MPI libraries and verifies each (N=200: so many)
	MPICC=mpicc.mpich CARGO_TARGET_DIR=target-mpich cargo build --release --locked
	scripts/soak --count $(or $(N),1000)

fuzz: ## searches for inputs that make it fail, guided by coverage (SECONDS=600: so long for each target)
	scripts/fuzz.sh $(or $(SECONDS),60)

miri: ## undefined behaviour in the layers without MPI and files; needs nightly Rust with miri and rust-src
	scripts/sanitize.sh miri

memcheck: ## wrong uses of memory in some runs without MPI; needs valgrind
	scripts/sanitize.sh memcheck

asan: ## wrong uses of memory in tests with and without MPI; needs nightly Rust
	scripts/sanitize.sh address

bench: build ## how fast it is on this machine
	cargo bench --locked --bench kernels
	scripts/bench

scaling: build ## measures what docs/scaling.md is made from, and makes it
	scripts/scaling --measure

accuracy: build ## how far corrected traces are from the truth
	scripts/accuracy

install: build install-built ## program, recorder, documentation, man pages, completions into PREFIX (/usr/local), below DESTDIR

# The program describes itself: nothing of this is kept in the repository.
PROGRAM ?= $(CARGO_TARGET_DIR)/release/clc-replay
SHARE = $(DESTDIR)$(PREFIX)/share
install-built:
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(SHARE)/man/man1" "$(SHARE)/bash-completion/completions" \
		"$(SHARE)/zsh/site-functions" "$(SHARE)/fish/vendor_completions.d"
	install -m 755 "$(PROGRAM)" "$(DESTDIR)$(PREFIX)/bin/clc-replay"
	install -d "$(DESTDIR)$(PREFIX)/lib"
	install -m 755 "$(dir $(PROGRAM))libclc_recorder.so" "$(DESTDIR)$(PREFIX)/lib/libclc_recorder.so"
	@# Line numbers stay with what was built: they are four fifths of it. Names of functions stay, for backtraces.
	if command -v strip >/dev/null; then strip --strip-debug "$(DESTDIR)$(PREFIX)/bin/clc-replay" "$(DESTDIR)$(PREFIX)/lib/libclc_recorder.so"; fi
	install -d "$(DESTDIR)$(PREFIX)/include"
	install -m 644 src/marks/clc_recorder.h src/marks/clc_monitor.h "$(DESTDIR)$(PREFIX)/include/"
	@# What help texts and manual pages name as docs/...
	install -d "$(SHARE)/doc/clc-replay/docs"
	install -m 644 README.md LICENSE "$(SHARE)/doc/clc-replay/"
	install -m 644 docs/*.md docs/*.png "$(SHARE)/doc/clc-replay/docs/"
	@# The pictures that these pages show.
	for pictures in docs/*/; do \
		install -d "$(SHARE)/doc/clc-replay/$$pictures"; \
		install -m 644 "$$pictures"*.svg "$(SHARE)/doc/clc-replay/$$pictures"; \
	done
	"$(PROGRAM)" man --quiet "$(SHARE)/man/man1"
	"$(PROGRAM)" completions bash > "$(SHARE)/bash-completion/completions/clc-replay"
	"$(PROGRAM)" completions zsh > "$(SHARE)/zsh/site-functions/_clc-replay"
	"$(PROGRAM)" completions fish > "$(SHARE)/fish/vendor_completions.d/clc-replay.fish"

doc: ## the documentation of the library: target/doc/clc_replay/index.html
	RUSTDOCFLAGS=-Dwarnings cargo doc --locked --workspace --no-deps

fmt: ## formats the code, the Python scripts where ruff is installed
	cargo fmt --all
	@if command -v ruff >/dev/null; then ruff format --config scripts/pyproject.toml scripts tests; else echo "fmt: no ruff, Python is left as it is"; fi

lint: ## formatting, clippy, licences, imports between files; shellcheck, ruff, mypy where they are installed (it says which are not)
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	scripts/licences
	scripts/structure
	scripts/lint.sh

record: setup ## records the traces in tests/data again
	scripts/record_fixtures.sh

clean: ## removes everything that was built or made
	cargo clean
	rm -rf target-mpich demo-out
