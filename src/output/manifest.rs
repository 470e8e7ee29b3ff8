//! What lies in a directory that this program wrote: a hidden list of it, by which a later run knows what it may replace.
//!
//! The list is text: a line that says whose it is, comments, and one line `SIZE PATH` for every file, `- PATH` for every directory. Bytes of a
//! path that are not printable ASCII, and `%`, are written as `%XX`. It holds no time and no name of a machine: the same trace gives the same
//! list. Its own time of modification is that of the youngest file that it lists, so whatever is younger was changed since.

use clc_archive::WRITTEN_LIST;
use clc_trace::{Error, Result};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{DirEntry, File, Metadata};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

/// The first line of every list.
const HEAD: &str = "clc-replay output, list of files, version 1";

const COMMENT: &str = "\
# clc-replay wrote what is listed here, and replaces it as a whole if asked to (--force).
# It does not if there is anything else in this directory, or something that was changed since.
";

/// Said of a trace whose times are corrected: its clock offsets were applied, and it needs none.
const CORRECTED: &str = "# The times of this trace are corrected: no clock offsets apply to them.\n";

/// Most bytes of a list: some hundred times those of a million locations would be wrong.
const LONGEST: u64 = 1 << 30;

/// How many names a message has. Chosen by hand: with more, the message cannot be read; the number of the others follows.
const NAMED: usize = 3;

/// Everything below a directory: the size of each file, none for a directory, under the name that the list has for it.
type DirectoryEntries = BTreeMap<String, Option<u64>>;

/// Writes the list of everything in `directory` into it, and whether that is a trace with `corrected` times.
///
/// # Errors
/// The directory cannot be read, or the list not be written.
pub(super) fn write(directory: &Path, corrected: bool) -> Result<()> {
    let mut entries = DirectoryEntries::new();
    let mut youngest = SystemTime::UNIX_EPOCH;
    walk(directory, &mut |name, metadata| {
        youngest = youngest.max(modified(metadata));
        entries.insert(name, metadata.is_file().then_some(metadata.len()));
    })?;
    let mut text = format!("{HEAD}\n{COMMENT}{}", if corrected { CORRECTED } else { "" });
    for (name, size) in &entries {
        // Writing to a string cannot fail.
        let _ = match size {
            Some(size) => writeln!(text, "{size} {name}"),
            None => writeln!(text, "- {name}"),
        };
    }
    let path = directory.join(WRITTEN_LIST);
    let written = File::create_new(&path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // The clocks of those who wrote the files may be ahead of this one's.
        let now = file.metadata()?.modified()?;
        file.set_modified(now.max(youngest))
    });
    written.map_err(|error| Error::io(&path, "cannot write the list of files", &error))
}

/// Finds out whether everything in `directory`, which the user calls `shown`, is as this program wrote it, so that nothing is lost with it. An
/// empty directory is.
///
/// # Errors
/// It is not: there is no list, or something that it does not have, or that was changed since.
pub(super) fn check(directory: &Path, shown: &Path) -> Result<()> {
    let (mut entries, mut times) = (DirectoryEntries::new(), BTreeMap::new());
    walk(directory, &mut |name, metadata| {
        // Neither a file nor a directory: no list has a size that large.
        let size = if metadata.is_file() { metadata.len() } else { u64::MAX };
        times.insert(name.clone(), modified(metadata));
        entries.insert(name, (!metadata.is_dir()).then_some(size));
    })?;
    if entries.is_empty() && !directory.join(WRITTEN_LIST).exists() {
        return Ok(());
    }
    let refused = |message: String, hint: &str| Err(Error::new(message).in_file(shown).hint(hint));
    let Some((listed, written)) = read(directory)? else {
        return refused(
            format!(
                "refusing to replace the existing output: it has no file list ({WRITTEN_LIST}) to show that \
                clc-replay wrote it; it may be a recording, or the output of an earlier version"
            ),
            "remove it if it is no longer needed, or choose another location",
        );
    };
    let foreign: Vec<&String> =
        entries.iter().filter(|(name, size)| is_foreign(listed.get(*name), **size)).map(|(name, _)| name).collect();
    if !foreign.is_empty() {
        return refused(
            format!("refusing to replace the existing output: clc-replay did not write {} in it", names(&foreign)),
            "move it elsewhere, or choose another location for the output",
        );
    }
    let is_changed = |name: &String, size: Option<u64>| {
        listed.get(name) != Some(&size) || size.is_some() && times.get(name).is_some_and(|&time| time > written)
    };
    let changed: Vec<&String> =
        entries.iter().filter(|(name, size)| is_changed(name, **size)).map(|(name, _)| name).collect();
    if !changed.is_empty() {
        return refused(
            format!(
                "refusing to replace the existing output: {} in it has changed since clc-replay wrote it",
                names(&changed)
            ),
            "remove the output if it is no longer needed, or choose another location",
        );
    }
    Ok(())
}

