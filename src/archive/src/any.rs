//! A trace of any format, as everything above sees it.
//!
//! Each method decides on the format once per file; the loops over events belong to the formats.

use crate::native::{self, NativeTrace};
use crate::{Marker, RegionVisitor, ScanSummary, Sibling, SynchronisationVisitor, TimeMap, copy};
use crate::{WRITTEN_LIST, truth};
use clc_otf2::{LocalDefinitions, Otf2Archive};
use clc_trace::{
    AcceleratorAttributes, AcceleratorReference, ClockOffset, ClockProperties, Definitions, Error, Event, EventNumber,
    LocationId, RegionId, Result,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// OTF2, as Score-P writes it.
    Otf2,
    /// This program's own.
    Native,
}

impl Format {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Otf2 => "OTF2",
            Format::Native => "native",
        }
    }

    /// The format that a new trace's name asks for.
    pub fn of_name(path: &Path) -> Format {
        if native::is_named_so(path) { Format::Native } else { Format::Otf2 }
    }
}

/// The directory of the trace that `path` names: itself, or the one that holds it if it is the anchor or definition file.
pub fn directory_of(path: &Path) -> &Path {
    let is_named_so = path.extension().is_some_and(|extension| extension == "otf2")
        || path.file_name().is_some_and(|name| name == native::DEFINITIONS);
    match path.parent() {
        Some(parent) if is_named_so && !path.is_dir() => {
            if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            }
        }
        _ => path,
    }
}

/// A trace on disk. Small: it can be sent to all analysis ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Archive {
    /// An OTF2 archive.
    Otf2(Otf2Archive),
    /// A native trace.
    Native(NativeTrace),
}

impl Archive {
    /// Opens `path`: a directory with one trace, the anchor file of an OTF2 archive, or the definition file of a native trace.
    ///
    /// # Errors
    /// There is no trace, or several, or one that cannot be read.
    pub fn open(path: &Path) -> Result<Archive> {
        let is_definitions = path.is_file() && path.file_name().is_some_and(|name| name == native::DEFINITIONS);
        if is_definitions {
            return NativeTrace::open(path).map(Archive::Native);
        }
        if native::is_native(path) {
            if let Ok(otf2) = Otf2Archive::open(path) {
                let anchor = otf2.anchor_path();
                return Err(Error::new("the directory holds both a native trace and an OTF2 archive")
                    .in_file(path)
                    .hint(format!("specify the one you mean: {} or {}", native::DEFINITIONS, anchor.display())));
            }
            return NativeTrace::open(path).map(Archive::Native);
        }
        let otf2 = Otf2Archive::open(path);
        if otf2.is_err() && path.is_dir() && native::is_named_so(path) {
            return NativeTrace::open(path).map(Archive::Native);
        }
        otf2.map(Archive::Otf2)
    }

    /// Its format.
    pub fn format(&self) -> Format {
        match self {
            Archive::Otf2(_) => Format::Otf2,
            Archive::Native(_) => Format::Native,
        }
    }

    /// Name of the trace.
    pub fn name(&self) -> String {
        match self {
            Archive::Otf2(archive) => archive.name().to_owned(),
            Archive::Native(trace) => trace.name(),
        }
    }

    /// The tool that recorded or made it, as far as it says so.
    pub fn creator(&self) -> &str {
        match self {
            Archive::Otf2(archive) => &archive.anchor().creator,
            Archive::Native(trace) => &trace.header().creator,
        }
    }

    /// The directory that it is in.
    pub fn directory(&self) -> &Path {
        match self {
            Archive::Otf2(archive) => archive.directory(),
            Archive::Native(trace) => trace.directory(),
        }
    }

    /// The same trace, in another directory.
    #[must_use]
    pub fn at(&self, directory: &Path) -> Archive {
        match self {
            Archive::Otf2(archive) => Archive::Otf2(archive.at(directory)),
            Archive::Native(trace) => Archive::Native(trace.at(directory)),
        }
    }

    /// Name of the directory within [`Archive::directory`] that holds the event files.
    pub fn event_directory(&self) -> &str {
        match self {
            Archive::Otf2(archive) => archive.name(),
            Archive::Native(_) => native::EVENTS,
        }
    }

    /// The event file of a location.
    pub fn event_path(&self, location: LocationId) -> PathBuf {
        match self {
            Archive::Otf2(archive) => archive.event_path(location),
            Archive::Native(trace) => trace.event_path(location),
        }
    }

