#!/usr/bin/env bash
# A corrected trace from nothing: builds the program, records an MPI application with clocks that are wrong in a known way, corrects the
# recording, and shows before and after against the truth. Everything it makes is in demo-out/; demo-out/index.html shows it.
#
# The application, tests/apps/stencil.c, runs on 4 processes of two emulated nodes (scripts/nodes); where the kernel does not allow those, on one
# node, with a clock for each process. CLC_REPLAY=FILE uses a program that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

# Runs a command and insists on its exit status: 0 = clean, 1 = violations.
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

if [ -z "${CLC_REPLAY-}" ]; then
    step "Building"
    cargo build --release --locked
fi
program=${CLC_REPLAY:-${CARGO_TARGET_DIR:-target}/release/clc-replay}

rm -rf demo-out
mkdir demo-out
before=demo-out/recorded after=demo-out/corrected
"$MPICC" -O2 tests/apps/stencil.c -o demo-out/stencil -lm

nodes=() clocks=()
status=0
refused=$(scripts/nodes 2 -- true 2>&1) || status=$?
case $status in
    0)
        step "Recording a heat equation on 4 processes of two emulated nodes, whose clocks are wrong on purpose"
        nodes=(scripts/nodes 2 --slots 2 --) clocks=(--clock-per-node)
        ;;
    77)
        echo "$refused"
        step "Recording a heat equation on 4 processes of this node, whose clocks are wrong on purpose"
        ;;
    *)
        echo "$refused" >&2
        exit 1
        ;;
esac
expect_status 0 ${nodes[@]+"${nodes[@]}"} "$program" record -o $before --clock 'offset=20ms,drift=20ppm,sine=200us/50%' \
    --offsets every=100ms ${clocks[@]+"${clocks[@]}"} -- "$MPIEXEC" -n 4 demo-out/stencil 400 200

step "The trace as recorded: messages that arrive before they were sent"
expect_status 1 "$program" check --presync none $before

step "Correcting it, one rank per recorded process"
expect_status 0 "$MPIEXEC" -n 4 "$program" $before -o $after --report demo-out/report.json --html demo-out/report.html

step "The corrected trace: no violation"
expect_status 0 "$program" check $after

step "How far it is from the truth: as recorded, with interpolated offsets or estimated clocks, and corrected"
expect_status 0 "$program" evaluate $before --truth $before --plot demo-out/before.svg --report demo-out/before.json
expect_status 0 "$program" evaluate $after --truth $before --plot demo-out/after.svg >demo-out/evaluation.txt
cat demo-out/evaluation.txt
scripts/demo_page.py demo-out

step "The corrected trace as an independent checker sees it"
tests/tools/check_clock_condition.py $after/traces.otf2 --list 0 | tail -n 1

step "Done: the corrected trace is $after/traces.otf2; demo-out/index.html shows before and after"
