//! Starting an application with the recorder preloaded, and waiting for it.
#![allow(unsafe_code)]

use clc_trace::{Error, Result};
use std::ffi::{OsStr, OsString, c_int};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

/// File name of the recorder.
const LIBRARY: &str = "libclc_recorder.so";

/// Variables that tell the rank of a process in an MPI job: Open MPI; PMIx; PMI; MVAPICH2; Slurm; IBM JSM; Cray PALS and ALPS; Flux.
const RANKS: [&str; 9] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "JSM_NAMESPACE_RANK",
    "PALS_RANKID",
    "ALPS_APP_PE",
    "FLUX_TASK_RANK",
];

/// The rank of this process, if a launcher of MPI processes started it.
pub(crate) fn rank() -> Option<u32> {
    clc_engine::comm::started_by_launcher()
        .then(|| RANKS.iter().find_map(|name| std::env::var(name).ok()?.trim().parse().ok()))
        .flatten()
}

/// Where the recorder is: the environment variable `CLC_REPLAY_RECORDER`, or beside this program, or in `lib` beside its directory.
///
/// # Errors
/// It is in none of these places.
pub(crate) fn library() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("CLC_REPLAY_RECORDER").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        let absolute = path.canonicalize();
        return absolute.map_err(|error| Error::io(&path, "CLC_REPLAY_RECORDER is not the path of a recorder", &error));
    }
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let directory = program.parent().unwrap_or(Path::new("."));
    let places = [directory.join(LIBRARY), directory.join("../lib").join(LIBRARY)];
    places.iter().find_map(|path| path.canonicalize().ok()).ok_or_else(|| {
        Error::new(format!("the recorder {LIBRARY} is neither next to clc-replay nor in its lib directory"))
            .hint("build it with `cargo build`, or set CLC_REPLAY_RECORDER to its path")
    })
}

/// The command of an application, with what makes it record into `raw`, and measure clocks by `schedule` (start-end, ring, or seconds).
///
/// # Errors
/// The recorder cannot be found; a path cannot be put into the environment.
pub(crate) fn command(words: &[OsString], raw: &Path, per_process: bool, schedule: &str) -> Result<Command> {
    let library = library()?;
    if library.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b':' | b' ')) {
        return Err(Error::new("the dynamic linker cannot preload a file whose path contains a colon or a space")
            .in_file(&library)
            .hint("copy it elsewhere and set CLC_REPLAY_RECORDER to its path"));
    }
    let Some((program, arguments)) = words.split_first() else { return Err(Error::new("no command to record")) };
    let mut command = Command::new(program);
    command.args(arguments);
    let mut preload = library.into_os_string();
    if let Some(more) = std::env::var_os("LD_PRELOAD").filter(|more| !more.is_empty()) {
        preload.push(":");
        preload.push(more);
    }
    let offsets = if per_process { "process" } else { "node" };
    // Open MPI hands processes on other nodes only the variables that it is told to.
    let mut forwarded = std::env::var_os("OMPI_MCA_mca_base_env_list").unwrap_or_default();
    for name in ["LD_PRELOAD", "CLC_RECORDER_DIR", "CLC_RECORDER_OFFSETS", "CLC_RECORDER_SCHEDULE"] {
        if !forwarded.is_empty() {
            forwarded.push(";");
        }
        forwarded.push(name);
    }
    command
        .env("LD_PRELOAD", preload)
        .env("CLC_RECORDER_DIR", raw)
        .env("CLC_RECORDER_OFFSETS", offsets)
        .env("CLC_RECORDER_SCHEDULE", schedule)
        .env("OMPI_MCA_mca_base_env_list", forwarded);
    Ok(command)
}

/// This very program, to be started anew with what makes its calls of MPI known to those who watch it. Nothing is recorded: what the recorder needs of that is in
/// `states`, without names, and lasts as long as the process.
///
/// # Errors
/// The recorder cannot be found.
pub(crate) fn monitored(states: &Path) -> Result<Command> {
    let program = std::env::current_exe().map_err(|error| Error::new(format!("cannot find this program: {error}")))?;
    let words: Vec<OsString> = [program.into_os_string()].into_iter().chain(std::env::args_os().skip(1)).collect();
    let mut command = command(&words, states, false, "start-end")?;
    hand_on(
        &mut command,
        &[
            ("CLC_RECORDER_DISCARD", "1".to_owned()),
            ("CLC_RECORDER_RING", "1".to_owned()),
            ("CLC_RECORDER_MEMORY", DISCARDED.to_string()),
        ],
    );
    Ok(command)
}

/// Bytes for events that nobody wants.
const DISCARDED: usize = 128 << 10;

/// Gives a command variables that all processes that it starts are to have.
pub(crate) fn hand_on(command: &mut Command, variables: &[(&str, String)]) {
    const LIST: &str = "OMPI_MCA_mca_base_env_list";
    let mut forwarded =
        command.get_envs().find(|(name, _)| *name == LIST).and_then(|(_, value)| value).unwrap_or_default().to_owned();
    for (name, value) in variables {
        forwarded.push(";");
        forwarded.push(name);
        command.env(name, value);
    }
    command.env(LIST, forwarded);
}

/// Becomes the application; returns only if that fails.
pub(crate) fn become_application(mut command: Command) -> Error {
    let error = command.exec();
    cannot_start(command.get_program(), &error)
}

fn cannot_start(program: &OsStr, error: &std::io::Error) -> Error {
    Error::io(Path::new(program), "cannot start the application", error)
}

/// The application while it runs.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Hands a signal on to the application. One of the terminal has been sent to it as well: it ends once.
extern "C" fn pass_on(signal: c_int) {
    let child = CHILD.load(Ordering::SeqCst);
    if child > 0 && signal != libc::SIGINT {
        // SAFETY: the child has not been waited for, so the id is still its own; kill may be called in a handler.
        unsafe { libc::kill(child, signal) };
    }
}

/// Runs the application to its end. Signals that end a program reach the application, and this process outlives it.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run(mut command: Command) -> Result<ExitStatus> {
    let passed_on = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].map(|signal| {
        let handler = pass_on as extern "C" fn(c_int) as libc::sighandler_t;
        // SAFETY: the handler only calls what may be called in one. In the child, the signals have their usual effect again.
        (signal, unsafe { libc::signal(signal, handler) })
    });
    let mut child = command.spawn().map_err(|error| cannot_start(command.get_program(), &error))?;
    CHILD.store(child.id() as i32, Ordering::SeqCst);
    let ended = child.wait();
    CHILD.store(0, Ordering::SeqCst);
    for (signal, before) in passed_on {
        // SAFETY: what was there before.
        unsafe { libc::signal(signal, before) };
    }
    ended.map_err(|error| cannot_start(command.get_program(), &error))
}

/// The exit status to pass through: that of the application, or 128 and the signal that ended it, as shells have it.
pub(crate) fn status_of(ended: ExitStatus) -> u8 {
    let status = ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or(0));
    u8::try_from(status).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_application_is_passed_through() {
        let ended = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            status_of(run(command).unwrap())
        };
        assert_eq!(ended("exit 0"), 0);
        assert_eq!(ended("exit 7"), 7);
        assert_eq!(ended("kill -KILL $$"), 128 + 9);
        assert!(run(Command::new("./no such program")).unwrap_err().message.contains("cannot start"));
    }
}
