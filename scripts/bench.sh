#!/usr/bin/env bash
# How fast is the program here? Records a halo exchange (8 processes, with artificial clock errors), corrects it with
# several numbers of ranks, and prints the best time of three runs each.
#
#   scripts/bench.sh [ITERATIONS]       default 4000, about 1.5 million events; traces are kept in demo-out/bench
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/mpi_env.sh
. scripts/mpi_env.sh
iterations=${1:-4000}
cargo build --release --locked
program=${CARGO_TARGET_DIR:-target}/release/clc-replay

trace=demo-out/bench/halo-8-$iterations
if [ ! -d "$trace" ]; then
    CLOCK_OFFSET_US=100 CLOCK_DRIFT_PPM=10 CLOCK_SINE_US=20 CLOCK_SINE_PERIOD_S=0.5 \
        scripts/record.sh --with tracer halo 8 "$trace" "$iterations" 20
fi
events=$(otf2-print "$trace/traces.otf2" | grep -cE '^[A-Z_0-9]+ +[0-9]+ +[0-9]+( |$)')
echo "$events events of 8 processes, $(nproc) cores"

milliseconds() { # COMMAND...: wall-clock time of one run
    local start
    start=$(date +%s%N)
    "$@" >/dev/null 2>demo-out/bench/log || {
        cat demo-out/bench/log >&2
        return 1
    }
    echo $((($(date +%s%N) - start) / 1000000))
}

printf '%6s %12s %16s\n' ranks seconds 'million events/s'
for ranks in 1 2 4 8; do
    best=
    for _ in 1 2 3; do
        time=$(milliseconds "$MPIEXEC" -n "$ranks" "$program" "$trace" -o demo-out/bench/corrected --force)
        if [ -z "$best" ] || [ "$time" -lt "$best" ]; then best=$time; fi
    done
    awk -v r="$ranks" -v t="$best" -v e="$events" 'BEGIN { printf "%6d %12.3f %16.2f\n", r, t / 1e3, e / t / 1e3 }'
done
