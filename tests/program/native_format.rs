//! The native format: the same trace as in OTF2, as far as it goes, and the same correction.

use crate::common::{
    Finished, alone, anchor, assert_same_tree, clean, copy_tree, fixture, fixtures, more_traces, run, tree,
};
use crate::common::{name, with_ranks};
use clc_archive::native::NativeTrace;
use clc_archive::truth::{self, TruthReader};
use clc_archive::{Archive, ScanSummary};
use clc_otf2::Otf2Archive;
use clc_trace::{ClockOffset, Collective, CommMembers, Definitions, Event, LocationId, Message, MpiRank, Root};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[track_caller]
fn clc(arguments: &str, directory: &Path, status: i32) -> Finished {
    run(alone().args(arguments.split_whitespace()).current_dir(directory)).expect(status, arguments)
}

#[track_caller]
fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a report")).expect("JSON")
}

/// Converts with the program; returns where it went.
#[track_caller]
fn convert(trace: &Path, directory: &Path, target: &str) -> PathBuf {
    run(alone().arg("convert").arg(trace).args([target, "-q"]).current_dir(directory)).expect(0, &name(trace));
    directory.join(target)
}

/// All events of a location, and its clock offsets.
fn contents(archive: &Archive, id: LocationId) -> (Vec<(u64, Event)>, Vec<ClockOffset>, ScanSummary) {
    let local = archive.local_definitions(id).unwrap();
    let mut events = Vec::new();
    let visit = |_, time, event| {
        events.push((time, event));
        Ok(())
    };
    let summary = archive.scan_with(id, &local, visit).unwrap();
    (events, local.clock_offsets, summary)
}

fn open(path: &Path) -> (Archive, Definitions) {
    let archive = Archive::open(path).unwrap();
    let (definitions, _) = archive.read_definitions().unwrap();
    (archive, definitions)
}

/// Without the numbers of events, which were counted in the meantime.
fn without_counts(definitions: &Definitions) -> Definitions {
    let mut definitions = definitions.clone();
    definitions.locations.iter_mut().for_each(|location| location.claimed_events = 0);
    definitions
}

#[test]
fn recorded_traces_survive_the_way_there_and_back() {
    for trace in fixtures().into_iter().chain(more_traces()) {
        let directory = tempfile::tempdir().unwrap();
        let native = convert(&trace, directory.path(), "x.clct");
        let back = convert(&native, directory.path(), "back");
        let (original, definitions) = open(&trace);
        let ((native, native_definitions), (back, back_definitions)) = (open(&native), open(&back));
        let what = name(&trace);
        assert!(matches!((&native, &back), (Archive::Native(_), Archive::Otf2(_))), "{what}");
        assert_eq!(native.creator(), original.creator(), "{what}");
        assert_eq!(back.creator(), original.creator(), "{what}");
        assert_eq!(without_counts(&native_definitions), without_counts(&definitions), "{what}");
        let mut back_definitions = back_definitions;
        // On the way to OTF2 every communicator gets a group of its own, beside those that events name.
        back_definitions.groups.retain(|(id, _)| definitions.groups.iter().any(|(known, _)| known == id));
        assert_eq!(without_counts(&back_definitions), without_counts(&definitions), "{what}");
        for (index, location) in definitions.locations.iter().enumerate() {
            let what = format!("{what}, location {}", location.id);
            let (events, offsets, summary) = contents(&original, location.id);
            let (native_events, native_offsets, native_summary) = contents(&native, location.id);
            assert!(native_events == events, "{what}: other events");
            assert_eq!(native_offsets, offsets, "{what}");
            assert_eq!(native_summary.by_type, summary.by_type, "{what}: other types of events");
            assert_eq!(native_definitions.locations[index].claimed_events, summary.events, "{what}");
            let (back_events, back_offsets, _) = contents(&back, location.id);
            let kept: Vec<_> = events.into_iter().filter(|(_, event)| *event != Event::Other).collect();
            assert!(back_events == kept, "{what}: other events on the way back");
            assert_eq!(back_offsets, offsets, "{what}");
            assert_eq!(back_definitions.locations[index].claimed_events, kept.len() as u64, "{what}");
        }
        let printed = run(Command::new("otf2-print").arg(anchor(&directory.path().join("back")))).expect(0, &what);
        assert!(printed.stdout.contains("LEAVE"), "{what}");
    }
}

