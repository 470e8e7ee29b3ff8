//! What Scalasca 2.6 (`scout.mpi`, all its replays, without its correction of times) says of two simulated traces with perfect clocks.

use super::{analysis, check_sums, list, micros, number, simulated, waits};

/// The same delays that are computed in floating-point numbers, from the events instead of the enters of operations, and by call path instead of by region:
/// they differ by so much of their sum.
const TOLERANCE: f64 = 0.002;

/// What it says of a pattern: sums in nanoseconds and counts of Late Sender and Late Receiver; short-term delay costs by region, and the sum of the long-term
/// ones, in microseconds.
#[track_caller]
fn assert_same(pattern: &str, expected: [(i64, i64); 2], delays: &[(&str, f64)], long_term: f64) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let more = format!("--pattern {pattern} --ranks 8 --events 5k --seed 3 --clock perfect");
    let result = analysis(&simulated(directory.path(), pattern, &more), &["--as-recorded"]);
    check_sums(&result, pattern);
    assert_eq!(waits(&result, "before", 1e9)[..2], expected, "{pattern}");
    let sum: f64 = delays.iter().map(|(_, cost)| cost).sum();
    let close = |found: f64, expected: f64, what: &str| {
        assert!((found - expected).abs() < TOLERANCE * sum, "{pattern}: {what}: {found} instead of {expected}");
    };
    let found = &result["waits"]["delays"];
    let all: f64 = list(&found["by_region"]).iter().map(|entry| micros(&entry["cost"]["before_seconds"])).sum();
    close(all, sum, "all");
    for &(region, cost) in delays {
        let own = list(&found["by_region"]).iter().filter(|entry| entry["region"] == region);
        close(own.map(|entry| micros(&entry["cost"]["before_seconds"])).sum(), cost, region);
    }
    close(micros(&found["propagated"]["before_seconds"]), long_term, "propagated");
    // What is unexplained here is divided there.
    let explained = micros(&found["long_term"]["before_seconds"]);
    assert!((0.985 * long_term..=1.002 * long_term).contains(&explained), "{pattern}: {explained} of {long_term}");
    assert_eq!(number(&found["not_examined"]["before_seconds"]), 0.0);
}

#[test]
fn an_exchange_with_neighbours() {
    let delays = [
        ("main", 97.11),
        ("MPI_Init", 0.07),
        ("MPI_Irecv", 71.06),
        ("compute", 8017.73),
        ("MPI_Isend", 19.90),
        ("MPI_Waitall", 380.81),
        ("MPI_Waitany", 424.26),
    ];
    assert_same("halo2d", [(15_464_539, 1259), (0, 0)], &delays, 6372.55);
}

#[test]
fn a_wavefront() {
    let delays =
        [("main", 1176.26), ("MPI_Init", 0.0), ("compute", 279_927.78), ("MPI_Send", 1182.64), ("MPI_Recv", 10_493.09)];
    assert_same("wavefront", [(667_773_394, 3858), (5_393, 19)], &delays, 374_976.41);
}
