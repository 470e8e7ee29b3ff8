#!/usr/bin/env bash
# Everything that has to hold before a change is accepted: on Open MPI all of it, on MPICH the runs with real ranks.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
# shellcheck source=scripts/mpi_env.sh
. scripts/mpi_env.sh
for tool in cargo mpicc.mpich mpiexec.mpich otf2-print /usr/bin/python3; do
    command -v "$tool" >/dev/null || {
        echo "test.sh: $tool is missing; scripts/setup.sh --check says what to install" >&2
        exit 1
    }
done
set -x
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- -D warnings
scripts/licences
scripts/structure
# Only needs Python. Style and types of the scripts are not checked here but by make lint (scripts/lint.sh).
(cd scripts && /usr/bin/python3 -B -m unittest discover --start-directory tests)
RUSTDOCFLAGS=-Dwarnings cargo doc --locked --workspace --no-deps
cargo build --locked
cargo test --locked --workspace
scripts/standalone.sh
CLC_REPLAY=target/debug/clc-replay scripts/accuracy --check >/dev/null
CLC_REPLAY=target/debug/clc-replay scripts/accuracy_waits --check >/dev/null
MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich CARGO_TARGET_DIR=target-mpich cargo test --locked --test mpi_transport
# MPICH is the one with few communicators. The other tests of many of them take minutes with more of its ranks than cores.
MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich CARGO_TARGET_DIR=target-mpich cargo test --locked --test program -- mpi_runs:: many_communicators::context_ids
# Of the faults, those on four ranks: signals in every part of a run, circles, calls that fail. The others are the same up to the launcher.
MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich CARGO_TARGET_DIR=target-mpich cargo test --locked --test faults ::4
CLC_REPLAY=target/debug/clc-replay CLC_REPLAY_MPICH=target-mpich/debug/clc-replay scripts/soak --short
scripts/scaling --check
scripts/bench --check