/// An event as `native_print.py` prints it: type and fields.
fn printed(event: &Event) -> Option<String> {
    let message = |m: &Message| format!("{} {} {} {}", m.peer, m.comm, m.tag, m.length);
    let collective = |c: &Collective| {
        let root = match c.root {
            Root::None => 0,
            Root::ThisProcess => 1,
            Root::OwnGroup => 2,
            Root::Rank(rank) => rank + 3,
        };
        format!("{} {} {root} {} {}", c.op.0, c.comm, c.sent, c.received)
    };
    Some(match event {
        Event::Other => return None,
        Event::Enter(region) => format!("12 {region}"),
        Event::Leave(region) => format!("13 {region}"),
        Event::MpiSend(m) => format!("14 {}", message(m)),
        Event::MpiIsend(m, request) => format!("15 {} {request}", message(m)),
        Event::MpiIsendComplete(request) => format!("16 {request}"),
        Event::MpiIrecvRequest(request) => format!("17 {request}"),
        Event::MpiRecv(m) => format!("18 {}", message(m)),
        Event::MpiIrecv(m, request) => format!("19 {} {request}", message(m)),
        Event::MpiRequestTest(request) => format!("20 {request}"),
        Event::MpiRequestCancelled(request) => format!("21 {request}"),
        Event::MpiCollectiveBegin => "22".into(),
        Event::MpiCollectiveEnd(c) => format!("23 {}", collective(c)),
        Event::RmaCollectiveBegin => "37".into(),
        Event::Thread(thread) => {
            let (fields, count) = thread.fields();
            let fields: Vec<String> = fields[..count].iter().map(u64::to_string).collect();
            format!("{} {}", thread.kind(), fields.join(" "))
        }
        Event::Parameter(p) => format!("34 {} {}", p.parameter, p.value),
        other @ (Event::RmaCollectiveEnd(_)
        | Event::RmaOpCompleteBlocking(..)
        | Event::RmaGroupSync(_)
        | Event::RmaRequestLock(_)
        | Event::RmaAcquireLock(_)
        | Event::RmaTryLock(_)
        | Event::RmaReleaseLock(_)
        | Event::RmaPut(_)
        | Event::RmaGet(_)
        | Event::RmaAtomic(_)) => unreachable!("no fixture has {other:?}"),
        Event::NonBlockingCollectiveRequest(request) => format!("85 {request}"),
        Event::NonBlockingCollectiveComplete(c, request) => format!("86 {} {request}", collective(c)),
    })
}

