//! Files that are missing, damaged, or from somewhere else.

mod definitions;
mod event_files;
mod native;

use crate::case::{COLLECTIVES, Case, HALO, Scene, corrected, refused, special, uncovered};
use crate::common::damage::{self, Copy, HEADER, edit, find, packed, replace};
use crate::common::{alone, copy_tree, fixture, run};
use clc_otf2::{ArchiveWriter, CreateOptions, Otf2Archive};
use clc_trace::{CommId, CommMembers, Communicator, MpiRank};
use std::collections::HashMap;
use std::path::Path;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = absent();
    cases.extend(anchors());
    cases.extend(event_files::event_files());
    cases.extend(definitions::definitions());
    cases.extend(native::native());
    cases
}

/// What an error in an event file of the fixture says of its place.
fn place(scene: &mut Scene, location: u64) {
    scene.says([format!("{location}.evt: location {location}")]);
}

fn absent() -> Vec<Case> {
    vec![
        refused("trace_missing", "the trace does not exist", |s| {
            std::fs::remove_dir_all(&s.copy.trace).unwrap();
            s.says(["trace: the trace does not exist"]);
        }),
        refused("directory_empty", "a directory without an archive", |s| {
            std::fs::remove_dir_all(&s.copy.trace).unwrap();
            std::fs::create_dir(&s.copy.trace).unwrap();
            s.says(["trace: no OTF2 anchor file"]);
        }),
        refused("anchor_missing", "no anchor file", |s| {
            std::fs::remove_file(s.copy.anchor()).unwrap();
            s.says(["trace: no OTF2 anchor file"]);
        }),
        refused("anchors_several", "two anchor files in one directory", |s| {
            std::fs::copy(s.copy.anchor(), s.copy.trace.join("other.otf2")).unwrap();
            s.says(["trace: the directory has several OTF2 anchor files", "other.otf2, traces.otf2"]);
        }),
        refused("definitions_missing", "no global definition file", |s| {
            std::fs::remove_file(s.copy.definitions()).unwrap();
            s.says(["traces.def: "]);
        }),
        refused("events_missing", "the event file of a rank is missing", |s| {
            std::fs::remove_file(s.copy.events(2)).unwrap();
            s.says(["2.evt: location 2: the event file is missing"]);
        }),
        refused("events_of_all_missing", "the directory of the event files is missing", |s| {
            std::fs::remove_dir_all(s.copy.trace.join("traces")).unwrap();
            s.says(["0.evt: location 0: the event file is missing"]);
        }),
        corrected("local_definitions_missing", "a local definition file is missing", |s| {
            std::fs::remove_file(s.copy.local(0)).unwrap();
            s.says(["no local definition file"]);
        }),
        refused("events_a_directory", "a directory in the place of an event file", |s| {
            std::fs::remove_file(s.copy.events(1)).unwrap();
            std::fs::create_dir(s.copy.events(1)).unwrap();
            s.says(["1.evt: location 1: not a regular file"]);
        }),
        special(
            "directories_beside",
            "directories with files, links and a pipe among what lies beside the archive",
            "corrected; files and directories are copied, the rest is counted in a warning",
            |s| {
                for directory in ["trace/profile/deep", "trace/traces/own", "trace/empty", "elsewhere"] {
                    std::fs::create_dir_all(s.directory().join(directory)).unwrap();
                }
                for file in ["trace/profile/deep/f", "trace/profile/g", "trace/traces/own/h", "elsewhere/secret"] {
                    std::fs::write(s.directory().join(file), file).unwrap();
                }
                for link in ["trace/a-link", "trace/profile/link"] {
                    std::os::unix::fs::symlink(s.directory().join("elsewhere"), s.directory().join(link)).unwrap();
                }
                run(std::process::Command::new("mkfifo").arg(s.copy.trace.join("profile/pipe"))).expect(0, "mkfifo");
            },
            |s, ranks| {
                let finished = run(&mut s.correction(ranks)).expect(0, "more beside the archive");
                let said = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(
                    said.contains("3 in the directory of the trace that are neither files nor directories"),
                    "{said}"
                );
                assert!(said.contains("were not copied; the first is a-link"), "{said}");
                let out = s.copy.output();
                for file in ["profile/deep/f", "profile/g", "traces/own/h"] {
                    assert_eq!(std::fs::read_to_string(out.join(file)).unwrap(), format!("trace/{file}"));
                }
                assert!(out.join("empty").is_dir());
                for left_out in ["a-link", "profile/link", "profile/pipe"] {
                    assert!(out.join(left_out).symlink_metadata().is_err(), "{left_out}");
                }
            },
        ),
        refused("events_a_pipe", "a pipe into which nobody writes in the place of an event file", |s| {
            pipe(&s.copy.events(1));
            s.says(["1.evt: location 1: not a regular file"]);
        }),
        refused("anchor_a_pipe", "a pipe in the place of the anchor file", |s| {
            pipe(&s.copy.anchor());
            s.says(["trace: no OTF2 anchor file"]);
        }),
        refused("local_definitions_a_pipe", "a pipe in the place of a local definition file", |s| {
            pipe(&s.copy.local(3));
            s.says(["3.def: location 3: not a regular file"]);
        }),
    ]
}

