//! The examples do what they say.

#[path = "../../src/clock/examples/clocks_of_messages.rs"]
mod clocks_of_messages;
#[path = "../../src/examples/correct_trace.rs"]
mod correct_trace;
#[path = "../../src/otf2/examples/decode_events.rs"]
mod decode_events;
#[path = "../../src/otf2/examples/late_messages.rs"]
mod late_messages;
#[path = "../../src/otf2/examples/repeat_in_time.rs"]
mod repeat_in_time;

use crate::common::fixture;

#[test]
fn late_messages_are_printed_and_gone_after_the_correction() {
    let directory = tempfile::tempdir().unwrap();
    let (trace, corrected) = (fixture("tracer-halo-4"), directory.path().join("corrected"));
    let before = late_messages::late_messages(&trace).unwrap();
    assert!(before.first().is_some_and(|line| line.starts_with("rank ")), "{before:?}");
    let said = correct_trace::correct(&trace, &corrected).unwrap();
    assert!(said.ends_with("0 after: Corrected"), "{said}");
    assert_eq!(late_messages::late_messages(&corrected).unwrap(), Vec::<String>::new());
}

#[test]
fn events_are_counted_by_their_records() {
    let trace = fixture("tracer-halo-4");
    let lines = decode_events::decode(&trace).unwrap();
    let counted: u64 = lines
        .iter()
        .filter(|line| !line.starts_with("times "))
        .map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap())
        .sum();
    let (definitions, _) = clc_otf2::Otf2Archive::open(&trace).unwrap().read_definitions().unwrap();
    assert_eq!(counted, definitions.locations.iter().map(|location| location.claimed_events).sum::<u64>(), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("MpiIsend ")), "{lines:?}");
}

#[test]
fn clocks_come_out_of_a_table_of_messages() {
    let trip = |k: i64| {
        let begin = k * 1_000_000;
        format!("0,1,{begin},{}\n1,0,{},{}\n", begin + 2000 - 70_000, begin + 3000 - 70_000, begin + 5000)
    };
    let table: String = (0..300).map(trip).collect();
    let offsets = clocks_of_messages::offsets(&table).unwrap();
    // Without measured offsets, the mean of both is global time.
    assert!((offsets[1].0 - offsets[0].0 - 70_000).abs() <= 2, "{offsets:?}");
    let error = clocks_of_messages::offsets("0,1,2\n").unwrap_err();
    assert_eq!(error.message, "line 1 has 3 fields instead of 4");
}

#[test]
fn a_trace_is_repeated_with_all_that_is_wrong_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (trace, long) = (fixture("tracer-halo-4"), directory.path().join("long"));
    let once = |trace: &std::path::Path| {
        let lines = decode_events::decode(trace).unwrap();
        lines.into_iter().filter(|line| !line.starts_with("times ")).collect::<Vec<String>>()
    };
    let events = repeat_in_time::repeat(&trace, 3, &long).unwrap();
    let thrice = |line: &String| {
        let (record, count) = line.split_once(' ').unwrap();
        format!("{record} {}", 3 * count.parse::<u64>().unwrap())
    };
    assert_eq!(once(&long), once(&trace).iter().map(thrice).collect::<Vec<String>>());
    let (definitions, _) = clc_otf2::Otf2Archive::open(&long).unwrap().read_definitions().unwrap();
    assert_eq!(events, definitions.locations.iter().map(|location| location.claimed_events).sum::<u64>());
    let late = |trace: &std::path::Path| late_messages::late_messages(trace).unwrap().len();
    assert!(late(&trace) > 0);
    assert_eq!(late(&long), 3 * late(&trace));
}
