//! Snapshot-like tests of the renderings, and of their documentation.

use super::{sample, *};
use clc_clock::Method;
use serde_json::Value;
use std::collections::BTreeSet;

fn narrow(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() < 80, "too long: {line}");
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn the_text_of_a_correction() {
    let text = text(&sample::corrected());
    println!("{text}");
    narrow(&text);
    assert_eq!(text, include_str!("testdata/corrected.txt"));
}

#[test]
fn the_text_of_a_check() {
    let text = text(&sample::checked());
    println!("{text}");
    narrow(&text);
    assert_eq!(text, include_str!("testdata/checked.txt"));
}

#[test]
fn the_text_of_an_analysis() {
    let report = Report { analysis: Some(analysis_sample::analysis()), ..sample::corrected() };
    let text = text(&report);
    println!("{text}");
    narrow(&text);
    assert_eq!(text, include_str!("testdata/analysed.txt"));
    let nothing = Report { analysis: Some(Analysis::default()), ..sample::corrected() };
    narrow(&analysis_text(&nothing, 10));
}

#[test]
fn a_violation_that_is_left_is_shouted() {
    let mut report = sample::corrected();
    report.violations.corrected = report.violations.presynchronised.clone();
    report.verdict = Verdict::new(&report.violations, &report.coverage, 64);
    assert_eq!(report.verdict.exit_status(), 1);
    let text = text(&report);
    assert!(text.starts_with("clc-replay 0.1.0: VIOLATED\n123 violations left in 1,238,888 communications.\n"));
    assert!(text.contains("Worst LEFT: a message, 4.50 us too early"));
}

#[test]
fn an_estimate_that_is_in_use_has_a_before_and_an_after() {
    let mut report = sample::corrected();
    assert!(text(&report).contains("the estimate, which is not in use, in 512 windows of"));
    report.clocks.as_mut().unwrap().chosen = Method::Network;
    let text = text(&report);
    narrow(&text);
    assert!(text.contains(" estimated in 512 windows of 250 ms"), "{text}");
    assert!(text.contains("disagreement of clocks, all pairs: 15.0 us before, 250 ns after"), "{text}");
}

#[test]
fn what_was_not_checked_is_in_the_headline() {
    let with = |checked: u64, unmatched_sends: u64| {
        let mut report = sample::checked();
        for stage in [&mut report.violations.raw, &mut report.violations.presynchronised].into_iter().flatten() {
            *stage = StageViolations::default();
            stage.point_to_point.checked = checked;
        }
        report.matching = Matching { messages: checked, unmatched_sends, ..Matching::default() };
        report.coverage = Coverage::new(checked, &report.matching, 0, &[]);
        report.verdict = Verdict::new(&report.violations, &report.coverage, 64);
        let head = text(&report).lines().take(3).collect::<Vec<_>>().join("|");
        (report.verdict.exit_status(), head, html(&report).expect("a page"), json(&report).expect("JSON"))
    };
    let (status, head, page, json) = with(0, 800);
    let expected =
        "clc-replay 0.1.0: NOTHING TO CHECK|0 % of the communication in the trace could be checked; see below.|";
    assert_eq!((status, head.as_str()), (3, expected));
    assert!(page.contains("<span class=\"badge unsure\">nothing to check</span>"));
    assert!(json.contains("\"verdict\": \"nothing_to_check\"") && json.contains("\"share\": 0.0"));
    let (status, head, page, json) = with(1, 399);
    let expected = "clc-replay 0.1.0: PARTLY CHECKED|No violation in 1 communication.|\
                    0.2 % of the communication in the trace was checked; for the rest see below.";
    assert_eq!((status, head.as_str()), (3, expected));
    assert!(
        page.contains("<span class=\"badge unsure\">partly checked</span>")
            && page.contains("0.2 % of the communication")
    );
    assert!(json.contains("\"verdict\": \"partly_checked\"") && json.contains("\"share\": 0.0025"));
    let (status, head, ..) = with(0, 0);
    assert_eq!((status, head.as_str()), (3, "clc-replay 0.1.0: NOTHING TO CHECK|The trace has no communication.|"));
    let (status, head, page, _) = with(400, 0);
    assert_eq!((status, head.as_str()), (0, "clc-replay 0.1.0: CONSISTENT|No violation in 400 communications.|"));
    assert!(page.contains("<span class=\"badge good\">consistent</span>"));
}

