//! How many bytes a call takes, and that the smaller format holds the same.

use super::{App, MPICH, OPEN_MPI, clc_replay};
use crate::common::run;
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of all files in a directory and those within it.
fn size(directory: &Path) -> u64 {
    let entries = directory.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.map(|path| if path.is_dir() { size(&path) } else { path.metadata().expect("a file").len() }).sum()
}

/// The files in a directory.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = directory.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    entries.map(|path| (name(&path), std::fs::read(&path).expect("a file"))).collect()
}

/// The recording in the directory `run`, which was kept raw, once more as the native trace `run.clct`.
fn again_as_native(app: &App) {
    std::fs::rename(app.path("run.raw"), app.path("run.clct.raw")).expect("raw files");
    run(clc_replay("recover").arg(app.path("run.clct"))).expect(0, "a native trace");
}

#[test]
fn calls_take_few_bytes() {
    let app = App::build(OPEN_MPI, OPEN_MPI.compiler, "call_cost.c", &[]);
    let said = run(&mut app.record(&["--keep-raw"], 2, &["20"])).expect(0, "a recording").stdout;
    let calls: u64 = said.lines().find_map(|line| line.strip_prefix("calls ")?.parse().ok()).expect("the calls");
    let per_call = |bytes: u64| bytes as f64 / (2 * calls) as f64;
    again_as_native(&app);
    let (otf2, native) = (per_call(size(&app.recorded())), per_call(size(&app.path("run.clct"))));
    // Of 24 in OTF2, 18 are the two times, and 6 the records of Enter and Leave.
    assert!(otf2 < 30.5 && native < 16.0, "{otf2} bytes in OTF2, {native} in the native format");
}

#[test]
fn a_native_recording_is_the_converted_archive() {
    let app = App::c(MPICH);
    run(&mut app.record(&["--keep-raw", "--clock", "walk"], 4, &["5"])).expect(0, "a recording");
    again_as_native(&app);
    run(clc_replay("convert").arg(app.recorded()).arg(app.path("converted.clct"))).expect(0, "a conversion");
    for part in ["events", "truth"] {
        let [recorded, converted] = ["run.clct", "converted.clct"].map(|trace| files(&app.path(trace).join(part)));
        assert!(recorded.len() >= 4 && recorded.keys().eq(converted.keys()), "{part}: {:?}", recorded.keys());
        for (name, bytes) in recorded.iter().filter(|(name, _)| *name != "parameters.json") {
            assert!(converted.get(name) == Some(bytes), "{part}/{name}");
        }
    }
    run(clc_replay("check").arg(app.path("run.clct")));
    let summary = run(clc_replay("evaluate").arg(app.path("run.clct")).arg("--truth").arg(app.path("run.clct")));
    summary.expect(0, "an evaluation against its own truth");
}
