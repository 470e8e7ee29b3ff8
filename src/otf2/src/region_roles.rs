//! Roles of regions by their names, as Score-P gives them: Vampir groups and colours functions by these, Scalasca takes regions of the file `MPI` for MPI's.

use crate::definitions::BARRIERS;

/// Name of the source file of regions of MPI.
pub(crate) const MPI_FILE: &str = "MPI";

/// Name of the region that stands for calls of MPI one after the other that have asked in vain whether something has happened.
pub const JOINED_POLLS: &str = "MPI polls in vain";

/// OTF2 `RegionRole` of what the measurement system has added.
pub(crate) const ARTIFICIAL: u8 = 31;

/// What names of regions of OpenMP begin with.
const PRAGMA: &str = "!$omp ";

/// OTF2 `RegionRole` of functions and code.
const FUNCTION: u8 = 1;
const CODE: u8 = 4;

/// Whether a region is one of OpenMP by its name.
pub(crate) fn is_openmp(name: &str) -> bool {
    name.starts_with(PRAGMA)
}

/// Whether a region is a function of MPI by its name.
pub(crate) fn is_mpi(name: &str) -> bool {
    name.starts_with("MPI_")
}

/// OTF2 `RegionRole` of a region of OpenMP, by what its name says after [`PRAGMA`].
pub(crate) fn openmp_role(name: &str, barrier: bool) -> u8 {
    let construct = name.strip_prefix(PRAGMA).unwrap_or_default();
    let construct = construct.split_once(" @").map_or(construct, |(construct, _)| construct);
    match construct {
        "implicit barrier" if barrier => BARRIERS[1],
        _ if barrier => BARRIERS[0],
        "for" | "do" => 3,
        "parallel" => 5,
        "sections" => 6,
        "workshare" => 8,
        "single" => 9,
        "master" => 11,
        "critical" => 12,
        "task" => 20,
        "taskwait" | "taskgroup" => 22,
        _ => CODE,
    }
}

/// OTF2 `RegionRole` of a function of MPI. Non-blocking and persistent forms have that of the blocking one.
pub(crate) fn mpi_role(name: &str) -> u8 {
    let operation = name.strip_prefix("MPI_").unwrap_or(name).to_ascii_lowercase();
    if let Some(of_file) = operation.strip_prefix("file_") {
        return match of_file {
            "open" | "close" | "delete" | "seek" | "seek_shared" => 38,
            "sync" => 27,
            _ if ["read", "iread", "write", "iwrite"].iter().any(|access| of_file.starts_with(access)) => 27,
            _ => FUNCTION,
        };
    }
    let blocking = operation.strip_suffix("_init").unwrap_or(&operation);
    let role = |operation: &str| match operation {
        "barrier" => Some(BARRIERS[0]),
        "bcast" | "scatter" | "scatterv" => Some(23),
        "reduce" | "gather" | "gatherv" => Some(24),
        "allreduce"
        | "allgather"
        | "allgatherv"
        | "alltoall"
        | "alltoallv"
        | "alltoallw"
        | "reduce_scatter"
        | "reduce_scatter_block"
        | "neighbor_allgather"
        | "neighbor_allgatherv"
        | "neighbor_alltoall"
        | "neighbor_alltoallv"
        | "neighbor_alltoallw" => Some(25),
        "scan" | "exscan" => Some(26),
        "send" | "ssend" | "bsend" | "rsend" | "recv" | "mrecv" | "probe" | "mprobe" | "sendrecv"
        | "sendrecv_replace" | "psend" | "precv" => Some(28),
        "put" | "get" | "rput" | "rget" => Some(29),
        "accumulate" | "raccumulate" | "get_accumulate" | "rget_accumulate" | "fetch_and_op" | "compare_and_swap" => {
            Some(14)
        }
        "win_allocate" | "win_allocate_shared" | "alloc_mem" => Some(35),
        "free_mem" => Some(36),
        _ => None,
    };
    role(blocking).or_else(|| role(blocking.strip_prefix('i')?)).unwrap_or(FUNCTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_mpi_have_the_roles_that_score_p_gives_them() {
        for (role, names) in [
            (1, &["MPI_Init", "MPI_Waitall", "MPI_Comm_split", "MPI_Win_fence", "MPI_Start", "MPI_File_set_view"][..]),
            (14, &["MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Rget_accumulate"]),
            (15, &["MPI_Barrier", "MPI_Ibarrier", "MPI_Barrier_init"]),
            (23, &["MPI_Bcast", "MPI_Iscatterv"]),
            (24, &["MPI_Reduce", "MPI_Igather"]),
            (25, &["MPI_Allreduce", "MPI_Ireduce_scatter", "MPI_Ineighbor_alltoallw"]),
            (26, &["MPI_Exscan", "MPI_Iscan"]),
            (27, &["MPI_File_iread_at", "MPI_File_write_all_begin", "MPI_File_sync"]),
            (28, &["MPI_Isend", "MPI_Issend", "MPI_Imrecv", "MPI_Iprobe", "MPI_Send_init", "MPI_Sendrecv_replace"]),
            (29, &["MPI_Put", "MPI_Rget"]),
            (35, &["MPI_Win_allocate"]),
            (38, &["MPI_File_open"]),
        ] {
            names.iter().for_each(|name| assert_eq!(mpi_role(name), role, "{name}"));
        }
    }
}
