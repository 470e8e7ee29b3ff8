//! Whatever is wrong with the input: one clear line, exit status 2, no output, no leftovers, input untouched.

use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_clc-replay");

/// A copy of a fixture that a test may damage.
struct Sandbox {
    directory: tempfile::TempDir,
    trace: PathBuf,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            std::fs::copy(entry.path(), target).map(|_| ()).unwrap()
        }
    }
}

impl Sandbox {
    fn new() -> Sandbox {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tracer-halo-4"), &trace);
        Sandbox { directory, trace }
    }

    fn anchor(&self) -> PathBuf {
        self.trace.join("traces.otf2")
    }

    fn events(&self, location: u32) -> PathBuf {
        self.trace.join(format!("traces/{location}.evt"))
    }

    fn edit(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(path).unwrap();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    }

    /// Runs the program and checks what every failure has in common; returns the line.
    fn fails(&self, arguments: &[&str]) -> String {
        let names = || {
            let mut names: Vec<_> =
                std::fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let output = Command::new("timeout")
            .args(["60", PROGRAM])
            .args(arguments)
            .env("CLC_REPLAY_MPI", "never")
            .current_dir(self.directory.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(said.starts_with("clc-replay: error: "), "{said}");
        assert_eq!(names(), before, "something was left behind");
        said
    }

    fn fails_with(&self, texts: &[&str]) {
        for arguments in [&["trace"][..], &["check", "trace"]] {
            let said = self.fails(arguments);
            for text in texts {
                assert!(said.contains(text), "{text:?} is not in {said}");
            }
        }
    }
}

#[test]
fn missing_things() {
    let sandbox = Sandbox::new();
    assert!(sandbox.fails(&["nothing"]).contains("nothing: there is no such trace"));
    std::fs::create_dir(sandbox.directory.path().join("empty")).unwrap();
    assert!(sandbox.fails(&["empty"]).contains("no OTF2 anchor file"));
    std::fs::copy(sandbox.anchor(), sandbox.trace.join("more.otf2")).unwrap();
    sandbox.fails_with(&["several OTF2 anchor files: more.otf2, traces.otf2"]);
    std::fs::remove_file(sandbox.trace.join("more.otf2")).unwrap();
    std::fs::remove_file(sandbox.events(2)).unwrap();
    sandbox.fails_with(&["traces/2.evt", "location 2", "missing"]);
    std::fs::remove_file(sandbox.trace.join("traces.def")).unwrap();
    sandbox.fails_with(&["traces.def", "missing"]);
}

#[test]
fn anchors_that_cannot_be_read() {
    let cases: [(usize, u8, &str); 7] = [
        (2, b'X', "not an OTF2 anchor file"),
        (7, 0, "unknown version 0 of the anchor"),
        (8, 3, "unknown version 3 of the trace format"),
        (28, 2, "SIONlib"),
        (29, 2, "compressed"),
        (28, 9, "unknown file substrate 9"),
        (1, 0x99, "not an OTF2 anchor file"),
    ];
    for (at, byte, text) in cases {
        let sandbox = Sandbox::new();
        sandbox.edit(&sandbox.anchor(), |bytes| bytes[at] = byte);
        sandbox.fails_with(&["traces.otf2", text]);
    }
    let sandbox = Sandbox::new();
    sandbox.edit(&sandbox.anchor(), |bytes| bytes[12..20].fill(0));
    sandbox.fails_with(&["event chunk size 0"]);
    let sandbox = Sandbox::new();
    sandbox.edit(&sandbox.anchor(), |bytes| bytes.truncate(40));
    sandbox.fails_with(&["traces.otf2", "truncated"]);
}

#[test]
fn event_files_cut_anywhere() {
    let sandbox = Sandbox::new();
    let whole = std::fs::read(sandbox.events(1)).unwrap();
    for length in [0, 1, 17, 18, 19, 100, 1000, whole.len() / 2, whole.len() - 2] {
        std::fs::write(sandbox.events(1), &whole[..length]).unwrap();
        let said = sandbox.fails(&["trace"]);
        assert!(said.contains("traces/1.evt") && said.contains("location 1"), "{length}: {said}");
    }
}

/// Offsets of the records of a little-endian event file without attribute lists, timestamps included.
fn records(bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 18;
    while bytes[at] != 2 {
        found.push(at);
        at += match bytes[at] {
            5 => 9,
            12 | 13 | 16 | 17 | 20 | 21 => 2 + if bytes[at + 1] == 0xFF { 0 } else { usize::from(bytes[at + 1]) },
            _ => 2 + usize::from(bytes[at + 1]),
        };
    }
    found
}

#[test]
fn times_that_make_no_sense() {
    let sandbox = Sandbox::new();
    let whole = std::fs::read(sandbox.events(0)).unwrap();
    let stamps: Vec<usize> = records(&whole).into_iter().filter(|&at| whole[at] == 5).collect();
    let middle = stamps[stamps.len() / 2];
    let with = |time: u64| {
        let mut bytes = whole.clone();
        bytes[middle + 1..middle + 9].copy_from_slice(&time.to_le_bytes());
        std::fs::write(sandbox.events(0), bytes).unwrap();
    };
    with(1);
    sandbox.fails_with(&["traces/0.evt: location 0, event ", "time runs backwards"]);
    with(u64::MAX - 1);
    sandbox.fails_with(&["traces/0.evt: location 0, event "]);
    let mut twice = whole.clone();
    twice.splice(middle..middle, whole[middle..middle + 9].iter().copied());
    std::fs::write(sandbox.events(0), twice).unwrap();
    sandbox.fails_with(&["two timestamps in a row"]);
}

#[test]
fn references_to_what_is_not_there() {
    let sandbox = Sandbox::new();
    let whole = std::fs::read(sandbox.events(0)).unwrap();
    // The first MpiSend or MpiIsend: type, length, receiver (packed), communicator (packed).
    let send = records(&whole).into_iter().find(|&at| matches!(whole[at], 14 | 15)).unwrap();
    let mut fields = send + 2;
    let mut bytes = whole.clone();
    fields += 1 + usize::from(bytes[fields]);
    assert_eq!(bytes[fields], 0, "the communicator of the first message is the world, id 0");
    // An undefined value instead: the same number of bytes.
    bytes[fields] = 0xFF;
    std::fs::write(sandbox.events(0), bytes).unwrap();
    sandbox.fails_with(&["traces/0.evt: location 0, event ", "communicator 4294967295 is not defined"]);

    let receiver = send + 2;
    let mut bytes = whole.clone();
    assert_eq!(bytes[receiver], 1);
    bytes[receiver + 1] = 200;
    std::fs::write(sandbox.events(0), bytes).unwrap();
    sandbox.fails_with(&["location 0, event ", "rank 200 is not in communicator 0"]);
    let mut bytes = whole;
    bytes[receiver] = 9;
    std::fs::write(sandbox.events(0), bytes).unwrap();
    sandbox.fails_with(&["location 0, event ", "packed integer of 9 bytes"]);
}

#[test]
fn outputs_that_cannot_be() {
    let sandbox = Sandbox::new();
    assert!(sandbox.fails(&["trace", "-o", "trace"]).contains("is the trace itself"));
    assert!(sandbox.fails(&["trace", "-o", "trace/inside"]).contains("lies inside the trace"));
    assert!(sandbox.fails(&["trace", "-o", ".", "--force"]).contains("error"));
    assert!(sandbox.fails(&["trace", "-o", "no/such/place"]).contains("directory above the output has to exist"));
    assert!(sandbox.fails(&["trace", "-o", "trace/traces.otf2/x"]).contains("error"));
    std::fs::create_dir(sandbox.directory.path().join("out")).unwrap();
    assert!(sandbox.fails(&["trace", "-o", "out"]).contains("replace it with --force"));
    std::fs::write(sandbox.directory.path().join("out/thesis.tex"), "years of work").unwrap();
    assert!(sandbox.fails(&["trace", "-o", "out", "--force"]).contains("not replaced"));
    assert!(sandbox.directory.path().join("out/thesis.tex").exists());
}

#[test]
fn options_that_make_no_sense() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["trace", "--latency", "5"][..],
        &["trace", "--latency", "-1us"],
        &["trace", "--gamma", "2"],
        &["trace", "--gamma", "0.1"],
        &["trace", "--max-passes", "0"],
        &["trace", "--slope", "0"],
        &["trace", "--presync", "magic"],
        &["trace", "--no-such-option"],
        &["trace", "another"],
        &[],
    ] {
        sandbox.fails(arguments);
    }
}