#[test]
fn an_independent_reader_finds_what_is_in_the_otf2_archive() {
    for trace in fixtures() {
        let directory = tempfile::tempdir().unwrap();
        let native = convert(&trace, directory.path(), "x.clct");
        let said = run(crate::common::tool("native_print.py").arg(&native)).expect(0, &name(&trace)).stdout;
        let (original, definitions) = open(&trace);
        let mut expected = Vec::new();
        let clock = definitions.clock;
        let realtime = clock.realtime.map_or("-".into(), |time| time.to_string());
        expected.push(format!("clock {} {} {} {realtime}", clock.resolution, clock.global_offset, clock.trace_length));
        for location in &definitions.locations {
            let events = contents(&original, location.id).2.events;
            expected.push(format!("location {} 0 {} {events} {}", location.id, location.group, location.name));
        }
        expected.extend(definitions.processes.iter().map(|id| format!("process {id}")));
        for communicator in &definitions.communicators {
            let list = |members: &[MpiRank]| members.iter().map(|rank| rank.0).collect::<Vec<_>>();
            let members = match &communicator.members {
                CommMembers::Intra(members) => format!("0[{:?}]", list(members)),
                CommMembers::SelfOnly => "1[]".into(),
                CommMembers::Inter(a, b) => format!("2[{:?},{:?}]", list(a), list(b)),
                CommMembers::NotMpi => "3[]".into(),
                CommMembers::Undefined => "4[]".into(),
            };
            let (members, global) = (members.replace(' ', ""), u8::from(communicator.global_ranks));
            expected.push(format!("communicator {} {global} {members} {}", communicator.id, communicator.name));
        }
        expected.extend(definitions.regions.iter().map(|region| format!("region {} {}", region.id, region.name)));
        expected.extend(definitions.thread_barriers.iter().map(|region| format!("thread_barrier {region}")));
        let mut locations: Vec<_> = definitions.locations.iter().map(|location| location.id).collect();
        locations.sort();
        let mut others = 0;
        for id in locations {
            let (events, offsets, _) = contents(&original, id);
            expected.extend(offsets.iter().map(|offset| format!("offset {id} {} {}", offset.time, offset.offset)));
            for (time, event) in events {
                match printed(&event) {
                    Some(fields) => expected.push(format!("event {id} {time} {fields}")),
                    None => others += 1,
                }
            }
        }
        let interpreted = |line: &&str| {
            let mut words = line.split(' ');
            words.next() != Some("event")
                || words.nth(2).is_some_and(|kind| {
                    [12..=23, 53..=65, 85..=86].iter().any(|kinds| kinds.contains(&kind.parse::<u8>().unwrap()))
                })
        };
        let (found, rest): (Vec<&str>, Vec<&str>) = said.lines().partition(interpreted);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.trim_end(), expected.trim_end(), "{}", name(&trace));
        }
        assert_eq!((found.len(), rest.len()), (expected.len(), others), "{}", name(&trace));
    }
}

#[test]
fn both_formats_are_corrected_to_the_same_times() {
    for trace in fixtures() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let what = name(&trace);
        copy_tree(&trace, &here.join("x"));
        convert(&trace, here, "x.clct");
        let status = clean(&trace);
        clc("x --report otf2.json -q", here, status);
        clc("x.clct --report native.json -q", here, status);
        // The whole of the report but for names, sizes and speed.
        let essence = |path: &str| {
            let mut report = json(&here.join(path));
            let report = report.as_object_mut().unwrap();
            for part in ["program", "phases", "memory", "output", "warnings"] {
                report.remove(part).unwrap_or_else(|| panic!("no {part}"));
            }
            let trace = report.get_mut("trace").and_then(Value::as_object_mut).unwrap();
            trace.remove("path");
            trace.remove("name");
            Value::Object(report.clone())
        };
        assert_eq!(essence("native.json"), essence("otf2.json"), "{what}");
        let ((one, one_definitions), (other, other_definitions)) =
            (open(&here.join("x-clc")), open(&here.join("x-clc.clct")));
        assert!(matches!(other, Archive::Native(_)), "{what}");
        assert_eq!(without_counts(&one_definitions), without_counts(&other_definitions), "{what}");
        for location in &one_definitions.locations {
            let (one, other) = (contents(&one, location.id), contents(&other, location.id));
            assert!(one.0 == other.0, "{what}, location {}: other times", location.id);
            assert_eq!((one.1.len(), other.1.len()), (0, 0), "{what}: clock offsets are left");
        }
        clc("check x-clc.clct -q", here, status);
        // Nothing is left to do: the files are copied as they are.
        clc("x-clc.clct -q", here, status);
        assert_same_tree(&here.join("x-clc.clct"), &here.join("x-clc-clc.clct"), &what);
    }
}

