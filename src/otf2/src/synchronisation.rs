//! Streaming through the events of a location that take part in synchronisation.

use crate::ScanSummary;
use crate::chunks::{FileKind, Record, RecordReader, RecordRun};
use crate::decode::{decode, decode_within, request, synchronises};
use crate::files::Otf2Archive;
use crate::local::LocalDefinitions;
use crate::scan::{empty, finish};
use crate::source::Source;
use clc_trace::{Event, EventNumber, LocationId, RegionId, Result};

/// Types of records.
pub(crate) const ENTER: u8 = 12;
pub(crate) const LEAVE: u8 = 13;
const MPI_SEND: u8 = 14;
const MPI_ISEND: u8 = 15;
const MPI_ISEND_COMPLETE: u8 = 16;
const MPI_IRECV_REQUEST: u8 = 17;

/// [`synchronises`] of every type.
pub(crate) static SYNCHRONISES: [bool; 256] = {
    let mut types = [false; 256];
    let mut kind = 0;
    while kind < 256 {
        types[kind] = synchronises(kind as u8);
        kind += 1;
    }
    types
};

/// Who scans a location for the events that take part in synchronisation.
pub trait SynchronisationVisitor {
    /// Events that follow each other come next, from number `first` on, at these raw local times. Returns whether those that synchronise nobody may be left
    /// out; if not, they come as [`SynchronisationVisitor::others`].
    fn passes(&mut self, first: EventNumber, times: &[u64]) -> bool;

    /// Events that synchronise nobody and follow each other, from number `first` on: their raw local times.
    ///
    /// # Errors
    /// Whatever ends the scan.
    fn others(&mut self, first: EventNumber, times: &[u64]) -> Result<()>;

    /// Event `number`, at a raw local time.
    ///
    /// # Errors
    /// Whatever ends the scan.
    fn event(&mut self, number: EventNumber, time: u64, event: Event) -> Result<()>;

    /// The same of an [`Event::MpiIsendComplete`].
    ///
    /// # Errors
    /// As [`SynchronisationVisitor::event`].
    #[inline]
    fn sent(&mut self, number: EventNumber, time: u64, request: u64) -> Result<()> {
        self.event(number, time, Event::MpiIsendComplete(request))
    }

    /// The same of an [`Event::MpiIrecvRequest`].
    ///
    /// # Errors
    /// As [`SynchronisationVisitor::event`].
    #[inline]
    fn posted(&mut self, number: EventNumber, time: u64, request: u64) -> Result<()> {
        self.event(number, time, Event::MpiIrecvRequest(request))
    }
}

impl Otf2Archive {
    /// As [`Otf2Archive::scan_with`], for those who need not know what the events are that synchronise nobody. The summary says whether a message was sent
    /// in one of the `regions` (ascending).
    ///
    /// # Errors
    /// As [`Otf2Archive::scan_with`].
    #[inline]
    pub fn scan_synchronisation(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        regions: &[RegionId],
        visitor: &mut impl SynchronisationVisitor,
    ) -> Result<ScanSummary> {
        let path = self.event_path(location);
        let mut summary = empty(local);
        let mut run = || -> Result<()> {
            let mut records = RecordReader::open(&path, FileKind::Events, self.anchor().event_chunk)?;
            let mut stretch = RecordRun::default();
            let mut list = [0; RecordRun::MOST];
            let (mut first, mut last) = (None, 0);
            let mut within = Within { regions, entered: None, looks: !regions.is_empty() };
            loop {
                // Nearly all records come in stretches.
                records.gather(&mut stretch);
                let (kinds, times, begin) = (stretch.kinds(), stretch.times(), stretch.first());
                let synchronising = count_and_list(kinds, &mut summary.by_type, &mut list);
                let passes = visitor.passes(begin, times);
                if passes && !within.looks {
                    visit(&records, &stretch, synchronising, local, visitor)?;
                } else {
                    // What lies between them has to be seen as well.
                    let mut done = 0;
                    for synchronising in synchronising.chunks(1) {
                        let index = synchronising.first().map_or(0, |&index| usize::from(index));
                        if !passes && done < index {
                            visitor.others(begin + done as u64, &times[done..index])?;
                        }
                        if within.looks && is_send(kinds[index]) {
                            within.enter(&records, &stretch, index);
                            within.send(local);
                        }
                        visit(&records, &stretch, synchronising, local, visitor)?;
                        done = index + 1;
                    }
                    if !passes && done < times.len() {
                        visitor.others(begin + done as u64, &times[done..])?;
                    }
                    if within.looks {
                        within.enter(&records, &stretch, times.len());
                    }
                }
                first = first.or(times.first().copied());
                last = times.last().copied().unwrap_or(last);
                let Some(record) = records.next()? else { break };
                summary.by_type[usize::from(record.kind)] += 1;
                within.read(&record, local);
                let (number, time) = (record.event(), record.time);
                let event = if synchronises(record.kind) { decode(&record, local) } else { Ok(Event::Other) };
                let visited = event.and_then(|event| visitor.event(number, time, event));
                visited.map_err(|error| error.at_event(number))?;
                first = first.or(Some(time));
                last = time;
            }
            summary.sent_within = !regions.is_empty() && !within.looks;
            summary.time_span = first.map(|first| (first, last));
            finish(&mut summary, &records);
            Ok(())
        };
        run().map_err(|error| error.in_file(&path).at_location(location))?;
        Ok(summary)
    }
}

