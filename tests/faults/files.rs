//! Files that are missing, damaged, or from somewhere else.

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
    cases.extend(event_files());
    cases.extend(definitions());
    cases.extend(native());
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

fn event_files() -> Vec<Case> {
    let truncated = |name: &str, fault: &str, length: fn(&[u8]) -> usize| {
        refused(name, fault, move |s| {
            edit(&s.copy.events(3), |bytes| bytes.truncate(length(bytes)));
            place(s, 3);
            s.says(["truncated"]);
        })
    };
    vec![
        truncated("events_empty", "an empty event file", |_| 0),
        truncated("events_cut_in_header", "an event file cut in its chunk header", |_| 10),
        truncated("events_cut_after_header", "an event file cut behind its chunk header", |_| HEADER),
        truncated("events_cut_in_timestamp", "an event file cut within a timestamp", |bytes| {
            find(bytes, true, damage::TIMESTAMP, 200).payload.start + 3
        }),
        truncated("events_cut_in_record", "an event file cut within a record", |bytes| {
            damage::items(bytes, true)[500].whole.start + 1
        }),
        truncated("events_cut_between_records", "an event file cut between two records", |bytes| {
            damage::items(bytes, true)[500].whole.end
        }),
        truncated("events_cut_before_end", "an event file without its end mark", |bytes| {
            damage::items(bytes, true).last().unwrap().whole.start
        }),
        refused("events_cut_between_chunks", "an event file cut between two chunks", |s| {
            std::fs::remove_dir_all(&s.copy.trace).unwrap();
            let mut simulate = alone();
            simulate.arg("simulate").arg(&s.copy.trace);
            run(simulate.args(["--ranks", "2", "--events", "200k", "--pattern", "ring", "-q"])).expect(0, "a trace");
            edit(&s.copy.events(1), |bytes| {
                assert!(bytes.len() > CHUNK && bytes[CHUNK] == bytes[0], "{} bytes are one chunk", bytes.len());
                bytes.truncate(CHUNK);
            });
            place(s, 1);
            s.says(["truncated"]);
        }),
        refused("markers_cut", "a truncated marker file", |s| {
            let mut bytes = std::fs::read(s.copy.definitions()).unwrap();
            bytes.truncate(HEADER);
            // A marker of 20 bytes, and some of them: time and duration.
            bytes.extend([&[6, 20][..], &[0; 12]].concat());
            std::fs::write(s.copy.trace.join("traces.marker"), bytes).unwrap();
            s.says(["traces.marker: ", "truncated"]);
        }),
        refused("snapshots_cut", "a truncated snapshot file", |s| {
            edit(&s.copy.anchor(), |bytes| {
                // Numbers of snapshots and thumbnails end the file.
                let at = bytes.len() - 8;
                bytes[at] = 1;
            });
            let events = std::fs::read(s.copy.events(1)).unwrap();
            std::fs::write(s.copy.events(1).with_extension("snap"), &events[..HEADER + 12]).unwrap();
            s.says(["1.snap: location 1", "truncated"]);
        }),
        refused("events_magic", "an event file that begins with another byte", |s| {
            edit(&s.copy.events(1), |bytes| bytes[0] ^= 0x55);
            place(s, 1);
        }),
        refused("events_byte_order", "an unknown byte order of an event file", |s| {
            edit(&s.copy.events(1), |bytes| bytes[1] = 0x77);
            place(s, 1);
        }),
        corrected("events_unknown_record", "a record of a type that no version knows (it passes through)", |s| {
            edit(&s.copy.events(2), |bytes| {
                let enter = find(bytes, true, damage::ENTER, 20);
                bytes[enter.whole.start] = 250;
            });
        }),
        refused("events_unknown_record_too_long", "a record of an unknown type that ends behind the file", |s| {
            edit(&s.copy.events(2), |bytes| {
                let enter = find(bytes, true, damage::ENTER, 20);
                let record = [&[250, 0xFF][..], &(1u64 << 40).to_le_bytes()].concat();
                bytes.splice(enter.whole.start..enter.whole.start, record);
            });
            place(s, 2);
            s.says(["in the middle of a record"]);
        }),
        refused("events_record_too_long", "a record of 2^64-4 bytes", |s| {
            edit(&s.copy.events(2), |bytes| {
                let end = find(bytes, true, damage::COLLECTIVE_END, 0);
                let length = u64::MAX - 3;
                bytes.splice(
                    end.whole.start + 1..end.whole.start + 2,
                    std::iter::once(0xFF).chain(length.to_le_bytes()),
                );
            });
            place(s, 2);
            s.says(["event ", "in the middle of a record"]);
        }),
        refused("events_packed_too_wide", "a packed integer of nine bytes", |s| {
            edit(&s.copy.events(0), |bytes| {
                let enter = find(bytes, true, damage::ENTER, 20);
                bytes[enter.payload.start] = 9;
            });
            place(s, 0);
            s.says(["event ", "compressed integer has 9 bytes"]);
        }),
        refused("events_field_too_wide", "a rank of five bytes", |s| {
            change_send(s, 0, &[5, 1, 0, 0, 0, 0]);
            place(s, 0);
            s.says(["event ", "compressed integer"]);
        }),
        refused("events_two_timestamps", "two timestamps in a row", |s| {
            edit(&s.copy.events(1), |bytes| {
                let first = find(bytes, true, damage::TIMESTAMP, 3);
                bytes.splice(first.whole.start..first.whole.start, bytes[first.whole.clone()].to_vec());
            });
            place(s, 1);
            s.says(["event ", "two timestamps in a row"]);
        }),
        refused("events_flipped_bit", "a bit flipped in a timestamp", |s| {
            edit(&s.copy.events(1), |bytes| {
                let item = find(bytes, true, damage::TIMESTAMP, 100);
                bytes[item.payload.start + 7] ^= 0x40;
            });
            place(s, 1);
            s.says(["event ", "time"]);
        }),
        refused("events_communicator_unknown", "an event on a communicator that is not defined", |s| {
            let event = change_send(s, 1, &[1, 99]);
            s.says([format!("0.evt: location 0, event {event}: "), "communicator 99".into()]);
        }),
        refused("events_communicator_undefined", "an event on the undefined communicator", |s| {
            let event = change_send(s, 1, &[0xFF]);
            s.says([format!("0.evt: location 0, event {event}: communicator 4294967295 is not defined")]);
        }),
        refused("events_swapped", "the event files of two ranks have changed places", |s| {
            let [one, two] = [1, 2].map(|location| s.copy.events(location));
            let aside = s.directory().join("aside");
            for (from, to) in [(&one, &aside), (&two, &one), (&aside, &two)] {
                std::fs::rename(from, to).unwrap();
            }
            s.says(["1.evt: location 1, event ", "of which process 1 is not a member"]);
        }),
        refused("events_of_another_run", "one rank's event file comes from another run", |s| {
            let other = Copy::of(COLLECTIVES);
            std::fs::copy(other.events(1), s.copy.events(1)).unwrap();
            std::fs::copy(other.local(1), s.copy.local(1)).unwrap();
            s.says(["1.evt: location 1, event ", "of which process 1 is not a member"]);
        }),
        uncovered("events_of_a_similar_run", "one rank's event file comes from another run of the same program", |s| {
            // The same communicators and operations, and fewer messages.
            std::fs::remove_dir_all(&s.copy.trace).unwrap();
            let other = s.directory().join("other");
            for (path, events) in [(&s.copy.trace, "4k"), (&other, "3k")] {
                let mut simulate = alone();
                simulate.arg("simulate").arg(path).args([
                    "--ranks",
                    "4",
                    "--events",
                    events,
                    "--pattern",
                    "halo2d",
                    "-q",
                ]);
                run(&mut simulate).expect(0, "a trace");
            }
            for ending in ["evt", "def"] {
                std::fs::rename(
                    other.join(format!("traces/1.{ending}")),
                    s.copy.trace.join(format!("traces/1.{ending}")),
                )
                .unwrap();
            }
            std::fs::remove_dir_all(other).unwrap();
        }),
    ]
}

