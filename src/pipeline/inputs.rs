//! Whether the files of a trace are still those that were opened. They are read more than once, and some are copied without a look: a file that
//! changes meanwhile would give a result that belongs to no trace.
//!
//! Size, time of modification and inode tell. What changes none of them is not noticed: a write within the same tick of the file system's clock as
//! the one before, or one on another node that this node's cache does not know yet.

use clc_archive::Archive;
use clc_trace::{Definitions, Error, Result, Timeline};
use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    bytes: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// Device and inode.
    file: (u64, u64),
}

impl FileStamp {
    /// Of an open file, or of one that a path led to.
    pub(crate) fn new(metadata: &Metadata) -> FileStamp {
        FileStamp {
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            file: (metadata.dev(), metadata.ino()),
        }
    }
}

/// The stamp of a file, if there is one.
fn stamp(path: &Path) -> Option<FileStamp> {
    std::fs::metadata(path).ok().map(|metadata| FileStamp::new(&metadata))
}

/// The files of a trace as they were when it was opened: those of the whole on the rank that read them, those of the locations by shares.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    whole: Vec<(PathBuf, Option<FileStamp>)>,
    /// Timelines, as an index into all of them.
    share: Range<usize>,
    /// Of their locations, file by file.
    locations: Vec<Option<FileStamp>>,
}

impl Inputs {
    /// For the rank that reads anchor and definitions.
    pub(crate) fn of_whole(archive: &Archive) -> Inputs {
        let with_stamp = |path: PathBuf| {
            let stamp = stamp(&path);
            (path, stamp)
        };
        let whole = archive.files().into_iter().map(with_stamp).collect();
        Inputs { whole, ..Inputs::default() }
    }

    /// Adds the files of the locations of some timelines.
    pub(crate) fn add_share(
        &mut self,
        archive: &Archive,
        definitions: &Definitions,
        timelines: &[Timeline],
        share: Range<usize>,
    ) {
        for timeline in &timelines[share.clone()] {
            for &location in &timeline.locations {
                let files = archive.files_of(definitions.locations[location].id);
                self.locations.extend(files.iter().map(|path| stamp(path)));
            }
        }
        self.share = share;
    }

    /// Compares anchor, definitions and their like, on the rank that has looked at them.
    ///
    /// # Errors
    /// One of them has changed.
    pub(crate) fn compare_whole(&self) -> Result<()> {
        self.whole.iter().try_for_each(|(path, before)| compare(path, *before))
    }

    /// Compares everything that this rank has looked at.
    ///
    /// # Errors
    /// A file has changed.
    pub(crate) fn compare(&self, archive: &Archive, definitions: &Definitions, timelines: &[Timeline]) -> Result<()> {
        self.compare_whole()?;
        let mut before = self.locations.iter();
        for timeline in &timelines[self.share.clone()] {
            for &location in &timeline.locations {
                let id = definitions.locations[location].id;
                for (path, before) in archive.files_of(id).iter().zip(&mut before) {
                    compare(path, *before).map_err(|error| error.at_location(id))?;
                }
            }
        }
        Ok(())
    }
}

fn compare(path: &Path, before: Option<FileStamp>) -> Result<()> {
    let what = match (before, stamp(path)) {
        (before, now) if before == now => return Ok(()),
        (Some(_), None) => "it is now missing".to_owned(),
        (None, _) => "it was missing before".to_owned(),
        (Some(before), Some(now)) if before.bytes != now.bytes => {
            format!("it had {} bytes and now has {}", before.bytes, now.bytes)
        }
        (Some(before), Some(now)) if before.file != now.file => "it was replaced by another file".to_owned(),
        _ => "it was modified".to_owned(),
    };
    Err(Error::new(format!("the file changed while the trace was being read: {what}"))
        .in_file(path)
        .hint("run again when nothing writes to the trace"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn every_change_of_a_file_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.evt");
        let write = |text: &str, seconds: u64| {
            std::fs::write(&path, text).unwrap();
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        write("one", 1);
        let before = stamp(&path);
        let says = || compare(&path, before).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(says(), "");
        write("two", 2);
        assert!(
            says().contains("0.evt: the file changed while the trace was being read: it was modified"),
            "{}",
            says()
        );
        write("longer", 1);
        assert!(says().contains("it had 3 bytes and now has 6"), "{}", says());
        std::fs::rename(&path, directory.path().join("aside")).unwrap();
        assert!(says().contains("it is now missing"), "{}", says());
        write("one", 1);
        assert!(says().contains("it was replaced by another file"), "{}", says());
        assert!(compare(&path, None).unwrap_err().to_string().contains("it was missing before"));
    }
}
