//! What agents that were killed have left: states of processes, which nobody removes any more. Whatever lives holds a lock: an agent on the mark of its node, a process
//! on its own states.
#![allow(unsafe_code)]

use super::own_directory;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is younger may not have its locks yet. Chosen by hand: a shorter time may remove a job that is being started, a longer one leaves what was
/// killed.
const YOUNG: Duration = Duration::from_secs(10);

/// Whether the lock of an open file is free; then it belongs to whoever has opened it.
fn locked(file: &File) -> bool {
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Takes the mark of a node for an agent, as long as the file is open.
///
/// # Errors
/// Another agent has it; the directory cannot be made.
pub fn hold(states: &Path) -> Result<File> {
    std::fs::create_dir_all(states)?;
    let mark = File::options().write(true).create(true).truncate(false).open(states.join("agent"))?;
    if locked(&mark) {
        return Ok(mark);
    }
    Err(Error::new(ErrorKind::AddrInUse, "an agent of this job is already running on this node"))
}

/// Removes the states of jobs of this user that no living process holds.
///
/// # Errors
/// The place cannot be read.
pub fn sweep() -> Result<()> {
    sweep_in(&own_directory()?, YOUNG)
}

fn sweep_in(own: &Path, young: Duration) -> Result<()> {
    for job in directories(own)? {
        for node in directories(&job)? {
            sweep_node(&node, young);
        }
        if is_old(&job, young) {
            // Fails unless it is empty.
            let _ = std::fs::remove_dir(&job);
        }
    }
    Ok(())
}

fn directories(of: &Path) -> Result<Vec<PathBuf>> {
    let own = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    Ok(of.read_dir()?.flatten().map(|entry| entry.path()).filter(own).collect())
}

fn is_old(path: &Path, young: Duration) -> bool {
    let changed = path.metadata().and_then(|meta| meta.modified());
    changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= young))
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
}

/// All of it or nothing.
fn sweep_node(node: &Path, young: Duration) {
    let Ok(entries) = node.read_dir() else { return };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let mut held = Vec::new();
    // A socket of an agent cannot be opened, nor does it hold anything.
    for path in paths.iter().filter(|path| !is_socket(path)) {
        match File::open(path) {
            Ok(file) if is_old(path, young) && locked(&file) => held.push(file),
            _ => return,
        }
    }
    if is_old(node, young) {
        paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
        let _ = std::fs::remove_dir(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_swept() {
        let own = tempfile::tempdir().unwrap();
        let [left, watched, running] =
            ["left/node1", "watched/node1", "running/node2"].map(|name| own.path().join(name));
        for node in [&left, &watched, &running] {
            std::fs::create_dir_all(node).unwrap();
            std::fs::write(node.join("agent"), "").unwrap();
            std::fs::write(node.join("12.state"), "states").unwrap();
            // It stays when its agent is killed.
            drop(std::os::unix::net::UnixListener::bind(node.join("socket")).unwrap());
        }
        let _agent = hold(&watched).unwrap();
        let process = File::open(running.join("12.state")).unwrap();
        assert!(locked(&process));
        sweep_in(own.path(), Duration::from_secs(3600)).unwrap();
        assert!(left.exists(), "it is young");
        sweep_in(own.path(), Duration::ZERO).unwrap();
        assert!(
            !own.path().join("left").exists() && watched.join("12.state").exists() && running.join("agent").exists()
        );
        drop(process);
        sweep_in(own.path(), Duration::ZERO).unwrap();
        assert!(!own.path().join("running").exists());
    }

    #[test]
    fn a_node_has_one_agent() {
        let own = tempfile::tempdir().unwrap();
        let states = own.path().join("job/node1");
        let first = hold(&states).unwrap();
        assert_eq!(hold(&states).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(first);
        hold(&states).unwrap();
    }
}
