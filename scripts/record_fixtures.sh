#!/usr/bin/env bash
# Records the traces of tests/data again and writes tests/data/README.md, which says how each was made.
# Needs EZTrace, Open MPI, MPICH, clang with OpenMP, otf2-print, python3-otf2 (scripts/setup.sh --tests), the program as CLC_REPLAY or target/release/clc-replay, and a kernel that
# allows scripts/nodes. Names of folders as arguments: only those. Times differ from run to run, and with them
# the numbers of violations; the communication does not.
set -euo pipefail
cd "$(dirname "$0")/.."
data=tests/data
# Process r is wrong by r times this; the sine is what linear interpolation cannot remove. For the tracer only.
clock=(CLOCK_OFFSET_US=300 CLOCK_DRIFT_PPM=25 CLOCK_SINE_US=60 CLOCK_SINE_PERIOD_S=0.02)

# folder | recorder | program | processes | arguments
fixtures=(
    "eztrace-halo-4|eztrace|halo|4|40 600"
    "eztrace-halo-8|eztrace|halo|8|12 600"
    "eztrace-collectives-4|eztrace|collectives|4|1 200"
    "tracer-halo-4|tracer|halo|4|40 600"
    "tracer-collectives-4|tracer|collectives|4|1 200"
    "tracer-collectives-7|tracer|collectives|7|1 200"
    "recorded-stencil-4|nodes|stencil|4|200 60"
    "recorded-halo-4|record|halo|4|40 600"
    "recorded-hybrid-3|hybrid|hybrid|3|15 60 4"
    "../late/mg-4|busy|mg|4|"
)
program=${CLC_REPLAY:-target/release/clc-replay}
# Clocks of the recordings by clc-replay itself, which keep the truth.
wrong='offset=5ms,drift=20ppm,sine=100us/50%'

# NAS MG (NPB 3.3-MPI, class S) for four processes, built with MPICH's compiler; its processes wait actively, and are to share two cores. Nobody has wronged its clocks.
mg=${NPB_MG:-}

# own RECORDER PROGRAM PROCESSES FOLDER ARGUMENTS... : a recording by clc-replay; prints the path of its anchor.
own() {
    local how=$1 name=$2 processes=$3 folder=$4 app
    shift 4
    app=$(mktemp -d)
    local command=("$program" record --quiet -o "$app/run" --clock "$wrong")
    if [ "$how" = nodes ]; then
        mpicc.openmpi -O1 -w "tests/apps/$name.c" -o "$app/$name" -lm
        command=(scripts/nodes 2 --slots 2 -- "${command[@]}" --clock-per-node --offsets every=100ms -- mpirun.openmpi)
    elif [ "$how" = hybrid ]; then
        OMPI_CC=clang mpicc.openmpi -O1 -g -w -fopenmp "tests/apps/$name.c" -o "$app/$name"
        command+=(--clock-per-thread -- mpirun.openmpi --oversubscribe --bind-to none)
    elif [ "$how" = busy ]; then
        cp "$mg" "$app/$name"
        command=("$program" record --quiet -o "$app/run" -- taskset -c "0,1" mpiexec.mpich)
    else
        mpicc.mpich -O1 -w "tests/apps/$name.c" -o "$app/$name" -lm
        command+=(-- mpiexec.mpich)
    fi
    "${command[@]}" -n "$processes" "$app/$name" "$@" >&2
    cp -R "$app/run" "$folder"
    rm -rf "$app"
    echo "$folder/traces.otf2"
}

count() { # PATTERN: how many events of the kinds that match, in $printed
    grep -cE "^($1) +[0-9]+ +[0-9]+( |$)" "$printed" || true
}

printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
rows=
for fixture in "${fixtures[@]}"; do
    IFS='|' read -r folder recorder name processes arguments <<<"$fixture"
    if [ $# -gt 0 ] && [[ " $* " != *" $folder "* ]]; then
        rows+=$(grep -F "| \`$folder\` |" $data/README.md)$'\n'
        continue
    fi
    if [ "$recorder" = busy ] && [ -z "$mg" ]; then
        echo "$folder: NPB_MG has to name the program; kept as it is" >&2
        rows+=$(grep -F "| \`$folder\` |" $data/README.md)$'\n'
        continue
    fi
    rm -rf "${data:?}/$folder"
    read -ra words <<<"$arguments"
    case $recorder in
        nodes | record | hybrid | busy)
            anchor=$(own "$recorder" "$name" "$processes" "$data/$folder" "${words[@]}")
            how="\`own $recorder $name $processes OUTDIR $arguments\` of \`record_fixtures.sh\`"
            ;;
        *)
            anchor=$(env "${clock[@]}" scripts/record.sh --with "$recorder" "$name" "$processes" "$data/$folder" "${words[@]}")
            how="\`--with $recorder $name $processes OUTDIR $arguments\`"
            ;;
    esac
    otf2-print "$anchor" >"$printed" 2>/dev/null
    violations=$(tests/tools/check_clock_condition.py "$anchor" | sed -n 's/^total violations: //p') || true
    rows+="| \`$folder\` | $how | $(count '[A-Z_0-9]+') |"
    rows+=" $(count 'MPI_I?SEND') / $(count 'MPI_I?RECV') | $(count 'MPI_COLLECTIVE_END') |"
    rows+=" $(count 'NON_BLOCKING_COLLECTIVE_COMPLETE') | $violations |"$'\n'
    echo "$anchor: $violations violations"
done

version() { # PACKAGE
    dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo unknown
}
cat >"$data/README.md" <<END
# Recorded traces

Written by \`make record\` (\`scripts/record_fixtures.sh\`); do not edit by hand. Each folder is one OTF2 archive, made by
\`scripts/record.sh\` from the programs in \`tests/apps\`. Violations of the clock condition are those that
\`tests/tools/check_clock_condition.py\` counts at minimum latency 0, after the archive's own clock offsets.

| folder | \`scripts/record.sh\` ... | events | sends / receives | collective ends | non-blocking ones | violations |
| --- | --- | --- | --- | --- | --- | --- |
$rows
Made with Open MPI $(version openmpi-bin), EZTrace $(version eztrace), otf2-tools and python3-otf2 $(version otf2-tools) (Debian packages).

- \`eztrace-*\`: EZTrace has no common clock: each process counts from its own start, so violations are large. It does
  not record that non-blocking receives and sends are complete, nor Sendrecv messages, Scan, Exscan and
  Reduce_scatter_block, and of
  non-blocking collectives only the begin. It defines group 0 twice, which python3-otf2 refuses, claims 2 events for
  each location, and its clock properties do not span all events.
- \`tracer-*\`: \`tests/apps/otf2_tracer.c\` records everything these programs do. Clocks are off artificially:
  \`${clock[*]}\`
  (process r: r times that). Offsets measured at begin and end are in the archive as local definitions; the sine
  stays when they are applied.
- \`recorded-*\`: \`clc-replay record --clock '$wrong'\`, with the true times in \`truth\`: the stencil by Open MPI on two
  emulated nodes (\`scripts/nodes\`), with a clock for each node and offsets measured every 100 ms; the halo exchange by MPICH on one node, with a clock for
  each process and offsets measured at start and end; the hybrid one by Open MPI on one node, with a clock for each of the four threads of LLVM's OpenMP in each process
  (\`--clock-per-thread\`), of which those of a process have its offsets.
- \`../late/mg-4\`: NAS MG (NPB 3.3-MPI, class S), recorded by \`clc-replay record\` and MPICH with four processes on two busy cores: no clock is wrong, none was measured, and nearly all messages are late. It
  is for tests that perturb it, and is not among the traces that all others read.
END
du -sh --apparent-size "$data" | sed 's/\t.*/ in all/'
