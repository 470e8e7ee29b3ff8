//! Which files may be overwritten: those that this program wrote as the same kind of file, any other one only if asked to, and never a file of
//! a trace. What a file is, its beginning tells.

use crate::output::places::{anchors, parent};
use crate::report::{GENERATOR, analysis_csv};
use clc_archive::{WRITTEN_LIST, native, open_file, truth};
use clc_trace::{Error, Result};
use std::io::Read;
use std::path::Path;

/// The kinds of files that this program writes beside traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A result as JSON.
    Json,
    /// A page for a browser.
    Page,
    /// A picture, SVG.
    Plot,
    /// Chrome trace events.
    ChromeTrace,
    /// A table of comma-separated values with this first line.
    Table(&'static str),
    /// The tables of an analysis, in a directory.
    AnalysisTables,
    /// Man pages, in a directory.
    ManPages,
}

/// Most bytes that are looked at.
const BEGINNING: u64 = 4096;

impl Content {
    /// Whether a file that begins like this is one of the kind.
    fn is_beginning_of(self, beginning: &[u8]) -> bool {
        let text = String::from_utf8_lossy(beginning);
        match self {
            Content::Json => {
                text.starts_with("{\n  \"schema\": ")
                    && text.contains(&format!("\n  \"generator\": \"{GENERATOR}\",\n"))
            }
            Content::Page => {
                text.starts_with("<!DOCTYPE html>")
                    && text.contains(&format!("<meta name=\"generator\" content=\"{GENERATOR}"))
            }
            Content::Plot => text.starts_with("<svg") && text.contains(&format!(">\n<!-- {GENERATOR} -->")),
            Content::ChromeTrace => {
                text.starts_with('{') && text.contains(&format!("\"otherData\":{{\"generator\":\"{GENERATOR}\"}}"))
            }
            Content::Table(first) => text.lines().next() == Some(first),
            Content::AnalysisTables => false,
            Content::ManPages => text.lines().any(|line| line.starts_with(".TH clc-replay")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Content::Json => "a report",
            Content::Page => "a page",
            Content::Plot => "a plot",
            Content::ChromeTrace | Content::Table(_) => "an export of this format",
            Content::AnalysisTables => "such a table",
            Content::ManPages => "a man page",
        }
    }
}

/// Finds out whether `path` (a file; anything else is for others to judge) may be overwritten by `content`; any file but one of a trace may be
/// with `force`. A file without contents (`mktemp`) may be, and so may what the shell has opened (`/dev/stdout`).
///
/// # Errors
/// It may not, or cannot be read.
pub(crate) fn allow(path: &Path, content: Content, force: bool) -> Result<()> {
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return Ok(());
    }
    // Links lead to what would be written to.
    let Ok(place) = path.canonicalize() else { return Ok(()) };
    if !place.is_file() {
        return Ok(());
    }
    if is_of_trace(&place) {
        return Err(Error::new("files that belong to a trace are never overwritten").in_file(path).hint(
            "choose \
            another location",
        ));
    }
    let mut beginning = Vec::new();
    let mut read = |file: std::fs::File| file.take(BEGINNING).read_to_end(&mut beginning);
    // What cannot be read is not known.
    let known = open_file(&place).is_ok_and(|(file, _)| read(file).is_ok());
    if force || known && (beginning.is_empty() || content.is_beginning_of(&beginning)) {
        return Ok(());
    }
    let error =
        Error::new(format!("the file exists and is not {} written by clc-replay", content.name())).in_file(path);
    Err(match content {
        Content::ManPages => error.hint("remove it, or choose another location"),
        _ => error.hint("overwrite it with --force, or choose another location"),
    })
}

/// As [`allow`], for the files that `content` has in `directory`.
///
/// # Errors
/// One of them may not be overwritten.
pub(crate) fn allow_all(directory: &Path, content: Content, force: bool) -> Result<()> {
    match content {
        Content::AnalysisTables => tables().iter().try_for_each(|(name, first)| {
            let path = directory.join(name);
            let same = first_line(&path).is_some_and(|line| line == *first);
            if same { Ok(()) } else { allow(&path, content, force) }
        }),
        content => {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
            let is_page = |path: &Path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("clc-replay"))
                    && path.extension().is_some_and(|end| end == "1")
            };
            entries.filter(|path| is_page(path)).try_for_each(|path| allow(&path, content, force))
        }
    }
}

/// Names and first lines of the tables of an analysis.
fn tables() -> Vec<(String, String)> {
    let tables = analysis_csv(&Default::default()).into_iter();
    tables.map(|(name, text)| (name, text.lines().next().unwrap_or_default().to_owned())).collect()
}