#[test]
fn verdicts() {
    let clean = sample::corrected().violations.corrected;
    let dirty = sample::corrected().violations.raw;
    let verdict = |raw: &Option<StageViolations>,
                   presynchronised: &Option<StageViolations>,
                   corrected: &Option<StageViolations>| {
        let stages = [raw, presynchronised, corrected].map(Clone::clone);
        let [raw, presynchronised, corrected] = stages;
        let violations = Violations { raw, presynchronised, corrected };
        Verdict::new(&violations, &Coverage::new(violations.checked(), &Matching::default(), 0, &[]), 64)
    };
    assert_eq!(verdict(&clean, &clean, &clean), Verdict::Consistent);
    assert_eq!(verdict(&dirty, &clean, &None), Verdict::Corrected);
    assert_eq!(verdict(&dirty, &dirty, &clean), Verdict::Corrected);
    assert_eq!(verdict(&dirty, &dirty, &None), Verdict::Violated);
    assert_eq!(verdict(&clean, &clean, &dirty), Verdict::Violated);
    assert_eq!(verdict(&None, &None, &None), Verdict::NothingToCheck);
}

#[test]
fn the_text_of_a_description_is_short_for_many_processes() {
    let large = info_text(&sample::info(1024), false);
    println!("{large}");
    narrow(&large);
    assert_eq!(large, include_str!("testdata/info.txt"));
    let all = info_text(&sample::info(1024), true);
    narrow(&all);
    assert!(all.contains("\n  512 MPI Rank 512") && all.contains("\n  node63 "));
    assert!(!all.contains("--all"));
    let small = info_text(&sample::info(8), false);
    assert!(small.contains("MPI_COMM_WORLD") && !small.contains("--all"));
    let mut bare = sample::info(0);
    bare.trace.timer_resolution = 0;
    narrow(&info_text(&bare, false));
}

#[test]
fn the_worst_pairs_are_named() {
    let mut matching = Matching::default();
    let pair = |n: u32| UnmatchedPair { sender: n, receiver: 0, sends: u64::from(n % 20), receives: 0 };
    matching.set_unmatched_pairs((0..40).map(pair).collect());
    assert_eq!(matching.unmatched_pairs.len(), Matching::PAIRS);
    assert_eq!(matching.further_unmatched_pairs, 28);
    assert_eq!([0, 1].map(|n: usize| matching.unmatched_pairs[n].sender), [19, 39]);
}

/// Paths of all fields: `a.b`, `list[].c`. The three stages of violations are one path, `STAGE`.
fn paths(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = match name.as_str() {
                    "raw" | "presynchronised" | "corrected" if prefix == "violations" => "STAGE",
                    // Both ends of a violation, or of an overlap, have the same fields.
                    "from" | "to" | "held" | "acquired" if prefix.contains("worst") => "END",
                    // Both stages of an analysis, or of locks, as well.
                    "before" | "after" if ["execution", "critical_path", "locks"].contains(&prefix) => "STAGE",
                    name => name,
                };
                let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
                paths(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| paths(value, &format!("{prefix}[]"), found)),
        _ => {}
    }
}

/// Field paths in the first column of the tables under the heading `title` of docs/report.md.
fn documented(title: &str) -> BTreeSet<String> {
    let docs = include_str!("../../docs/report.md");
    let section = docs.split("\n## ").find(|section| section.starts_with(title)).expect("the section exists");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

#[test]
fn every_field_is_documented_and_every_documented_field_exists() {
    let report = serde_json::from_str(&json(&sample::corrected()).expect("JSON")).expect("JSON");
    let info = serde_json::from_str(&json(&sample::info(16)).expect("JSON")).expect("JSON");
    let analysis = serde_json::to_value(analysis_sample::analysis()).expect("JSON");
    let parts =
        [("Fields of a report", report), ("Fields of a description", info), ("Fields of an analysis", analysis)];
    for (title, value) in parts {
        let mut found = BTreeSet::new();
        paths(&value, "", &mut found);
        assert_eq!(found, documented(title), "{title}");
    }
}

#[test]
fn the_documented_example_is_real() {
    let docs = include_str!("../../docs/report.md");
    let example = docs.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    // Pages of numbers would teach nobody.
    let short = Report { details: None, ..sample::corrected() };
    let expected = json(&short).expect("JSON");
    println!("{expected}");
    assert_eq!(example, expected);
    let report = serde_json::from_str::<Report>(example).expect("readable");
    assert_eq!(report.violations.corrected, sample::corrected().violations.corrected);
}

#[test]
fn a_stored_report_is_the_report() {
    let mut endless = sample::corrected();
    if let Some(displacement) = &mut endless.displacement {
        displacement.interval_change.largest_percent = f64::INFINITY;
    }
    let analysed = Report { analysis: Some(analysis_sample::analysis()), ..sample::corrected() };
    for report in [sample::corrected(), sample::checked(), endless, analysed] {
        let text = json(&report).expect("JSON");
        let stored = serde_json::from_str::<Report>(&text).expect("readable");
        // Not assert_eq: nobody wants to read both.
        assert!(json(&stored).expect("JSON") == text);
        assert!(html(&stored).expect("a page") == html(&report).expect("a page"));
    }
}
