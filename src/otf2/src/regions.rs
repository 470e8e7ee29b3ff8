//! Streaming through the regions of a location and what takes part in synchronisation in them.

use crate::chunks::{FileKind, RecordReader, RecordRun};
use crate::decode::{decode, decode_within};
use crate::files::Otf2Archive;
use crate::local::LocalDefinitions;
use crate::synchronisation::{ENTER, LEAVE, SYNCHRONISES};
use clc_trace::{Event, EventNumber, LocationId, Result};

/// Who follows the regions of a location, whatever these are. Times are raw local ones.
pub trait RegionVisitor {
    /// A region is entered.
    fn entered(&mut self, time: u64);

    /// The region that was entered last is left.
    fn left(&mut self, time: u64);

    /// Event `number`, of those that take part in synchronisation.
    ///
    /// # Errors
    /// Whatever ends the scan.
    fn event(&mut self, number: EventNumber, time: u64, event: Event) -> Result<()>;
}

impl Otf2Archive {
    /// Shows a visitor the regions of a location and its events that take part in synchronisation, in order. It decodes nothing else, which takes
    /// two thirds of the time of [`Otf2Archive::scan_with`].
    ///
    /// # Errors
    /// As [`Otf2Archive::scan_with`].
    pub fn scan_regions(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        visitor: &mut impl RegionVisitor,
    ) -> Result<()> {
        let path = self.event_path(location);
        let mut run = || -> Result<()> {
            let mut records = RecordReader::open(&path, FileKind::Events, self.anchor().event_chunk)?;
            let mut stretch = RecordRun::default();
            loop {
                // Nearly all records come in stretches.
                records.gather(&mut stretch);
                for (index, (&kind, &time)) in stretch.kinds().iter().zip(stretch.times()).enumerate() {
                    match kind {
                        ENTER => visitor.entered(time),
                        LEAVE => visitor.left(time),
                        _ if SYNCHRONISES[usize::from(kind)] => {
                            let number = stretch.first() + index as u64;
                            let (_, _, fields) = records.at(&stretch, index as u8);
                            decode_within(kind, fields, local)
                                .and_then(|event| visitor.event(number, time, event))
                                .map_err(|error| error.at_event(number))?;
                        }
                        _ => {}
                    }
                }
                let Some(record) = records.next()? else { return Ok(()) };
                match record.kind {
                    ENTER => visitor.entered(record.time),
                    LEAVE => visitor.left(record.time),
                    kind if SYNCHRONISES[usize::from(kind)] => {
                        let (number, time) = (record.event(), record.time);
                        decode(&record, local)
                            .and_then(|event| visitor.event(number, time, event))
                            .map_err(|error| error.at_event(number))?;
                    }
                    _ => {}
                }
            }
        };
        run().map_err(|error| error.in_file(&path).at_location(location))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Stamp;
    use crate::{ArchiveWriter, CreateOptions, EventRecord};
    use clc_trace::{ClockProperties, Definitions, Location, LocationGroupId, LocationKind, RegionId};
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl RegionVisitor for Seen {
        fn entered(&mut self, time: u64) {
            self.0.push(format!("entered {time}"));
        }

        fn left(&mut self, time: u64) {
            self.0.push(format!("left {time}"));
        }

        fn event(&mut self, number: EventNumber, time: u64, event: Event) -> Result<()> {
            self.0.push(format!("{number} {time} {event:?}"));
            Ok(())
        }
    }

    fn record(kind: u8, value: u32) -> EventRecord {
        match kind {
            0 => EventRecord::Enter { region: RegionId(value) },
            1 => EventRecord::Leave { region: RegionId(value) },
            2 => EventRecord::MpiIsendComplete { request: u64::from(value) },
            3 => EventRecord::MpiRequestTest { request: u64::from(value) },
            4 => EventRecord::MpiCollectiveBegin {},
            5 => EventRecord::BufferFlush { stop_time: Stamp(1 << 40) },
            _ => EventRecord::MeasurementOnOff { mode: 1 },
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn what_is_seen_is_what_a_scan_of_all_records_says(records in prop::collection::vec((0u8..7, 0u32..9, 0u64..2), 0..600)) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("trace");
            let archive = ArchiveWriter::create(&path, "traces", CreateOptions::default()).unwrap();
            let mut events = archive.events(LocationId(0)).unwrap();
            let mut time = 10;
            for &(kind, value, later) in &records {
                time += later;
                events.record(time, &record(kind, value)).unwrap();
            }
            let count = events.finish().unwrap();
            archive.local_definitions(LocationId(0), &[]).unwrap();
            let clock = ClockProperties { resolution: 1_000_000_000, global_offset: 0, trace_length: 100, realtime: None };
            let location = Location {
                id: LocationId(0),
                name: "main".into(),
                kind: LocationKind::CpuThread,
                group: LocationGroupId(0),
                claimed_events: count,
            };
            let definitions = Definitions { locations: vec![location], ..Definitions::empty(clock) };
            archive.finish(&definitions, &HashMap::from([(LocationId(0), count)])).unwrap();
            let archive = Otf2Archive::open(&path).unwrap();
            let local = archive.local_definitions(LocationId(0)).unwrap();
            let (mut seen, mut expected) = (Seen::default(), Seen::default());
            archive.scan_regions(LocationId(0), &local, &mut seen).unwrap();
            let all = archive.scan_with(LocationId(0), &local, |number, time, event| {
                match event {
                    Event::Enter(_) => expected.entered(time),
                    Event::Leave(_) => expected.left(time),
                    Event::Other | Event::MpiRequestTest(_) => {}
                    _ => expected.event(number, time, event)?,
                }
                Ok(())
            });
            prop_assert_eq!(all.unwrap().events, records.len() as u64);
            prop_assert_eq!(seen.0, expected.0);
        }
    }
}
