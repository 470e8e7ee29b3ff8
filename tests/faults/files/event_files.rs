//! Damaged event files.

use super::*;

pub(super) fn event_files() -> Vec<Case> {
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
