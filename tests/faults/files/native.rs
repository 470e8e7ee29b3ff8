//! Damaged native traces.

use super::*;

pub(super) fn native() -> Vec<Case> {
    const EVENTS: &str = "events/2.clce";
    const DEFINITIONS: &str = "definitions.clcd";
    const PLACE: &[&str] = &["2.clce: location 2"];
    vec![
        native_case("native_magic", "native: another magic word", DEFINITIONS, &[DEFINITIONS], |b| b[0] ^= 1),
        native_case("native_version", "native: a version of tomorrow", DEFINITIONS, &[DEFINITIONS, "version"], |b| {
            b[8] = 9
        }),
        native_case("native_length", "native: definitions of 2^64-1 bytes", DEFINITIONS, &[DEFINITIONS], |b| {
            b[12..20].fill(0xFF);
        }),
        native_case(
            "native_definitions_bit",
            "native: a flipped bit in the definitions",
            DEFINITIONS,
            &[DEFINITIONS],
            |b| {
                let middle = b.len() / 2;
                b[middle] ^= 4;
            },
        ),
        native_case("native_definitions_cut", "native: truncated definitions", DEFINITIONS, &[DEFINITIONS], |b| {
            b.truncate(b.len() - 9);
        }),
        native_case("native_definitions_empty", "native: empty definitions", DEFINITIONS, &[DEFINITIONS], Vec::clear),
        native_case("native_events_empty", "native: an empty event file", EVENTS, PLACE, Vec::clear),
        native_case("native_events_bit", "native: a flipped bit in a block of events", EVENTS, PLACE, |b| b[300] ^= 16),
        native_case(
            "native_events_header",
            "native: a flipped bit in the header of an event file",
            EVENTS,
            PLACE,
            |b| {
                b[20] ^= 1;
            },
        ),
        native_case("native_events_cut", "native: an event file cut in a block", EVENTS, PLACE, |b| b.truncate(200)),
        refused("native_events_missing", "native: an event file is missing", |s| {
            to_native(s);
            std::fs::remove_file(s.copy.trace.join(EVENTS)).unwrap();
            s.says(PLACE.iter().copied());
        }),
    ]
}

/// A native trace, damaged by `change`.
fn native_case(
    name: &str,
    fault: &str,
    file: &'static str,
    says: &'static [&'static str],
    change: fn(&mut Vec<u8>),
) -> Case {
    refused(name, fault, move |s| {
        to_native(s);
        edit(&s.copy.trace.join(file), change);
        s.says(says.iter().copied());
    })
}

/// Replaces the trace by a native one of the same name.
fn to_native(scene: &Scene) {
    let made = scene.directory().join("made.clct");
    run(alone().arg("convert").arg(fixture(HALO)).arg(&made).arg("-q")).expect(0, "a conversion");
    std::fs::remove_dir_all(&scene.copy.trace).unwrap();
    copy_tree(&made, &scene.copy.trace);
    std::fs::remove_dir_all(made).unwrap();
}
