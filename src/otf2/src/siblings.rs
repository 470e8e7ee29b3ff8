//! What lies in the directory of a trace without being part of it, and copying them.

use crate::open_file;
use clc_trace::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Something beside the archive that is not part of the format (`scorep.cfg`, `MANIFEST.md`, profiles).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// Where it is.
    pub path: PathBuf,
    /// Where it belongs, relative to the archive's directory.
    pub relative: PathBuf,
    /// What it is.
    pub kind: SiblingKind,
}

/// What can lie beside an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiblingKind {
    /// A regular file.
    File,
    /// A directory; what is in it comes after it.
    Directory,
    /// A link, which may lead anywhere, a pipe, a device.
    Other,
}

/// Lists everything in `directory` that is not `known`, with what is in its directories. Paths are relative to a directory in which this one is `relative`.
///
/// # Errors
/// A directory cannot be read.
pub fn list(directory: &Path, relative: &Path, known: &dyn Fn(&str) -> bool, into: &mut Vec<Sibling>) -> Result<()> {
    let failed = |error: std::io::Error| Error::io(directory, "cannot read the directory", &error);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if name.to_str().is_some_and(known) {
            continue;
        }
        let kind = match entry.file_type().map_err(failed)? {
            kind if kind.is_file() => SiblingKind::File,
            kind if kind.is_dir() => SiblingKind::Directory,
            _ => SiblingKind::Other,
        };
        let (path, relative) = (entry.path(), relative.join(&name));
        into.push(Sibling { path: path.clone(), relative: relative.clone(), kind });
        if kind == SiblingKind::Directory {
            list(&path, &relative, &|_| false, into)?;
        }
    }
    Ok(())
}

/// Copies a regular file, and its permissions, to a place where none is.
///
/// # Errors
/// It cannot be read, is something else than a regular file, changes meanwhile, or cannot be written.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let (mut source, length) = open_file(from)?;
    let failed = |error: std::io::Error| Error::io(from, &format!("cannot copy to {}", to.display()), &error);
    let state = |source: &File| source.metadata().and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
    let before = state(&source).map_err(failed)?;
    let copied = File::create(to)
        .and_then(|mut target| {
            let copied = std::io::copy(&mut source, &mut target)?;
            target.set_permissions(source.metadata()?.permissions())?;
            Ok(copied)
        })
        .map_err(failed)?;
    if copied != length || state(&source).map_err(failed)? != before {
        return Err(Error::new("the file changed while it was being copied").in_file(from));
    }
    Ok(())
}
