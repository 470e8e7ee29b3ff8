//! Small traces made by hand, through the program: what it finds in them, and that a correction leaves none of it.

use crate::common::{alone, found, report, run};
use crate::reference::against::write;
use crate::reference::model::Trace;
use std::path::{Path, PathBuf};

/// Writes a trace as an OTF2 archive into `directory`; returns where it is.
pub(crate) fn written(directory: &Path, trace: &Trace) -> PathBuf {
    let path = directory.join("trace");
    write(trace, &path);
    path
}

/// `check` finds `violated` of `checked` of a kind, and corrections with each of `presync` leave none. Returns how many are checked after each.
#[track_caller]
pub(crate) fn assert_corrected(trace: &Trace, kind: &str, checked: u64, violated: u64, presync: &[&str]) -> Vec<u64> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), trace);
    let status = if violated > 0 { 1 } else { 0 };
    let before = report(&path, &["check", "--presync", "none"], status);
    assert_eq!(found(&before, kind), (checked, violated), "{kind}: {}", before["violations"]);
    let mut checked_after = Vec::new();
    for presync in presync {
        let out = directory.path().join(presync);
        run(alone().args(["-q", "--presync", presync, "-o"]).arg(&out).arg(&path)).expect(0, "correct");
        let after = report(&out, &["check", "--presync", "none"], 0);
        let (checked, violated) = found(&after, kind);
        assert_eq!(violated, 0, "{kind}, --presync {presync}");
        checked_after.push(checked);
    }
    // The native form says the same.
    let native = directory.path().join("trace.clct");
    run(alone().args(["convert", "-q"]).arg(&path).arg(&native)).expect(0, "convert");
    let same = report(&native, &["check", "--presync", "none"], status);
    assert_eq!(same["violations"], before["violations"]);
    assert_eq!(same["matching"], before["matching"]);
    checked_after
}
