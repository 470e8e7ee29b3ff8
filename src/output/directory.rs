//! Where the corrected trace goes: complete, or not at all.

use crate::output::manifest;
use crate::output::orphans;
use crate::output::places::trace_around;
use crate::output::signals::{SetAside, Unfinished};
use clc_trace::{Error, Result};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directory that the corrected trace will be in, and the one beside it in which it is made.
#[derive(Debug)]
pub struct Output {
    /// Where it will be.
    pub path: PathBuf,
    /// What the user should know about unfinished outputs of earlier runs.
    pub warnings: Vec<String>,
    // Dropped in this order: it takes what is set aside to remove the directory, and a signal in between removes it as well.
    set_aside: SetAside,
    making: tempfile::TempDir,
    unfinished: Unfinished,
    /// Whether something that is there may be replaced.
    force: bool,
    /// Whether the times in it are corrected ones.
    pub(crate) corrected: bool,
}

impl Output {
    /// Checks that `path` can become the output for the trace in `input`, and makes the temporary directory beside it, with the
    /// directory `events` for event files in it. Anything at `path` stays untouched until [`Output::publish`].
    ///
    /// # Errors
    /// `path` exists and `force` is not set, or holds what this program did not write; `path` is, contains, or lies in `input`; it is no directory; nothing can be written
    /// beside it.
    pub(crate) fn prepare(path: &Path, input: &Path, events: &str, force: bool) -> Result<Output> {
        let input = input.canonicalize().map_err(|error| Error::io(input, "cannot find the trace", &error))?;
        let output = Output::checked(path, force, |place| {
            if place.starts_with(&input) {
                let what = if place == input { "is the trace itself" } else { "lies inside the trace" };
                return Err(Error::new(format!("the output {what}"))
                    .in_file(path)
                    .hint("choose another directory with --output"));
            }
            if input.starts_with(place) {
                return Err(Error::new("the output contains the trace")
                    .in_file(path)
                    .hint("choose another directory with --output"));
            }
            Ok(())
        })?;
        let events = output.making().join(events);
        std::fs::create_dir(&events).map_err(|error| Error::io(&events, "cannot write the output there", &error))?;
        Ok(output)
    }

    /// As [`Output::prepare`], for a trace that is made from nothing; the temporary directory is empty.
    ///
    /// # Errors
    /// `path` exists and `force` is not set, or holds what this program did not write; nothing can be written beside it.
    pub(crate) fn fresh(path: &Path, force: bool) -> Result<Output> {
        Output::checked(path, force, |_| Ok(()))
    }

    /// Whether [`Output::fresh`] would be refused for what is there already. Changes nothing.
    pub(crate) fn is_in_the_way(path: &Path, force: bool) -> bool {
        Output::place(path, force, |_| Ok(())).is_err()
    }

    /// The directory in which an output is to be, its name there, and its path, if nothing speaks against it.
    fn place(path: &Path, force: bool, check: impl FnOnce(&Path) -> Result<()>) -> Result<(PathBuf, &OsStr, PathBuf)> {
        let (parent, name) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => (if parent.as_os_str().is_empty() { Path::new(".") } else { parent }, name),
            _ => return Err(Error::new("not a valid name for an output directory").in_file(path)),
        };
        let parent = parent.canonicalize().map_err(|error| {
            Error::io(parent, "cannot write the output there", &error)
                .hint("the parent directory of the output has to exist")
        })?;
        let place = parent.join(name);
        let place = place.canonicalize().unwrap_or(place);
        check(&place)?;
        if trace_around(&parent).is_some() {
            return Err(Error::new("the output lies inside another trace").in_file(path));
        }
        let there = match place.symlink_metadata() {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(path, "cannot write the output there", &error));
            }
            there => there.is_ok(),
        };
        if there {
            if !place.is_dir() {
                let error = Error::new("the output exists and is not a directory").in_file(path);
                return Err(error.hint("remove it, or choose another location"));
            }
            if !force {
                return Err(Error::new("output directory already exists")
                    .in_file(path)
                    .hint("replace it with --force"));
            }
            // Replacing a directory must not delete anything but an earlier result.
            manifest::check(&place, path)?;
        }
        Ok((parent, name, place))
    }

    fn checked(path: &Path, force: bool, check: impl FnOnce(&Path) -> Result<()>) -> Result<Output> {
        let (parent, name, place) = Output::place(path, force, check)?;
        let warnings = orphans::sweep(&parent, name);
        let set_aside = SetAside::new()?;
        let making = tempfile::Builder::new()
            .prefix(&orphans::prefix(name))
            .tempdir_in(&parent)
            .map_err(|error| Error::io(&parent, "cannot write the output there", &plain(error)))?;
        let unfinished = Unfinished::new(making.path(), &set_aside);
        Ok(Output { path: place, warnings, set_aside, making, unfinished, force, corrected: false })
    }

    /// The directory to write into.
    pub(crate) fn making(&self) -> &Path {
        self.making.path()
    }

    /// Puts the finished directory into place.
    ///
    /// # Errors
    /// The operating system refuses, then whatever was there before is there again; another run has put its output there meanwhile, or
    /// somebody something else into the one that is to be replaced.
    pub(crate) fn publish(self) -> Result<()> {
        let Output { path, set_aside, making, unfinished, force, corrected, .. } = self;
        drop(set_aside);
        manifest::write(making.path(), corrected)?;
        open_permissions(making.path())?;
        if force && path.is_dir() {
            // Somebody may have put something into it meanwhile.
            manifest::check(&path, &path)?;
        }
        unfinished.finish(|| put_into_place(&path, making, force))
    }
}