/// Whether an entry is none of the list, or of another kind.
fn is_foreign(listed: Option<&Option<u64>>, found: Option<u64>) -> bool {
    match listed {
        Some(size) => size.is_some() != found.is_some() || found == Some(u64::MAX),
        None => true,
    }
}

fn names(list: &[&String]) -> String {
    let mut text = list.iter().take(NAMED).map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
    if list.len() > NAMED {
        // Writing to a string cannot fail.
        let _ = write!(text, " and {} more", list.len() - NAMED);
    }
    text
}

/// Whether the list in `directory` says that the times of the trace there are corrected; not if there is no list, or it cannot be read.
pub(crate) fn is_corrected(directory: &Path) -> bool {
    let mut comments = vec![0; HEAD.len() + 1 + COMMENT.len() + CORRECTED.len()];
    clc_archive::open_file(&directory.join(WRITTEN_LIST))
        .is_ok_and(|mut file| file.0.read_exact(&mut comments).is_ok() && comments.ends_with(CORRECTED.as_bytes()))
}

/// What the list in a directory has, and when it was written; nothing if there is none that this program wrote.
fn read(directory: &Path) -> Result<Option<(DirectoryEntries, SystemTime)>> {
    let path = directory.join(WRITTEN_LIST);
    let Some(metadata) = path.symlink_metadata().ok().filter(Metadata::is_file) else { return Ok(None) };
    let mut text = String::new();
    let read = clc_archive::open_file(&path)?.0.take(LONGEST).read_to_string(&mut text);
    if read.is_err() || text.lines().next() != Some(HEAD) {
        return Ok(None);
    }
    let mut entries = DirectoryEntries::new();
    for line in text.lines().skip(1).filter(|line| !line.starts_with('#')) {
        let Some((size, name)) = line.split_once(' ') else { return Ok(None) };
        let size = match size {
            "-" => None,
            size => match size.parse() {
                Ok(size) => Some(size),
                Err(_) => return Ok(None),
            },
        };
        entries.insert(name.to_owned(), size);
    }
    Ok(Some((entries, modified(&metadata))))
}

/// Calls `visit` with everything below a directory but its list; links are not followed.
fn walk(directory: &Path, visit: &mut dyn FnMut(String, &Metadata)) -> Result<()> {
    let failed = |at: &Path, error: std::io::Error| Error::io(at, "cannot read the existing output", &error);
    let mut open = vec![(directory.to_path_buf(), String::new())];
    while let Some((next, above)) = open.pop() {
        let entries: std::io::Result<Vec<DirEntry>> = std::fs::read_dir(&next).and_then(Iterator::collect);
        for entry in entries.map_err(|error| failed(&next, error))? {
            let (path, name) = (entry.path(), format!("{above}{}", shown(&entry.file_name())));
            if name == WRITTEN_LIST {
                continue;
            }
            let metadata = path.symlink_metadata().map_err(|error| failed(&path, error))?;
            if metadata.is_dir() {
                open.push((path, format!("{name}/")));
            }
            visit(name, &metadata);
        }
    }
    Ok(())
}

