#!/usr/bin/env bash
# Installs what building, recording and the demonstration need and is missing. Does nothing when all is there.
#
#   scripts/setup.sh            install (Debian or Ubuntu, as root or with sudo that asks for no password)
#   scripts/setup.sh --tests    the same with what the tests need
#   scripts/setup.sh --check    only report; with --tests, on the tests as well
#
# Where it may not install, it names the packages or modules and exits 1.
set -euo pipefail

check_only=false for_tests=false
for option in "$@"; do
    case $option in
        --check) check_only=true ;;
        --tests) for_tests=true ;;
        -h | --help)
            sed -n '2,8s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *)
            echo "setup.sh: unknown option $option (only --check, --tests)" >&2
            exit 2
            ;;
    esac
done

rust_wanted=1.88 # edition 2024 and the language features in use; see rust-version in Cargo.toml

has() { command -v "$1" >/dev/null 2>&1; }

# clang-sys looks for the library itself; a compiler alone is not enough.
has_libclang() {
    [ -n "${LIBCLANG_PATH-}" ] && return 0
    has ldconfig || PATH=$PATH:/sbin:/usr/sbin
    { ldconfig -p 2>/dev/null | grep -q libclang; } && return 0
    compgen -G '/usr/lib/llvm*/lib/libclang*.so*' >/dev/null || compgen -G '/usr/lib64/libclang*.so*' >/dev/null
}

# A compiler without the library cannot link.
has_openmp() { echo 'int main(void) { return 0; }' | clang -fopenmp -x c - -o /dev/null >/dev/null 2>&1; }

has_otf2_bindings() { /usr/bin/python3 -c 'import otf2' >/dev/null 2>&1; }

# Formatting and lints are parts of the tests. Debian's packages of Rust that browsers are built with lack clippy.
has_rust_tools() { has cargo && cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; }

rust_version() { # the installed version, empty if none
    has cargo && cargo --version 2>/dev/null | awk '{print $2}'
}

rust_is_new_enough() {
    local version
    version=$(rust_version) || return 1
    [ -n "$version" ] && [ "$(printf '%s\n%s\n' "$rust_wanted" "$version" | sort -V | head -n 1)" = "$rust_wanted" ]
}

has_any() {
    local name
    for name in "$@"; do has "$name" && return 0; done
    return 1
}

# One line per need: the test | Debian package (or others, after "/") | Fedora package | Spack package | what it is for. "-": no package.
needs=(
    "has_any mpicc.openmpi mpicc|libopenmpi-dev|openmpi-devel|openmpi|MPI"
    "has_any mpirun.openmpi mpirun|openmpi-bin|openmpi|openmpi|MPI"
    "has clang|clang|clang|llvm|the MPI bindings"
    "has_libclang|libclang-dev|clang-devel|llvm|the MPI bindings"
    "has gcc|gcc|gcc|gcc|the MPI bindings"
    "has pkg-config|pkg-config|pkgconf-pkg-config|pkgconf|the MPI bindings"
    "has make|make|make|gmake|make"
    "has otf2-print|otf2-tools|otf2|otf2|the demonstration and the tests"
    "has /usr/bin/python3|python3|python3|python|the demonstration and the tests"
)
# What the tests need besides.
tests_need=(
    "has_any chromium chromium-browser google-chrome|chromium/chromium-browser|chromium|-|the tests of the report's page"
    "has gfortran|gfortran|gcc-gfortran|gcc|the tests of recording Fortran programs"
    "has_openmp|libomp-dev|libomp-devel|llvm-openmp|the tests of recording OpenMP programs"
    "has_otf2_bindings|python3-otf2|python3-otf2|otf2+python|the tests"
    "has mpicc.mpich|libmpich-dev|mpich-devel|mpich|the tests with a second MPI"
    "has mpiexec.mpich|mpich|mpich|mpich|the tests with a second MPI"
)
$for_tests && needs+=("${tests_need[@]}")
# Installed as well, but building and running work without them.
optional=(
    "has otf2-config|libotf2-trace-dev|otf2-devel|otf2|the speed of decoding beside libotf2 (scripts/bench decoding)"
    "has ip|iproute2|iproute|iproute2|several nodes on one machine (make demo, scripts/nodes)"
    "has eztrace|eztrace|-|eztrace|recording traces with EZTrace (make record)"
)

debian=() fedora=() spack=() reasons=()
collect() { # LINE...: adds the needs that are not met to the lists
    local line test packages other_packages spack_packages reason
    for line in "$@"; do
        IFS='|' read -r test packages other_packages spack_packages reason <<<"$line"
        $test && continue
        debian+=("$packages")
        fedora+=("$other_packages")
        spack+=("$spack_packages")
        reasons+=("$packages (for $reason)")
    done
}

