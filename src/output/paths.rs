//! Where a command writes, looked at before any work: what it reads is not hit, and no output hits another.

use crate::output::conflicts::{self, Content};
use crate::output::files;
use crate::output::places::{parts, resolve, trace_around};
use clc_archive::directory_of;
use clc_trace::{Error, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input<'a> {
    /// A trace, or the true times of one: everything in its directory.
    Trace(&'a Path),
    /// A single file.
    File(&'a Path),
}

/// What a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'a> {
    /// The option that asks for it.
    pub option: &'static str,
    /// Where it goes.
    pub path: Cow<'a, Path>,
    /// What it is.
    pub kind: TargetKind,
}

/// The kinds of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A file.
    File(Content),
    /// Files in a directory, which may be there already.
    Files(Content),
    /// The directory of a trace; whether it can be written is for [`Output`](crate::output::directory::Output) to say.
    Trace,
}

impl Input<'_> {
    /// Whether writing to `place` would change it; not only by name, but also through links.
    fn holds(&self, place: &Path) -> bool {
        let trace = match self {
            Input::File(path) => return path.canonicalize().is_ok_and(|file| file == place),
            Input::Trace(path) => path,
        };
        parts(directory_of(trace)).iter().any(|part| {
            part.canonicalize().is_ok_and(|part| place.starts_with(part)) || linked_from(part).any(|file| file == place)
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Input::Trace(_) => "the trace that is read",
            Input::File(_) => "the file that is read",
        }
    }
}

impl Target<'_> {
    /// The file or directory that it is, or will be; nothing if that is a device, a pipe or the like.
    fn place(&self) -> Option<PathBuf> {
        let special = std::fs::metadata(&self.path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        (!special).then(|| resolve(&self.path))
    }

    /// Whether it can be made at all: after the work it would be late to find out.
    fn can_be_made(&self, place: &Path, force: bool) -> Result<()> {
        match self.kind {
            TargetKind::File(content) => {
                conflicts::allow(&self.path, content, force)?;
                files::probe(&self.path)
            }
            TargetKind::Files(_) if place.exists() && !place.is_dir() => {
                Err(Error::new("cannot write: not a directory").in_file(&self.path))
            }
            TargetKind::Files(content) if place.exists() => {
                conflicts::allow_all(place, content, force)?;
                files::probe_directory(place, &self.path)
            }
            // Directories that are missing are made.
            TargetKind::Files(_) => match place.ancestors().find(|above| above.symlink_metadata().is_ok()) {
                Some(above) => files::probe_directory(above, &self.path),
                None => Ok(()),
            },
            TargetKind::Trace => Ok(()),
        }
    }

    fn is_directory(&self) -> bool {
        !matches!(self.kind, TargetKind::File(_))
    }

    fn error(&self, message: String) -> Error {
        Error::new(message).in_file(&self.path).hint("choose another location")
    }
}

/// Checks that none of `targets` lies in one of `inputs`, or where another one is, that files can be made there, and that those that are there
/// already may be overwritten (with `force`, more of them).
///
/// # Errors
/// One does, cannot, or may not.
pub(crate) fn check(inputs: &[Input], targets: &[Target], force: bool) -> Result<()> {
    let mut earlier: Vec<(&Target, PathBuf)> = Vec::new();
    for target in targets {
        if target.path == Path::new("-") {
            return Err(Error::new(format!(
                "{} is a directory and cannot be written to standard output",
                target.option
            ))
            .hint("use ./- for a directory of that name"));
        }
        let Some(place) = target.place() else { continue };
        let option = target.option;
        if target.kind != TargetKind::Trace
            && let Some(input) = inputs.iter().find(|input| input.holds(&place))
        {
            return Err(target.error(format!("{option} would write into {}", input.name())));
        }
        if matches!(target.kind, TargetKind::Files(_)) && trace_around(&place).is_some() {
            return Err(target.error(format!("{option} would write into a trace")));
        }
        for (other, its) in &earlier {
            if place == *its {
                return Err(target.error(format!("{option} and {} are the same file", other.option)));
            }
            let inside = other.is_directory() && place.starts_with(its);
            if inside || target.is_directory() && its.starts_with(&place) {
                let (inner, outer) = if inside { (option, other.option) } else { (other.option, option) };
                return Err(target.error(format!("{inner} would write into the directory of {outer}")));
            }
        }
        target.can_be_made(&place, force)?;
        earlier.push((target, place));
    }
    Ok(())
}

/// What links in a directory lead to.
fn linked_from(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|entry| entry.path().canonicalize().ok())
}