fn pipe(path: &Path) {
    std::fs::remove_file(path).unwrap();
    run(std::process::Command::new("mkfifo").arg(path)).expect(0, "mkfifo");
}

/// An anchor with some change.
fn anchor(name: &str, fault: &str, says: &'static str, change: fn(&mut Vec<u8>)) -> Case {
    refused(name, fault, move |s| {
        edit(&s.copy.anchor(), change);
        s.says(["traces.otf2: ", says]);
    })
}

fn anchors() -> Vec<Case> {
    vec![
        anchor("anchor_empty", "an empty anchor file", "not an OTF2 anchor file", Vec::clear),
        anchor("anchor_text", "text in the anchor file", "not an OTF2 anchor file", |b| *b = b"hello\n".to_vec()),
        anchor("anchor_byte_order", "an unknown byte order", "not an OTF2 anchor file", |b| b[1] = 7),
        anchor("anchor_order_swapped", "the other byte order than the fields have", "chunk size", |b| {
            b[1] = if b[1] == 0x42 { 0x23 } else { 0x42 };
        }),
        anchor("anchor_layout", "layout version 0", "unknown anchor file version 0", |b| b[7] = 0),
        anchor("anchor_trace_format", "trace format 3", "unknown trace format version 3", |b| b[8] = 3),
        anchor("anchor_truncated", "a truncated anchor file", "truncated", |b| b.truncate(50)),
        anchor("anchor_sion", "a SIONlib container", "SIONlib", |b| b[28] = 2),
        anchor("anchor_substrate", "an unknown substrate", "unknown file substrate 9", |b| b[28] = 9),
        anchor("anchor_compressed", "compressed files", "zlib", |b| b[29] = 2),
        anchor("anchor_chunk_zero", "a chunk size of 0", "chunk size 0", |b| b[12..20].fill(0)),
        anchor("anchor_chunk_huge", "a chunk size of 2^40", "chunk size 1099511627776", |b| {
            b[20..28].copy_from_slice(&(1u64 << 40).to_le_bytes());
        }),
        anchor("anchor_properties", "2^32-1 properties announced", "truncated", |b| {
            // Behind locations, definitions and three texts.
            let mut at = 30 + 16;
            for _ in 0..3 {
                at += b[at..].iter().position(|&byte| byte == 0).unwrap() + 1;
            }
            b[at..at + 4].fill(0xFF);
        }),
        corrected("anchor_counts", "2^64-1 locations and definitions announced", |s| {
            edit(&s.copy.anchor(), |b| b[30..46].fill(0xFF));
            s.says(["the anchor file announces 18446744073709551615 global definitions"]);
        }),
    ]
}

/// Bytes of a chunk of events of a simulated trace.
const CHUNK: usize = 1 << 20;

/// The type of a group among the global definitions.
const GROUP: u8 = 18;
const SYSTEM_TREE_NODE: u8 = 12;
const CLOCK_PROPERTIES: u8 = 5;
const STRING: u8 = 10;
const REGION: u8 = 15;
const CALL_PATH: u8 = 17;
const COMM: u8 = 22;
const CALLING_CONTEXT: u8 = 31;
