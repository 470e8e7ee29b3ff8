//! Whatever is in the files of an archive, reading them ends with a result: contents, or an error that names the file.

use crate::common::damage::Copy;
use crate::mutate::{mutate, mutations};
use clc_clock::Method;
use clc_otf2::{Otf2Archive, TimeMap};
use clc_trace::{EventNumber, LocationId, Result, Ticks};
use proptest::prelude::*;
use std::path::Path;

/// Leaves all times as they are.
struct Same;

impl TimeMap for Same {
    fn event(&mut self, _number: EventNumber, time: u64) -> Result<u64> {
        Ok(time)
    }

    fn flush_stop(&mut self, _number: EventNumber, stop: u64) -> u64 {
        stop
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
        mutate(&mut bytes, &original, &mutations);
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
            let copied = target.archive.rewrite_events(location, rewritten.path(), &mut Same);
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
                            clock.map(Ticks(time));
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
