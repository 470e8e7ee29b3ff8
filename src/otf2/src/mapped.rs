//! Files as byte slices.
#![allow(unsafe_code)]

use clc_trace::{Error, Result};
use std::fs::File;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A file mapped into memory, read only. Empty files are empty slices.
#[derive(Debug)]
pub struct MappedFile {
    map: Option<memmap2::Mmap>,
    /// The path, for [`mapped_at`].
    name: Box<[u8]>,
    entry: Option<&'static MappedEntry>,
}

/// A mapped file, for whoever has to explain a fault in it. Free if `start` is 0.
#[derive(Debug)]
struct MappedEntry {
    start: AtomicUsize,
    length: AtomicUsize,
    name: AtomicPtr<u8>,
    name_length: AtomicUsize,
}

/// Files that are mapped now; few are at a time, and those that do not fit are not explained.
static MAPPED: [MappedEntry; 32] = [const {
    MappedEntry {
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        name: AtomicPtr::new(std::ptr::null_mut()),
        name_length: AtomicUsize::new(0),
    }
}; 32];

/// The path of the mapped file that `address` lies in. For the thread that reads it there, in a signal handler: that file stays mapped
/// meanwhile.
pub fn mapped_at(address: usize) -> Option<&'static [u8]> {
    let entry = MAPPED.iter().find(|entry| {
        let start = entry.start.load(Ordering::SeqCst);
        // Up to the end of its last page.
        let length = entry.length.load(Ordering::SeqCst).next_multiple_of(4096);
        start != 0 && address.checked_sub(start).is_some_and(|offset| offset < length)
    })?;
    let (name, length) = (entry.name.load(Ordering::SeqCst), entry.name_length.load(Ordering::SeqCst));
    // SAFETY: name and length belong together once the start is set, and the name lives as long as the map.
    (!name.is_null()).then(|| unsafe { std::slice::from_raw_parts(name, length) })
}

impl MappedFile {
    /// Maps `path`.
    ///
    /// # Errors
    /// The file is missing, not readable or not a regular file.
    pub fn open(path: &Path) -> Result<MappedFile> {
        let (file, length) = open_file(path)?;
        if length == 0 {
            return Ok(MappedFile { map: None, name: Box::default(), entry: None });
        }
        // SAFETY: the map is private and read only. What remains is another process changing or truncating the file while it is
        // mapped: bytes are only ever read as integers and checked, so changes give errors; truncation raises SIGBUS, which ends
        // the program with a message (`output/signals.rs`).
        let map = unsafe { memmap2::MmapOptions::new().map(&file) }.map_err(|error| unreadable(path, &error))?;
        // Files are read from front to back; a refusal of the advice does not matter.
        let _ = map.advise(memmap2::Advice::Sequential);
        let name: Box<[u8]> = path.as_os_str().as_bytes().into();
        let entry = MAPPED.iter().find(|entry| {
            // Taken by a start that no address has; the real one is set when the rest is there.
            entry.start.compare_exchange(0, usize::MAX - 4096, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        });
        if let Some(entry) = entry {
            entry.length.store(0, Ordering::SeqCst);
            entry.name.store(name.as_ptr().cast_mut(), Ordering::SeqCst);
            entry.name_length.store(name.len(), Ordering::SeqCst);
            entry.start.store(map.as_ptr() as usize, Ordering::SeqCst);
            entry.length.store(map.len(), Ordering::SeqCst);
        }
        Ok(MappedFile { map: Some(map), name, entry })
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let Some(entry) = self.entry {
            entry.start.store(0, Ordering::SeqCst);
        }
        // The entry points to the name until here.
        drop(std::mem::take(&mut self.name));
    }
}

/// Opens a regular file for reading; returns its length, too.
///
/// # Errors
/// The file is missing, not readable or not a regular file.
pub fn open_file(path: &Path) -> Result<(File, u64)> {
    let failed = |error: std::io::Error| unreadable(path, &error);
    // Opening a pipe would wait for somebody to write into it. Regular files do not know the flag.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::new("not a regular file").in_file(path));
    }
    Ok((file, metadata.len()))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let error = match error.kind() {
        std::io::ErrorKind::NotFound => Error::caused_by("the file is missing", error),
        _ => Error::caused_by(format!("cannot read: {error}"), error),
    };
    error.in_file(path)
}

impl Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }
}