/// Counts records by type, and lists those that synchronise.
#[inline(never)]
fn count_and_list<'a>(kinds: &[u8], by_type: &mut [u64; 256], list: &'a mut [u8; RecordRun::MOST]) -> &'a [u8] {
    let mut count = 0;
    // Without a branch on the type, which nobody could predict.
    for (index, &kind) in kinds.iter().enumerate() {
        by_type[usize::from(kind)] += 1;
        list[count % RecordRun::MOST] = index as u8;
        count += usize::from(SYNCHRONISES[usize::from(kind)]);
    }
    &list[..count]
}

/// Visits records of the `stretch` that was read last: those in the list. A function of its own, so that what it works with stays in registers.
#[inline(never)]
fn visit<S: Source>(
    records: &RecordReader<S>,
    stretch: &RecordRun,
    list: &[u8],
    local: &LocalDefinitions,
    visitor: &mut impl SynchronisationVisitor,
) -> Result<()> {
    for &index in list {
        let (kind, time, fields) = records.at(stretch, index);
        let number = stretch.first() + u64::from(index);
        let visited = match kind {
            // Half of them.
            MPI_ISEND_COMPLETE => request(fields).and_then(|request| visitor.sent(number, time, request)),
            MPI_IRECV_REQUEST => request(fields).and_then(|request| visitor.posted(number, time, request)),
            _ => decode_within(kind, fields, local).and_then(|event| visitor.event(number, time, event)),
        };
        visited.map_err(|error| error.at_event(number))?;
    }
    Ok(())
}

/// Finds out whether a message is sent in one of some regions.
struct Within<'a> {
    /// Ascending.
    regions: &'a [RegionId],
    /// The region, as the location calls it, that was entered last, if none was left since.
    entered: Option<u32>,
    /// As long as none was found.
    looks: bool,
}

impl Within<'_> {
    fn read(&mut self, record: &Record<'_>, local: &LocalDefinitions) {
        match record.kind {
            _ if !self.looks => {}
            ENTER => self.entered = record.fields().u32().ok(),
            LEAVE => self.entered = None,
            kind if is_send(kind) => self.send(local),
            _ => {}
        }
    }

    /// What was entered before record `index` of a stretch.
    fn enter<S: Source>(&mut self, records: &RecordReader<S>, stretch: &RecordRun, index: usize) {
        match stretch.kinds()[..index].iter().rposition(|&kind| kind == ENTER || kind == LEAVE) {
            Some(last) if stretch.kinds()[last] == ENTER => {
                self.entered = records.at(stretch, last as u8).2.reader.u32().ok();
            }
            Some(_) => self.entered = None,
            None => {}
        }
    }

    fn send(&mut self, local: &LocalDefinitions) {
        let region = self.entered.map(|region| RegionId(local.regions.map(region)));
        self.looks = region.is_none_or(|region| self.regions.binary_search(&region).is_err());
    }
}

const fn is_send(kind: u8) -> bool {
    matches!(kind, MPI_SEND | MPI_ISEND)
}
