//! Files beside the trace (reports, pages, tables, plots), and standard output.

use crate::output::conflicts::{self, Content};
use crate::output::directory::{open_permissions, plain};
use crate::output::orphans;
use crate::output::places::{parent, resolve};
use crate::output::signals::{SetAside, Unfinished};
use clc_trace::{Error, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes to standard output. Whoever has closed its other end (`| head`) wants no more: that is no failure.
///
/// # Errors
/// The operating system refuses.
pub fn print(bytes: &[u8]) -> Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Names of standard output as a file.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Writes a file that appears complete or not at all, or to standard output; what is there is overwritten if `conflicts::allow` says so.
///
/// # Errors
/// The operating system refuses, or there is something that may not be overwritten.
pub fn write(path: &Path, bytes: &[u8], content: Content, force: bool) -> Result<()> {
    if STANDARD_OUTPUT.iter().any(|name| path == Path::new(name)) {
        return print(bytes);
    }
    // It may have come while the work was done.
    conflicts::allow(path, content, force)?;
    put(path, bytes)
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    // A device, a pipe or a link (`/dev/stdout` is one) is written to, not replaced.
    if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(path, bytes).map_err(|error| failed(path, &error));
    }
    UnpublishedFile::create(path, path, bytes)?.publish()
}

/// A file that is written piece by piece and appears complete or not at all; standard output, devices and pipes get everything at the end.
pub(crate) struct PendingFile {
    path: PathBuf,
    content: Content,
    force: bool,
    text: PendingText,
}

enum PendingText {
    Beside(BufWriter<File>, UnpublishedFile),
    /// What cannot be replaced in one step.
    Held(Vec<u8>),
}

impl PendingFile {
    /// To be written to `path`, where what is there is overwritten if `conflicts::allow` says so.
    ///
    /// # Errors
    /// The operating system refuses, or there is something that may not be overwritten.
    pub(crate) fn begin(path: &Path, content: Content, force: bool) -> Result<PendingFile> {
        let named = STANDARD_OUTPUT.iter().any(|name| path == Path::new(name));
        let text = if named || path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            PendingText::Held(Vec::new())
        } else {
            conflicts::allow(path, content, force)?;
            let (file, pending) = UnpublishedFile::open(path, path)?;
            PendingText::Beside(BufWriter::new(file), pending)
        };
        Ok(PendingFile { path: path.to_path_buf(), content, force, text })
    }

    /// Writes the next piece.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.text {
            PendingText::Beside(file, _) => file.write_all(bytes).map_err(|error| failed(&self.path, &error)),
            PendingText::Held(text) => {
                text.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Puts it into its place.
    ///
    /// # Errors
    /// As [`PendingFile::begin`].
    pub(crate) fn publish(self) -> Result<()> {
        match self.text {
            PendingText::Held(text) => write(&self.path, &text, self.content, self.force),
            PendingText::Beside(mut file, pending) => {
                file.flush().map_err(|error| failed(&self.path, &error))?;
                // Something may have come while the work was done.
                conflicts::allow(&self.path, self.content, self.force)?;
                pending.publish()
            }
        }
    }
}

/// Writes files of these names into a directory: all of them, or none. The directory is made if it is not there; what is there is overwritten
/// if `conflicts::allow_all` says so.
///
/// # Errors
/// The operating system refuses, or there is something that may not be overwritten.
pub(crate) fn write_all<T: AsRef<[u8]>>(
    directory: &Path,
    files: &[(String, T)],
    content: Content,
    force: bool,
) -> Result<()> {
    let place = resolve(directory);
    if place.is_dir() {
        conflicts::allow_all(&place, content, force)?;
    }
    if place.is_dir() { write_into(directory, files) } else { write_directory(directory, &place, files) }
}

/// All are made before the first one is put into its place.
fn write_into<T: AsRef<[u8]>>(directory: &Path, files: &[(String, T)]) -> Result<()> {
    let mut pending = Vec::new();
    for (name, bytes) in files {
        let path = directory.join(name);
        probe(&path)?;
        let special = path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file());
        pending.push(if special { None } else { Some(UnpublishedFile::create(&path, &path, bytes.as_ref())?) });
    }
    let mut written: Vec<&str> = Vec::new();
    for ((name, bytes), pending) in files.iter().zip(pending) {
        let outcome = match pending {
            Some(pending) => pending.publish(),
            None => put(&directory.join(name), bytes.as_ref()),
        };
        outcome.map_err(|error| match written.as_slice() {
            [] => error,
            some => Error { message: format!("{}; written before it: {}", error.message, some.join(", ")), ..error },
        })?;
        written.push(name);
    }
    Ok(())
}

/// Makes the directory beside its place, or beside the first of those above it that are missing.
fn write_directory<T: AsRef<[u8]>>(directory: &Path, place: &Path, files: &[(String, T)]) -> Result<()> {
    let top = place.ancestors().take_while(|above| !above.exists()).last().unwrap_or(place);
    let name = top.file_name().unwrap_or(OsStr::new(""));
    sweep(top);
    let set_aside = SetAside::new()?;
    let making = tempfile::Builder::new()
        .prefix(&orphans::prefix(name))
        .tempdir_in(parent(top))
        .map_err(|error| failed(directory, &plain(error)))?;
    // Dropped before the directory is removed.
    let set_aside = set_aside;
    let unfinished = Unfinished::new(making.path(), &set_aside);
    let inner = place.strip_prefix(top).map_or_else(|_| making.path().to_path_buf(), |below| making.path().join(below));
    std::fs::create_dir_all(&inner).map_err(|error| failed(directory, &error))?;
    for (name, bytes) in files {
        std::fs::write(inner.join(name), bytes).map_err(|error| failed(&directory.join(name), &error))?;
    }
    open_permissions(making.path())?;
    unfinished.finish(|| std::fs::rename(making.path(), top)).map_err(|error| failed(directory, &error))?;
    // It has another name now; there is nothing left to remove.
    let _ = making.keep();
    Ok(())
}

