//! The chapter on waiting times: by kind, call path, process and pair, before against after.

use super::{STAGES, call_path, further, legend, long_table, share};
use crate::report::html::element::{duration, escape, figure, fold, table};
use crate::report::{DelayCost, DelayCosts, KindWaiting, ProcessDelay, ThreadWaits, WaitStates, Waiting};
use clc_trace::format::count;

pub(super) fn body(waits: &WaitStates) -> String {
    let mut html = String::from(
        "<p>How long MPI operations waited for others, summed over all processes, with the times that a reader of the \
        trace sees and with corrected times. Waiting that exists only in the former is an <em>artefact</em> of the \
        clocks; waiting that exists only in the latter was <em>hidden</em> by them.</p>\n",
    );
    if waits.total.before_count == 0 && waits.total.after_count.unwrap_or(0) == 0 {
        html += "<p class=\"none\">No process waited.</p>\n";
        return html + &threads(&waits.threads, waits.total.after_seconds.is_some()) + &blind(waits);
    }
    html += &bars(waits);
    let corrected = waits.total.after_seconds.is_some();
    let mut rows: Vec<Vec<String>> =
        waits.kinds.iter().map(|kind| with(vec![escape(kind.kind.name())], &kind.waiting)).collect();
    rows.push(with(vec!["all".to_owned()], &waits.total));
    html += &table("Waiting time by kind", &head(&["kind"], corrected), rows);
    let details = waits.details.iter().filter(|detail| detail.waiting.occurs());
    let rows: Vec<Vec<String>> = details
        .map(|detail| {
            let part_of = detail.part_of.map_or("no waiting", |kind| kind.name());
            with(vec![escape(detail.kind.name()), escape(part_of)], &detail.waiting)
        })
        .collect();
    if !rows.is_empty() {
        html += &table("Parts of these, and related times", &head(&["what", "part of"], corrected), rows);
    }

    let rows = waits.by_call_path.iter();
    let rows = rows.map(|entry| with(vec![call_path(&entry.call_path), entry.kind.name().to_owned()], &entry.waiting));
    html += &long_table("By call path", &head(&["call path", "kind"], corrected), rows.collect());
    html += &further(waits.further_call_paths, "call path");

    let rows = waits.by_process.iter();
    let rows = rows.map(|entry| with(vec![count(entry.process.into()), entry.kind.name().to_owned()], &entry.waiting));
    let text = long_table("By waiting process", &head(&["process", "kind"], corrected), rows.collect());
    html += &fold("By process", &(text + &further(waits.further_processes, "entry")));

    let rows = waits.by_pair.iter().map(|pair| {
        let mut row = vec![count(pair.process.into()), count(pair.cause.into()), pair.kind.name().to_owned()];
        row.push(duration(pair.before_seconds));
        row.extend(pair.after_seconds.map(duration));
        row
    });
    let mut columns = vec!["process", "waited for", "kind", "before"];
    columns.extend(corrected.then_some("after"));
    let text = long_table("By pair of processes", &columns, rows.collect());
    html += &fold("Who waited for whom", &(text + &further(waits.further_pairs, "pair")));
    html + &delays(&waits.delays) + &threads(&waits.threads, corrected) + &blind(waits)
}

/// What the waiting is blamed on.
fn delays(delays: &DelayCosts) -> String {
    let row = |mut row: Vec<String>, costs: [Option<&DelayCost>; 2]| {
        for cost in costs {
            row.push(cost.map(|cost| duration(cost.before_seconds)).unwrap_or_default());
            row.extend(
                delays
                    .propagated
                    .after_seconds
                    .map(|_| cost.and_then(|cost| cost.after_seconds).map(duration).unwrap_or_default()),
            );
        }
        row
    };
    let mut html = String::from(
        "<p>What made others wait: since one of the two last waited for the other, or all for all, the process that was \
        waited for spent more time in these regions than the one that waited, or waited itself (propagated). The waiting \
        time is divided among them in proportion. What is propagated is divided where those that were waited for have waited \
        themselves: long-term costs.</p>\n",
    );
    let name = |region: &str| if region.is_empty() { "(outside of any region)".to_owned() } else { escape(region) };
    let mut rows: Vec<Vec<String>> = delays
        .by_region
        .iter()
        .map(|entry| row(vec![name(&entry.region)], [Some(&entry.cost), Some(&entry.long_term)]))
        .collect();
    let others = [
        ("propagated: waiting of those that were waited for", &delays.propagated, Some(&delays.long_term)),
        ("unexplained", &delays.unexplained, None),
        ("not examined", &delays.not_examined, None),
    ];
    rows.extend(others.map(|(name, cost, long)| row(vec![format!("<em>{name}</em>")], [Some(cost), long])));
    let columns = |first| {
        let mut columns = vec![first, "before"];
        let corrected = delays.propagated.after_seconds.is_some();
        columns.extend(corrected.then_some("after"));
        columns.push(if corrected { "long-term before" } else { "long-term" });
        columns.extend(corrected.then_some("long-term after"));
        columns
    };
    html += &long_table("Delay costs by region", &columns("region"), rows);
    html += &further(delays.further_regions, "region");
    let of_process =
        |entry: &ProcessDelay| row(vec![count(entry.process.into())], [Some(&entry.cost), Some(&entry.long_term)]);
    let rows = delays.by_process.iter().map(of_process);
    let text = long_table("Delay costs by process", &columns("process"), rows.collect());
    html + &fold("Who made others wait", &(text + &further(delays.further_processes, "process")))
}

