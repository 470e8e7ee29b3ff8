//! How this process was started, and which transport follows from that.

use crate::comm::Transport;
use crate::comm::local::LocalTransport;
#[cfg(feature = "mpi")]
use crate::comm::mpi::MpiTransport;
use clc_trace::workers::Workers;
use clc_trace::{Error, Result};

/// The transport for this process: MPI if a launcher started it, otherwise one rank without MPI, which starts at once and
/// works where MPI does not (login nodes). The environment variable `CLC_REPLAY_MPI` = `always` or `never` overrides that.
///
/// # Errors
/// MPI cannot be initialised; a launcher of another MPI library started this process; MPI is ruled out although a launcher started
/// several processes.
pub fn start() -> Result<Box<dyn Transport>> {
    let setting = std::env::var("CLC_REPLAY_MPI").ok();
    if Launch::from_environment().wants_mpi(setting.as_deref())? {
        mpi()
    } else {
        // Nobody else was started here to share the cores with.
        Ok(Box::new(LocalTransport::alone().with_workers(Workers::of_this_machine())))
    }
}

#[cfg(feature = "mpi")]
fn mpi() -> Result<Box<dyn Transport>> {
    Ok(Box::new(MpiTransport::initialise()?))
}

#[cfg(not(feature = "mpi"))]
fn mpi() -> Result<Box<dyn Transport>> {
    Err(Error::new("this program was started by an MPI launcher, but was built without MPI")
        .hint("build it with the feature `mpi`, or set CLC_REPLAY_MPI=never to run a single process"))
}

/// What the environment says of the start of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    /// A launcher of MPI processes started it.
    pub by_launcher: bool,
    /// Number of processes started together, if the launcher tells.
    pub ranks: Option<usize>,
}

/// Variables with the number of processes that the launcher started: Open MPI; MPICH and its relatives; MVAPICH2; IBM
/// JSM. The innermost launcher comes first, since `mpirun` in a Slurm job is a child of a Slurm step of its own.
const COUNTS: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "JSM_NAMESPACE_SIZE"];

/// Variables that only a process of an MPI job has: PMI and PMIx; Intel MPI; Cray ALPS and PALS; Flux; IBM JSM.
const SIGNS: [&str; 8] = [
    "PMI_RANK",
    "PMI_FD",
    "PMIX_RANK",
    "MPI_LOCALRANKID",
    "ALPS_APP_PE",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "JSM_NAMESPACE_RANK",
];

impl Launch {
    /// Looks at the environment of this process.
    pub(super) fn from_environment() -> Launch {
        Launch::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Launch {
        let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
        // Also set in an interactive step with its single shell: only several tasks are a sign of `srun program`.
        let step = number("SLURM_STEP_NUM_TASKS").filter(|&tasks| tasks > 1 && variable("SLURM_PROCID").is_some());
        let known = COUNTS.iter().chain(&SIGNS).any(|name| variable(name).is_some());
        Launch { by_launcher: known || step.is_some(), ranks: COUNTS.iter().find_map(|name| number(name)).or(step) }
    }

    /// Whether to use MPI, given the value of `CLC_REPLAY_MPI`.
    fn wants_mpi(self, setting: Option<&str>) -> Result<bool> {
        match setting {
            None | Some("") => Ok(self.by_launcher),
            Some("always") => Ok(true),
            Some("never") => match self.ranks {
                // Each of them would correct the whole trace.
                Some(ranks) if ranks > 1 => {
                    Err(Error::new(format!("CLC_REPLAY_MPI is 'never', but a launcher started {ranks} processes"))
                        .hint("start a single process, or unset CLC_REPLAY_MPI"))
                }
                _ => Ok(false),
            },
            Some(other) => {
                Err(Error::new(format!("CLC_REPLAY_MPI is '{other}'")).hint("it has to be 'always' or 'never'"))
            }
        }
    }
}

/// Whether a launcher of MPI processes started this process.
pub fn started_by_launcher() -> bool {
    Launch::from_environment().by_launcher
}

/// The failure of a start by the launcher of another MPI library.
#[cfg_attr(not(feature = "mpi"), allow(dead_code))]
pub(super) fn foreign(ranks: usize, library: &str) -> Error {
    Error::new(format!(
        "the launcher started {ranks} processes, but MPI sees only this one; clc-replay was built with {library}"
    ))
    .hint("start it with the mpirun of that library, or build it with the compiler wrapper of the launcher's library")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::AnalysisRank;

    fn launch(environment: &[(&str, &str)]) -> Launch {
        Launch::from_variables(|name| environment.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn launchers_are_recognised() {
        type Variables = &'static [(&'static str, &'static str)];
        let cases: [(Variables, bool, Option<usize>); 8] = [
            (&[], false, None),
            (&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "1")], true, Some(4)),
            (&[("PMI_SIZE", "3"), ("PMI_RANK", "0")], true, Some(3)),
            (&[("PMIX_RANK", "0")], true, None),
            // srun; a shell in an allocation; mpirun in a job of two nodes.
            (&[("SLURM_PROCID", "5"), ("SLURM_STEP_NUM_TASKS", "8")], true, Some(8)),
            (&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "64")], false, None),
            (&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2"), ("OMPI_COMM_WORLD_SIZE", "64")], true, Some(64)),
            (&[("PMI_SIZE", "many")], true, None),
        ];
        for (environment, by_launcher, ranks) in cases {
            assert_eq!(launch(environment), Launch { by_launcher, ranks }, "{environment:?}");
        }
    }

    #[test]
    fn the_setting_overrides_the_environment() {
        let (alone, several) = (launch(&[]), launch(&[("PMI_SIZE", "2")]));
        for setting in [None, Some("")] {
            assert!(!alone.wants_mpi(setting).unwrap());
            assert!(several.wants_mpi(setting).unwrap());
        }
        assert!(alone.wants_mpi(Some("always")).unwrap());
        assert!(!alone.wants_mpi(Some("never")).unwrap());
        assert!(!launch(&[("PMI_SIZE", "1")]).wants_mpi(Some("never")).unwrap());
        assert!(several.wants_mpi(Some("never")).unwrap_err().message.contains("2 processes"));
        assert!(alone.wants_mpi(Some("perhaps")).is_err());
    }

    #[test]
    fn without_a_launcher_there_is_one_rank() {
        if !Launch::from_environment().by_launcher && std::env::var_os("CLC_REPLAY_MPI").is_none() {
            let transport = start().unwrap();
            assert_eq!((transport.rank(), transport.size()), (AnalysisRank::FIRST, 1));
        }
    }
}
