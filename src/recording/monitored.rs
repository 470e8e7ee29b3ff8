//! Monitoring of a job that is being recorded: its directory, and what its processes are told.

use clc_monitor::jobs::{self, About, Alarm, Job, state_directory};
use clc_trace::{Error, Result};
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};

/// How the job is monitored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MonitorSetup {
    /// When the alarm is raised.
    pub alarm: Option<Alarm>,
    /// Where agents listen.
    pub interface: Option<String>,
}

/// Where a job that is monitored keeps what belongs to that: beside its recording.
pub(crate) fn monitor_directory(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".monitor");
    output.with_file_name(name)
}

/// What a launcher says of a start of a job: the same for all its processes, and seldom for those of another one.
const LAUNCHES: [&str; 5] = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"];

/// Tells this start of a job from others. Processes that a launcher has started must agree without asking each other; who starts the launcher is alone.
pub(crate) fn identity(directory: &Path, launched: bool) -> String {
    let mut words = vec![directory.as_os_str().to_string_lossy().into_owned()];
    if launched {
        words.extend(LAUNCHES.iter().filter_map(|name| std::env::var(name).ok()));
    } else {
        let mut random = std::hash::RandomState::new().build_hasher();
        random.write_u32(std::process::id());
        words.push(format!("{:x}", random.finish()));
    }
    jobs::identity(&words)
}

/// What the processes of the job are told.
///
/// # Errors
/// There is no place for their states.
pub(crate) fn environment(directory: &Path, id: &str) -> Result<Vec<(&'static str, String)>> {
    let states = state_directory(id)
        .map_err(|error| Error::new(format!("cannot create the shared state of the processes: {error}")))?;
    let program = std::env::current_exe().map_err(|error| Error::new(format!("cannot find this program: {error}")))?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Ok(vec![
        ("CLC_RECORDER_STATE", text(&states)),
        ("CLC_RECORDER_JOB", text(directory)),
        ("CLC_RECORDER_AGENT", text(&program)),
        ("CLC_RECORDER_LAUNCH", id.to_owned()),
    ])
}

/// Makes the job known: its directory, and its entry on the list of the user's jobs.
///
/// # Errors
/// The directory cannot be made.
pub(crate) fn prepare(
    output: &Path,
    directory: &Path,
    id: String,
    command: String,
    setup: &MonitorSetup,
) -> Result<Job> {
    let about = About {
        id,
        name: output.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        command,
        host: jobs::host(),
        begun: clc_monitor::state::now(),
        interface: setup.interface.clone(),
        interval: 0.1,
        nodes: nodes(),
        alarm: setup.alarm.clone(),
    };
    let job =
        Job::create(directory, about).map_err(|error| Error::io(directory, "cannot monitor the job there", &error))?;
    // What is left of other jobs takes memory only.
    let _ = jobs::sweep();
    if let Err(error) = jobs::register(&job) {
        // `clc-replay watch` finds it all the same, by the name of its recording.
        tracing::warn!("the job cannot be listed by `clc-replay jobs`: {error}");
    }
    Ok(job)
}

/// Number of nodes, if the batch system says so.
fn nodes() -> Option<u32> {
    ["SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.trim().parse().ok())
}

/// After the end of a job: what remains of a successful one is removed; of another one it is said where it is.
pub(crate) fn finish(job: &Job, succeeded: bool) -> Option<String> {
    for failed in jobs::failures(job) {
        tracing::warn!("node {} was not monitored: {}", failed.host, failed.why);
    }
    let alarm = job.about.alarm.as_ref().map(|alarm| job.directory.join(&alarm.file)).filter(|file| file.exists());
    if !succeeded || alarm.is_some() {
        let raised = alarm.map(|file| format!("; the alarm was raised: {}", file.display())).unwrap_or_default();
        return Some(format!("for its last state: clc-replay watch {} --why{raised}", job.about.name));
    }
    // Agents that write into it at this moment are done in the next one.
    for _ in 0..5 {
        if jobs::remove(&job.directory).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    None
}
