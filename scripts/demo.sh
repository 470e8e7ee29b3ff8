#!/usr/bin/env bash
# A corrected trace from nothing: builds the program, records a small MPI run, corrects it, shows before and after.
# Everything it makes is in demo-out/.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

# Runs a command and insists on its exit status: 0 = clean, 1 = violations, 3 = clean as far as enough could be checked.
expect_status() {
    local wanted=$1 status=0
    shift
    echo "\$ $*"
    "$@" || status=$?
    if [ "$status" -ne "$wanted" ]; then
        echo "demo.sh: exit status $status, expected $wanted" >&2
        exit 1
    fi
    echo "(exit status $status)"
}

scripts/setup.sh
# shellcheck source=scripts/mpi_env.sh
. scripts/mpi_env.sh

step "Building"
cargo build --release --locked
program=${CARGO_TARGET_DIR:-target}/release/clc-replay

rm -rf demo-out
mkdir demo-out
before=demo-out/recorded after=demo-out/corrected
if command -v eztrace >/dev/null; then
    step "Recording a halo exchange on 4 processes with EZTrace"
    scripts/record.sh halo 4 $before 40 600
else
    step "EZTrace is not installed: using the trace in tests/data that it recorded"
    cp -R tests/data/eztrace-halo-4 $before
fi

step "The trace as recorded: messages that arrive before they were sent"
expect_status 1 "$program" check $before

# EZTrace does not record that non-blocking operations are complete, so most receives are missing and cannot be checked.
step "Correcting it, one rank per recorded process"
expect_status 3 "$MPIEXEC" -n 4 "$program" "$before" -o "$after" --force --report demo-out/report.json

step "The corrected trace: no violation in what can be checked (EZTrace leaves out most receives)"
expect_status 3 "$program" check $after

step "The worst pairs before and after, as otf2-print and an independent checker see them"
anchor=$(basename $before/*.otf2)
tests/tools/check_clock_condition.py $before/"$anchor" --after $after/"$anchor" --list 4 | grep -A 2 -E '^[a-z_]+ [0-9]+ o' || true
tests/tools/check_clock_condition.py $after/"$anchor" --list 0 | tail -n 1

step "Done: the corrected trace is $after/$anchor, the report is demo-out/report.json"
