//! Where paths lead, and which traces are there.

use clc_archive::{native, truth};
use std::path::{Path, PathBuf};

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
pub(super) fn parts(directory: &Path) -> Vec<PathBuf> {
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