fn modified(metadata: &Metadata) -> SystemTime {
    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A name as the list has it.
fn shown(name: &OsStr) -> String {
    let mut text = String::new();
    for &byte in name.as_bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// An output with a file, an empty directory, and a file whose name is no text.
    fn output() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("traces/deep")).unwrap();
        std::fs::write(directory.path().join("traces.otf2"), "anchor").unwrap();
        std::fs::write(directory.path().join("traces/0.evt"), "events").unwrap();
        std::fs::write(directory.path().join(OsStr::from_bytes(b"100%\xff\n")), "").unwrap();
        write(directory.path(), false).unwrap();
        directory
    }

    fn refusal(directory: &tempfile::TempDir) -> String {
        check(directory.path(), Path::new("out")).unwrap_err().to_string()
    }

    #[test]
    fn the_list_has_everything_and_no_more() {
        let directory = output();
        let text = std::fs::read_to_string(directory.path().join(WRITTEN_LIST)).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, [HEAD, "0 100%25%FF%0A", "- traces", "6 traces.otf2", "6 traces/0.evt", "- traces/deep"]);
        check(directory.path(), Path::new("out")).unwrap();
    }

    #[test]
    fn what_is_missing_is_no_loss_and_what_is_empty_neither() {
        let directory = output();
        std::fs::remove_dir_all(directory.path().join("traces")).unwrap();
        check(directory.path(), Path::new("out")).unwrap();
        check(tempfile::tempdir().unwrap().path(), Path::new("out")).unwrap();
    }

    #[test]
    fn what_somebody_else_wrote_is_named() {
        let directory = output();
        std::fs::write(directory.path().join("thesis.tex"), "years of work").unwrap();
        let text = refusal(&directory);
        assert!(
            text.starts_with("out: refusing to replace the existing output") && text.contains("thesis.tex"),
            "{text}"
        );
        std::fs::remove_file(directory.path().join("thesis.tex")).unwrap();
        // Far down, and many.
        for i in 0..7 {
            std::fs::write(directory.path().join(format!("traces/deep/{i}")), "").unwrap();
        }
        assert!(refusal(&directory).contains("traces/deep/0, traces/deep/1, traces/deep/2 and 4 more in it"));
    }

    #[test]
    fn another_thing_of_the_same_name_is_foreign() {
        for make in [
            |path: &Path| std::fs::create_dir(path).unwrap(),
            |path: &Path| std::os::unix::fs::symlink("elsewhere", path).unwrap(),
        ] {
            let directory = output();
            let path = directory.path().join("traces/0.evt");
            std::fs::remove_file(&path).unwrap();
            make(&path);
            assert!(refusal(&directory).contains("did not write traces/0.evt in it"));
        }
    }

    #[test]
    fn what_was_changed_is_named() {
        let directory = output();
        let path = directory.path().join("traces/0.evt");
        std::fs::write(&path, "other events").unwrap();
        assert!(refusal(&directory).contains("traces/0.evt in it has changed since"));
        // Of the same length, but younger.
        std::fs::write(&path, "EVENTS").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
        assert!(refusal(&directory).contains("traces/0.evt in it has changed since"));
    }

    #[test]
    fn without_a_list_of_this_program_nothing_is_replaced() {
        let directory = output();
        let path = directory.path().join(WRITTEN_LIST);
        for text in ["", "somebody's\n", "clc-replay output, list of files, version 2\n", &format!("{HEAD}\nx\n")] {
            std::fs::write(&path, text).unwrap();
            assert!(refusal(&directory).contains("has no file list"), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(refusal(&directory).contains("it may be a recording"));
    }

    #[test]
    fn writers_whose_clocks_are_ahead_do_not_matter() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join("x")).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(3600)).unwrap();
        write(directory.path(), false).unwrap();
        check(directory.path(), Path::new("out")).unwrap();
    }
}
