//! Becoming independent of the process that has started it: that is one of the application, and may be killed with all that belongs to it.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::io::{Error, Result};
use std::process::{Command, Stdio};

/// Starts this program again with other arguments, as a process that goes on when this one has ended. `kept` is a descriptor that it inherits.
///
/// # Errors
/// The process cannot be started.
pub fn start_detached(arguments: &[OsString]) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.current_dir("/");
    // It is not waited for: when this process ends, which it does now, somebody else does so.
    command.spawn().map(drop)
}

/// Leaves session and process group of the one that has started it, and closes what it has inherited but `kept`.
///
/// # Errors
/// The system refuses.
pub fn become_independent(kept: Option<i32>) -> Result<()> {
    // SAFETY: takes nothing, and fails only if this process leads a group already.
    if unsafe { libc::setsid() } == -1 {
        let error = Error::last_os_error();
        if error.raw_os_error() != Some(libc::EPERM) {
            return Err(error);
        }
    }
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for descriptor in open.into_iter().filter(|&descriptor| descriptor > 2 && Some(descriptor) != kept) {
        // SAFETY: called first thing, so none of them is in use here; the one of the list itself is closed already.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}
