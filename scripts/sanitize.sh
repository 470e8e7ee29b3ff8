#!/usr/bin/env bash
# The program under tools that see undefined behaviour and wrong uses of memory.
#
#   scripts/sanitize.sh miri        unit tests of the layers without MPI and without files, interpreted by miri (a few cases of each property)
#   scripts/sanitize.sh memcheck    some unit tests, a correction, a conversion and a correction of the native trace under valgrind, without MPI
#   scripts/sanitize.sh address     unit tests, every fault, damaged inputs, the reference and MPI on 1 to 7 ranks, built with the address sanitizer
#
# address needs nightly Rust with rust-std, and the MPI that is built against (MPICC); minutes of building, and as many of running.
# miri needs nightly Rust: rustup toolchain install nightly --component miri,rust-src. memcheck needs valgrind, nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/mpi_env.sh
. scripts/mpi_env.sh

need() { # COMMAND...: exits if it fails
    "$@" >/dev/null 2>&1 || {
        echo "sanitize.sh: '$*' fails; see scripts/sanitize.sh --help for what is needed" >&2
        exit 1
    }
}

place=${CARGO_TARGET_DIR:-target}
# Crates and modules that call neither MPI nor the system.
pure_crates=(-p clc-trace -p controlled-logical-clock -p clc-execution)
pure=(matching:: comm::top2 comm::backoff)
case ${1-} in
    miri)
        need cargo +nightly miri --version
        # Properties read their settings from the environment, which miri otherwise hides.
        export MIRIFLAGS="${MIRIFLAGS--Zmiri-disable-isolation}" PROPTEST_CASES="${PROPTEST_CASES-2}"
        miri() { # KIND...: `cargo test` in the interpreter
            CARGO_TARGET_DIR=$place/miri cargo +nightly miri test --locked --lib "$@"
        }
        miri "${pure_crates[@]}" -- --skip values_survive --skip workers::
        miri -p clc-engine -- "${pure[@]}"
        ;;
    memcheck)
        need valgrind --version
        # What is not freed at the end is no fault.
        memcheck=(valgrind --quiet --error-exitcode=9 --leak-check=no)
        cargo build --locked
        lib_tests() { # CRATE FILTER...: some of its unit tests
            local tests
            tests=$(cargo test --locked --lib --no-run -p "$1" 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
            "${memcheck[@]}" "$tests" --test-threads 1 "${@:2}"
        }
        lib_tests clc-archive native
        lib_tests clc-engine comm::local
        lib_tests clc-replay output::directory output::orphans
        out=$(mktemp -d)
        trap 'rm -rf "$out"' EXIT
        program=$place/debug/clc-replay
        trace=tests/data/tracer-collectives-4
        CLC_REPLAY_MPI=never "${memcheck[@]}" "$program" "$trace" -o "$out/otf2" --report "$out/r.json" --html "$out/r.html" --quiet
        CLC_REPLAY_MPI=never "${memcheck[@]}" "$program" convert "$trace" "$out/native.clct" --quiet
        CLC_REPLAY_MPI=never "${memcheck[@]}" "$program" "$out/native.clct" -o "$out/corrected.clct" --quiet
        ;;
    address)
        need rustc +nightly --version
        host=$(rustc +nightly -vV | sed -n 's/^host: //p')
        # MPI libraries keep what they have allocated; fibres and stacks of their own are not ours to judge.
        export ASAN_OPTIONS="${ASAN_OPTIONS-detect_leaks=0}"
        address() { # KIND...: `cargo test` with the sanitizer
            RUSTFLAGS="${RUSTFLAGS-} -Zsanitizer=address" CARGO_TARGET_DIR=$place/address \
                cargo +nightly test --locked --target "$host" "$@"
        }
        address --lib --workspace
        address --test fuzz_corpus
        address --test mpi_transport
        address --test program -- local_transport:: native_damage:: otf2_damage:: replay_reference:: many_communicators::
        # The sanitizer reserves more address space than any limit on it leaves, and takes longer to die.
        address --test faults -- --skip environment::memory --skip mpi::call_on_rank_0
        ;;
    -h | --help)
        sed -n '2,10s/^# \{0,1\}//p' "$0"
        ;;
    *)
        echo "sanitize.sh: which tool? (see --help)" >&2
        exit 2
        ;;
esac
