#!/usr/bin/env bash
# The crates that others can build on are tested and packaged where there is neither an MPI library nor libclang, as on a machine that has only Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
names=(clc-trace clc-otf2 clc-clock controlled-logical-clock)
crates=("${names[@]/#/-p=}")
target=${CARGO_TARGET_DIR:-target}
place=$target/standalone
bare() { # COMMAND...: without what points to MPI
    env -i HOME="$HOME" PATH="$PATH" ${CARGO_HOME:+CARGO_HOME="$CARGO_HOME"} ${RUSTUP_HOME:+RUSTUP_HOME="$RUSTUP_HOME"} \
        MPICC=/nonexistent LIBCLANG_PATH=/nonexistent CARGO_TARGET_DIR="$place" "$@"
}
if bare cargo tree --locked "${crates[@]}" --edges all --prefix none | grep -E '^(mpi|mpi-sys|bindgen|clang-sys) '; then
    echo "standalone.sh: a crate that should not need MPI depends on it" >&2
    exit 1
fi
# None of the crates that they depend on needs MPI, as was just checked, so those may come from the build with it.
scripts/seed_target.sh "$target" "$place" mpi mpi-sys "${names[@]}"
bare cargo test --locked "${crates[@]}"
# In a clean directory each, from what would be published. Cargo takes a changed crate of the same version for the one that it has unpacked or built
# before, so neither is kept.
rm -rf "$place/packages" "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/{clc-trace,clc-otf2,clc-clock,controlled-logical-clock}-[0-9]*
scripts/seed_target.sh "$target" "$place/packages" mpi mpi-sys "${names[@]}"
bare env CARGO_TARGET_DIR="$place/packages" cargo package --locked --allow-dirty --quiet "${crates[@]}"
