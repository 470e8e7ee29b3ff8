//! OTF2 archives written from nothing and written again, judged by otf2-print and the Python bindings of libotf2.

use crate::otf2_sample::{EVENTS, PROCESSES, create, create_with, definitions, event, offsets, options, time};
use clc_otf2::{
    ArchiveWriter, ByteOrder, CreateOptions, EventRecord, FieldWriter, Otf2Archive, Stamp, TimeMap, UNDEFINED_TIME,
};
use clc_trace::{ClockProperties, CommMembers, Event, EventNumber, LocationId, MpiRank, RegionId, Result};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter that sees Debian's python3-otf2; another one in the path need not.
const PYTHON: &str = "/usr/bin/python3";

fn root(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Standard output of a program that has to succeed; `silent`: without a word on standard error.
fn run(command: &mut Command, silent: bool) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e} (scripts/setup.sh installs it)"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}{}", String::from_utf8_lossy(&output.stdout));
    assert!(!silent || errors.is_empty(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Maps times by a function of the event's number and old time.
struct By<F>(F);

impl<F: FnMut(EventNumber, u64) -> u64> TimeMap for By<F> {
    fn event(&mut self, number: EventNumber, time: u64) -> Result<u64> {
        Ok(self.0(number, time))
    }

    fn flush_stop(&mut self, number: EventNumber, stop: u64) -> u64 {
        self.0(number, stop)
    }
}

/// The same archive elsewhere, event times mapped by `new(location, number, old)`.
fn rewrite(
    archive: &Otf2Archive,
    target: &Path,
    clock: Option<ClockProperties>,
    new: impl Fn(LocationId, EventNumber, u64) -> u64,
) -> Otf2Archive {
    let (definitions, _) = archive.read_definitions().unwrap();
    std::fs::create_dir_all(target.join(archive.name())).unwrap();
    for location in &definitions.locations {
        archive.rewrite_events(location.id, target, &mut By(|number, old| new(location.id, number, old))).unwrap();
        archive.rewrite_local_definitions(location.id, target).unwrap();
        if archive.has_snapshots(location.id) {
            archive
                .rewrite_snapshots(location.id, target, &mut |old| new(location.id, EventNumber::START, old))
                .unwrap();
        }
    }
    if let Some(markers) = archive.markers().unwrap() {
        let times: Vec<_> = markers
            .iter()
            .map(|marker| (new(LocationId(0), EventNumber::START, marker.time), marker.duration))
            .collect();
        archive.rewrite_markers(target, &times).unwrap();
    }
    archive.rewrite_definitions(target, Some(&clock.unwrap_or(definitions.clock))).unwrap();
    archive.rewrite_anchor(target, false).unwrap();
    Otf2Archive::open(target).unwrap()
}

fn recorded() -> Vec<Otf2Archive> {
    let mut archives = Vec::new();
    // The second directory holds further recordings on machines that have them.
    for data in [root("tests/data"), root("../shared/data")] {
        let Ok(entries) = std::fs::read_dir(data) else { continue };
        let directories = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        archives.extend(directories.map(|path| Otf2Archive::open(&path).unwrap()));
    }
    assert!(archives.len() > 3);
    archives
}

fn libotf2_archive(directory: &Path) -> Otf2Archive {
    let path = directory.join("libotf2");
    run(Command::new(PYTHON).arg(root("tests/tools/libotf2_archive.py")).arg(&path), false);
    Otf2Archive::open(&path).unwrap()
}

/// All archives that the tests know: recorded, by libotf2, by us in both byte orders.
fn all(directory: &Path) -> Vec<Otf2Archive> {
    let mut archives = recorded();
    archives.push(libotf2_archive(directory));
    archives.push(create(&directory.join("little"), ByteOrder::Little));
    archives.push(create(&directory.join("big"), ByteOrder::Big));
    archives
}

#[test]
fn no_change_of_times_changes_no_byte() {
    let directory = tempfile::tempdir().unwrap();
    for (archive, number) in all(directory.path()).iter().zip(0..) {
        let copy = rewrite(archive, &directory.path().join(format!("copy{number}")), None, |_, _, old| old);
        let (definitions, _) = archive.read_definitions().unwrap();
        let same = |one: PathBuf, other: PathBuf| {
            assert!(std::fs::read(&one).unwrap() == std::fs::read(other).unwrap(), "{}", one.display());
        };
        for location in &definitions.locations {
            same(archive.event_path(location.id), copy.event_path(location.id));
            let (old, new) = (archive.local_definitions(location.id), copy.local_definitions(location.id));
            let (old, new) = (old.unwrap(), new.unwrap());
            assert_eq!(new.clock_offsets, []);
            assert_eq!((&new.regions, &new.communicators), (&old.regions, &old.communicators));
            if old.clock_offsets.is_empty() && archive.local_definition_path(location.id).exists() {
                same(archive.local_definition_path(location.id), copy.local_definition_path(location.id));
            }
            if archive.has_snapshots(location.id) {
                same(archive.snapshot_path(location.id), copy.snapshot_path(location.id));
            }
        }
        same(archive.definition_path(), copy.definition_path());
        same(archive.anchor_path(), copy.anchor_path());
        if archive.marker_path().exists() {
            same(archive.marker_path(), copy.marker_path());
        }
    }
}

/// First and last time of all events, buffer flushes included, after `new`.
fn span(archive: &Otf2Archive, new: &impl Fn(LocationId, EventNumber, u64) -> u64) -> (u64, u64) {
    let (definitions, _) = archive.read_definitions().unwrap();
    let mut span = (u64::MAX, 0);
    for location in &definitions.locations {
        let mut see = By(|number, old| {
            let time = new(location.id, number, old);
            span = (span.0.min(time), span.1.max(time));
            time
        });
        archive.map_events(location.id, &mut see).unwrap();
    }
    span
}

/// A copy with other times: its clock properties are those of the new times, it has no offsets left, and its chunks count their events.
fn moved(archive: &Otf2Archive, target: &Path, new: impl Fn(LocationId, EventNumber, u64) -> u64) -> Otf2Archive {
    let (first, last) = span(archive, &new);
    let (definitions, _) = archive.read_definitions().unwrap();
    let clock = ClockProperties { global_offset: first, trace_length: last - first, ..definitions.clock };
    let copy = rewrite(archive, target, Some(clock), &new);
    assert_eq!(copy.read_definitions().unwrap().0.clock, clock);
    for location in &definitions.locations {
        let local = copy.local_definitions(location.id).unwrap();
        assert_eq!(local.clock_offsets, []);
        let summary = copy.scan_with(location.id, &local, |_, _, _| Ok(())).unwrap();
        assert_eq!(summary.warnings, Vec::<String>::new(), "chunk counters of {}", location.id);
    }
    copy
}

/// One shift, and maps that part what shared a time and bring together what did not. One run of the judge per archive looks at all three, so that it
/// reads the original once.
#[test]
fn no_map_of_times_changes_anything_but_times() {
    let directory = tempfile::tempdir().unwrap();
    for (archive, number) in all(directory.path()).iter().zip(0..) {
        let target = |what: &str| directory.path().join(format!("{what}{number}"));
        let copies = [
            shifted(archive, &target("shifted")),
            parted(archive, &target("parted")),
            moved(archive, &target("rounded"), |_, _, old| old - old % 1000),
        ];
        let mut judge = Command::new(PYTHON);
        judge.arg(root("tests/tools/compare_otf2.py")).arg(archive.anchor_path());
        run(judge.args(copies.iter().map(Otf2Archive::anchor_path)), false);
    }
}

fn shifted(archive: &Otf2Archive, target: &Path) -> Otf2Archive {
    let copy = moved(archive, target, |_, _, old| old + 12_345);
    for location in &archive.read_definitions().unwrap().0.locations {
        // Only events at time 0 without a timestamp could make the file longer.
        assert!(copy.event_file_size(location.id).unwrap() <= archive.event_file_size(location.id).unwrap() + 9);
    }
    copy
}

/// What otf2-print and otf2-marker say of snapshots and markers: the text without its numbers of nine and more digits, and these.
fn snapshots_and_markers(archive: &Otf2Archive) -> (Vec<String>, Vec<u64>) {
    let print = run(Command::new("otf2-print").arg(archive.anchor_path()), false);
    let markers = run(Command::new("otf2-marker").arg(archive.anchor_path()), false);
    let (_, snapshots) = print.split_once("=== Snapshots").unwrap();
    let (mut text, mut times) = (Vec::new(), Vec::new());
    for word in snapshots.split_whitespace().chain(markers.split_whitespace()) {
        match word.trim_end_matches(',').parse::<u64>() {
            Ok(time) if time >= 100_000_000 => times.push(time),
            _ => text.push(word.to_owned()),
        }
    }
    (text, times)
}

#[test]
fn times_in_snapshots_and_markers_move_too() {
    let directory = tempfile::tempdir().unwrap();
    let archive = libotf2_archive(directory.path());
    let shifted = |name: &str, by: u64| rewrite(&archive, &directory.path().join(name), None, |_, _, old| old + by);
    // Far enough that all times can be told from all other numbers.
    let (one, other) = (shifted("one", 1_000_000_000), shifted("other", 5_000_000_000));
    let ((text, times), (text_other, times_other)) = (snapshots_and_markers(&one), snapshots_and_markers(&other));
    assert!(times.len() > 4 * 20_000);
    assert!(times.iter().map(|time| time + 4_000_000_000).eq(times_other));
    // File names differ.
    let plain = |text: Vec<String>| text.into_iter().filter(|word| !word.contains("/")).collect::<Vec<_>>();
    assert!(plain(text) == plain(text_other));
}

/// A time of its own for every event; the old order of times survives, since the old time counts more than the number.
fn apart(first: u64, number: EventNumber, old: u64) -> u64 {
    100 + ((old - first) << 17) + number.0
}

/// Events that shared a time no longer do; ours read the same events at these times, and no others.
fn parted(archive: &Otf2Archive, target: &Path) -> Otf2Archive {
    let (first, last) = span(archive, &|_, _, old| old);
    assert!(last - first < u64::MAX >> 17);
    let copy = moved(archive, target, |_, number, old| apart(first, number, old));
    for location in &archive.read_definitions().unwrap().0.locations {
        let local = archive.local_definitions(location.id).unwrap();
        let mut old = Vec::new();
        let mut keep = |number: EventNumber, time, event| {
            old.push((number, apart(first, number, time), event));
            Ok(())
        };
        archive.scan_with(location.id, &local, &mut keep).unwrap();
        let mut old = old.into_iter();
        let same = |number: EventNumber, time, event| {
            assert_eq!(Some((number, time, event)), old.next());
            Ok(())
        };
        copy.scan_with(location.id, &local, same).unwrap();
        assert_eq!(old.next(), None);
    }
    copy
}

/// Against a stack of what was entered, over every event of a recorded file.
#[test]
fn the_region_around_an_event_is_the_innermost() {
    let archive = recorded().into_iter().find(|archive| archive.directory().ends_with("tracer-halo-4")).unwrap();
    let location = LocationId(1);
    let local = archive.local_definitions(location).unwrap();
    let (mut expected, mut stack) = (Vec::new(), Vec::new());
    let visit = |number, _, event| {
        if let Event::Enter(region) = event {
            stack.push(region);
        }
        expected.push((number, stack.last().copied()));
        if let Event::Leave(_) = event {
            stack.pop();
        }
        Ok(())
    };
    let chunks = archive.scan_with(location, &local, visit).unwrap().chunks;
    assert!(expected.len() > 1000);
    let archive = clc_archive::Archive::Otf2(archive);
    for (number, region) in expected.into_iter().step_by(3) {
        assert_eq!(archive.region_around(location, &local, &chunks, number), region, "event {number}");
    }
}

#[test]
fn a_scan_can_begin_at_any_chunk() {
    let directory = tempfile::tempdir().unwrap();
    let archive = create(&directory.path().join("chunks"), ByteOrder::Little);
    let location = archive.read_definitions().unwrap().0.locations[0].id;
    let local = archive.local_definitions(location).unwrap();
    let mut all = Vec::new();
    let visit = |number, _, event| {
        all.push((number, event));
        Ok(())
    };
    let chunks = archive.scan_with(location, &local, visit).unwrap().chunks;
    assert!(chunks.len() > 2 && chunks[0] == 0, "{chunks:?}");
    for (chunk, &before) in chunks.iter().enumerate() {
        let mut rest = all[before as usize..].iter();
        let visit = |number, event| {
            assert_eq!(Some(&(number, event)), rest.next(), "chunk {chunk}");
            true
        };
        archive.scan_from(location, &local, (chunk, before), visit).unwrap();
        assert_eq!(rest.len(), 0, "chunk {chunk}");
    }
}

#[test]
fn created_archives_say_what_they_were_told() {
    let directory = tempfile::tempdir().unwrap();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let archive = create(&directory.path().join(format!("{order:?}")), order);
        let (read, warnings) = archive.read_definitions().unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let mut told = definitions();
        told.communicators.sort_by_key(|communicator| communicator.id);
        let mut sorted = read.clone();
        sorted.communicators.sort_by_key(|communicator| communicator.id);
        assert_eq!(sorted, told);
        for (location, rank) in read.locations.iter().zip(0..) {
            assert!(archive.event_file_size(location.id).unwrap() > 2 << 18, "several chunks");
            let local = archive.local_definitions(location.id).unwrap();
            assert_eq!(local.clock_offsets, offsets());
            let mut next = 0;
            let mapped = |region: RegionId| match (rank, region.0) {
                (1, id) => RegionId(2 - id),
                (2, 1) => RegionId(2),
                (2, 2) => RegionId(1),
                _ => region,
            };
            let summary = archive
                .scan_with(location.id, &local, |number, at, read| {
                    let expected = match event(next) {
                        Event::Enter(region) => Event::Enter(mapped(region)),
                        Event::Leave(region) => Event::Leave(mapped(region)),
                        other => other,
                    };
                    assert_eq!((number, at, read), (EventNumber::after(next), time(next), expected));
                    next += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!((next, summary.events), (EVENTS, EVENTS));
            assert_eq!(summary.warnings, Vec::<String>::new());
        }
    }
}

/// Number of events by kind as otf2-print names them; it may not complain.
fn printed(archive: &Otf2Archive) -> BTreeMap<String, u64> {
    let text = run(Command::new("otf2-print").arg(archive.anchor_path()), true);
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(kind), Some(location)) = (words.next(), words.next())
            && location.parse::<u64>().is_ok()
        {
            *counts.entry(kind.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn other_readers_accept_created_archives() {
    let directory = tempfile::tempdir().unwrap();
    let mut texts = Vec::new();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let archive = create(&directory.path().join(format!("{order:?}")), order);
        let counts = printed(&archive);
        assert_eq!(counts.values().sum::<u64>(), EVENTS * u64::from(PROCESSES));
        assert_eq!(counts["MPI_IRECV"], EVENTS / 16 * u64::from(PROCESSES));
        assert_eq!(counts["NON_BLOCKING_COLLECTIVE_COMPLETE"], EVENTS / 16 * u64::from(PROCESSES));
        // Definitions too, and the same in both byte orders.
        let mut print = Command::new("otf2-print");
        texts.push(run(print.arg("--show-all").arg(archive.anchor_path()), true));
    }
    let body = |text: &str| text.lines().filter(|line| !line.contains(".otf2")).map(str::to_owned).collect::<Vec<_>>();
    assert!(body(&texts[0]) == body(&texts[1]));
}

#[test]
fn the_python_bindings_accept_created_archives() {
    let directory = tempfile::tempdir().unwrap();
    // The bindings take the second group of an inter-communicator for the parent of a communicator, so there can be none.
    let mut definitions = definitions();
    definitions.communicators[3].members = CommMembers::Intra([0, 2].map(MpiRank).into());
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let archive = create_with(&directory.path().join(format!("{order:?}")), order, &definitions);
        let script = "import sys, otf2\n\
            with otf2.reader.open(sys.argv[1]) as trace:\n\
            \x20   d = trace.definitions\n\
            \x20   print(sum(1 for _ in trace.events), len(d.locations), len(d.comms), len(d.system_tree_nodes))\n\
            \x20   print(*sorted(str(g.group_type).split('.')[-1] for g in d.groups))\n";
        let said = run(Command::new(PYTHON).args(["-c", script]).arg(archive.anchor_path()), true);
        assert_eq!(
            said,
            "120000 3 5 3\nCOMM_GROUP COMM_GROUP COMM_GROUP COMM_GROUP COMM_LOCATIONS COMM_LOCATIONS COMM_SELF\n"
        );
    }
}

#[test]
fn records_of_any_type_pass_through() {
    let directory = tempfile::tempdir().unwrap();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let path = directory.path().join(format!("{order:?}"));
        let writer = ArchiveWriter::create(&path, "raw", options(order)).unwrap();
        let definitions = definitions();
        let mut counts = HashMap::new();
        for location in &definitions.locations {
            let mut events = writer.events(location.id).unwrap();
            for number in 0..30_000 {
                let mut fields = FieldWriter::new(order);
                match number % 5 {
                    // A buffer flush that ends after the events that follow.
                    0 => {
                        fields.full_u64(number + 500);
                        events.raw(number, 10, &fields.bytes).unwrap();
                    }
                    // Types of a later version, short and long.
                    1 => events.raw(number, 200, &[7; 3]).unwrap(),
                    2 => events.raw(number, 201, &[7; 300]).unwrap(),
                    3 => {
                        fields.u32(2);
                        for id in 0..2 {
                            fields.u32(id);
                            fields.u8(4);
                            fields.u64(number << 20);
                        }
                        events.raw_with_attributes(number, &fields.bytes, 12, &[1, 1]).unwrap();
                    }
                    _ => events.raw(number, 13, &[0]).unwrap(),
                }
            }
            assert!(
                events
                    .raw(29_998, 13, &[0])
                    .unwrap_err()
                    .message
                    .contains("29998 is earlier than the preceding one, 29999")
            );
            assert!(events.raw(30_000, 5, &[0; 8]).is_err(), "a timestamp is no event");
            assert!(events.raw(30_000, 12, &[1]).is_err(), "a cut integer");
            assert!(events.event(30_000, &Event::Other).is_err());
            counts.insert(location.id, events.finish().unwrap());
            writer.local_definitions(location.id, &[]).unwrap();
        }
        writer.finish(&definitions, &counts).unwrap();
        let archive = Otf2Archive::open(&path).unwrap();
        run(Command::new("otf2-print").arg(archive.anchor_path()), false);

        let same = rewrite(&archive, &directory.path().join(format!("{order:?} same")), None, |_, _, old| old);
        let moved =
            rewrite(&archive, &directory.path().join(format!("{order:?} moved")), None, |_, _, old| 2 * old + 7);
        for location in &definitions.locations {
            let bytes = |archive: &Otf2Archive| std::fs::read(archive.event_path(location.id)).unwrap();
            assert!(bytes(&same) == bytes(&archive));
            assert_eq!(bytes(&moved).len(), bytes(&archive).len());
            // The stop of the first flush lies behind the end of its record: 05 + time, 10, length.
            let stop: [u8; 8] = bytes(&moved)[18 + 9 + 2..][..8].try_into().unwrap();
            let stop = if order == ByteOrder::Big { u64::from_be_bytes(stop) } else { u64::from_le_bytes(stop) };
            assert_eq!(stop, 1007);
        }
        let text = run(Command::new("otf2-print").arg(moved.anchor_path()), false);
        assert!(text.contains("Stop Time: 1007") || text.contains("1007"), "otf2-print sees the mapped stop");
    }
}

#[test]
fn a_flush_without_a_stop_time_keeps_none() {
    let mut map = By(|_, old| old + 5);
    assert_eq!(map.recorded_stop(EventNumber(1), 100), 105);
    assert_eq!(map.recorded_stop(EventNumber(1), UNDEFINED_TIME), UNDEFINED_TIME);
    // Through a file of each format.
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let (definitions, _) = recorded()[0].read_definitions().unwrap();
    let location = definitions.locations[0].id;
    let writer = ArchiveWriter::create(&place("flushed"), "traces", options(ByteOrder::Little)).unwrap();
    let mut events = writer.events(location).unwrap();
    events.record(10, &EventRecord::BufferFlush { stop_time: Stamp(UNDEFINED_TIME) }).unwrap();
    events.record(20, &EventRecord::BufferFlush { stop_time: Stamp(30) }).unwrap();
    let count = events.finish().unwrap();
    writer.local_definitions(location, &[]).unwrap();
    writer.finish(&definitions, &HashMap::from([(location, count)])).unwrap();
    let archive = Otf2Archive::open(&place("flushed")).unwrap();
    std::fs::create_dir_all(place("moved").join("traces")).unwrap();
    archive.rewrite_events(location, &place("moved"), &mut map).unwrap();
    let moved = std::fs::read(place("moved").join("traces").join(format!("{}.evt", location.0))).unwrap();
    let has = |time: u64| moved.windows(8).any(|bytes| bytes == time.to_le_bytes());
    assert!(has(15) && has(25) && has(35) && has(UNDEFINED_TIME) && !has(UNDEFINED_TIME - 1));
}

#[test]
fn thousands_of_files_can_be_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let writer = ArchiveWriter::create(&directory.path().join("many"), "traces", options(ByteOrder::Little)).unwrap();
    // More than the usual limit of 1024 open files.
    let mut files: Vec<_> = (0..1500).map(|id| writer.events(LocationId(id)).unwrap()).collect();
    for number in 0..20 {
        for file in &mut files {
            file.event(number, &event(number)).unwrap();
        }
    }
    for file in files {
        assert_eq!(file.finish().unwrap(), 20);
    }
}

#[test]
fn times_that_would_decrease_are_refused() {
    let archive = &recorded()[0];
    let (definitions, _) = archive.read_definitions().unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join(archive.name())).unwrap();
    let mut map = By(|number: EventNumber, _| 1000 - number.0);
    let error = archive.rewrite_events(definitions.locations[0].id, directory.path(), &mut map).unwrap_err();
    assert!(error.message.contains("998 is earlier than the preceding one, 999"), "{error}");
    assert_eq!(error.event, Some(EventNumber(2)));
}

