//! The agent of a node: its first process starts it.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// Name of the node, as a file can have it.
pub(super) fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: it is as long as said; the last byte stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).replace('/', "_")
}

/// The first process of a node starts its agent; the others find its mark.
pub(super) fn start(directory: &Path) {
    let (Some(program), Some(job)) = (std::env::var_os("CLC_RECORDER_AGENT"), std::env::var_os("CLC_RECORDER_JOB"))
    else {
        return;
    };
    // Locked by the agent as long as it is there, by the descriptor that it inherits.
    let Ok(mark) = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(directory.join("agent"))
    else {
        return;
    };
    // SAFETY: the descriptor is open.
    if unsafe { libc::flock(mark.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        return;
    }
    // SAFETY: the descriptor is open; the new one is not closed when a program is executed.
    let inherited = unsafe { libc::dup(mark.as_raw_fd()) };
    remove_old(directory);
    // It makes itself independent of this process and returns at once. It is neither recorded nor a part of the application.
    let started = Command::new(program)
        .arg("agent")
        .arg("--detach")
        .arg(job)
        .env_remove("LD_PRELOAD")
        .env_remove("CLC_RECORDER_DIR")
        .env_remove("CLC_RECORDER_STATE")
        .env("CLC_RECORDER_LOCK", inherited.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // SAFETY: it was opened here, and is not used any more.
    unsafe { libc::close(inherited) };
    if !started.is_ok_and(|status| status.success()) {
        crate::say("cannot start the agent that monitors this node; the application continues");
    }
}

/// States of an earlier job in the same place, whose agent was killed.
fn remove_old(directory: &Path) {
    for path in directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()) {
        let process = path.file_stem().and_then(|name| name.to_str()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = std::fs::remove_file(path);
        }
    }
}