/// Waiting of threads: nothing where none waited.
fn threads(threads: &ThreadWaits, corrected: bool) -> String {
    let kinds: Vec<_> = threads.kinds.iter().filter(|kind| kind.waiting.occurs()).collect();
    if kinds.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<p>The threads of a process wait for each other at barriers and for locks, and worker threads have nothing to do \
        while the main thread is outside of parallel regions (Idle Threads) or in one without them (Limited \
        Parallelism). None of this is part of the times above.</p>\n",
    );
    let rows = kinds.iter().map(|kind| with(vec![escape(kind.kind.name())], &kind.waiting));
    html += &table("Waiting time of threads by kind", &head(&["kind"], corrected), rows);
    let rows = threads.by_call_path.iter();
    let rows = rows.map(|entry| with(vec![call_path(&entry.call_path), entry.kind.name().to_owned()], &entry.waiting));
    html += &long_table("Threads by call path", &head(&["call path", "kind"], corrected), rows.collect());
    html += &further(threads.further_call_paths, "call path");
    let rows = threads.by_process.iter();
    let rows = rows.map(|entry| with(vec![count(entry.process.into()), entry.kind.name().to_owned()], &entry.waiting));
    let text = long_table("Threads by process", &head(&["process", "kind"], corrected), rows.collect());
    html + &fold("Threads by process", &(text + &further(threads.further_processes, "entry")))
}

fn head<'a>(first: &[&'a str], corrected: bool) -> Vec<&'a str> {
    let mut head = first.to_vec();
    head.extend(["before", "instances"]);
    if corrected {
        head.extend(["after", "instances", "artefact", "of before", "hidden"]);
    }
    head
}

fn with(mut row: Vec<String>, waiting: &Waiting) -> Vec<String> {
    row.extend([duration(waiting.before_seconds), count(waiting.before_count)]);
    if let Some(after) = waiting.after_seconds {
        row.extend([duration(after), count(waiting.after_count.unwrap_or(0))]);
        row.push(duration(waiting.artefact_seconds.unwrap_or(0.0)));
        row.push(waiting.artefact_share.map_or(String::new(), share));
        row.push(duration(waiting.hidden_seconds.unwrap_or(0.0)));
    }
    row
}

/// Bars of the kinds that occur, before and after below each other.
fn bars(waits: &WaitStates) -> String {
    const LEFT: f64 = 130.0;
    const WIDTH: f64 = 640.0;
    const BAR: f64 = 16.0;
    let kinds: Vec<&KindWaiting> = waits.kinds.iter().filter(|kind| kind.waiting.occurs()).collect();
    let stages = 1 + usize::from(waits.total.after_seconds.is_some());
    let times = |waiting: &Waiting| [waiting.before_seconds, waiting.after_seconds.unwrap_or(0.0)];
    let most = kinds.iter().flat_map(|kind| times(&kind.waiting)).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let step = BAR * stages as f64 + 12.0;
    let mut svg = String::new();
    for (place, kind) in kinds.iter().enumerate() {
        let top = 6.0 + place as f64 * step;
        svg += &format!(
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            top + BAR * stages as f64 / 2.0 + 4.0,
            escape(kind.kind.name())
        );
        for (stage, seconds) in times(&kind.waiting).into_iter().take(stages).enumerate() {
            let (y, length) = (top + stage as f64 * BAR, WIDTH * seconds / most);
            svg += &format!(
                "<rect class=\"bar {}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{:.1}\"/>\
                 <text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                STAGES[stage].0,
                BAR - 1.0,
                LEFT + length + 6.0,
                y + BAR - 4.0,
                duration(seconds)
            );
        }
    }
    let height = 12.0 + kinds.len() as f64 * step;
    let picture = format!(
        "<svg class=\"plot\" viewBox=\"0 0 900 {height:.0}\" style=\"min-width:560px\" role=\"img\" \
         aria-label=\"Waiting time by kind, before and after; the table below has the numbers.\">{svg}</svg>"
    );
    figure("Waiting time, all processes together", &(legend(stages) + &picture))
}

fn blind(waits: &WaitStates) -> String {
    match waits.without_region {
        0 => String::new(),
        number => format!(
            "<p>{} communication events lie outside any MPI region, so nothing is known about their waiting \
            times.</p>\n",
            count(number)
        ),
    }
}
