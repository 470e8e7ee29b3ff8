#!/usr/bin/env bash
# Begins a target directory with what another one has built already, so that it need not be built again.
#
#     scripts/seed_target.sh FROM INTO PACKAGE...
#
# FROM and INTO are target directories; of the packages named, nothing is taken. It does nothing if INTO has been built in before, or nothing has in FROM.
# Libraries are copied, not linked: cargo writes some files in place. What was built with other features or by another compiler is built anew as always.
set -euo pipefail
cd "$(dirname "$0")/.."
from=$1/debug into=$2/debug
shift 2
if [ -e "$into" ] || [ ! -d "$from/deps" ]; then
    exit 0
fi
mkdir -p "$into/deps"
cp -a "$from/.fingerprint" "$from/build" "$into/"
find "$from/deps" -type f \( -name '*.rlib' -o -name '*.rmeta' -o -name '*.so' -o -name '*.d' \) -exec cp -a -t "$into/deps" {} +
packages=()
for package in "$@"; do
    packages+=(-p "$package")
done
cargo clean --locked --quiet --target-dir "${into%/debug}" "${packages[@]}"
