//! Damage at every place: each byte of each file of a small trace changed, and each file cut at every length, corrected within this
//! process. Every attempt ends with a result, or with an error that names a file, and leaves nothing behind.

use crate::common::{alone, run};
use clc_engine::comm::local::LocalTransport;
use clc_replay::cli::Invocation;
use clc_replay::commands;
use clc_trace::progress::Silent;
use std::path::{Path, PathBuf};

/// The sweeps, by name.
pub(crate) fn all() -> Vec<(&'static str, fn())> {
    vec![
        ("otf2_every_byte_changed", || every_file("otf2", change)),
        ("otf2_cut_at_every_length", || every_file("otf2", cut)),
        ("native_every_byte_changed", || every_file("native", change)),
        ("native_cut_at_every_length", || every_file("native", cut)),
    ]
}

/// The contents of a file, made wrong in the `n`-th way; `None` after the last one.
type Wrong = fn(&[u8], usize) -> Option<Vec<u8>>;

/// Another bit at each place, and every fourth place set to all ones.
fn change(bytes: &[u8], n: usize) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let length = bytes.len();
    if n < length {
        bytes[n] ^= 1 << (n % 8);
        return Some(bytes);
    }
    let place = 4 * (n - length);
    *bytes.get_mut(place)? ^= 0xFF;
    Some(bytes)
}

fn cut(bytes: &[u8], n: usize) -> Option<Vec<u8>> {
    (n < bytes.len()).then(|| bytes[..n].to_vec())
}

fn every_file(format: &str, wrong: Wrong) {
    let ending = if format == "native" { "trace.clct" } else { "trace" };
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join(ending);
    // Two processes, a few hundred bytes each.
    let mut simulate = alone();
    simulate.arg("simulate").arg(&trace).args([
        "--ranks",
        "2",
        "--events",
        "40",
        "--pattern",
        "mix",
        "--seed",
        "5",
        "-q",
    ]);
    run(&mut simulate).expect(0, "a small trace");
    let mut attempts = 0;
    let mut refused = 0;
    for file in files(&trace) {
        let original = std::fs::read(&file).unwrap();
        for n in 0.. {
            let Some(bytes) = wrong(&original, n) else { break };
            std::fs::write(&file, bytes).unwrap();
            attempts += 1;
            refused += usize::from(attempt(&trace, &directory.path().join("out"), &file, n));
        }
        std::fs::write(&file, original).unwrap();
    }
    assert!(!attempt(&trace, &directory.path().join("out"), &trace, 0), "the trace as it was is refused");
    // A sweep that breaks nothing, or never gets through, tests nothing. The native format has checksums over everything.
    let expected = if format == "native" { attempts..=attempts } else { attempts / 4..=attempts - 1 };
    assert!(attempts > 500 && expected.contains(&refused), "{refused} of {attempts} refused");
}

/// Files that the correction reads: all but those with the truth. One location stands for both.
fn files(trace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![trace.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|end| ["otf2", "def", "evt", "clcd", "clce"].iter().any(|e| end == *e))
            {
                found.push(path);
            }
        }
    }
    found.retain(|path| path.file_stem().is_none_or(|name| name != "1"));
    found.sort();
    found
}

/// Corrects the trace; whether that was refused. Fails if the error says nothing of its place, or if something is left.
fn attempt(trace: &Path, out: &Path, file: &Path, n: usize) -> bool {
    // Most of it happens without an output, too.
    let output = if n.is_multiple_of(4) { vec!["-o".as_ref(), out.as_os_str()] } else { vec!["--dry-run".as_ref()] };
    let words = [vec!["clc-replay".as_ref(), trace.as_os_str(), "-q".as_ref()], output].concat();
    let Ok(Invocation::Correct(options)) = Invocation::parse(words) else { panic!("the options") };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        commands::correct(&mut LocalTransport::alone(), &options, &Silent).map(|_| ())
    }));
    let what = format!("{}, change {n}", file.display());
    let outcome = outcome.unwrap_or_else(|_| panic!("a panic: {what}"));
    if out.exists() {
        assert!(outcome.is_ok(), "an output in spite of an error: {what}");
        std::fs::remove_dir_all(out).unwrap();
    }
    let left: Vec<_> = std::fs::read_dir(trace.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 1, "something is left: {left:?}: {what}");
    match outcome {
        Ok(()) => false,
        Err(error) => {
            assert!(error.file.is_some(), "no file: {error}: {what}");
            true
        }
    }
}
