//! The event files that this program writes are those that libotf2 would write: byte for byte if no time changes, and readable by
//! libotf2 if times change. Whatever is in a file, reading it ends with a result.

mod common;

use clc_replay::archive::otf2::{Otf2Archive, TimeMap};
use clc_replay::presync::{ClockModel, Method};
use clc_replay::trace::{LocationId, Result, Ticks};
use common::damage::Copy;
use common::{anchor, copy_tree, fixtures, more_traces, name, run};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// New time of an event from its number and its time.
#[derive(Clone, Copy)]
struct Map(fn(u64, u64) -> u64);

impl TimeMap for Map {
    fn event(&mut self, number: u64, time: u64) -> Result<u64> {
        Ok((self.0)(number, time))
    }

    fn flush_stop(&mut self, number: u64, stop: u64) -> u64 {
        (self.0)(number, stop)
    }
}

fn all_traces() -> Vec<PathBuf> {
    fixtures().into_iter().chain(more_traces()).collect()
}

fn locations(archive: &Otf2Archive) -> Vec<LocationId> {
    archive.read_definitions().unwrap().0.locations.iter().map(|location| location.id).collect()
}

/// Writes all event files of `trace` again, in the place of what is in `target`.
fn rewrite(trace: &Path, target: &Path, map: Map) {
    let archive = Otf2Archive::open(trace).unwrap();
    for location in locations(&archive) {
        let old = archive.at(target).event_path(location);
        if old.exists() {
            std::fs::remove_file(old).unwrap();
        }
        archive.rewrite_events(location, target, &mut map.clone()).unwrap();
    }
}

#[test]
fn unchanged_times_give_unchanged_bytes() {
    for trace in all_traces() {
        let target = tempfile::tempdir().unwrap();
        let archive = Otf2Archive::open(&trace).unwrap();
        std::fs::create_dir(target.path().join(archive.name())).unwrap();
        rewrite(&trace, target.path(), Map(|_, time| time));
        for location in locations(&archive) {
            let before = std::fs::read(archive.event_path(location)).unwrap();
            let after = std::fs::read(archive.at(target.path()).event_path(location)).unwrap();
            assert!(before.len() > 20, "{}: location {location} is empty", name(&trace));
            assert!(before == after, "{}: location {location} differs", name(&trace));
        }
    }
}

/// What `otf2-print` prints of every event but its time, by location.
fn printed(trace: &Path) -> BTreeMap<String, Vec<String>> {
    let finished = run(Command::new("otf2-print").arg(anchor(trace))).expect(0, &name(trace));
    let mut events: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines = finished.stdout.lines().skip_while(|line| !line.starts_with("---")).skip(1);
    let mut present: Option<String> = None;
    for line in lines.by_ref().filter(|line| !line.trim().is_empty()) {
        match (line.starts_with(' '), &present) {
            // Attributes of the event above.
            (true, Some(location)) => {
                let last = events.get_mut(location).and_then(|events| events.last_mut());
                last.expect("an event").push_str(line);
            }
            _ => {
                let mut words = line.split_whitespace();
                let (Some(kind), Some(location), Some(time)) = (words.next(), words.next(), words.next()) else {
                    panic!("otf2-print says: {line}");
                };
                let time: std::result::Result<u64, _> = time.parse();
                assert!(time.is_ok(), "otf2-print says: {line}");
                let fields: Vec<&str> = if kind == "BUFFER_FLUSH" { Vec::new() } else { words.collect() };
                let event = format!("{kind} {}", fields.join(" "));
                events.entry(location.to_owned()).or_default().push(event);
                present = Some(location.to_owned());
            }
        }
    }
    events
}

/// All times of the file by location.
fn times(trace: &Path) -> BTreeMap<LocationId, Vec<u64>> {
    let archive = Otf2Archive::open(trace).unwrap();
    let mut times = BTreeMap::new();
    for location in locations(&archive) {
        let local = archive.local_definitions(location).unwrap();
        let all: &mut Vec<u64> = times.entry(location).or_default();
        let visit = |_, time, _| {
            all.push(time);
            Ok(())
        };
        archive.scan_with(location, &local, visit).unwrap();
    }
    times
}

#[test]
fn changed_times_give_the_same_events_to_libotf2() {
    let maps = [
        ("all later", Map(|_, time| time + 1000)),
        // Events that shared a timestamp get different times: every one needs its own then.
        ("all split", Map(|number, time| time + number)),
        // And the other way round.
        ("all rounded", Map(|_, time| time - time % 1000)),
    ];
    for trace in all_traces() {
        let expected = printed(&trace);
        assert!(!expected.is_empty(), "otf2-print shows no events of {}", name(&trace));
        let before = times(&trace);
        for (what, map) in maps {
            let what = format!("{}, {what}", name(&trace));
            let directory = tempfile::tempdir().unwrap();
            let target = directory.path().join("trace");
            copy_tree(&trace, &target);
            rewrite(&trace, &target, map);
            for (location, times) in times(&target) {
                let mapped = (1..).zip(&before[&location]).map(|(number, &time)| (map.0)(number, time));
                assert!(times.iter().copied().eq(mapped), "{what}: location {location}: other times");
            }
            let got = printed(&target);
            assert!(expected.keys().eq(got.keys()), "{what}: other locations");
            for (location, events) in &expected {
                assert!(*events == got[location], "{what}: location {location}: other events");
            }
        }
    }
}