/// Moves the directory to its place, and what was there aside.
fn put_into_place(path: &Path, making: tempfile::TempDir, force: bool) -> Result<()> {
    let failed = |error: std::io::Error| Error::io(path, "cannot move the output into place", &error);
    if path.symlink_metadata().is_err() {
        return match std::fs::rename(making.path(), path) {
            Ok(()) => {
                // It has another name now; there is nothing left to remove.
                let _ = making.keep();
                Ok(())
            }
            // Somebody was faster.
            Err(_) if !force && path.symlink_metadata().is_ok() => Err(appeared(path)),
            Err(error) => Err(failed(error)),
        };
    }
    if !force {
        return Err(appeared(path));
    }
    // In one step, so that there is an output at any moment; the old one is then removed in the place of the unfinished one.
    if exchange(making.path(), path) {
        return Ok(());
    }
    // Not every file system can do that.
    let parent = path.parent().unwrap_or(Path::new("."));
    let aside =
        tempfile::Builder::new().prefix(".clc-replay-old-").tempdir_in(parent).map_err(|error| failed(plain(error)))?;
    std::fs::rename(path, aside.path().join("old")).map_err(failed)?;
    match std::fs::rename(making.path(), path) {
        Ok(()) => {
            let _ = making.keep();
            Ok(())
        }
        Err(error) => {
            let _ = std::fs::rename(aside.path().join("old"), path);
            Err(failed(error))
        }
    }
}

fn appeared(path: &Path) -> Error {
    Error::new("the output appeared during this run: another run created it first")
        .in_file(path)
        .hint("replace it with --force")
}

/// Lets two directories change places; returns whether they have.
#[allow(unsafe_code)]
fn exchange(one: &Path, other: &Path) -> bool {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
    let (Some(one), Some(other)) = (text(one), text(other)) else { return false };
    // SAFETY: both are texts that end in zero, and live until the call returns.
    unsafe { libc::renameat2(libc::AT_FDCWD, one.as_ptr(), libc::AT_FDCWD, other.as_ptr(), libc::RENAME_EXCHANGE) == 0 }
}

/// An error without the name of the temporary directory, which nobody has asked for.
pub(super) fn plain(error: std::io::Error) -> std::io::Error {
    let text = error.to_string();
    let end = text.find(" at path \"").unwrap_or(text.len());
    std::io::Error::new(error.kind(), text.get(..end).unwrap_or(&text))
}

/// Temporary directories are private; a trace is as readable as the user's other new directories.
pub(super) fn open_permissions(directory: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Error::io(directory, "cannot set the permissions of the output", &error);
    // A fresh directory shows which permissions the user's umask gives.
    let probe = directory.join(".mode");
    std::fs::create_dir(&probe).map_err(failed)?;
    let mode = std::fs::metadata(&probe).map(|metadata| metadata.permissions());
    let _ = std::fs::remove_dir(&probe);
    std::fs::set_permissions(directory, mode.map_err(failed)?).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("trace");
        std::fs::create_dir(&input).unwrap();
        (directory, input)
    }

    #[test]
    fn nothing_appears_before_it_is_published() {
        let (directory, input) = trace();
        let path = directory.path().join("trace-clc");
        let output = Output::prepare(&path, &input, "traces", false).unwrap();
        std::fs::write(output.making().join("x"), "y").unwrap();
        assert!(!path.exists());
        output.publish().unwrap();
        assert_eq!(std::fs::read_to_string(path.join("x")).unwrap(), "y");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_abandoned_output_leaves_nothing() {
        let (directory, input) = trace();
        drop(Output::prepare(&directory.path().join("out"), &input, "traces", false).unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_output_is_replaced_only_by_force() {
        let (directory, input) = trace();
        let path = directory.path().join("out");
        let output = Output::prepare(&path, &input, "traces", false).unwrap();
        std::fs::write(output.making().join("old.otf2"), "").unwrap();
        output.publish().unwrap();
        assert!(Output::prepare(&path, &input, "traces", false).unwrap_err().message.contains("already exists"));
        let output = Output::prepare(&path, &input, "traces", true).unwrap();
        assert!(path.join("old.otf2").exists());
        output.publish().unwrap();
        assert!(path.exists() && !path.join("old.otf2").exists());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_this_program_did_not_write_is_not_replaced() {
        let (directory, input) = trace();
        let path = directory.path().join("out");
        std::fs::create_dir(&path).unwrap();
        // A recording.
        std::fs::write(path.join("old.otf2"), "").unwrap();
        let error = Output::prepare(&path, &input, "traces", true).unwrap_err().to_string();
        assert!(error.contains("it may be a recording"), "{error}");
        std::fs::remove_file(path.join("old.otf2")).unwrap();
        // An output into which somebody puts a file, before a run, or during one.
        Output::prepare(&path, &input, "traces", true).unwrap().publish().unwrap();
        let output = Output::prepare(&path, &input, "traces", true).unwrap();
        std::fs::write(path.join("notes.md"), "mine").unwrap();
        for error in [Output::prepare(&path, &input, "traces", true).unwrap_err(), output.publish().unwrap_err()] {
            assert!(error.to_string().contains("did not write notes.md"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(path.join("notes.md")).unwrap(), "mine");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn of_two_runs_without_force_the_second_fails() {
        let (directory, input) = trace();
        let path = directory.path().join("out");
        let [first, second] = [(); 2].map(|()| Output::prepare(&path, &input, "traces", false).unwrap());
        std::fs::write(first.making().join("first"), "").unwrap();
        first.publish().unwrap();
        assert!(second.publish().unwrap_err().message.contains("another run created it first"));
        assert!(path.join("first").exists());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_input_is_safe() {
        let (directory, input) = trace();
        for path in [input.clone(), input.join("inside"), directory.path().to_path_buf()] {
            assert!(Output::prepare(&path, &input, "traces", true).is_err(), "{path:?}");
        }
    }
}
