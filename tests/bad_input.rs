//! Whatever is wrong with a trace or with the options: exit status 2, one line that says what and where, and nothing on disk has
//! changed.

mod common;

use common::damage::{self, Copy, HEADER, edit, find, packed, replace};
use common::{Finished, alone, run, tree, with_ranks};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const HALO: &str = "tracer-halo-4";

/// Asks for a correction that has to fail, and checks how it fails. Each of `says` has to be in the message.
#[track_caller]
fn refused(copy: &Copy, says: &[&str]) {
    refused_by(alone(), copy, [copy.trace.as_os_str(), OsStr::new("-o"), copy.output().as_os_str()], says);
}

/// The same with one process and with three.
#[track_caller]
fn refused_in_parallel(copy: &Copy, says: &[&str]) {
    refused(copy, says);
    refused_by(with_ranks(3), copy, [copy.trace.as_os_str(), OsStr::new("-o"), copy.output().as_os_str()], says);
}

#[track_caller]
fn refused_by<S: AsRef<OsStr>>(
    mut command: Command,
    copy: &Copy,
    arguments: impl IntoIterator<Item = S>,
    says: &[&str],
) {
    let launched = command.get_program() != OsStr::new(env!("CARGO_BIN_EXE_clc-replay"));
    let before = tree(copy.directory.path());
    let finished = run(command.args(arguments).current_dir(copy.directory.path()));
    // Neither an output, nor a `.out.part-*`, nor another byte in the trace.
    assert!(before == tree(copy.directory.path()), "something on disk has changed: {finished:?}");
    refusal(finished, launched, says);
}