/// One change to a file: at a place (as a fraction of its length), of a kind, with a byte.
type Mutation = (u16, u8, u8);

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    // Bytes that mean something: marks, record types, lengths, extremes.
    let byte = prop_oneof![any::<u8>(), 0u8..32, prop::sample::select(vec![0x7F, 0x80, 0xFE, 0xFF])];
    prop::collection::vec((any::<u16>(), 0u8..8, byte), 1..6)
}

fn mutate(bytes: &mut Vec<u8>, mutations: &[Mutation]) {
    for &(place, kind, byte) in mutations {
        let at = bytes.len() * usize::from(place) / (usize::from(u16::MAX) + 1);
        match kind {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => bytes.splice(at..at, [0xFF; 8]).for_each(drop),
            4 => {
                let end = (at + usize::from(byte)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part).for_each(drop);
            }
            _ if at < bytes.len() => bytes[at] = byte,
            _ => {}
        }
    }
}

/// An archive whose files are replaced again and again.
struct Target {
    copy: Copy,
    archive: Otf2Archive,
}

impl Target {
    fn of(fixture: &str) -> Target {
        let copy = Copy::of(fixture);
        let archive = Otf2Archive::open(&copy.trace).unwrap();
        Target { copy, archive }
    }
}

/// Runs `attempt` on the archive while `file` is mutated in many ways.
fn torment(file: &Path, cases: u32, attempt: impl Fn() -> std::result::Result<(), TestCaseError>) {
    let original = std::fs::read(file).unwrap();
    let mut config = ProptestConfig::with_cases(cases);
    config.failure_persistence = None;
    proptest!(config, |(mutations in mutations())| {
        let mut bytes = original.clone();
        mutate(&mut bytes, &mutations);
        std::fs::write(file, &bytes).unwrap();
        attempt()?;
    });
}

const CASES: u32 = 1500;

#[test]
fn any_event_file_is_read_or_refused_with_its_place() {
    for (fixture, location) in [("eztrace-collectives-4", 0), ("tracer-collectives-4", 2)] {
        let target = Target::of(fixture);
        let location = LocationId(location);
        let local = target.archive.local_definitions(location).unwrap();
        let rewritten = tempfile::tempdir().unwrap();
        std::fs::create_dir(rewritten.path().join(target.archive.name())).unwrap();
        let attempt = || {
            let mut last = 0;
            let visit = |_, time: u64, _| {
                assert!(time >= last);
                last = time;
                Ok(())
            };
            let scanned = target.archive.scan_with(location, &local, visit);
            let _ = std::fs::remove_file(target.archive.at(rewritten.path()).event_path(location));
            let copied = target.archive.rewrite_events(location, rewritten.path(), &mut Map(|_, time| time));
            match (scanned, copied) {
                (Ok(_), copied) => prop_assert!(copied.is_ok(), "{:?}", copied),
                (Err(error), copied) => {
                    prop_assert_eq!(error.location, Some(location), "{}", error);
                    prop_assert!(error.file.is_some(), "{}", error);
                    // Writing again does not decode the fields, so that it may succeed.
                    if let Err(error) = copied {
                        prop_assert!(error.file.is_some() && error.location == Some(location), "{}", error);
                    }
                }
            }
            Ok(())
        };
        torment(&target.archive.event_path(location), CASES, attempt);
    }
}

#[test]
fn any_local_definition_file_is_read_or_refused_with_its_place() {
    for (fixture, location) in [("eztrace-collectives-4", 0), ("tracer-halo-4", 2)] {
        let target = Target::of(fixture);
        let location = LocationId(location);
        let attempt = || {
            match target.archive.local_definitions(location) {
                Ok(local) => {
                    if let Ok(clock) = Method::Linear.clock(&local.clock_offsets) {
                        for time in [0, 1, 1 << 40, (1 << 62) - 1] {
                            ClockModel::map(&clock, Ticks(time));
                        }
                    }
                }
                Err(error) => prop_assert!(error.location == Some(location) && error.file.is_some(), "{}", error),
            }
            Ok(())
        };
        torment(&target.archive.local_definition_path(location), CASES, attempt);
    }
}

#[test]
fn any_definition_file_is_read_or_refused_with_its_name() {
    for fixture in ["eztrace-collectives-4", "tracer-halo-4"] {
        let target = Target::of(fixture);
        let attempt = || {
            if let Err(error) = target.archive.read_definitions() {
                prop_assert!(error.file.is_some(), "{}", error);
            }
            Ok(())
        };
        torment(&target.archive.definition_path(), CASES, attempt);
    }
}

#[test]
fn any_anchor_file_is_read_or_refused_with_its_name() {
    for fixture in ["eztrace-collectives-4", "tracer-halo-4"] {
        let target = Target::of(fixture);
        let attempt = || {
            if let Err(error) = Otf2Archive::open(&target.copy.trace) {
                prop_assert!(error.file.is_some(), "{}", error);
            }
            Ok(())
        };
        torment(&target.archive.anchor_path(), CASES, attempt);
    }
}
