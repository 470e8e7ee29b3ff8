#!/usr/bin/env bash
# Everything that has to hold before a change is accepted: on Open MPI all of it, on MPICH the runs with real ranks.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh --tests
# shellcheck source=scripts/mpi_env.sh
. scripts/mpi_env.sh
for tool in cargo mpicc.mpich mpiexec.mpich otf2-print /usr/bin/python3; do
    command -v "$tool" >/dev/null || {
        echo "test.sh: $tool is missing; scripts/setup.sh --check --tests says what to install" >&2
        exit 1
    }
done
target=${CARGO_TARGET_DIR:-target}
# In a clean clone nothing is built twice: what cargo would keep for that costs a tenth of the time.
if [ ! -e "$target/debug" ]; then
    export CARGO_INCREMENTAL=0
fi
# What the runs say, for their summaries in the end, and reports of cargo-nextest, for the table of the slowest tests.
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
# More than cores: tests of the program wait for a third of their time (they need 387 s of a processor, and took 309 s on two idle ones), for launchers, agents,
# and processes that are to be stopped.
side_by_side=$(($(nproc) + ($(nproc) + 1) / 2))
# NAME OPTION... [FILTER...]: runs tests, by cargo-nextest where it is installed: it keeps all cores busy across test binaries, and says how long each test took.
run_tests() {
    local name=$1 status=0 word
    local -a options=() filters=()
    shift
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --locked --test-threads "$side_by_side" "$@" 2>&1 | tee "$reports/$name.log" || status=$?
        cp "${CARGO_TARGET_DIR:-target}/nextest/default/junit.xml" "$reports/$name.xml" 2>/dev/null || true
        return "$status"
    fi
    # Options have one word each here; what follows them is for the test binaries, of which cargo takes one filter only.
    for word in "$@"; do
        if [[ $word == --* ]]; then options+=("$word"); else filters+=("$word"); fi
    done
    cargo test --locked "${options[@]}" -- ${filters[@]+"${filters[@]}"} 2>&1 | tee "$reports/$name.log"
}
set -x
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- -D warnings
scripts/licences
scripts/structure
# Only needs Python. Style and types of the scripts are not checked here but by make lint (scripts/lint.sh).
(cd scripts && /usr/bin/python3 -B -m unittest discover --start-directory tests)
RUSTDOCFLAGS=-Dwarnings cargo doc --locked --workspace --no-deps
# By itself the program has fewer features of its dependencies than beside its tests: it would be built a second time, so that is only checked. The tests
# build target/debug/clc-replay, which what follows them uses.
cargo check --locked
cargo build --locked --package clc-recorder
# The crates that stand alone are tested by scripts/standalone.sh: built there once more, without what others need of their dependencies.
alone=(--exclude=clc-trace --exclude=clc-otf2 --exclude=clc-clock --exclude=controlled-logical-clock)
run_tests open-mpi --workspace "${alone[@]}" --lib --bins --tests
cargo test --locked --workspace --doc "${alone[@]}"
scripts/standalone.sh
CLC_REPLAY=$target/debug/clc-replay scripts/accuracy --check >/dev/null
CLC_REPLAY=$target/debug/clc-replay scripts/accuracy_waits --check >/dev/null
# Only what calls MPI, and what is built on that, has to be built for MPICH as well: the program, and the test that calls MPI itself. Other tests start the
# program, so those that have been built for Open MPI start the one for MPICH.
scripts/seed_target.sh "$target" target-mpich mpi mpi-sys clc-engine clc-replay
MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich CARGO_TARGET_DIR=target-mpich run_tests mpich-transport --test=mpi_transport
export CLC_REPLAY_MPICH=target-mpich/debug/clc-replay
# MPICH is the one with few communicators. The other tests of many of them take minutes with more of its ranks than cores.
CLC_REPLAY_PROGRAM=$CLC_REPLAY_MPICH MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich run_tests mpich-program --test=program mpi_runs:: many_communicators::context_ids
# Of the faults, those on four ranks: signals in every part of a run, cycles, calls that fail. The others are the same up to the launcher.
CLC_REPLAY_PROGRAM=$CLC_REPLAY_MPICH MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich run_tests mpich-faults --test=faults ::4
CLC_REPLAY=$target/debug/clc-replay scripts/soak --short
scripts/scaling --check
scripts/bench --check
{ set +x; } 2>/dev/null
if compgen -G "$reports/*.xml" >/dev/null; then
    scripts/slowest_tests "$reports"/*.xml
else
    echo "test.sh: no list of the slowest tests, which cargo-nextest makes; all tests have run by cargo test"
fi
# What tests leave out where it is not possible, they say only to who looks at their output.
untested=()
scripts/nodes 2 -- true >/dev/null 2>&1 ||
    untested+=("several nodes on one machine: offsets between nodes, failing nodes (scripts/nodes 2 -- true says why)")
[ -n "${CLC_TEST_MPI_5-}" ] ||
    untested+=("programs of the binary interface of MPI 5 (tests/program/recorder/mpi_5.rs says how)")
for what in ${untested[@]+"${untested[@]}"}; do echo "test.sh: NOT TESTED: $what" >&2; done
# The summaries of all runs, in their own words.
for log in "$reports"/*.log; do
    echo "$(basename "$log" .log):"
    grep -E '^ *Summary \[|^test result: ' "$log"
done
