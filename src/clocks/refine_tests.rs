use super::*;
use clc_trace::{ClockOffset, MpiRank, TimelineNumber};

#[test]
fn offsets_within_the_shortest_message_are_of_one_clock() {
    let of = |offsets: &[i64], timelines, shortest| {
        let offsets = offsets.iter().map(|&offset| ClockOffset { time: 0, offset, standard_deviation: 0.0 });
        let recorded = RecordedOffsets { timeline: TimelineNumber::of_process(MpiRank(0)), offsets: offsets.collect() };
        are_as_one(&[recorded], timelines, Ticks(shortest))
    };
    assert!(of(&[-100, 0, 130], 1, 230) && of(&[5_000_100, 5_000_000], 1, 100));
    assert!(!of(&[-100, 0, 131], 1, 230) && !of(&[0, 0], 1, 0) && !are_as_one(&[], 1, Ticks(230)));
    // The other one has none.
    assert!(of(&[-100, 0, 130], 2, 230) && !of(&[777], 2, 230));
}

#[test]
fn offsets_within_their_bounds_are_of_one_clock() {
    let of = |offsets: &[(i64, f64)], shortest| {
        let offset = |&(offset, bound)| ClockOffset { time: 0, offset, standard_deviation: bound / 3f64.sqrt() };
        let offsets = offsets.iter().map(offset).collect();
        let recorded = RecordedOffsets { timeline: TimelineNumber::of_process(MpiRank(0)), offsets };
        are_as_one(&[recorded], 1, Ticks(shortest))
    };
    // As with nothing but collectives.
    assert!(of(&[(0, 0.0), (-300, 310.0), (200, 210.0)], 0));
    assert!(!of(&[(0, 0.0), (-300, 290.0)], 0) && of(&[(0, 0.0), (-300, 290.0)], 20));
    let date = 1_700_000_000_000_000_000;
    assert!(of(&[(date, 10.0), (date + 15, 10.0)], 0) && !of(&[(date, 10.0), (date + 25, 10.0)], 0));
    // Of one of them nobody says how wrong it may be.
    assert!(!of(&[(0, 0.0), (-300, 310.0), (200, 0.0)], 0));
    // Clocks that are farther apart than their bounds allow, in a trace whose messages wait for long.
    assert!(!of(&[(0, 0.0), (-3000, 50.0), (2000, 50.0)], 100_000));
}

#[test]
fn clocks_that_make_a_run_a_twentieth_longer_have_run_away() {
    let of = |recorded, estimated| has_run_away(recorded, estimated, 1_000_000_000);
    assert!(!of(1_000_000_000, 1_050_000_000) && of(1_000_000_000, 1_052_000_000));
    // A jump of half a millisecond is much of a short run.
    assert!(!of(2_000_000, 3_000_000) && of(2_000_000, 3_200_000));
    assert!(!of(1_000_000_000, 10) && !of(i64::MAX, i64::MAX));
}

#[test]
fn straight_lines_may_do_where_an_estimate_was_refused_or_there_was_none() {
    let refused = || Selected { refused: true, ..Selected::recorded("worse".to_owned()) };
    let may = may_be_straight;
    assert!(may(Method::Auto, &refused()) && may(Method::Auto, &Selected::for_want_of_others(String::new())));
    assert!(!may(Method::Network, &refused()) && may(Method::Network, &Selected::for_want_of_others(String::new())));
    // Nothing is wrong with the recorded clocks, others were taken, or lines were asked for.
    assert!(!may(Method::Auto, &Selected::recorded("no need".to_owned())));
    assert!(!may(Method::Auto, &Selected { clocks: SelectedClocks::Estimated, ..refused() }));
    assert!(!may(Method::Hull, &Selected::for_want_of_others(String::new())));
}
