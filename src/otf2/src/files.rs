//! The files of an archive.

use crate::MappedFile;
use crate::anchor::{AnchorFile, COMMUNICATION_COMPLETE};
use crate::definitions;
use crate::local::LocalDefinitions;
use crate::siblings::{Sibling, list};
use clc_trace::{Definitions, Error, ErrorKind, LocationId, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// An OTF2 archive on disk. Small: it can be sent to all analysis ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Otf2Archive {
    directory: PathBuf,
    name: String,
    anchor: AnchorFile,
    whole_directory: bool,
}

impl Otf2Archive {
    /// Opens `path`: the anchor file, or a directory that contains exactly one.
    ///
    /// # Errors
    /// No anchor file or several, not an OTF2 archive, an unsupported version, container or compression.
    pub fn open(path: &Path) -> Result<Otf2Archive> {
        let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::caused_by("the trace does not exist", &error).in_file(path),
            _ => Error::io(path, "cannot open the trace", &error),
        })?;
        let anchor_path = if metadata.is_dir() { find_anchor(path)? } else { path.to_path_buf() };
        let anchor = AnchorFile::read(&MappedFile::open(&anchor_path)?).map_err(|error| error.in_file(&anchor_path))?;
        let name = match (anchor_path.file_stem().and_then(OsStr::to_str), anchor_path.extension()) {
            (Some(name), Some(extension)) if extension == "otf2" => name.to_owned(),
            _ => return Err(Error::new("the name of an anchor file has to end in .otf2").in_file(&anchor_path)),
        };
        let directory = match anchor_path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        Ok(Otf2Archive { directory, name, anchor, whole_directory: metadata.is_dir() })
    }

    /// Name of the archive ("traces").
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Contents of the anchor file.
    pub fn anchor(&self) -> &AnchorFile {
        &self.anchor
    }

    /// The directory that contains the anchor file.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The anchor file.
    pub fn anchor_path(&self) -> PathBuf {
        self.in_directory("otf2")
    }

    /// The global definition file.
    pub fn definition_path(&self) -> PathBuf {
        self.in_directory("def")
    }

    /// The marker file, which need not exist.
    pub fn marker_path(&self) -> PathBuf {
        self.in_directory("marker")
    }

    /// Thumbnail `i`.
    pub fn thumbnail_path(&self, i: u32) -> PathBuf {
        self.in_directory(&format!("{i}.thumb"))
    }

    /// The numbers of the thumbnails that are there, in ascending order: found in the directory, since the anchor file of a damaged archive may
    /// claim billions. None if the directory cannot be read.
    pub fn thumbnails_there(&self) -> Vec<u32> {
        let claimed = self.anchor().thumbnails;
        if claimed == 0 {
            return Vec::new();
        }
        let entries = std::fs::read_dir(self.directory()).into_iter().flatten().flatten();
        let number = |name: &str| name.strip_suffix(".thumb")?.rsplit_once('.')?.1.parse().ok();
        let numbers = entries.filter_map(|entry| number(entry.file_name().to_str()?));
        let mut there: Vec<u32> =
            numbers.filter(|&number| number < claimed && self.thumbnail_path(number).exists()).collect();
        there.sort_unstable();
        there.dedup();
        there
    }

    /// The event file of a location.
    pub fn event_path(&self, location: LocationId) -> PathBuf {
        self.of_location(location, "evt")
    }

    /// The local definition file of a location.
    pub fn local_definition_path(&self, location: LocationId) -> PathBuf {
        self.of_location(location, "def")
    }

    /// The snapshot file of a location, which need not exist.
    pub fn snapshot_path(&self, location: LocationId) -> PathBuf {
        self.of_location(location, "snap")
    }

    fn in_directory(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", self.name))
    }

    fn of_location(&self, location: LocationId, extension: &str) -> PathBuf {
        self.directory.join(&self.name).join(format!("{location}.{extension}"))
    }

    /// The same archive in another directory.
    pub fn at(&self, directory: &Path) -> Otf2Archive {
        Otf2Archive { directory: directory.to_path_buf(), ..self.clone() }
    }

    /// Whether the archive says that not all communication was recorded ([`COMMUNICATION_COMPLETE`]).
    pub fn says_incomplete(&self) -> bool {
        let complete = self.anchor.properties.iter().find(|(name, _)| name == COMMUNICATION_COMPLETE);
        complete.is_some_and(|(_, value)| value == "false")
    }

    /// Reads the global definitions; the texts say what is odd about them.
    ///
    /// # Errors
    /// The file is missing or damaged, references to undefined locations.
    pub fn read_definitions(&self) -> Result<(Definitions, Vec<String>)> {
        let path = self.definition_path();
        let bytes = MappedFile::open(&path)?;
        let read = definitions::read(&bytes, self.anchor.definition_chunk, self.anchor.definitions);
        let (definitions, mut odd) = read.map_err(|error| Error { event: None, ..error }.in_file(&path))?;
        if self.says_incomplete() {
            odd.push(
                "the archive says that communication was not recorded completely: messages and collective operations are told by their order, so that \
                 where some were under way when recording began, those after them may be put together wrongly"
                    .into(),
            );
        }
        Ok((definitions, odd))
    }

    /// Reads the local definitions of a location, by [`LocalDefinitions::read`]; a missing file only makes a warning.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn local_definitions(&self, location: LocationId) -> Result<LocalDefinitions> {
        self.read_local_definitions(location, LocalDefinitions::read)
    }

    /// As [`Otf2Archive::local_definitions`], by [`LocalDefinitions::read_in_full`].
    ///
    /// # Errors
    /// The file is damaged.
    pub fn local_definitions_in_full(&self, location: LocationId) -> Result<LocalDefinitions> {
        self.read_local_definitions(location, LocalDefinitions::read_in_full)
    }

    fn read_local_definitions(
        &self,
        location: LocationId,
        read: fn(&[u8], u64) -> Result<LocalDefinitions>,
    ) -> Result<LocalDefinitions> {
        let path = self.local_definition_path(location);
        if !path.exists() {
            return Ok(LocalDefinitions {
                warnings: vec!["locations have no local definition file; their ids are taken to be global".into()],
                ..LocalDefinitions::default()
            });
        }
        let bytes = MappedFile::open(&path).map_err(|error| error.at_location(location))?;
        read(&bytes, self.anchor.definition_chunk)
            .map_err(|error| Error { event: None, ..error }.in_file(&path).at_location(location))
    }

    /// Size of the event file of a location in bytes.
    ///
    /// # Errors
    /// There is no such file.
    pub fn event_file_size(&self, location: LocationId) -> Result<u64> {
        event_file_size(&self.event_path(location)).map_err(|error| error.at_location(location))
    }

    /// What lies beside the archive and does not belong to the format; nothing if the anchor file was opened instead of a
    /// directory, since then the directory may hold anything.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn siblings(&self, definitions: &Definitions) -> Result<Vec<Sibling>> {
        let mut siblings = Vec::new();
        if !self.whole_directory {
            return Ok(siblings);
        }
        let locations: std::collections::HashSet<String> =
            definitions.locations.iter().map(|location| location.id.to_string()).collect();
        let of_archive = |name: &str| {
            name == self.name
                || name.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix('.')).is_some_and(|rest| {
                    matches!(rest, "otf2" | "def" | "marker")
                        || rest
                            .strip_suffix(".thumb")
                            .is_some_and(|i| i.parse::<u32>().is_ok_and(|i| i < self.anchor.thumbnails))
                })
        };
        let of_location = |name: &str| {
            name.rsplit_once('.').is_some_and(|(id, kind)| {
                locations.contains(id)
                    && (matches!(kind, "evt" | "def") || (kind == "snap" && self.anchor.snapshots > 0))
            })
        };
        list(&self.directory, Path::new(""), &of_archive, &mut siblings)?;
        let inner = self.directory.join(&self.name);
        if inner.is_dir() {
            list(&inner, Path::new(&self.name), &of_location, &mut siblings)?;
        }
        siblings.sort_by(|a, b| a.relative.cmp(&b.relative));
        Ok(siblings)
    }
}

