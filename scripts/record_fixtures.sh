#!/usr/bin/env bash
# Records the traces of tests/data again and writes tests/data/README.md, which says how each was made.
# Needs EZTrace, Open MPI, otf2-print and python3-otf2 (scripts/setup.sh). Times differ from run to run, and with them
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
)

count() { # PATTERN: how many events of the kinds that match, in $printed
    grep -cE "^($1) +[0-9]+ +[0-9]+( |$)" "$printed" || true
}

printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
rows=
for fixture in "${fixtures[@]}"; do
    IFS='|' read -r folder recorder program processes arguments <<<"$fixture"
    rm -rf "${data:?}/$folder"
    read -ra words <<<"$arguments"
    anchor=$(env "${clock[@]}" scripts/record.sh --with "$recorder" "$program" "$processes" "$data/$folder" "${words[@]}")
    otf2-print "$anchor" >"$printed" 2>/dev/null
    violations=$(tests/tools/check_clock_condition.py "$anchor" | sed -n 's/^total violations: //p') || true
    rows+="| \`$folder\` | \`--with $recorder $program $processes OUTDIR $arguments\` | $(count '[A-Z_0-9]+') |"
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
END
du -sh --apparent-size "$data" | sed 's/\t.*/ in all/'
