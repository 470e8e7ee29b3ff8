#!/usr/bin/env bash
# Fuzzing guided by coverage (libFuzzer): changes inputs so that they reach code that no input has reached before.
#
#   scripts/fuzz.sh                   every target, a minute each
#   scripts/fuzz.sh 600               every target, ten minutes each
#   scripts/fuzz.sh 600 files         one target
#   scripts/fuzz.sh --build           only build
#
# Targets are those of tests/fuzz/targets (each begun by a file of tests/fuzz/fuzz_targets): `files` (files of any contents), `beside` (truth files and stored reports) and `traces` (any
# events, against the dense reference). What is found on the way stays in target/fuzz/corpus, where the next run goes on. A finding
# stops the target with exit status 1 and names the input; give it to the program alone with target/fuzz/bin/TARGET FILE, fix the fault,
# and keep the input in tests/fuzz/corpus/TARGET, which `cargo test` tries every time.
#
# It needs a C++ compiler, no nightly Rust: coverage comes from a pass of the stable compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/mpi_env.sh
. scripts/mpi_env.sh

seconds=60
targets=(files beside traces)
build_only=false
case ${1-} in
    "") ;;
    -h | --help)
        sed -n '2,14s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --build) build_only=true ;;
    *[!0-9]*)
        echo "fuzz.sh: '$1' is not a number of seconds (see --help)" >&2
        exit 2
        ;;
    *)
        seconds=$1
        shift
        [ $# -eq 0 ] || targets=("$@")
        ;;
esac
for target in "${targets[@]}"; do
    [ -f "tests/fuzz/fuzz_targets/$target.rs" ] || {
        echo "fuzz.sh: no target '$target' (see --help)" >&2
        exit 2
    }
done

place=${CARGO_TARGET_DIR:-target}/fuzz
mkdir -p "$place/bin"
place=$(cd "$place" && pwd)
host=$(rustc -vV | sed -n 's/^host: //p')
coverage="--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1"
for argument in level=4 inline-8bit-counters pc-table trace-compares; do
    coverage+=" -Cllvm-args=-sanitizer-coverage-$argument"
done
# With a target named, the flags are not for build scripts.
RUSTFLAGS="${RUSTFLAGS-} $coverage" CARGO_TARGET_DIR="$place/build" \
    cargo build --release --locked --manifest-path tests/fuzz/Cargo.toml --target "$host"
for target in "${targets[@]}"; do
    cp "$place/build/$host/release/$target" "$place/bin/$target"
done
"$build_only" && exit 0

status=0
for target in "${targets[@]}"; do
    corpus=$place/corpus/$target
    findings=$place/findings/$target
    mkdir -p "$corpus" "$findings"
    if [ "$target" != traces ]; then
        CLC_REPLAY_FUZZ_SEEDS=$corpus "$place/bin/$target" -runs=0 >"$place/$target.log" 2>&1 || {
            echo "fuzz.sh: $target cannot make its first inputs, see $place/$target.log" >&2
            exit 1
        }
    fi
    echo "fuzz.sh: $target, $seconds s, output in $place/$target.log"
    if "$place/bin/$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$findings/" "$corpus" "tests/fuzz/corpus/$target" >>"$place/$target.log" 2>&1; then
        :
    else
        status=1
        echo "fuzz.sh: $target: FOUND something:"
        grep -E 'panicked|ERROR: libFuzzer|^fuzz|Test unit written|complaint' "$place/$target.log" | tail -5 || true
    fi
    grep -E '^#[0-9]+.*(DONE|INITED)' "$place/$target.log" | tail -2 || true
    grep -E 'stat::(number_of_executed_units|peak_rss_mb|new_units_added)' "$place/$target.log" || true
done
exit "$status"
