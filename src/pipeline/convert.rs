//! Writing a trace in the other format: same events, same times, same clock offsets.

use crate::pipeline::open::TraceHandle;
use crate::report::{LossCount, Warnings};
use clc_archive::native::{EVENTS, NativeRecord, NativeTrace, NativeWriter, TraceHeader};
use clc_archive::truth::{self, TruthReader, TruthWriter};
use clc_archive::{Archive, ConversionLoss, Format, Lost, SiblingKind, copy};
use clc_engine::comm::{Transport, agree, all_gather_values};
use clc_otf2::{ArchiveWriter, CreateOptions, Otf2Archive, event_name};
use clc_trace::progress::Progress;
use clc_trace::{Error, Event, LocationId, ParameterId, Result};
use std::collections::HashMap;
use std::path::Path;

/// Archive name of an OTF2 archive made from a native trace, as Score-P calls its own.
const NAME: &str = "traces";
/// Record type of OTF2 `BufferFlush`.
const BUFFER_FLUSH: u8 = 10;

/// Directory for event files in a new trace.
pub(crate) fn event_directory(format: Format) -> &'static str {
    match format {
        Format::Otf2 => NAME,
        Format::Native => EVENTS,
    }
}

/// What came out, of the whole trace.
#[derive(Debug)]
pub(crate) struct Converted {
    /// Number of events written, by location.
    pub events: HashMap<LocationId, u64>,
    /// What the target cannot hold.
    pub loss: ConversionLoss,
}

impl Converted {
    /// What the target cannot hold, for the report.
    pub(crate) fn losses(&self) -> Vec<LossCount> {
        let of = |(what, kind, count): (Lost, &str, u64)| LossCount { what, kind: kind.to_owned(), count };
        self.loss.iter().map(of).collect()
    }

    /// What a correction of the target may do otherwise than one of the source.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        (self.loss.of(Lost::Events) > 0).then_some(
            "events without fields cannot be written as OTF2; without them, nearby times may be corrected differently",
        )
    }
}

/// Writes all locations of `opened` into `target` in the other format, and the truth beside them if there is one. Collective over the
/// analysis ranks; a failure is everybody's.
///
/// # Errors
/// Reading or writing fails; failures of the transport.
pub(crate) fn convert_locations(
    transport: &mut dyn Transport,
    opened: &TraceHandle,
    target: &Path,
    progress: &dyn Progress,
    warnings: &mut Warnings,
) -> Result<Converted> {
    let hosted = opened.placement.hosted_by(transport.rank());
    let locations = || hosted.clone().flat_map(|timeline| &opened.timelines.all[timeline].locations);
    let claimed = locations().map(|&index| opened.definitions.locations[index].claimed_events);
    progress.phase("convert", claimed.fold(0, u64::saturating_add));
    let mut job = ConvertJob { opened, target, loss: ConversionLoss::default(), warnings };
    let mut counts: Vec<(u64, u64)> = Vec::new();
    let mut outcome = Ok(());
    for &index in locations() {
        let id = opened.definitions.locations[index].id;
        match job.location(id) {
            Ok(events) => {
                progress.advance(events);
                counts.push((id.0, events));
            }
            Err(error) => {
                outcome = Err(error.at_location(id));
                break;
            }
        }
    }
    let loss = job.loss;
    progress.finish();
    agree(transport, outcome)?;
    let mut converted = Converted { events: HashMap::new(), loss: ConversionLoss::default() };
    for (counts, loss) in all_gather_values(transport, &(counts, loss))? {
        converted.events.extend(counts.into_iter().map(|(id, events)| (LocationId(id), events)));
        converted.loss.merge(loss);
    }
    Ok(converted)
}

/// The locations of one analysis rank.
struct ConvertJob<'a> {
    opened: &'a TraceHandle,
    target: &'a Path,
    loss: ConversionLoss,
    warnings: &'a mut Warnings,
}

