//! Files as byte slices.
#![allow(unsafe_code)]

use crate::trace::{Error, Result};
use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// A file mapped into memory, read only. Empty files are empty slices.
#[derive(Debug)]
pub struct MappedFile(Option<memmap2::Mmap>);

impl MappedFile {
    /// Maps `path`.
    ///
    /// # Errors
    /// The file is missing, not readable or not a regular file.
    pub fn open(path: &Path) -> Result<MappedFile> {
        let (file, length) = open_file(path)?;
        if length == 0 {
            return Ok(MappedFile(None));
        }
        // SAFETY: the map is private and read only. What remains is another process changing or truncating the file while it is
        // mapped: bytes are only ever read as integers and checked, so changes give errors; truncation raises SIGBUS, as it
        // would for any reader of mapped files.
        let map = unsafe { memmap2::MmapOptions::new().map(&file) }.map_err(|error| unreadable(path, &error))?;
        // Files are read from front to back; a refusal of the advice does not matter.
        let _ = map.advise(memmap2::Advice::Sequential);
        Ok(MappedFile(Some(map)))
    }
}

/// Opens a regular file for reading; returns its length, too.
///
/// # Errors
/// The file is missing, not readable or not a regular file.
pub fn open_file(path: &Path) -> Result<(File, u64)> {
    let failed = |error: std::io::Error| unreadable(path, &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::new("not a regular file").in_file(path));
    }
    Ok((file, metadata.len()))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let error = match error.kind() {
        std::io::ErrorKind::NotFound => Error::new("the file is missing"),
        _ => Error::new(format!("cannot read: {error}")),
    };
    error.in_file(path)
}

impl Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}