#[test]
fn any_number_of_ranks_gives_the_same_native_trace() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let native = convert(&fixture("tracer-collectives-7"), here, "x.clct");
    run(with_ranks(3).arg("convert").arg(fixture("tracer-collectives-7")).args(["y.clct", "-q"]).current_dir(here))
        .expect(0, "convert with 3 ranks");
    assert_same_tree(&native, &here.join("y.clct"), "converted with 3 ranks");
    clc("x.clct -q", here, 0);
    for ranks in [1, 2] {
        let output = format!("with-{ranks}");
        run(with_ranks(ranks).args(["x.clct", "-q", "-o", &output]).current_dir(here)).expect(0, &output);
        assert_same_tree(&here.join("x-clc.clct"), &here.join(&output), &output);
    }
    run(with_ranks(2).args(["convert", "x-clc.clct", "back", "-q"]).current_dir(here)).expect(0, "2 ranks");
    assert_same_tree(&convert(&here.join("x-clc.clct"), here, "back-alone"), &here.join("back"), "back with 2 ranks");
}

#[test]
fn what_is_left_out_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let trace = fixture("tracer-halo-4");
    std::fs::create_dir(here.join("in")).unwrap();
    copy_tree(&trace, &here.join("in"));
    std::fs::write(here.join("in/notes.txt"), "x").unwrap();
    let said = clc("convert in x.clct --report there.json", here, 0).stdout;
    for text in [
        "fields of events: CommCreate",
        "OTF2, 75.9 KiB",
        "native, 4 locations, 7,904 events",
        "other files: notes.txt",
    ] {
        assert!(said.contains(text), "{text}\n{said}");
    }
    let report = json(&here.join("there.json"));
    let find = |report: &Value, what: &str, kind: &str| {
        let list = report["left_out"].as_array().unwrap();
        list.iter().find(|one| one["what"] == what && one["kind"] == kind).map(|one| one["count"].as_u64().unwrap())
    };
    assert_eq!((&report["from"], &report["to"]), (&"otf2".into(), &"native".into()));
    assert_eq!(find(&report, "event_fields", "CommCreate"), Some(20));
    assert_eq!(find(&report, "event_fields", "Enter"), None);
    assert_eq!(find(&report, "definition_fields", "Region: all but id and name"), Some(20));
    let said = clc("convert x.clct out --report back.json", here, 0).stdout;
    assert!(said.contains("nearby times may be corrected"), "{said}");
    let report = json(&here.join("back.json"));
    assert_eq!(find(&report, "events", "CommCreate"), Some(20));
    assert_eq!(report["events"], 7904 - 20 - 12);
    // Nothing more is lost from then on.
    clc("convert out y.clct -q", here, 0);
    let said = clc("convert y.clct again", here, 0).stdout;
    assert!(said.contains("Left out    nothing"), "{said}");
    for part in ["traces", "traces.def"] {
        let (one, other) = (here.join("out").join(part), here.join("again").join(part));
        match one.is_dir() {
            true => assert_same_tree(&one, &other, part),
            false => assert!(std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap(), "{part} differs"),
        }
    }
}