impl ConvertJob<'_> {
    /// Returns the number of events written.
    fn location(&mut self, id: LocationId) -> Result<u64> {
        let truth = truth::path(self.opened.archive.directory(), id);
        let truth = truth.exists().then_some(truth);
        let target_truth = truth::path(self.target, id);
        match &self.opened.archive {
            Archive::Otf2(archive) => {
                let events = self.write_native(archive, id)?;
                if let Some(truth) = truth {
                    copy(&truth, &target_truth)?;
                }
                Ok(events)
            }
            Archive::Native(trace) => {
                let (events, dropped) = self.write_otf2(trace, id)?;
                if let Some(truth) = truth {
                    if dropped == 0 {
                        copy(&truth, &target_truth)?;
                    } else {
                        truth_of_kept(trace, id, &self.opened.definitions.callsites, [&truth, &target_truth])?;
                    }
                }
                Ok(events)
            }
        }
    }

    fn write_native(&mut self, archive: &Otf2Archive, id: LocationId) -> Result<u64> {
        let local = archive.local_definitions(id)?;
        let resolution = self.opened.definitions.clock.resolution;
        let mut writer = NativeWriter::within(self.target, resolution).events(id)?;
        let mut without_fields = [0u64; 256];
        let mut attributes = [0u64; 256];
        let references = &self.opened.definitions.accelerator_attributes;
        let summary = archive.scan_parts(id, &local, references, |parts| {
            let mut kept = 0;
            let record = match (parts.event, parts.flush_stop) {
                (Event::Other, Some(stop)) => NativeRecord::BufferFlush(stop),
                (Event::Other, None) => {
                    without_fields[usize::from(parts.kind)] += 1;
                    NativeRecord::other(parts.kind).unwrap_or(NativeRecord::Other(0))
                }
                (event, _) => {
                    let referring = NativeRecord::referring(event, parts.refers);
                    if referring.is_some() {
                        kept =
                            [parts.refers.stream.is_some(), parts.refers.event.is_some()].map(u64::from).iter().sum();
                    }
                    referring.unwrap_or(NativeRecord::Event(event))
                }
            };
            attributes[usize::from(parts.kind)] += parts.attributes - kept;
            writer.record(parts.time, &record)
        })?;
        for (kind, (fields, attributes)) in (0..=u8::MAX).zip(without_fields.into_iter().zip(attributes)) {
            self.loss.add(Lost::EventFields, event_name(kind), fields);
            self.loss.add(Lost::Attributes, event_name(kind), attributes);
        }
        summary.warnings.iter().for_each(|text| self.warnings.add(text.clone()));
        self.loss.merge(archive.conversion_loss_of(id)?);
        writer.finish(&local.clock_offsets)
    }

    /// Returns the numbers of events written and left out.
    fn write_otf2(&mut self, trace: &NativeTrace, id: LocationId) -> Result<(u64, u64)> {
        let archive =
            ArchiveWriter::within(self.target, NAME, CreateOptions::default().fitting(&self.opened.definitions));
        let mut writer = archive.events(id)?;
        let order = writer.order();
        let names = &self.opened.definitions.accelerator_attributes;
        let callsites = &self.opened.definitions.callsites;
        let mut dropped = [0u64; 256];
        let summary = trace.scan_records(id, |_, time, record| match record {
            record if !fits(&record, callsites) => {
                dropped[usize::from(record.kind())] += 1;
                Ok(())
            }
            NativeRecord::Event(event) if event != Event::Other => writer.event(time, &event),
            NativeRecord::Referring(_, refers, _) => writer.event_with_references(time, &record.event(), names, refers),
            NativeRecord::BufferFlush(stop) => writer.raw(time, BUFFER_FLUSH, &order.bytes(stop)),
            other => {
                dropped[usize::from(other.kind())] += 1;
                Ok(())
            }
        })?;
        let events = writer.finish()?;
        archive.local_definitions(id, &trace.clock_offsets(id)?)?;
        for (kind, count) in (0..=u8::MAX).zip(dropped) {
            let name = if kind == 0 { "Other".to_owned() } else { event_name(kind) };
            self.loss.add(Lost::Events, name, count);
        }
        Ok((events, summary.events - events))
    }
}