say_missing() {
    local reason
    echo "setup.sh: missing:"
    for reason in "${reasons[@]}"; do echo "  $reason"; done
}

say_rust() {
    local tools=""
    $for_tests && tools=" with rustfmt and clippy"
    echo "  cargo >= $rust_wanted$tools (found: $(rust_version || echo none)): https://rustup.rs, or Debian package rustup (from Debian 13 and Ubuntu 24.04 on)"
}

packages_of() { # NAME...: each once, in one line
    printf '%s\n' "$@" | sed 's/^-$/(none: build from source)/' | sort -u | paste -sd ' '
}

# What an administrator, or the user of a cluster, has to do.
explain() {
    say_missing
    "$rust_missing" && say_rust
    if [ "${#debian[@]}" -gt 0 ]; then
        echo "Install them, or ask the administrator to:"
        echo "  Debian, Ubuntu:  apt-get install ${debian[*]%%/*}"
        echo "  Fedora:          dnf install $(packages_of "${fedora[@]}")"
        echo "  Spack:           spack install $(packages_of "${spack[@]}")"
        echo "On a cluster load what is there, for example: module load gcc openmpi llvm    (docs/hpc.md)"
    fi
}

collect "${needs[@]}"
is_rust_missing() { # whether cargo, or what the tests need of it, is not there
    ! rust_is_new_enough || { $for_tests && ! has_rust_tools; }
}
rust_missing=false
is_rust_missing && rust_missing=true
needed=${#debian[@]}
collect "${optional[@]}"

if [ "${#debian[@]}" -eq 0 ] && ! $rust_missing; then
    echo "setup.sh: everything is there."
    exit 0
fi
# Exits: nothing (more) can be installed from here.
stop_with_advice() {
    explain
    if [ "$needed" -eq 0 ] && ! $rust_missing; then
        echo "Building and running clc-replay works without these."
        exit 0
    fi
    exit 1
}
if $check_only; then
    stop_with_advice
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif has sudo && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
else
    as_root=(false)
fi
if ! has apt-get || [ "${as_root[*]-}" = false ]; then
    stop_with_advice
fi

export DEBIAN_FRONTEND=noninteractive
apt() { ${as_root[@]+"${as_root[@]}"} apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
apt_install() { apt install -y --no-install-recommends "$@" >/dev/null; }
available() { # PACKAGE: whether this release has it
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p' | grep -qvx '(none)'
}
one_of() { # PACKAGE/PACKAGE...: the first that this release has
    local name
    for name in ${1//\// }; do
        if available "$name"; then
            echo "$name"
            return
        fi
    done
    echo "${1%%/*}"
}
if [ "${#debian[@]}" -gt 0 ] || ! has cargo; then
    apt update
fi
if [ "${#debian[@]}" -gt 0 ]; then
    echo "setup.sh: installing ${debian[*]}"
    required=()
    for package in "${debian[@]:0:needed}"; do required+=("$(one_of "$package")"); done
    # One that cannot be installed does not keep the others away; what is missing in the end is said there.
    if [ "$needed" -gt 0 ] && ! apt_install "${required[@]}"; then
        for package in "${required[@]}"; do apt_install "$package" || echo "setup.sh: $package cannot be installed"; done
    fi
    for package in "${debian[@]:needed}"; do
        apt_install "$package" ||
            echo "setup.sh: $package is not available here; building and running clc-replay works without it"
    done
fi
if $rust_missing; then
    # Not where somebody else has chosen a cargo; one of these packages may have become newer.
    if ! has rustup && { ! has cargo || dpkg -s cargo-web >/dev/null 2>&1; }; then
        if available rustup; then
            apt_install rustup || true # what is missing is said in the end
        elif available cargo-web; then
            # Debian 12 has a new Rust only as what browsers are built with.
            echo "setup.sh: installing cargo-web rustfmt-web"
            apt_install cargo-web rustfmt-web || true
        fi
    fi
    # rustup installs below the user's home, which needs no rights; --no-self-update leaves Debian's rustup alone.
    if has rustup; then
        rust_is_new_enough || { rustup toolchain install stable --profile default --no-self-update && rustup default stable; } || true
        ! $for_tests || has_rust_tools || rustup component add rustfmt clippy || true
    fi
    is_rust_missing || rust_missing=false
fi
debian=() fedora=() spack=() reasons=()
collect "${needs[@]}"
if [ "${#debian[@]}" -gt 0 ] || $rust_missing; then
    explain
    exit 1
fi
echo "setup.sh: everything is there."