/// Finds out before any work whether a file can be written later, and removes what killed runs have left of it. Leaves nothing.
///
/// # Errors
/// It cannot.
pub(crate) fn probe(path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => return Err(Error::new("cannot write: it is a directory").in_file(path)),
        // Opening a pipe would wait for a reader.
        Ok(metadata) if !metadata.is_file() => return Ok(()),
        Ok(_) if path.is_symlink() => {
            return File::options().write(true).open(path).map(|_| ()).map_err(|error| failed(path, &error));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(path, &error)),
        _ => {}
    }
    let place = resolve(path);
    sweep(&place);
    UnpublishedFile::create(&place, path, &[]).map(|_| ())
}

/// Removes, or names, what other runs have left of a file or directory.
fn sweep(place: &Path) {
    if let Some(name) = place.file_name() {
        orphans::sweep(parent(place), name).iter().for_each(|text| tracing::warn!("{text}"));
    }
}

/// Finds out whether files can be made in `directory`, for `path`.
///
/// # Errors
/// They cannot.
pub(crate) fn probe_directory(directory: &Path, path: &Path) -> Result<()> {
    UnpublishedFile::create(&directory.join("any"), path, &[]).map(|_| ())
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    let failed = Error::io(path, "cannot write", error);
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => failed.hint("the parent directory has to exist"),
        _ => failed,
    }
}

/// A file that is complete beside its place.
struct UnpublishedFile {
    temporary: Temporary,
    unfinished: Unfinished,
    place: PathBuf,
}

/// Removes the file of this name, if it still has it.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl UnpublishedFile {
    /// For `place`, which the user calls `shown`.
    fn create(place: &Path, shown: &Path, bytes: &[u8]) -> Result<UnpublishedFile> {
        let (mut file, pending) = UnpublishedFile::open(place, shown)?;
        file.write_all(bytes).map_err(|error| failed(shown, &error))?;
        Ok(pending)
    }

    /// The same, to be written.
    fn open(place: &Path, shown: &Path) -> Result<(File, UnpublishedFile)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut name = orphans::prefix(place.file_name().unwrap_or(OsStr::new("")));
        name.push(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        let path = parent(place).join(name);
        let made = Unfinished::make(&path, || File::options().write(true).create_new(true).open(&path));
        let (file, unfinished) = made.map_err(|error| failed(shown, &error))?;
        Ok((file, UnpublishedFile { temporary: Temporary(path), unfinished, place: place.to_path_buf() }))
    }

    fn publish(self) -> Result<()> {
        let UnpublishedFile { temporary, unfinished, place, .. } = self;
        unfinished.finish(|| std::fs::rename(&temporary.0, &place)).map_err(|error| failed(&place, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_cannot_be_put_into_place_names_those_that_were() {
        let above = tempfile::tempdir().unwrap();
        let files = |last: &str| ["a", "b", last].map(|name| (name.to_owned(), name.to_owned()));
        let here = above.path().join("not/there");
        let write_all = |here: &Path, files: &[(String, String)]| write_all(here, files, Content::AnalysisTables, true);
        write_all(&here, &files("c")).unwrap();
        // A link to what cannot be written although it can be opened.
        std::os::unix::fs::symlink("/dev/full", here.join("d")).unwrap();
        let error = write_all(&here, &files("d")).unwrap_err().to_string();
        assert!(error.contains("No space left") && error.ends_with("; written before it: a, b"), "{error}");
        // Known before anything is written.
        std::fs::create_dir(here.join("e")).unwrap();
        std::fs::write(here.join("a"), "old").unwrap();
        let error = write_all(&here, &files("e")).unwrap_err().to_string();
        assert!(error.ends_with("e: cannot write: it is a directory"), "{error}");
        assert_eq!(std::fs::read_to_string(here.join("a")).unwrap(), "old");
        let mut names: Vec<_> = std::fs::read_dir(&here).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn what_is_written_in_pieces_appears_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let content = Content::AnalysisTables;
        let begun = || {
            let mut file = PendingFile::begin(&path, content, true).unwrap();
            ["first, ", "second"].iter().for_each(|text| file.add(text.as_bytes()).unwrap());
            file
        };
        drop(begun());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left of it");
        let file = begun();
        assert!(!path.exists());
        file.publish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first, second");
        // Through a link, which stays.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut file = PendingFile::begin(&link, content, true).unwrap();
        file.add(b"third").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first, second");
        file.publish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "third");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        // What somebody has put there meanwhile is not overwritten.
        let file = PendingFile::begin(&directory.path().join("other"), content, false).unwrap();
        std::fs::write(directory.path().join("other"), "mine").unwrap();
        assert!(file.publish().is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
    }

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for text in ["first and longer", "second"] {
            probe(&link).unwrap();
            put(&link, text.as_bytes()).unwrap();
            assert!(link.symlink_metadata().unwrap().is_symlink());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        put(&file, b"third").unwrap();
        assert_eq!(std::fs::read(&link).unwrap(), b"third");
        put(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
