#!/usr/bin/env bash
# Records a run of a test program as an OTF2 archive.
#
#   scripts/record.sh [--with eztrace|tracer] APP NPROCS OUTDIR [ARGUMENTS OF THE PROGRAM...]
#
# APP is a program of tests/apps (halo, collectives) or the path of another C file. Open MPI is used.
#   --with eztrace   EZTrace 2 (default): OUTDIR/eztrace_log.otf2
#   --with tracer    tests/apps/otf2_tracer.c and log_to_otf2.py: OUTDIR/traces.otf2, every kind of record, and
#                    artificial clock errors by CLOCK_OFFSET_US, CLOCK_DRIFT_PPM, CLOCK_SINE_US, CLOCK_SINE_PERIOD_S
# OUTDIR must not exist. Prints the path of the archive's anchor file.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/mpi_env.sh
. "$top/scripts/mpi_env.sh"

fail() {
    echo "record.sh: $*" >&2
    exit 1
}

recorder=eztrace
if [ "${1-}" = --with ]; then
    recorder=${2-}
    shift 2 || fail "--with needs eztrace or tracer"
fi
case $recorder in eztrace | tracer) ;; *) fail "unknown recorder '$recorder' (eztrace or tracer)" ;; esac
[ $# -ge 3 ] || fail "usage: scripts/record.sh [--with eztrace|tracer] APP NPROCS OUTDIR [ARGUMENTS...]"
app=$1 processes=$2 out=$3
shift 3
source=$app
[ -f "$source" ] || source=$top/tests/apps/$app.c
[ -f "$source" ] || fail "no program $app (tests/apps has halo and collectives)"
[ ! -e "$out" ] || fail "$out exists; remove it or choose another folder"
name=$(basename "$source" .c)

cc=$(first_of mpicc.openmpi mpicc) || fail "no mpicc: run scripts/setup.sh"
launcher=$(first_of mpirun.openmpi mpirun) || fail "no mpirun: run scripts/setup.sh"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir "$build/out"

if [ "$recorder" = eztrace ]; then
    command -v eztrace >/dev/null || fail "EZTrace is not installed (Debian package eztrace); --with tracer needs none"
    "$cc" -O1 -g "$source" -o "$build/$name"
    # EZTrace appends <program>_trace to the folder. It talks much; show that only if something goes wrong. Its exit
    # status is that of the program.
    "$launcher" -n "$processes" eztrace -o "$build/out" -t openmpi "$build/$name" "$@" >"$build/log" 2>&1 || {
        cat "$build/log" >&2
        fail "the recorded program failed"
    }
    made=$build/out/${name}_trace/
    anchor=eztrace_log.otf2
else
    "$cc" -O1 -g "$source" "$top/tests/apps/otf2_tracer.c" -lm -o "$build/$name"
    mkdir "$build/logs"
    TRACER_DIR=$build/logs "$launcher" -n "$processes" "$build/$name" "$@"
    /usr/bin/python3 "$top/tests/apps/log_to_otf2.py" "$build/logs" "$build/out/archive" "$name"
    made=$build/out/archive/
    anchor=traces.otf2
fi
[ -f "$made$anchor" ] || fail "the recorder left no $anchor"
mkdir -p "$(dirname "$out")"
cp -R "$made" "$out"
echo "$out/$anchor"
