#!/usr/bin/env bash
# Checks the scripts themselves: shell scripts by shellcheck; the Python package, its entry points and tests, and what the tests of the program are
# judged with (tests/**/*.py), by ruff and mypy (scripts/pyproject.toml has their settings).
#
#   scripts/lint.sh          checks with what is installed, and says in the end what was not checked
#   scripts/lint.sh --all    fails if one of these tools is missing
set -euo pipefail
cd "$(dirname "$0")"

all=false
case ${1-} in
    "") ;;
    --all) all=true ;;
    *)
        echo "lint.sh: unknown option $1 (only --all)" >&2
        exit 2
        ;;
esac

unchecked=()
# TOOL WHAT: whether the tool is there; if not, what remains unchecked is noted.
has() {
    command -v "$1" >/dev/null 2>&1 && return 0
    unchecked+=("$2: no $1 ($3)")
    return 1
}

if has shellcheck "shell scripts" "Debian: shellcheck"; then
    shellcheck -x -P .. ./*.sh ../.ci/run
fi
if has ruff "Python, style and formatting" "pipx install ruff"; then
    ruff check . ../tests --config pyproject.toml
    ruff format --check . ../tests --config pyproject.toml
fi
if has mypy "Python, types" "Debian: mypy, or pipx install mypy"; then
    mypy clc_tools tests
    # Those have no annotations, so what they do is checked, but not that everything has a type; and not all of what they use has types.
    mypy --config-file= --cache-dir ../target/lint/mypy --check-untyped-defs --ignore-missing-imports --disable-error-code var-annotated \
        ../tests/*/*.py
fi

for what in ${unchecked[@]+"${unchecked[@]}"}; do
    echo "lint.sh: NOT CHECKED: $what" >&2
done
if $all && [ "${#unchecked[@]}" -gt 0 ]; then
    exit 1
fi
