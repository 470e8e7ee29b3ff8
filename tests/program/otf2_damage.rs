//! Whatever is in the files of an archive, reading them ends with a result: contents, or an error that names the file.

use crate::common::damage::Copy;
use crate::mutate::{mutate, mutations};
use clc_clock::Method;
use clc_otf2::{Otf2Archive, TimeMap};
use clc_trace::{ErrorKind, EventNumber, LocationId, Result, Ticks};
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
fn errors_have_a_kind_and_a_source() {
    let missing = Otf2Archive::open(Path::new("there is no such trace")).unwrap_err();
    assert_eq!(missing.kind, ErrorKind::Missing, "{missing}");
    assert_eq!(missing.source.as_ref().and_then(|source| source.code), Some(2), "{missing:?}");
    assert!(std::error::Error::source(&missing).is_some_and(|source| !source.to_string().is_empty()));

    let target = Target::of("eztrace-halo-4");
    let location = LocationId(0);
    let local = target.archive.local_definitions(location).unwrap();
    let read = || target.archive.scan_with(location, &local, |_, _, _| Ok(())).map(|_| ());
    read().unwrap();
    let file = target.archive.event_path(location);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let damaged = read().unwrap_err();
    assert_eq!((damaged.kind, damaged.source.is_none()), (ErrorKind::Damaged, true), "{damaged}");
    assert!(damaged.file.is_some_and(|named| file.ends_with(&named) || named.ends_with("0.evt")));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(read().unwrap_err().kind, ErrorKind::Missing);

    // Whichever byte of the anchor is another one: the archive is of another form, or wrong.
    let anchor = std::fs::read_dir(&target.copy.trace).unwrap().flatten().map(|entry| entry.path());
    let anchor = anchor.into_iter().find(|path| path.extension().is_some_and(|end| end == "otf2")).unwrap();
    let original = std::fs::read(&anchor).unwrap();
    let kinds = (0..original.len()).map(|at| {
        let mut bytes = original.clone();
        bytes[at] = 200;
        std::fs::write(&anchor, bytes).unwrap();
        Otf2Archive::open(&target.copy.trace).map_err(|error| error.kind)
    });
    let kinds: Vec<_> = kinds.filter_map(std::result::Result::err).collect();
    assert!(kinds.contains(&ErrorKind::Unsupported) && kinds.contains(&ErrorKind::Damaged), "{kinds:?}");
    assert!(kinds.iter().all(|kind| matches!(kind, ErrorKind::Unsupported | ErrorKind::Damaged)), "{kinds:?}");
}

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