/// The first line of a file that is no file of a trace, if it is not too long for a table's.
fn first_line(path: &Path) -> Option<String> {
    let mut beginning = Vec::new();
    open_file(path).ok()?.0.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    String::from_utf8(beginning).ok()?.lines().next().map(str::to_owned)
}

/// Whether an existing file is one of a trace, as far as names tell: its anchor or definitions, or something in the directories of its event
/// files and of its true times.
fn is_of_trace(file: &Path) -> bool {
    let directory = parent(file);
    let name = file.file_name().unwrap_or_default();
    let extension = file.extension().unwrap_or_default();
    if extension == "otf2" || name == native::DEFINITIONS || name == WRITTEN_LIST {
        return true;
    }
    let of_anchor = anchors(directory).iter().filter_map(|anchor| anchor.file_stem()).any(|stem| {
        let rest = name.to_string_lossy();
        let rest = rest.strip_prefix(&*stem.to_string_lossy()).unwrap_or_default();
        matches!(rest, ".def" | ".marker") || rest.ends_with(".thumb")
    });
    let above = parent(directory);
    let is_named = |name: &str| directory.file_name().is_some_and(|own| own == name);
    of_anchor
        || anchors(above).iter().any(|anchor| anchor.with_extension("") == directory)
        || native::is_native(above) && is_named(native::EVENTS)
        || is_named(truth::NAME) && (native::is_native(above) || !anchors(above).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this name and these contents, whether it may be overwritten without and with force.
    fn allowed(name: &str, contents: &str, content: Content) -> [bool; 2] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        [false, true].map(|force| allow(&path, content, force).is_ok())
    }

    #[test]
    fn what_others_wrote_is_overwritten_by_force_only() {
        let first = "stage,from_seconds,parallelism";
        for content in [
            Content::Json,
            Content::Page,
            Content::Plot,
            Content::ChromeTrace,
            Content::Table(first),
            Content::AnalysisTables,
            Content::ManPages,
        ] {
            for text in [
                "# Notes",
                "{}",
                "{\n  \"schema\": 1,\n  \"trace\": {}\n}\n",
                "{\"generator\": \"clc-replay\"}",
                "<!DOCTYPE html>\n<html></html>",
                "<svg></svg>",
                "<!-- clc-replay has a page of mine -->",
                "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}",
                "stage,from_seconds,parallelism,and more\n",
                ".TH ls 1",
                "\u{0}\u{ff}",
            ] {
                assert_eq!(allowed("notes", text, content), [false, true], "{content:?}: {text}");
            }
            assert_eq!(allowed("notes", "", content), [true, true], "{content:?}: an empty file");
        }
        assert_eq!(allowed("a.csv", &format!("{first}\nbefore,1,2\n"), Content::Table(first)), [true, true]);
        allow(Path::new("not/there"), Content::Json, false).unwrap();
        allow(Path::new("/dev/null"), Content::Json, false).unwrap();
    }

    #[test]
    fn files_of_traces_are_not_overwritten_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let of_trace = [
            "t/traces.otf2",
            "t/traces.def",
            "t/traces.marker",
            "t/traces.0.thumb",
            "t/traces/0.evt",
            "t/traces/scorep.cfg",
            "t/truth/0.truth",
            "t/.clc-replay",
            "n.clct/definitions.clcd",
            "n.clct/events/0.clce",
        ]
        .map(file);
        for path in of_trace {
            for force in [false, true] {
                let error = allow(&path, Content::Json, force).unwrap_err().to_string();
                assert!(error.contains("files that belong to a trace are never overwritten"), "{error}");
            }
        }
        for path in
            ["t/report.json", "t/other.def", "t/profiles/0.evt", "n.clct/report.json", "truth/0.truth"].map(file)
        {
            allow(&path, Content::Json, true).unwrap();
        }
        // Through a link.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("t/traces.def", &link).unwrap();
        assert!(allow(&link, Content::Json, true).is_err());
    }

    #[test]
    fn tables_and_man_pages_are_known_by_name_and_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let (waits, page) = (directory.path().join("waits.csv"), directory.path().join("clc-replay-check.1"));
        let (_, first) = tables().into_iter().find(|(name, _)| name == "waits.csv").unwrap();
        for (contents, allowed) in [(format!("{first}\nx,1\n"), true), ("mine\n".to_owned(), false)] {
            std::fs::write(&waits, &contents).unwrap();
            assert_eq!(allow_all(directory.path(), Content::AnalysisTables, false).is_ok(), allowed, "{contents}");
            allow_all(directory.path(), Content::AnalysisTables, true).unwrap();
        }
        for (contents, allowed) in [(".ie x\n.TH clc-replay-check 1\n", true), ("mine\n", false)] {
            std::fs::write(&page, contents).unwrap();
            assert_eq!(allow_all(directory.path(), Content::ManPages, false).is_ok(), allowed, "{contents}");
        }
    }
}