#[test]
fn true_times_come_along() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    clc("simulate sim --ranks 5 --threads 2 --events 2000 --pattern mix --clock mixed -q", here, 0);
    let said = clc("convert sim sim.clct", here, 0).stdout;
    assert!(said.contains("sim.clct/truth"), "{said}");
    assert_same_tree(&here.join("sim/truth"), &here.join("sim.clct/truth"), "truth");
    clc("convert sim.clct back -q", here, 0);
    assert_same_tree(&here.join("sim/truth"), &here.join("back/truth"), "truth on the way back");
    // The judgement is the same, in either format.
    clc("sim -q", here, 0);
    clc("sim.clct -q", here, 0);
    clc("evaluate sim-clc --truth sim --report a.json -q", here, 0);
    clc("evaluate sim-clc.clct --truth sim.clct --report b.json -q", here, 0);
    let (one, other) = (json(&here.join("a.json")), json(&here.join("b.json")));
    assert_eq!(one["phases"], other["phases"]);
    assert_eq!(one["phases"].as_array().unwrap().len(), 4);

    // A recorded trace has events that OTF2 cannot have without their fields: neither do their true times come along.
    let native = convert(&fixture("tracer-halo-4"), here, "halo.clct");
    clc(
        "perturb halo.clct wrong.clct --clock 'offset=1ms' --per-process --anyway -q".replace('\'', "").as_str(),
        here,
        0,
    );
    clc("convert wrong.clct wrong -q", here, 0);
    clc("evaluate wrong --truth wrong -q", here, 0);
    let trace = NativeTrace::open(&native).unwrap();
    for location in trace.read_definitions().unwrap().locations {
        let read = |directory: &str| -> Vec<i64> {
            let path = truth::path(&here.join(directory), location.id);
            TruthReader::open(&path).unwrap().map(|time| time.unwrap().0).collect()
        };
        let (all, mut kept) = (read("wrong.clct"), Vec::new());
        trace
            .scan_with(location.id, |number, _, event| {
                kept.extend((event != Event::Other).then(|| all[number.preceding() as usize]));
                Ok(())
            })
            .unwrap();
        assert!(kept.len() < all.len());
        assert_eq!(read("wrong"), kept, "location {}", location.id);
    }
}

/// Runs something that has to fail, with one line, and without a trace on disk.
#[track_caller]
fn refused(arguments: &str, directory: &Path, says: &[&str]) {
    let before = tree(directory);
    let finished = clc(arguments, directory, 2);
    assert!(before == tree(directory), "{arguments}: something on disk has changed");
    let stderr = finished.stderr;
    assert!(stderr.starts_with("clc-replay: error: ") && stderr.lines().count() == 1, "{arguments}: {stderr}");
    for text in says {
        assert!(stderr.contains(text), "'{text}' is missing in: {stderr}");
    }
}

#[test]
fn mistakes_get_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    copy_tree(&fixture("tracer-halo-4"), &here.join("in"));
    convert(&here.join("in"), here, "x.clct");
    std::fs::create_dir(here.join("full")).unwrap();
    std::fs::write(here.join("full/file"), "x").unwrap();
    refused("convert", here, &["TRACE"]);
    refused("convert in", here, &["TARGET"]);
    refused("convert in out", here, &["in: the trace is already OTF2", ".clct"]);
    refused("convert x.clct y.clct", here, &["x.clct: the trace is already native"]);
    refused("convert x.clct y --to native", here, &["x.clct: the trace is already native"]);
    refused("convert in y --to vampir", here, &["otf2, native"]);
    refused("convert nothing y.clct", here, &["nothing: the trace does not exist"]);
    refused("convert in x.clct", here, &["x.clct: output directory already exists (replace it with --force)"]);
    refused(
        "convert in full --to native --force",
        here,
        &["full: refusing to replace the existing output: it has no file list"],
    );
    refused("convert in in/x.clct", here, &["the output lies inside the trace"]);
    copy_tree(&here.join("in"), &here.join("outer/in"));
    refused("convert outer/in outer --force --to native", here, &["the output contains the trace"]);
    refused("convert in missing/x.clct", here, &["the parent directory of the output has to exist"]);
    refused("convert x.clct out.otf2", here, &["does not end in .otf2 (for example out)"]);
    refused("x.clct -o x.clct --force", here, &["the output is the trace itself"]);
    refused("full", here, &["no OTF2 anchor file (*.otf2) in this directory"]);
    std::fs::rename(here.join("full"), here.join("full.clct")).unwrap();
    refused("full.clct", here, &["not a native trace, or one that was never completed: definitions.clcd is missing"]);
    // --force replaces either format; --to goes before the name, and such a trace is found by what is in it.
    clc("convert in x.clct --force -q", here, 0);
    clc("convert x.clct in2.clct --to otf2 -q", here, 0);
    assert!(matches!(Archive::open(&here.join("in2.clct")), Ok(Archive::Otf2(_))));
    clc("convert in named --to native -q", here, 0);
    clc("check named -q", here, 1);
    clc("check named/definitions.clcd -q", here, 1);
    copy_tree(&fixture("tracer-halo-4"), &here.join("named"));
    refused("check named", here, &["named: the directory holds both a native trace and an OTF2 archive"]);
    clc("check named/definitions.clcd -q", here, 1);
    assert!(Otf2Archive::open(&here.join("named/traces.otf2")).is_ok());
}