/// Replaces field `index` of the first send of location 0; returns its event number.
fn change_send(scene: &Scene, index: usize, new: &[u8]) -> u64 {
    let mut event = 0;
    edit(&scene.copy.events(0), |bytes| {
        let send = find(bytes, true, damage::SEND, 0);
        let field = packed(bytes, send.payload.start, index + 1)[index].clone();
        event = send.event;
        replace(bytes, &send, field, new);
    });
    event
}

/// The type of a group among the global definitions.
const GROUP: u8 = 18;
const SYSTEM_TREE_NODE: u8 = 12;
const CLOCK_PROPERTIES: u8 = 5;
const STRING: u8 = 10;
const REGION: u8 = 15;
const CALL_PATH: u8 = 17;
const COMM: u8 = 22;
const CALLING_CONTEXT: u8 = 31;

/// Replaces packed field `index` of the `nth` global definition of a type.
fn change_definition(scene: &Scene, kind: u8, nth: usize, index: usize, new: &[u8]) {
    edit(&scene.copy.definitions(), |bytes| {
        let record = find(bytes, false, kind, nth);
        let field = packed(bytes, record.payload.start, index + 1)[index].clone();
        replace(bytes, &record, field, new);
    });
}

/// Adds records to the global definitions.
fn add_definitions(scene: &Scene, records: &[u8]) {
    edit(&scene.copy.definitions(), |bytes| {
        let end = damage::items(bytes, false).last().unwrap().whole.start;
        bytes.splice(end..end, records.iter().copied());
    });
}