/// Whether OTF2 can hold a record of a native trace: its fields are there, and so is the definition of what it refers to.
fn fits(record: &NativeRecord, callsites: &[ParameterId]) -> bool {
    match record {
        NativeRecord::BufferFlush(_) => true,
        NativeRecord::Event(Event::Parameter(call)) => callsites.binary_search(&call.parameter).is_ok(),
        record => record.event() != Event::Other,
    }
}

/// Copies the true times of those events of a native trace that OTF2 can hold.
fn truth_of_kept(trace: &NativeTrace, id: LocationId, callsites: &[ParameterId], [from, to]: [&Path; 2]) -> Result<()> {
    let mut reader = TruthReader::open(from)?;
    let mut writer = TruthWriter::create(to, reader.location(), reader.resolution())?;
    trace.scan_records(id, |_, _, record| {
        let time = reader.next_time()?.ok_or_else(|| {
            Error::new(
                "the truth has fewer times than the location has \
                events",
            )
            .in_file(from)
        })?;
        if fits(&record, callsites) { writer.push(time) } else { Ok(()) }
    })?;
    writer.finish().map(|_| ())
}

/// Bytes of all event files of `opened`, and of the trace that was made of it in `target`.
///
/// # Errors
/// `target` is no trace.
pub(crate) fn event_bytes(opened: &TraceHandle, target: &Path) -> Result<[u64; 2]> {
    let size = |archive: &Archive| {
        let locations = opened.definitions.locations.iter();
        let sizes = locations.map(|location| archive.event_file_size(location.id).unwrap_or(0));
        sizes.fold(0, u64::saturating_add)
    };
    Ok([size(&opened.archive), size(&Archive::open(target)?)])
}

/// Writes what belongs to no location into `target`, and counts what cannot be held. For one rank only, after all locations are written.
///
/// # Errors
/// Reading or writing fails.
pub(crate) fn convert_globals(opened: &TraceHandle, target: &Path, converted: &mut Converted) -> Result<()> {
    let mut definitions = opened.definitions.clone();
    for location in &mut definitions.locations {
        if let Some(&events) = converted.events.get(&location.id) {
            location.claimed_events = events;
        }
    }
    let siblings = opened.archive.siblings(&opened.definitions)?.into_iter();
    for sibling in siblings.filter(|sibling| sibling.kind != SiblingKind::Directory) {
        converted.loss.add(Lost::Files, sibling.relative.display().to_string(), 1);
    }
    match &opened.archive {
        Archive::Otf2(archive) => {
            converted.loss.merge(archive.conversion_loss()?);
            let anchor = archive.anchor();
            let header = TraceHeader { creator: anchor.creator.clone(), description: anchor.description.clone() };
            NativeWriter::within(target, definitions.clock.resolution).finish(&header, &definitions)?;
        }
        Archive::Native(trace) => {
            let undefined = |c: &&clc_trace::Communicator| c.members == clc_trace::CommMembers::Undefined;
            let undefined = definitions.communicators.iter().filter(undefined).count();
            converted.loss.add(Lost::Definitions, "communicator without members", undefined as u64);
            let header = trace.header();
            let options = CreateOptions {
                creator: header.creator.clone(),
                description: header.description.clone(),
                ..CreateOptions::default()
            }
            .fitting(&definitions);
            ArchiveWriter::within(target, NAME, options).finish(&definitions, &converted.events)?;
        }
    }
    // Beside the true times there may be the parameters of a simulation.
    let from = truth::directory(opened.archive.directory());
    if from.is_dir() {
        let failed = |error: std::io::Error| Error::io(&from, "cannot read the directory", &error);
        for entry in std::fs::read_dir(&from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let to = truth::directory(target).join(entry.file_name());
            if entry.path().is_file() && !to.exists() {
                copy(&entry.path(), &to)?;
            }
        }
    }
    Ok(())
}