#[test]
fn damage_names_file_location_and_event() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let native = convert(&fixture("tracer-halo-4"), here, "x.clct");
    let path = native.join("events/2.clce");
    let original = std::fs::read(&path).unwrap();
    for command in ["x.clct", "check x.clct", "info x.clct", "convert x.clct out"] {
        std::fs::write(&path, &original[..original.len() - 1]).unwrap();
        refused(command, here, &["x.clct/events/2.clce: location 2: the event file is damaged: it has "]);
        let mut bytes = original.clone();
        bytes[100] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let place = "x.clct/events/2.clce: location 2, event 1: the event file is damaged: a block does not match";
        refused(command, here, &[place]);
        std::fs::write(&path, vec![0; original.len()]).unwrap();
        refused(command, here, &["x.clct/events/2.clce: location 2: the event file was never finished"]);
        std::fs::remove_file(&path).unwrap();
        refused(command, here, &["x.clct/events/2.clce: location 2: the event file is missing"]);
    }
    std::fs::write(&path, &original).unwrap();
    std::fs::write(native.join("definitions.clcd"), "CLCDEFIN\x06\0\0\0").unwrap();
    refused(
        "x.clct",
        here,
        &["x.clct/definitions.clcd: native trace of format version 6; versions 1 to 5 are supported"],
    );
}

/// Makes files of an older version of those of a trace without windows, threads and accelerators, which differ by nothing else.
fn as_version(version: u8, trace: &Path) {
    let lists = [6, 4, 3, 1][usize::from(version) - 1];
    let path = trace.join("definitions.clcd");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = &bytes[bytes.len() - 10..bytes.len() - 4];
    assert_eq!(end, [0; 6], "no windows, groups, barriers of threads, parameters and attributes");
    bytes.truncate(bytes.len() - 4 - lists);
    bytes[8] = version;
    let length = bytes.len() as u64 - 20;
    bytes[12..20].copy_from_slice(&length.to_le_bytes());
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    for entry in std::fs::read_dir(trace.join("events")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8] = version;
        let checksum = crc32fast::hash(&bytes[..60]).to_le_bytes();
        bytes[60..64].copy_from_slice(&checksum);
        std::fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn traces_of_older_versions_are_read() {
    let directory = tempfile::tempdir().unwrap();
    for version in [1, 2, 3, 4, 5] {
        let native = convert(&fixture("tracer-collectives-4"), directory.path(), &format!("{version}.clct"));
        if version < 5 {
            as_version(version, &native);
        }
        clc(&format!("{version}.clct -o {version}-clc.clct -q"), directory.path(), 0);
        clc(&format!("check {version}-clc.clct -q"), directory.path(), 0);
    }
    let (newest, definitions) = open(&directory.path().join("5-clc.clct"));
    for version in [1, 2, 3, 4] {
        let (old, old_definitions) = open(&directory.path().join(format!("{version}-clc.clct")));
        assert_eq!(old_definitions, definitions);
        for location in &definitions.locations {
            let (events, offsets, _) = contents(&old, location.id);
            let (expected, expected_offsets, _) = contents(&newest, location.id);
            assert!(events == expected && offsets == expected_offsets, "version {version}, location {}", location.id);
        }
    }
}