/// Checks status and message. A launcher adds its own lines on a failure, the program alone must not.
#[track_caller]
fn refusal(finished: Finished, launched: bool, says: &[&str]) {
    let Finished { stderr, .. } = finished.expect(2, "not refused");
    let errors: Vec<&str> = stderr.lines().filter(|line| !launched || line.starts_with("clc-replay: error:")).collect();
    assert_eq!(errors.len(), 1, "not one line: {stderr}");
    assert!(errors[0].starts_with("clc-replay: error: "), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for text in says {
        assert!(errors[0].contains(text), "'{text}' is missing in: {}", errors[0]);
    }
}

#[test]
fn traces_that_are_not_there() {
    let copy = Copy::of(HALO);
    let missing = copy.directory.path().join("nothing");
    for command in [alone(), with_ranks(3)] {
        refused_by(command, &copy, [missing.as_os_str()], &["nothing", "there is no such trace"]);
    }
    for job in ["check", "info"] {
        refused_by(alone(), &copy, [OsStr::new(job), missing.as_os_str()], &["nothing", "there is no such trace"]);
    }
    std::fs::remove_file(copy.anchor()).unwrap();
    refused(&copy, &["trace: no OTF2 anchor file"]);
}

#[test]
fn several_anchors() {
    let copy = Copy::of(HALO);
    std::fs::copy(copy.anchor(), copy.trace.join("other.otf2")).unwrap();
    refused(&copy, &["trace: several OTF2 anchor files", "other.otf2, traces.otf2"]);
}

/// A change to a file, and what the message has to say.
type Damage = (fn(&mut Vec<u8>), &'static str);

#[test]
fn anchors_that_cannot_be_read() {
    let damages: [Damage; 12] = [
        (|bytes| *bytes = b"hello\n".to_vec(), "not an OTF2 anchor file"),
        (Vec::clear, "not an OTF2 anchor file"),
        (|bytes| bytes[1] = 7, "not an OTF2 anchor file"),
        (|bytes| bytes[7] = 0, "unknown version 0 of the anchor"),
        (|bytes| bytes.truncate(40), "truncated"),
        (|bytes| bytes.truncate(50), "truncated"),
        (|bytes| bytes[8] = 3, "version 3 of the trace format"),
        (|bytes| bytes[28] = 2, "SIONlib"),
        (|bytes| bytes[28] = 9, "unknown file substrate 9"),
        (|bytes| bytes[29] = 2, "zlib"),
        (|bytes| bytes[12..20].fill(0), "chunk size 0"),
        (|bytes| bytes[20..28].fill(0xFF), "chunk size"),
    ];
    for (change, says) in damages {
        let copy = Copy::of(HALO);
        edit(&copy.anchor(), change);
        refused(&copy, &["traces.otf2: ", says]);
    }
    let copy = Copy::of(HALO);
    edit(&copy.anchor(), |bytes| bytes[8] = 3);
    refused_in_parallel(&copy, &["traces.otf2: ", "version 3"]);
}

#[test]
fn truncated_anchors_never_surprise() {
    let copy = Copy::of(HALO);
    let whole = std::fs::read(copy.anchor()).unwrap();
    // The last three bytes are marks only.
    for length in (0..whole.len() - 3).step_by(7) {
        std::fs::write(copy.anchor(), &whole[..length]).unwrap();
        refused(&copy, &["traces.otf2: "]);
    }
}

#[test]
fn missing_files() {
    let copy = Copy::of(HALO);
    std::fs::remove_file(copy.events(2)).unwrap();
    refused_in_parallel(&copy, &["2.evt: location 2: the event file is missing"]);

    let copy = Copy::of(HALO);
    std::fs::remove_file(copy.definitions()).unwrap();
    refused_in_parallel(&copy, &["traces.def: "]);
}

#[test]
fn truncated_event_files() {
    let copy = Copy::of(HALO);
    let whole = std::fs::read(copy.events(3)).unwrap();
    let marks = damage::items(&whole, true).last().unwrap().whole.start;
    let record = damage::items(&whole, true)[500].clone();
    let inside_a_record = record.whole.start + 1;
    for length in [0, 1, 2, 10, HEADER, HEADER + 4, marks / 3, inside_a_record, record.whole.end, marks] {
        std::fs::write(copy.events(3), &whole[..length]).unwrap();
        refused(&copy, &["3.evt: location 3", "truncated"]);
    }
    refused_in_parallel(&copy, &["3.evt: location 3", "truncated"]);
}

#[test]
fn truncated_definitions() {
    for local in [false, true] {
        let copy = Copy::of(HALO);
        let path = if local { copy.local(1) } else { copy.definitions() };
        let whole = std::fs::read(&path).unwrap();
        let marks = damage::items(&whole, false).last().unwrap().whole.start;
        for length in [0, 5, HEADER, marks / 2, marks] {
            std::fs::write(&path, &whole[..length]).unwrap();
            refused(&copy, &[if local { "1.def: location 1" } else { "traces.def: " }]);
        }
        refused_in_parallel(&copy, &[".def: "]);
    }
}

#[test]
fn timestamps_that_make_no_sense() {
    let copy = Copy::of(HALO);
    edit(&copy.events(1), |bytes| {
        let first = find(bytes, true, damage::TIMESTAMP, 3);
        bytes.splice(first.whole.start..first.whole.start, bytes[first.whole.clone()].to_vec());
    });
    refused(&copy, &["1.evt: location 1, event ", "two timestamps in a row"]);

    let copy = Copy::of(HALO);
    let mut event = 0;
    edit(&copy.events(1), |bytes| {
        let item = find(bytes, true, damage::TIMESTAMP, 100);
        event = item.event + 1;
        bytes[item.payload].copy_from_slice(&1u64.to_le_bytes());
    });
    refused_in_parallel(&copy, &[&format!("1.evt: location 1, event {event}: time runs backwards")]);
}

#[test]
fn times_beyond_all_clocks() {
    for time in [u64::MAX, u64::MAX - 5, 1 << 63, (1 << 63) - 1, 1 << 62] {
        for presync in ["linear", "none"] {
            let copy = Copy::of(HALO);
            edit(&copy.events(1), |bytes| {
                let last = damage::items(bytes, true).into_iter().rfind(|item| item.kind == damage::TIMESTAMP).unwrap();
                bytes[last.payload].copy_from_slice(&time.to_le_bytes());
            });
            let arguments = ["trace", "-o", "out", "--presync", presync];
            refused_by(alone(), &copy, arguments, &["1.evt: location 1, event ", "time"]);
        }
    }
}

#[test]
fn damaged_records() {
    // A packed integer in a record without length.
    let copy = Copy::of(HALO);
    edit(&copy.events(0), |bytes| {
        let enter = find(bytes, true, damage::ENTER, 20);
        bytes[enter.payload.start] = 9;
    });
    refused(&copy, &["0.evt: location 0, event ", "packed integer of 9 bytes"]);

    // One within a record: a rank of five bytes.
    let copy = Copy::of(HALO);
    edit(&copy.events(0), |bytes| {
        let send = find(bytes, true, damage::SEND, 2);
        let receiver = packed(bytes, send.payload.start, 1)[0].clone();
        replace(bytes, &send, receiver, &[5, 1, 0, 0, 0, 0]);
    });
    refused_in_parallel(&copy, &["0.evt: location 0, event ", "packed integer"]);

    // A record that is longer than the file.
    for (index, end) in [(usize::MAX, "event "), (3, "event ")] {
        let copy = Copy::of(HALO);
        edit(&copy.events(2), |bytes| {
            let ends: Vec<_> =
                damage::items(bytes, true).into_iter().filter(|item| item.kind == damage::COLLECTIVE_END).collect();
            let record = &ends[index.min(ends.len() - 1)];
            let start = record.whole.start;
            let length = u64::MAX - 3;
            bytes.splice(start + 1..start + 2, std::iter::once(0xFF).chain(length.to_le_bytes()));
        });
        refused(&copy, &["2.evt: location 2, ", end, "in the middle of a record"]);
    }
}

/// Replaces field `index` of the first send of location 0; returns its event number.
fn change_send(copy: &Copy, index: usize, new: &[u8]) -> u64 {
    let mut event = 0;
    edit(&copy.events(0), |bytes| {
        let send = find(bytes, true, damage::SEND, 0);
        let field = packed(bytes, send.payload.start, index + 1)[index].clone();
        event = send.event;
        replace(bytes, &send, field, new);
    });
    event
}

#[test]
fn events_that_refer_to_nothing() {
    let copy = Copy::of(HALO);
    let event = change_send(&copy, 1, &[1, 99]);
    refused_in_parallel(&copy, &[&format!("0.evt: location 0, event {event}: "), "communicator 99"]);

    // The value that OTF2 has for an undefined communicator.
    let copy = Copy::of(HALO);
    let event = change_send(&copy, 1, &[0xFF]);
    refused(&copy, &[&format!("0.evt: location 0, event {event}: "), "communicator 4294967295 is not defined"]);
}

/// Local ids mean what the location's own tables say.
#[test]
fn id_maps_that_lead_to_nothing() {
    // Kind 6 (communicators), the number of entries, dense or sparse, the entries.
    let dense: Vec<u8> = [&[6, 1, 12, 0][..], &[1, 99].repeat(12)].concat();
    let sparse: Vec<u8> = [vec![6, 1, 12, 1], (0..12).flat_map(|local| [1, local, 1, 99]).collect()].concat();
    for table in [dense, sparse] {
        let copy = Copy::of(HALO);
        let record = [&[5, table.len() as u8][..], &table].concat();
        edit(&copy.local(0), |bytes| drop(bytes.splice(HEADER..HEADER, record)));
        refused_in_parallel(&copy, &["0.evt: location 0, event ", "communicator 99"]);
    }
    // A table that promises more entries than it has.
    let copy = Copy::of(HALO);
    edit(&copy.local(0), |bytes| drop(bytes.splice(HEADER..HEADER, [5, 6, 6, 3, 0xFF, 0xFF, 0xFF, 0])));
    refused_in_parallel(&copy, &["0.def: location 0: "]);
}

/// A message without receiver used to shift all later ones with the same tag.
#[test]
fn a_message_to_nobody_disturbs_no_other() {
    let correct = |command: &mut Command, copy: &Copy| -> serde_json::Value {
        let report = copy.directory.path().join("report.json");
        run(command.arg(&copy.trace).arg("-o").arg(copy.output()).arg("--report").arg(&report)).expect(0, "corrected");
        serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap()
    };
    let whole = correct(&mut alone(), &Copy::of(HALO));
    // The value that OTF2 has for an undefined rank; a rank that no process has.
    for peer in [&[0xFF][..], &[1, 77]] {
        for mut command in [alone(), with_ranks(3)] {
            let copy = Copy::of(HALO);
            let event = change_send(&copy, 0, peer);
            let report = correct(&mut command, &copy);
            let matching = &report["matching"];
            assert_eq!(matching["messages"], whole["matching"]["messages"].as_u64().unwrap() - 1, "{matching}");
            assert_eq!(matching["undefined_peers"], 1);
            assert_eq!(matching["unmatched_sends"], 0);
            assert_eq!(matching["unmatched_receives"], 1);
            let warnings = report["warnings"].to_string();
            let named = format!("leave their partners unmatched: send at location 0, event {event}\"");
            assert!(warnings.contains(&named), "{warnings}");
            assert_eq!(report["verdict"], "corrected");
        }
    }
}

#[test]
fn locations_without_group() {
    let copy = Copy::of(HALO);
    edit(&copy.definitions(), |bytes| {
        let location = find(bytes, false, damage::LOCATION, 1);
        let group = {
            // self, name, type (one byte), number of events, group
            let first = packed(bytes, location.payload.start, 2);
            packed(bytes, first[1].end + 1, 2)[1].clone()
        };
        replace(bytes, &location, group, &[1, 99]);
    });
    refused_in_parallel(&copy, &["traces.def: ", "location 1", "99"]);
}

#[test]
fn clock_offsets_that_do_not_increase() {
    for later in [false, true] {
        let copy = Copy::of(HALO);
        edit(&copy.local(3), |bytes| {
            let [first, second] = [0, 1].map(|index| find(bytes, false, damage::CLOCK_OFFSET, index));
            let mut time = bytes[first.payload.start..first.payload.start + 8].to_vec();
            time[0] = time[0].wrapping_sub(u8::from(later));
            bytes[second.payload.start..second.payload.start + 8].copy_from_slice(&time);
        });
        refused_in_parallel(&copy, &["3.def: location 3: clock offset 2"]);
    }
}

#[test]
fn outputs_that_would_harm_the_trace() {
    let copy = Copy::of(HALO);
    let trace = copy.trace.as_os_str();
    let top = copy.directory.path().as_os_str();
    for force in [None, Some("--force")] {
        let with = |output: &str| {
            let mut arguments = vec![trace.to_owned(), "-o".into(), output.into()];
            arguments.extend(force.map(Into::into));
            arguments
        };
        refused_by(alone(), &copy, with("trace"), &["trace: the output is the trace itself"]);
        refused_by(alone(), &copy, with("./trace/"), &["the output is the trace itself"]);
        refused_by(alone(), &copy, with("trace/inside"), &["trace/inside: the output lies inside the trace"]);
        refused_by(alone(), &copy, with("trace/traces"), &["trace/traces: the output lies inside the trace"]);
        refused_by(alone(), &copy, with(top.to_str().unwrap()), &["the output contains the trace"]);
        refused_by(with_ranks(3), &copy, with("trace"), &["trace: the output is the trace itself"]);
    }
    // Through a symbolic link, too.
    std::os::unix::fs::symlink(&copy.trace, copy.directory.path().join("link")).unwrap();
    refused_by(alone(), &copy, ["trace", "-o", "link", "--force"], &["link: the output is the trace itself"]);
    refused_by(alone(), &copy, ["trace", "-o", "link/x", "--force"], &["link/x: the output lies inside the trace"]);
}

#[test]
fn outputs_that_exist() {
    let copy = Copy::of(HALO);
    std::fs::create_dir(copy.output()).unwrap();
    std::fs::write(copy.output().join("thesis.tex"), "years of work").unwrap();
    refused_in_parallel(&copy, &["out: the output exists already", "--force"]);
    let forced = ["trace", "-o", "out", "--force"];
    refused_by(alone(), &copy, forced, &["out: ", "is no trace"]);
    refused_by(with_ranks(3), &copy, forced, &["out: ", "is no trace"]);

    let copy = Copy::of(HALO);
    std::fs::write(copy.output(), "a file").unwrap();
    refused_by(alone(), &copy, forced, &["out: ", "no directory"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let copy = Copy::of(HALO);
    refused_by(alone(), &copy, ["trace", "-o", "not/there/out"], &["not/there: ", "cannot write the output there"]);
    refused_by(with_ranks(3), &copy, ["trace", "-o", "not/there/out"], &["cannot write the output there"]);
    // Not even root can make a directory below a file.
    std::fs::write(copy.directory.path().join("file"), "").unwrap();
    refused_by(alone(), &copy, ["trace", "-o", "file/out"], &["file", "cannot write the output there"]);
    refused_by(alone(), &copy, ["trace", "-o", "trace/traces.otf2/out"], &["lies inside the trace"]);
    refused_by(alone(), &copy, ["trace", "-o", ".", "--force"], &["not a name for an output directory"]);
    let report = ["check", "trace", "--report", "not/there.json"];
    refused_by(alone(), &copy, report, &["not/there.json", "cannot write the report"]);
}

#[test]
fn damage_found_late_leaves_no_output() {
    // With --force, what was there before stays until the new one is complete.
    let copy = Copy::of(HALO);
    run(alone().arg(&copy.trace).arg("-o").arg(copy.output())).expect(0, "a correction");
    edit(&copy.events(3), |bytes| {
        let marks = damage::items(bytes, true).last().unwrap().whole.start;
        bytes.truncate(marks);
    });
    for command in [alone(), with_ranks(3)] {
        refused_by(command, &copy, ["trace", "-o", "out", "--force"], &["3.evt: location 3", "truncated"]);
    }
}

#[test]
fn options_that_make_no_sense() {
    let copy = Copy::of(HALO);
    let cases: [(&[&str], &str); 20] = [
        (&["trace", "--latency", "5"], "--latency"),
        (&["trace", "--latency", "-1us"], "--latency"),
        (&["trace", "--latency", "1fortnight"], "--latency"),
        (&["trace", "--latency", "same-node=1us,same-node=2us"], "--latency"),
        (&["trace", "--latency", "1000000000000000000000s"], "latency"),
        (&["trace", "--gamma", "2"], "--gamma"),
        (&["trace", "--gamma", "0.1"], "--gamma"),
        (&["trace", "--gamma", "nan"], "--gamma"),
        (&["trace", "--slope", "0"], "--slope"),
        (&["trace", "--slope", "2"], "--slope"),
        (&["trace", "--max-passes", "0"], "--max-passes"),
        (&["trace", "--max-error", "0.5"], "--max-error"),
        (&["trace", "--presync", "cubic"], "--presync"),
        (&["trace", "--log", "loud,=,"], "--log"),
        (&["trace", "--unknown"], "--unknown"),
        (&["check", "trace", "--gamma", "0.9"], "--gamma"),
        (&["info", "trace", "--latency", "1us"], "--latency"),
        (&["trace", "other"], "other"),
        (&["trace", "--dry-run", "--force"], "--force"),
        (&[], "TRACE"),
    ];
    for (arguments, says) in cases {
        refused_by(alone(), &copy, arguments, &[says]);
    }
    for arguments in [&["trace", "--gamma", "2"][..], &["check", "trace", "--gamma", "0.9"]] {
        refused_by(with_ranks(3), &copy, arguments, &["--gamma"]);
    }
    let mut command = alone();
    command.env("CLC_REPLAY_MPI", "perhaps");
    refused_by(command, &copy, ["trace"], &["CLC_REPLAY_MPI is 'perhaps'"]);
}

#[test]
fn check_and_info_refuse_damage_too() {
    let copy = Copy::of(HALO);
    edit(&copy.events(1), |bytes| bytes.truncate(bytes.len() / 2));
    for job in ["check", "info"] {
        for command in [alone(), with_ranks(3)] {
            refused_by(command, &copy, [job, "trace"], &["1.evt: location 1, event ", "truncated"]);
        }
    }
}

#[test]
fn a_missing_local_definition_file_is_only_odd() {
    let copy = Copy::of(HALO);
    std::fs::remove_file(copy.local(0)).unwrap();
    let report = copy.directory.path().join("report.json");
    let finished = run(alone().arg(&copy.trace).arg("-o").arg(copy.output()).arg("--report").arg(&report));
    finished.expect(0, "a trace without a local definition file");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("without a local definition file"), "{warnings}");
    assert!(!Path::new(&copy.output().join("traces/0.def")).exists());
}