#[test]
fn what_is_no_archive_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let message = |path: &Path| Otf2Archive::open(path).unwrap_err().to_string();
    let hint = |path: &Path| Otf2Archive::open(path).unwrap_err().hint.unwrap_or_default();
    assert!(message(directory.path()).contains("no OTF2 anchor file"));
    assert_eq!(hint(directory.path()), "");
    // The parent of an archive; what a killed recording leaves; a profile.
    let parent = directory.path().join("parent");
    std::fs::create_dir_all(parent.join("run/traces")).unwrap();
    std::fs::write(parent.join("run/traces.otf2"), "text").unwrap();
    assert!(hint(&parent).ends_with("parent/run/traces.otf2 is one"), "{}", hint(&parent));
    std::fs::remove_file(parent.join("run/traces.otf2")).unwrap();
    std::fs::write(parent.join("run/traces/0.evt"), "").unwrap();
    assert!(hint(&parent.join("run")).contains("may not have come to its end"), "{}", hint(&parent.join("run")));
    std::fs::write(directory.path().join("profile.cubex"), "").unwrap();
    assert!(hint(directory.path()).contains("SCOREP_ENABLE_TRACING=true"));
    assert!(message(&directory.path().join("none")).contains("the trace does not exist"));
    std::fs::write(directory.path().join("a.otf2"), "text").unwrap();
    assert!(message(directory.path()).contains("not an OTF2 anchor"));
    std::fs::write(directory.path().join("b.otf2"), "text").unwrap();
    assert!(message(directory.path()).contains("a.otf2, b.otf2"));
    let small = CreateOptions { event_chunk: 1000, ..CreateOptions::default() };
    let error = ArchiveWriter::create(&directory.path().join("c"), "c", small).unwrap_err();
    assert!(error.message.contains("256 KiB"), "{error}");
}
