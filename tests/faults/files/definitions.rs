//! Damaged definitions.

use super::*;

pub(super) fn definitions() -> Vec<Case> {
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