    /// Every file that belongs to no location, whether it is there or not; of thumbnails those that are there.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Archive::Otf2(archive) => {
                let mut files = vec![archive.anchor_path(), archive.definition_path(), archive.marker_path()];
                files.extend(archive.thumbnails_there().into_iter().map(|i| archive.thumbnail_path(i)));
                files
            }
            Archive::Native(trace) => vec![trace.definition_path()],
        }
    }

    /// Every file of a location, whether it is there or not; without its true times.
    pub fn files_of(&self, location: LocationId) -> Vec<PathBuf> {
        match self {
            Archive::Otf2(archive) => {
                let mut files = vec![archive.event_path(location), archive.local_definition_path(location)];
                if archive.anchor().snapshots > 0 {
                    files.push(archive.snapshot_path(location));
                }
                files
            }
            Archive::Native(trace) => vec![trace.event_path(location)],
        }
    }

    /// The file with the clock offsets of a location.
    pub fn local_definition_path(&self, location: LocationId) -> PathBuf {
        match self {
            Archive::Otf2(archive) => archive.local_definition_path(location),
            Archive::Native(trace) => trace.event_path(location),
        }
    }

    /// Whether the trace says that not all communication was recorded. A native trace says nothing of that.
    pub fn says_incomplete(&self) -> bool {
        match self {
            Archive::Otf2(archive) => archive.says_incomplete(),
            Archive::Native(_) => false,
        }
    }

    /// Reads the definitions; the texts say what is odd about them.
    ///
    /// # Errors
    /// They are missing or damaged.
    pub fn read_definitions(&self) -> Result<(Definitions, Vec<String>)> {
        match self {
            Archive::Otf2(archive) => archive.read_definitions(),
            Archive::Native(trace) => trace.read_definitions().map(|definitions| (definitions, Vec::new())),
        }
    }

    /// Clock offsets of a location, and what its ids mean.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn local_definitions(&self, location: LocationId) -> Result<LocalDefinitions> {
        match self {
            Archive::Otf2(archive) => archive.local_definitions(location),
            Archive::Native(trace) => {
                Ok(LocalDefinitions { clock_offsets: trace.clock_offsets(location)?, ..LocalDefinitions::default() })
            }
        }
    }

    /// Size of the event file of a location in bytes.
    ///
    /// # Errors
    /// There is no such file.
    pub fn event_file_size(&self, location: LocationId) -> Result<u64> {
        match self {
            Archive::Otf2(archive) => archive.event_file_size(location),
            Archive::Native(trace) => trace.event_file_size(location),
        }
    }

    /// Calls `visit` with number, raw local time and contents of every event of a location, in order.
    ///
    /// # Errors
    /// The file is missing or damaged; whatever `visit` returns.
    #[inline]
    pub fn scan_with(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        visit: impl FnMut(EventNumber, u64, Event) -> Result<()>,
    ) -> Result<ScanSummary> {
        match self {
            Archive::Otf2(archive) => archive.scan_with(location, local, visit),
            Archive::Native(trace) => trace.scan_with(location, visit),
        }
    }

    /// As [`Archive::scan_with`], with what an event refers to; `references` are [`Definitions::accelerator_attributes`].
    ///
    /// # Errors
    /// As [`Archive::scan_with`].
    pub fn scan_with_references(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        references: &AcceleratorAttributes,
        mut visit: impl FnMut(EventNumber, u64, Event, AcceleratorReference) -> Result<()>,
    ) -> Result<ScanSummary> {
        match self {
            Archive::Otf2(archive) => archive.scan_with_references(location, local, references, visit),
            Archive::Native(trace) => trace
                .scan_records(location, |number, time, record| visit(number, time, record.event(), record.reference())),
        }
    }

    /// As [`Archive::scan_with`], for those who need not know what the events are that synchronise nobody: a format may give only their times, which is faster;
    /// then the summary says whether a message was sent in one of the `regions` (ascending).
    ///
    /// # Errors
    /// As [`Archive::scan_with`].
    #[inline]
    pub fn scan_synchronisation(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        regions: &[RegionId],
        visitor: &mut impl SynchronisationVisitor,
    ) -> Result<ScanSummary> {
        match self {
            Archive::Otf2(archive) => archive.scan_synchronisation(location, local, regions, visitor),
            Archive::Native(trace) => {
                trace.scan_with(location, |number, time, event| visitor.event(number, time, event))
            }
        }
    }

    /// Shows a visitor the regions of a location and its events that take part in synchronisation.
    ///
    /// # Errors
    /// As [`Archive::scan_with`].
    pub fn scan_regions(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        visitor: &mut impl RegionVisitor,
    ) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.scan_regions(location, local, visitor),
            Archive::Native(trace) => {
                let visit = |number, time, event| {
                    match event {
                        Event::Enter(_) => visitor.entered(time),
                        Event::Leave(_) => visitor.left(time),
                        Event::Other
                        | Event::MpiRequestTest(_)
                        | Event::Thread(_)
                        | Event::Parameter(_)
                        | Event::RmaOpCompleteBlocking(..) => {}
                        _ => visitor.event(number, time, event)?,
                    }
                    Ok(())
                };
                trace.scan_with(location, visit).map(|_| ())
            }
        }
    }

    /// Writes the event file of a location into `target` (a directory with [`Archive::event_directory`] in it), with every time
    /// mapped. Times must not decrease.
    ///
    /// # Errors
    /// The event file is missing or damaged, the map fails or runs backwards, the target cannot be written.
    #[inline]
    pub fn rewrite_events(&self, location: LocationId, target: &Path, map: &mut impl TimeMap) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.rewrite_events(location, target, map),
            Archive::Native(trace) => trace.rewrite_events(location, target, map),
        }
    }

    /// Maps the times of a location like [`Archive::rewrite_events`], without writing anything.
    ///
    /// # Errors
    /// The event file is missing or damaged, the map fails.
    #[inline]
    pub fn map_events(&self, location: LocationId, map: &mut impl TimeMap) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.map_events(location, map),
            Archive::Native(trace) => trace.map_events(location, map),
        }
    }

    /// Copies the event file of a location into `target` byte for byte.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn copy_events(&self, location: LocationId, target: &Path) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.copy_events(location, target),
            Archive::Native(trace) => trace.copy_events(location, target),
        }
    }

    /// Takes the clock offsets of a location out of `target`, whose events are written already: the new times are global.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_local_definitions(&self, location: LocationId, target: &Path) -> Result<()> {
        self.replace_clock_offsets(location, target, &[])
    }

    /// Puts `offsets`, in increasing order of time, in the place of the clock offsets of a location in `target`, whose events are
    /// written already.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn replace_clock_offsets(&self, location: LocationId, target: &Path, offsets: &[ClockOffset]) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.replace_clock_offsets(location, target, offsets),
            Archive::Native(trace) => trace.replace_clock_offsets(location, target, offsets),
        }
    }

    /// Writes the definitions into `target`, with the clock properties `clock` in the place of the old ones.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_definitions(&self, target: &Path, clock: Option<&ClockProperties>) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.rewrite_definitions(target, clock),
            Archive::Native(trace) => trace.rewrite_definitions(target, clock),
        }
    }

    /// Writes what makes an OTF2 archive readable into `target`, so it comes last; without thumbnails if `drop_thumbnails`.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_anchor(&self, target: &Path, drop_thumbnails: bool) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.rewrite_anchor(target, drop_thumbnails),
            Archive::Native(_) => Ok(()),
        }
    }

    /// The markers, in order; none if it has no marker file. Native traces have none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn markers(&self) -> Result<Option<Vec<Marker>>> {
        match self {
            Archive::Otf2(archive) => archive.markers(),
            Archive::Native(_) => Ok(None),
        }
    }

    /// Writes the marker file into `target` with new (begin, duration) of every marker, in order.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_markers(&self, target: &Path, times: &[(u64, u64)]) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.rewrite_markers(target, times),
            Archive::Native(_) => Ok(()),
        }
    }

    /// Whether a location has snapshots. Native traces have none.
    pub fn has_snapshots(&self, location: LocationId) -> bool {
        match self {
            Archive::Otf2(archive) => archive.has_snapshots(location),
            Archive::Native(_) => false,
        }
    }

    /// Writes the snapshot file of a location into `target`, its times (which are global) mapped by `map`, which must not decrease.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn rewrite_snapshots(
        &self,
        location: LocationId,
        target: &Path,
        map: &mut dyn FnMut(u64) -> u64,
    ) -> Result<()> {
        match self {
            Archive::Otf2(archive) => archive.rewrite_snapshots(location, target, map),
            Archive::Native(_) => Ok(()),
        }
    }

    /// Number of thumbnails. Native traces have none.
    pub fn thumbnails(&self) -> u32 {
        match self {
            Archive::Otf2(archive) => archive.anchor().thumbnails,
            Archive::Native(_) => 0,
        }
    }

    /// Copies the thumbnails into `target`.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub fn copy_thumbnails(&self, target: &Path) -> Result<()> {
        if let Archive::Otf2(archive) = self {
            let copied = archive.at(target);
            for i in archive.thumbnails_there() {
                copy(&archive.thumbnail_path(i), &copied.thumbnail_path(i))?;
            }
        }
        Ok(())
    }

    /// What lies beside the trace and belongs neither to its format nor to the truth; nothing unless the directory was opened.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn siblings(&self, definitions: &Definitions) -> Result<Vec<Sibling>> {
        let mut siblings = match self {
            Archive::Otf2(archive) => archive.siblings(definitions)?,
            Archive::Native(trace) => trace.siblings(definitions)?,
        };
        let ours = |sibling: &Sibling| {
            sibling.relative.starts_with(truth::NAME) || sibling.relative == Path::new(WRITTEN_LIST)
        };
        siblings.retain(|sibling| !ours(sibling));
        Ok(siblings)
    }
}