fn definitions() -> Vec<Case> {
    vec![
        refused("definitions_empty", "an empty global definition file", |s| {
            std::fs::write(s.copy.definitions(), "").unwrap();
            s.says(["traces.def: "]);
        }),
        refused("definitions_cut", "a truncated global definition file", |s| {
            edit(&s.copy.definitions(), |bytes| bytes.truncate(bytes.len() / 2));
            s.says(["traces.def: "]);
        }),
        refused("local_definitions_empty", "an empty local definition file", |s| {
            std::fs::write(s.copy.local(1), "").unwrap();
            s.says(["1.def: location 1"]);
        }),
        refused("local_definitions_cut", "a truncated local definition file", |s| {
            edit(&s.copy.local(1), |bytes| bytes.truncate(bytes.len() - 5));
            s.says(["1.def: location 1"]);
        }),
        refused("definitions_group_unknown", "a location in a group that is not defined", |s| {
            edit(&s.copy.definitions(), |bytes| {
                let location = find(bytes, false, damage::LOCATION, 1);
                // Id, name, type (one byte), number of events, group.
                let first = packed(bytes, location.payload.start, 2);
                let group = packed(bytes, first[1].end + 1, 2)[1].clone();
                replace(bytes, &location, group, &[1, 99]);
            });
            s.says(["traces.def: ", "location group 99 of location 1 is not defined"]);
        }),
        refused("definitions_count_huge", "a group of 2^32-2 members", |s| {
            edit(&s.copy.definitions(), |bytes| {
                let group = find(bytes, false, GROUP, 0);
                // Id, name, type (one byte), number of members.
                let first = packed(bytes, group.payload.start, 2);
                let count = packed(bytes, first[1].end + 1, 1)[0].clone();
                replace(bytes, &group, count, &[4, 0xFE, 0xFF, 0xFF, 0xFF]);
            });
            s.says(["traces.def: ", "definition record"]);
        }),
        refused("definitions_timer", "a timer of 0 ticks per second", |s| {
            change_definition(s, CLOCK_PROPERTIES, 0, 0, &[0]);
            s.says(["traces.def: ", "resolution is 0"]);
        }),
        refused("definitions_no_clock", "no clock properties", |s| {
            edit(&s.copy.definitions(), |bytes| {
                let clock = find(bytes, false, CLOCK_PROPERTIES, 0);
                bytes.drain(clock.whole);
            });
            s.says(["traces.def: ", "no clock properties"]);
        }),
        corrected("definitions_text_unknown", "a name that is not defined", |s| {
            change_definition(s, SYSTEM_TREE_NODE, 0, 1, &[2, 0x99, 0x99]);
        }),
        corrected("definitions_recursive", "a system tree whose root is its own parent", |s| {
            let id = {
                let bytes = std::fs::read(s.copy.definitions()).unwrap();
                let node = find(&bytes, false, SYSTEM_TREE_NODE, 0);
                bytes[packed(&bytes, node.payload.start, 1)[0].clone()].to_vec()
            };
            change_definition(s, SYSTEM_TREE_NODE, 0, 3, &id);
        }),
        corrected("definitions_cycle", "two levels of the system tree that are each other's parents", |s| {
            // Ids 0 and 1, of which the second one is below the first already.
            change_definition(s, SYSTEM_TREE_NODE, 0, 3, &[1, 1]);
        }),
        corrected("definitions_cycle_of_calls", "call paths and calling contexts that are each other's parents", |s| {
            // Id, parent, region; id, region, source, parent.
            let paths = [[CALL_PATH, 6, 1, 0, 1, 1, 1, 0], [CALL_PATH, 6, 1, 1, 1, 0, 1, 0]].concat();
            let contexts = |id: u8, parent: u8| [CALLING_CONTEXT, 8, 1, id, 1, 0, 0xFF, 1, parent, 0];
            add_definitions(s, &[paths, contexts(0, 1).to_vec(), contexts(1, 0).to_vec()].concat());
            s.says(["global definitions, but the file has"]);
        }),
        refused("definitions_group_missing", "events on communicators whose groups are not defined", |s| {
            for index in 0..5 {
                change_definition(s, COMM, index, 2, &[1, 99]);
            }
            s.says([".evt: location ", "event ", "the group of communicator ", "is not defined"]);
        }),
        corrected(
            "definitions_group_missing_unused",
            "a communicator without events whose group is not defined",
            |s| {
                // Id, name, group, parent, flags.
                add_definitions(s, &[COMM, 9, 1, 99, 1, 0, 1, 99, 0xFF, 1, 0]);
                s.says(["global definitions, but the file has"]);
            },
        ),
        refused("definitions_long_name", "a name of 100,000 bytes for each of 1,000 regions", |s| {
            let name = [&[1, 99][..], &[b'A'; 100_000], &[0]].concat();
            let mut records = [&[STRING, 0xFF][..], &(name.len() as u64).to_le_bytes(), &name].concat();
            for id in 1000..2000_u16 {
                let [low, high] = id.to_le_bytes();
                records.extend([REGION, 5, 2, low, high, 1, 99]);
            }
            add_definitions(s, &records);
            s.says(["traces.def: definitions of ", "use names of 100"]);
        }),
        corrected("definitions_twice", "all definitions but the texts twice", |s| {
            edit(&s.copy.definitions(), |bytes| {
                let again: Vec<u8> = damage::items(bytes, false)
                    .iter()
                    .filter(|item| item.kind > STRING)
                    .flat_map(|item| bytes[item.whole.clone()].to_vec())
                    .collect();
                let end = damage::items(bytes, false).last().unwrap().whole.start;
                bytes.splice(end..end, again);
            });
            s.says(["are defined twice", "global definitions, but the file has"]);
        }),
        corrected("definitions_million", "a million communicators", |s| {
            let archive = Otf2Archive::open(&s.copy.trace).unwrap();
            let (mut definitions, _) = archive.read_definitions().unwrap();
            let first = definitions.communicators.iter().map(|comm| comm.id.0).max().unwrap() + 1;
            definitions.communicators.extend((first..first + 1_000_000).map(|id| Communicator {
                id: CommId(id),
                name: String::new(),
                members: CommMembers::Intra([MpiRank(id % 4)].into()),
                global_ranks: false,
            }));
            let made = s.directory().join("made");
            let counts: HashMap<_, _> = definitions.locations.iter().map(|l| (l.id, l.claimed_events)).collect();
            let writer = ArchiveWriter::create(&made, "traces", CreateOptions::default()).unwrap();
            writer.finish(&definitions, &counts).unwrap();
            for name in ["traces.def", "traces.otf2"] {
                std::fs::rename(made.join(name), s.copy.trace.join(name)).unwrap();
            }
            std::fs::remove_dir_all(made).unwrap();
        })
        .on(&[1, 2]),
        refused("id_map_dense", "a table of local ids that leads to nothing", |s| {
            // Kind 6 (communicators), the number of entries, dense, the entries.
            id_map(s, &[&[6, 1, 12, 0][..], &[1, 99].repeat(12)].concat());
            s.says(["0.evt: location 0, event ", "communicator 99"]);
        }),
        refused("id_map_sparse", "a sparse table of local ids that leads to nothing", |s| {
            id_map(s, &[vec![6, 1, 12, 1], (0..12).flat_map(|local| [1, local, 1, 99]).collect()].concat());
            s.says(["0.evt: location 0, event ", "communicator 99"]);
        }),
        refused("id_map_short", "a table that promises 2^24-1 entries", |s| {
            id_map(s, &[6, 3, 0xFF, 0xFF, 0xFF, 0]);
            s.says(["0.def: location 0: "]);
        }),
        refused("id_map_endless", "a table that promises 2^64-1 entries", |s| {
            id_map(s, &[6, 0xFF, 0, 1, 0]);
            s.says(["0.def: location 0: "]);
        }),
        refused("offsets_at_one_time", "two clock offsets measured at the same time", |s| offsets(s, 0)),
        refused("offsets_backwards", "clock offsets in the wrong order", |s| offsets(s, 1)),
    ]
}

fn id_map(scene: &Scene, table: &[u8]) {
    let record = [&[5, table.len() as u8][..], table].concat();
    edit(&scene.copy.local(0), |bytes| drop(bytes.splice(HEADER..HEADER, record)));
}

fn offsets(scene: &mut Scene, earlier: u8) {
    edit(&scene.copy.local(3), |bytes| {
        let [first, second] = [0, 1].map(|index| find(bytes, false, damage::CLOCK_OFFSET, index));
        let mut time = bytes[first.payload.start..first.payload.start + 8].to_vec();
        time[0] = time[0].wrapping_sub(earlier);
        bytes[second.payload.start..second.payload.start + 8].copy_from_slice(&time);
    });
    scene.says(["3.def: location 3: clock offset 2"]);
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

fn native() -> Vec<Case> {
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
