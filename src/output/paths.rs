//! Where a command writes, looked at before any work: what it reads is not hit, and no output hits another.

use crate::output::conflicts::{self, Content};
use crate::output::files;
use clc_archive::{directory_of, native, truth};
use clc_trace::{Error, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
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
    pub kind: Kind,
}

/// The kinds of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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
            Kind::File(content) => {
                conflicts::allow(&self.path, content, force)?;
                files::probe(&self.path)
            }
            Kind::Files(_) if place.exists() && !place.is_dir() => {
                Err(Error::new("cannot write: not a directory").in_file(&self.path))
            }
            Kind::Files(content) if place.exists() => {
                conflicts::allow_all(place, content, force)?;
                files::probe_directory(place, &self.path)
            }
            // Directories that are missing are made.
            Kind::Files(_) => match place.ancestors().find(|above| above.symlink_metadata().is_ok()) {
                Some(above) => files::probe_directory(above, &self.path),
                None => Ok(()),
            },
            Kind::Trace => Ok(()),
        }
    }

    fn is_directory(&self) -> bool {
        !matches!(self.kind, Kind::File(_))
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
pub fn check(inputs: &[Input], targets: &[Target], force: bool) -> Result<()> {
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
        if target.kind != Kind::Trace
            && let Some(input) = inputs.iter().find(|input| input.holds(&place))
        {
            return Err(target.error(format!("{option} would write into {}", input.name())));
        }
        if matches!(target.kind, Kind::Files(_)) && trace_around(&place).is_some() {
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

/// The directory above; the current one for a bare name.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Most links that are followed one after the other, as by the system.
const LINKS: usize = 40;

/// The path without links, also for what does not exist yet.
pub(super) fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        if let Ok(place) = path.canonicalize() {
            return place;
        }
        // A link to something that is not there: writing makes it.
        match path.read_link() {
            Ok(to) => path = parent(&path).join(to),
            Err(_) => break,
        }
    }
    match path.file_name() {
        Some(name) => resolve(parent(&path)).join(name),
        None => path,
    }
}

/// The trace that a directory is, or is a part of, or will be in, as far as names tell.
pub(super) fn trace_around(directory: &Path) -> Option<&Path> {
    let directory = directory.ancestors().find(|directory| directory.is_dir())?;
    if !anchors(directory).is_empty() || native::is_native(directory) {
        return Some(directory);
    }
    let above = directory.parent()?;
    let is_trace = !anchors(above).is_empty() || native::is_native(above);
    (is_trace && parts(above).iter().any(|part| part == directory)).then_some(above)
}

/// The directories in which a trace has its files.
fn parts(directory: &Path) -> Vec<PathBuf> {
    let mut parts = vec![directory.to_path_buf(), directory.join(native::EVENTS), truth::directory(directory)];
    parts.extend(anchors(directory).into_iter().map(|anchor| anchor.with_extension("")));
    parts
}

/// Anchor files in a directory.
pub(super) fn anchors(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "otf2") && path.is_file()).collect()
}

/// What links in a directory lead to.
fn linked_from(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.filter_map(|entry| entry.path().canonicalize().ok())
}
