# shellcheck shell=bash
# To be sourced: what the scripts need to start MPI programs on this machine.

# Open MPI refuses to run as root unless told twice; only a container or a test machine gets here as root.
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# More processes than cores is normal for tests; bound to one core each they would wait for each other. Open MPI 4
# reads the first two, Open MPI 5 the others, MPICH needs none.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none

# first_of NAME... : the first of these commands that exists, or nothing.
first_of() {
    local name
    for name in "$@"; do
        if command -v "$name" >/dev/null 2>&1; then
            echo "$name"
            return 0
        fi
    done
    return 1
}

# The compiler and the launcher of one MPI library: the caller's choice, or Open MPI where it has names of its own.
# mpi-sys does not notice a changed MPICC: use one CARGO_TARGET_DIR per library.
MPICC=${MPICC:-$(first_of mpicc.openmpi mpicc)} || true
MPIEXEC=${MPIEXEC:-$(first_of mpirun.openmpi mpirun mpiexec)} || true
export MPICC MPIEXEC
