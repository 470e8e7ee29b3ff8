#!/usr/bin/env bash
# Installs what building, testing and recording need and is missing. Does nothing when all is there.
#
#   scripts/setup.sh            install (Debian or Ubuntu, as root or with sudo that asks for no password)
#   scripts/setup.sh --check    only report
#
# Where it may not install, it names the packages or modules and exits 1.
set -euo pipefail

check_only=false
case ${1-} in
    "") ;;
    --check) check_only=true ;;
    -h | --help)
        sed -n '2,8s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "setup.sh: unknown option $1 (only --check)" >&2
        exit 2
        ;;
esac

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

# One line per need: the test | Debian packages | Fedora packages | Spack packages | what it is for. "-": no package.
needs=(
    "has_any mpicc.openmpi mpicc|libopenmpi-dev|openmpi-devel|openmpi|MPI"
    "has_any mpirun.openmpi mpirun|openmpi-bin|openmpi|openmpi|MPI"
    "has clang|clang|clang|llvm|the MPI bindings"
    "has_libclang|libclang-dev|clang-devel|llvm|the MPI bindings"
    "has gcc|gcc|gcc|gcc|the MPI bindings"
    "has pkg-config|pkg-config|pkgconf-pkg-config|pkgconf|the MPI bindings"
    "has make|make|make|gmake|make"
    "has otf2-print|otf2-tools|otf2|otf2|the demonstration and the tests"
    "has_any chromium chromium-browser google-chrome|chromium|chromium|-|the tests of the report's page"
    "has gfortran|gfortran|gcc-gfortran|gcc|the tests of recording Fortran programs"
    "has_openmp|libomp-dev|libomp-devel|llvm-openmp|the tests of recording OpenMP programs"
    "has_otf2_bindings|python3-otf2|python3-otf2|otf2+python|the tests"
)
# Installed as well, but building and running work without them.
optional=(
    "has mpicc.mpich|libmpich-dev|mpich-devel|mpich|the tests with a second MPI (make test)"
    "has mpiexec.mpich|mpich|mpich|mpich|the tests with a second MPI (make test)"
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
    echo "  cargo >= $rust_wanted (found: $(rust_version || echo none)): Debian package rustup and 'rustup default stable', or https://rustup.rs"
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
        echo "  Debian, Ubuntu:  apt-get install ${debian[*]}"
        echo "  Fedora:          dnf install $(packages_of "${fedora[@]}")"
        echo "  Spack:           spack install $(packages_of "${spack[@]}")"
        echo "On a cluster load what is there, for example: module load gcc openmpi llvm    (docs/hpc.md)"
    fi
}

collect "${needs[@]}"
rust_missing=false
rust_is_new_enough || rust_missing=true
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
if [ "${#debian[@]}" -gt 0 ]; then
    echo "setup.sh: installing ${debian[*]}"
    apt update
    required=("${debian[@]:0:needed}")
    [ "$needed" -eq 0 ] || apt install -y --no-install-recommends "${required[@]}" >/dev/null
    for package in "${debian[@]:needed}"; do
        apt install -y --no-install-recommends "$package" >/dev/null ||
            echo "setup.sh: $package is not available here; building and running clc-replay works without it"
    done
fi
if $rust_missing; then
    if ! has cargo && ! has rustup; then
        [ "${#debian[@]}" -gt 0 ] || apt update
        apt install -y --no-install-recommends rustup >/dev/null 2>&1 || true # not in every release
    fi
    # rustup installs below the user's home, which needs no rights; --no-self-update leaves Debian's rustup alone.
    has rustup && rustup toolchain install stable --profile default --no-self-update && rustup default stable
    if ! rust_is_new_enough; then
        echo "setup.sh: missing:"
        say_rust
        exit 1
    fi
fi
rust_missing=false
debian=() fedora=() spack=() reasons=()
collect "${needs[@]}"
if [ "${#debian[@]}" -gt 0 ]; then
    explain
    exit 1
fi
echo "setup.sh: everything is there."
