//! Linear pre-synchronisation gives the times that libotf2's own clock correction gives, to within one tick.

use clc_replay::archive::otf2::{ArchiveWriter, CreateOptions, Otf2Archive};
use clc_replay::presync::Method;
use clc_replay::trace::{ClockOffset, Event, RegionId, Ticks};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

/// Times by location, in order, as python3-otf2 sees them.
fn by_libotf2(anchor: &Path) -> BTreeMap<u64, Vec<i64>> {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/print_times.py");
    let output = Command::new("/usr/bin/python3").arg(tool).arg(anchor).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut times: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (location, time) = line.split_once(' ').unwrap();
        times.entry(location.parse().unwrap()).or_default().push(time.parse().unwrap());
    }
    times
}

/// Largest difference between libotf2's times and ours, in ticks, and the number of times that were compared.
fn compare(directory: &Path) -> (i64, usize) {
    let archive = Otf2Archive::open(directory).unwrap();
    let (definitions, _) = archive.read_definitions().unwrap();
    let theirs = by_libotf2(&archive.anchor_path());
    let (mut largest, mut compared) = (0, 0);
    for location in &definitions.locations {
        let local = archive.local_definitions(location.id).unwrap();
        let clock = Method::Linear.clock(&local.clock_offsets).unwrap();
        let mut ours = Vec::new();
        let visit = |_, time, _| {
            ours.push(clock.map(Ticks(time as i64)).0);
            Ok(())
        };
        archive.scan_with(location.id, &local, visit).unwrap();
        let theirs = &theirs[&location.id.0];
        assert_eq!(theirs.len(), ours.len());
        for (a, b) in theirs.iter().zip(&ours) {
            largest = largest.max((a - b).abs());
            compared += 1;
        }
    }
    (largest, compared)
}

#[test]
fn recorded_offsets() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut traces: Vec<_> =
        ["tracer-halo-4", "tracer-collectives-7"].map(|name| root.join("tests/data").join(name)).into();
    let more = ["scorep-jacobi-4", "scorep-pingpong-2"].map(|name| root.join("../shared/data").join(name));
    traces.extend(more.into_iter().filter(|path| path.exists()));
    for trace in traces {
        let (largest, compared) = compare(&trace);
        assert!(largest <= 1, "{}: {largest} ticks apart", trace.display());
        assert!(compared > 100);
    }
}

#[test]
fn several_intervals_and_extrapolation() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tracer-halo-4");
    let (definitions, _) = Otf2Archive::open(&source).unwrap().read_definitions().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let writer = ArchiveWriter::create(&path, "traces", CreateOptions::default()).unwrap();
    let mut counts = HashMap::new();
    for (index, location) in definitions.locations.iter().enumerate() {
        let record = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
        let offsets = [
            record(1_000_000, 1000 + 77 * index as i64),
            record(2_000_001, 1000 - 333 * index as i64),
            record(7_000_000, 5000),
            record(7_100_000, 4000 + 12_345 * index as i64),
        ];
        writer.local_definitions(location.id, &offsets).unwrap();
        let mut file = writer.events(location.id).unwrap();
        for k in 0..5000u64 {
            let region = RegionId(definitions.regions[0].id.0);
            file.event(500_000 + 1777 * k, &if k % 2 == 0 { Event::Enter(region) } else { Event::Leave(region) })
                .unwrap();
        }
        counts.insert(location.id, file.finish().unwrap());
    }
    writer.finish(&definitions, &counts).unwrap();
    let (largest, compared) = compare(&path);
    assert!(largest <= 1, "{largest} ticks apart");
    assert_eq!(compared, 20_000);
}