/// Size of an event file in bytes.
///
/// # Errors
/// There is no such file.
pub fn event_file_size(path: &Path) -> Result<u64> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error { kind: ErrorKind::Missing, ..Error::new("the event file is missing") }.in_file(path))
        }
        Err(error) => Err(Error::io(path, "cannot read", &error)),
    }
}

fn find_anchor(directory: &Path) -> Result<PathBuf> {
    let failed = |error: std::io::Error| Error::io(directory, "cannot read the directory", &error);
    let mut anchors = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "otf2") && path.is_file() {
            anchors.push(path);
        }
    }
    anchors.sort();
    match anchors.as_slice() {
        [anchor] => Ok(anchor.clone()),
        [] => {
            let error =
                Error { kind: ErrorKind::Missing, ..Error::new("no OTF2 anchor file (*.otf2) in this directory") };
            let error = error.in_file(directory);
            Err(match without_anchor(directory) {
                Some(hint) => error.hint(hint),
                None => error,
            })
        }
        several => {
            let names: Vec<String> = several
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            Err(Error::new(format!("the directory has several OTF2 anchor files: {}", names.join(", ")))
                .in_file(directory)
                .hint("specify the one you mean"))
        }
    }
}

/// What a directory without an anchor file seems to be, for those who have named the wrong one or whose recording has no end.
fn without_anchor(directory: &Path) -> Option<String> {
    // The first ones are enough, whatever the directory is.
    const MOST: usize = 256;
    let inside = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut entries: Vec<PathBuf> = entries.take(MOST).collect();
        entries.sort();
        entries
    };
    let ends_in = |path: &Path, ending: &str| path.extension().is_some_and(|extension| extension == ending);
    let here = inside(directory);
    let below: Vec<PathBuf> = here.iter().filter(|path| path.is_dir()).flat_map(|path| inside(path)).collect();
    if let Some(anchor) = below.iter().find(|path| ends_in(path, "otf2") && path.is_file()) {
        return Some(format!("{} is one", anchor.display()));
    }
    if here.iter().chain(&below).any(|path| ends_in(path, "evt")) {
        return Some(
            "there are event files: tracers write the anchor file last, so the recording may not have come to its end"
                .into(),
        );
    }
    let profile = here.iter().any(|path| ends_in(path, "cubex"));
    profile.then(|| "this is a profile; Score-P records a trace as well with SCOREP_ENABLE_TRACING=true".into())
}
