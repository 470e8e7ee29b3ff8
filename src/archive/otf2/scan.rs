//! Streaming through the events of a location.

use crate::archive::MappedFile;
use crate::archive::otf2::chunks::{FileKind, Records};
use crate::archive::otf2::files::Otf2Archive;
use crate::archive::otf2::local::LocalDefinitions;
use crate::archive::otf2::records::{decode, name};
use crate::trace::{Event, LocationId, RegionId, Result};

/// What a scan counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanSummary {
    /// Number of events.
    pub events: u64,
    /// Raw local time of the first and the last event, if there are any.
    pub time_span: Option<(u64, u64)>,
    /// Number of records by type.
    pub by_type: Box<[u64; 256]>,
    /// What is odd.
    pub warnings: Vec<String>,
}

impl ScanSummary {
    /// Number of events by OTF2 record name, those that occur.
    pub fn by_kind(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        self.by_type.iter().enumerate().filter(|(_, count)| **count > 0).map(|(kind, &count)| (name(kind as u8), count))
    }
}

impl Otf2Archive {
    /// Calls `visit` with number (from 1), raw local time and contents of every event of a location, in order.
    ///
    /// # Errors
    /// The file is missing or damaged; whatever `visit` returns.
    pub fn scan_with(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        mut visit: impl FnMut(u64, u64, Event) -> Result<()>,
    ) -> Result<ScanSummary> {
        let path = self.event_path(location);
        let bytes = MappedFile::open(&path)?;
        let mut summary =
            ScanSummary { events: 0, time_span: None, by_type: Box::new([0; 256]), warnings: local.warnings.clone() };
        let mut run = || -> Result<()> {
            let mut records = Records::new(&bytes, FileKind::Events, self.anchor().event_chunk);
            let (mut first, mut last, mut events) = (0, 0, 0);
            while let Some(record) = records.next()? {
                summary.by_type[usize::from(record.kind)] += 1;
                let event = decode(record.kind, record.payload, record.order, local)
                    .map_err(|error| error.at_event(record.number))?;
                visit(record.number, record.time, event).map_err(|error| error.at_event(record.number))?;
                if events == 0 {
                    first = record.time;
                }
                (last, events) = (record.time, record.number);
            }
            summary.events = events;
            summary.time_span = (events > 0).then_some((first, last));
            if records.miscounted() > 0 {
                summary.warnings.push("chunk headers of event files count other events than there are".into());
            }
            Ok(())
        };
        run().map_err(|error| error.in_file(&path).at_location(location))?;
        Ok(summary)
    }

    /// The innermost region around event `number` of a location: the one that is left first without having been entered after
    /// the event. An enter or leave belongs to its own region. `None` if no region is left there.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn region_around(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        number: u64,
    ) -> Result<Option<RegionId>> {
        let path = self.event_path(location);
        let bytes = MappedFile::open(&path)?;
        let run = || -> Result<Option<RegionId>> {
            let mut records = Records::new(&bytes, FileKind::Events, self.anchor().event_chunk);
            let mut entered = 0u64;
            while let Some(record) = records.next()? {
                if record.number < number {
                    continue;
                }
                let event = decode(record.kind, record.payload, record.order, local)
                    .map_err(|error| error.at_event(record.number))?;
                match event {
                    Event::Enter(region) if record.number == number => return Ok(Some(region)),
                    Event::Enter(_) => entered += 1,
                    Event::Leave(region) if entered == 0 => return Ok(Some(region)),
                    Event::Leave(_) => entered -= 1,
                    _ => {}
                }
            }
            Ok(None)
        };
        run().map_err(|error| error.in_file(&path).at_location(location))
    }
}
