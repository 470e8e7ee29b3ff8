//! The summary of a run as text: what a performance engineer pastes into a mail.

use super::pairs::pairs;
use super::table::{TextTable, labelled, shorten};
use crate::report::{
    CollectiveKind, Displacement, DoubtfulChannel, EventPlace, IntervalChange, Matching, Replay, ReplayForm, Report,
    Stage, StageViolations, TraceSummary, Verdict, Warning, WorstKind,
};
use clc_clock::Method;
use clc_trace::format::{bytes, count, duration, percent, plural};
use std::fmt::Write;

/// Column at which the text after a label begins.
const INDENT: usize = 13;
/// Width of the first column of the tables.
const FIRST: usize = 21;

/// The summary of a correction or a check, the verdict first.
pub(crate) fn correction_text(report: &Report) -> String {
    let parts = [
        verdict(report),
        trace(report),
        pairs(report, FIRST),
        violations(report),
        super::locks::text(report, INDENT),
        report.replay.as_ref().map(|replay| passes(replay, report.program.analysis_ranks)).unwrap_or_default(),
        report.displacement.as_ref().map(displacement).unwrap_or_default(),
        left_out(report),
        phases(report),
        warnings_text(&report.warnings),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn verdict(report: &Report) -> String {
    let stages = [&report.violations.raw, &report.violations.presynchronised, &report.violations.corrected];
    let found: Vec<&StageViolations> = stages.into_iter().flatten().collect();
    let before = found.first().map_or(0, |stage| stage.violated());
    let last = found.last();
    let (left, checked) = last.map_or((0, 0), |stage| (stage.violated(), stage.checked()));
    let word = match report.verdict {
        Verdict::Consistent => "CONSISTENT",
        Verdict::Corrected if report.replay.is_none() => "CONSISTENT after pre-synchronisation",
        Verdict::Corrected => "CORRECTED",
        Verdict::Violated => "VIOLATED",
        Verdict::PartlyChecked => "PARTLY CHECKED",
        Verdict::NothingToCheck => "NOTHING TO CHECK",
    };
    let checked = plural(checked, "communication");
    let numbers = match report.verdict {
        Verdict::NothingToCheck if report.coverage.not_checked > 0 => {
            "0 % of the communication in the trace could be checked; see below.".to_owned()
        }
        Verdict::NothingToCheck => "The trace has no communication.".to_owned(),
        Verdict::Consistent | Verdict::PartlyChecked if before == 0 => format!("No violation in {checked}."),
        Verdict::Consistent | Verdict::PartlyChecked | Verdict::Corrected => {
            format!("{} as recorded, none left in {checked}.", plural(before, "violation"))
        }
        Verdict::Violated if report.replay.is_none() => format!("{} in {checked}.", plural(left, "violation")),
        Verdict::Violated => format!("{} left in {checked}.", plural(left, "violation")),
    };
    let mut text = format!("clc-replay {}: {word}\n{numbers}\n", report.program.version);
    if let Some(share) = report.coverage.words().filter(|_| report.coverage.checked > 0) {
        text += &format!("{share} of the communication in the trace was checked; for the rest see below.\n");
    }
    match &report.output {
        Some(output) => text += &format!("Written to {output}\n"),
        None if report.replay.is_some() => text += "Nothing was written (dry run).\n",
        None => {}
    }
    text
}

pub(super) fn trace(report: &Report) -> String {
    let (trace, parameters) = (&report.trace, &report.parameters);
    let mut text = format!("{:<INDENT$}{}\n", "Trace", trace.path);
    let mut line = |label: &str, content: String| text += &labelled(label, &content, INDENT);
    line("", archive(trace));
    line(
        "",
        format!(
            "{} on {}, {}, {}",
            plural(trace.processes, "process"),
            plural(trace.nodes, "node"),
            plural(trace.locations, "location"),
            plural(trace.communicators, "communicator"),
        ),
    );
    let tick = if trace.timer_resolution == 0 { 0.0 } else { 1.0 / trace.timer_resolution as f64 };
    let span = duration(trace.span_seconds);
    line("", format!("{} in {span}, timer tick {}", plural(trace.events, "event"), duration(tick)));

    let clocks = &parameters.clocks;
    let model = match parameters.presync {
        Method::None => "none: recorded times are taken as global".to_owned(),
        method => {
            let kinds =
                [(clocks.piecewise, "piecewise"), (clocks.constant, "constant"), (clocks.identity, "unchanged")];
            let named = kinds.iter().filter(|(number, _)| *number > 0);
            let named: Vec<String> =
                named.map(|(number, kind)| format!("{} {kind}", plural(*number, "location"))).collect();
            let chosen = report.clocks.as_ref().map_or(method, |estimate| estimate.chosen);
            format!("{}: {}", chosen.name(), named.join(", "))
        }
    };
    line("Clocks", model);
    if let Some(estimate) = &report.clocks {
        line("", format!("{} was requested: {}", estimate.requested.name(), estimate.reason));
        if !estimate.pairs.is_empty() {
            let all = estimate.all_clocks();
            let uncertainty = match all.uncertainty_unknown {
                0 => format!("uncertainty up to {}", duration(all.uncertainty_seconds)),
                unknown => format!("uncertainty unknown for {}", plural(unknown, "clock")),
            };
            let (estimated, by, [before, after]) = match estimate.chosen {
                Method::None | Method::Linear => {
                    ("the estimate, which is not in use,", " by it", ["recorded", "estimated"])
                }
                _ => ("estimated", "", ["before", "after"]),
            };
            line(
                "",
                format!(
                    "{estimated} in {} of {}: drift up to {:.2} ppm, residual up to {}, {uncertainty}",
                    plural(estimate.windows, "window"),
                    duration(estimate.window_seconds),
                    all.drift_ppm,
                    duration(all.residual_seconds),
                ),
            );
            let left = |what: &str, recorded: f64, estimated: f64| {
                format!("{what}: {} {before}, {} {after}", duration(recorded), duration(estimated))
            };
            let (recorded, estimated) = (estimate.skew_recorded_seconds, estimate.skew_estimated_seconds);
            line("", left(&format!("disagreement of clocks{by}, all pairs"), recorded, estimated));
            let (recorded, estimated) = (estimate.skew_median_recorded_seconds, estimate.skew_median_estimated_seconds);
            line("", left(&format!("skew of clocks{by} against their median"), recorded, estimated));
        }
    }
    let latency = &parameters.latency;
    let value = if latency.same_node_seconds == latency.other_node_seconds {
        duration(latency.same_node_seconds)
    } else {
        let (same, other) = (duration(latency.same_node_seconds), duration(latency.other_node_seconds));
        format!("{same} within a node, {other} between nodes")
    };
    line("Latency", latency.why().map_or(value.clone(), |why| format!("{value}: {why}")));
    if let (Some(slope), Some(passes), Some(error)) = (parameters.slope, parameters.max_passes, parameters.max_error) {
        let passes = plural(passes.into(), "pass");
        line("Parameters", format!("at most {passes}, error up to {error}, backward slope {slope}"));
    }
    if parameters.handles {
        line("", "calls that create communicators, such as MPI_Comm_split, are treated as all-to-all".into());
    }
    if parameters.alltoallv {
        line("", "alltoallv and similar operations are treated as all-to-all".into());
    }
    text
}

/// Name of the archive and of the tool that wrote it, if it says so.
pub(super) fn archive(trace: &TraceSummary) -> String {
    let name = shorten(&trace.name, 40);
    match trace.creator.as_str() {
        "" => name,
        creator => format!("{name}, written by {}", shorten(creator, 60)),
    }
}

fn violations(report: &Report) -> String {
    let violations = &report.violations;
    let heading = |stage| match stage {
        Stage::Raw => "raw",
        Stage::Presynchronised => "presync",
        Stage::Corrected => "corrected",
    };
    let stages: Vec<(Stage, &StageViolations)> = violations.by_stage().collect();
    let Some((_, any)) = stages.first() else { return String::new() };

    let mut table = TextTable::default();
    let mut row = |name: &str, checked: String, cell: &dyn Fn(&StageViolations, &str) -> String| {
        let column =
            |index: usize| stages.get(index).map(|(name, stage)| cell(stage, heading(*name))).unwrap_or_default();
        table.row([name, &checked, &column(0), &column(1), &column(2)]);
    };
    row("Violations", "checked".into(), &|_, name| name.into());
    row("  messages", count(any.point_to_point.checked), &|stage, _| count(stage.point_to_point.violated));
    for kind in CollectiveKind::ALL {
        let checked = any.collective(kind).instances_checked;
        if checked > 0 {
            let name = format!("  {}", kind.name());
            row(&name, count(checked), &|stage, _| count(stage.collective(kind).violated));
        }
    }
    row("  worst", String::new(), &|stage, _| stage.worst.as_ref().map_or("-".into(), |worst| duration(worst.seconds)));
    let mut text = table.render(FIRST);

    // The place that matters: what is left, else what had to be corrected.
    let worst = stages.iter().rev().find_map(|(name, stage)| stage.worst.as_ref().map(|worst| (name, worst)));
    if let Some((stage, worst)) = worst {
        let stage = match *stage {
            Stage::Corrected => "LEFT",
            stage => stage.words(),
        };
        let (what, verbs) = match worst.kind {
            WorstKind::Message => ("a message", ["sent", "received"]),
            WorstKind::OneToN => ("a 1-to-N collective", ["begun", "ended"]),
            WorstKind::NToOne => ("an N-to-1 collective", ["begun", "ended"]),
            WorstKind::NToN => ("an N-to-N collective", ["begun", "ended"]),
            WorstKind::Prefix => ("a scan", ["begun", "ended"]),
            WorstKind::Fence => ("a fence", ["begun", "ended"]),
            WorstKind::Group => ("the end of an epoch on a window", ["awaited", "ended"]),
            WorstKind::SynchronousSend => ("the end of a synchronous send", ["posted", "ended"]),
            WorstKind::Fork => ("a fork or join of threads", ["before", "after"]),
            WorstKind::ThreadBarrier => ("a barrier of threads", ["arrived", "departed"]),
            WorstKind::ThreadCreation => ("the begin of a thread, or the wait for its end", ["before", "after"]),
            WorstKind::Task => ("the run of a task", ["created", "run"]),
            WorstKind::ThreadLock => ("a lock of threads", ["released", "acquired"]),
            WorstKind::AcceleratorIssue => ("a kernel or copy of an accelerator", ["issued", "begun"]),
            WorstKind::AcceleratorWait => ("a wait for a stream of an accelerator", ["done", "ended"]),
        };
        let _ = writeln!(text, "Worst {stage}: {what}, {} too early", duration(worst.seconds));
        for (verb, at) in verbs.into_iter().zip([&worst.from, &worst.to]) {
            text += &labelled(&format!("  {verb}"), &place(at), INDENT);
        }
    }
    text
}

fn place(at: &EventPlace) -> String {
    let region = at.region.as_ref().map(|region| format!("{} on ", shorten(region, 30))).unwrap_or_default();
    let event = count(at.event.0);
    format!("{region}rank {}, location {}, event {event}, {:.9} s", at.process, at.location, at.seconds)
}

fn passes(replay: &Replay, ranks: u64) -> String {
    let ranks = plural(ranks, "rank");
    let form = match replay.form {
        ReplayForm::Canonical => format!("canonical: operation by operation on {ranks}, one per process"),
        ReplayForm::Dataflow => format!("dataflow: batched timestamps on {ranks}"),
    };
    let mut table = TextTable::default();
    // Of one correction, what it moved is said below.
    let several = replay.passes.iter().filter(|pass| pass.displacement_seconds.is_some()).count() > 1;
    let displacement = |text: &str| if several { text.to_owned() } else { String::new() };
    table.row(["Passes", "gamma", "largest advance", "error", &displacement("moved by at most")]);
    for (number, pass) in (1u64..).zip(&replay.passes) {
        let error = if pass.error.is_finite() { format!("{:.2}", pass.error) } else { "-".into() };
        let (gamma, advance) = (pass.gamma.to_string(), duration(pass.largest_advance_seconds));
        let moved = displacement(&pass.displacement_seconds.map_or_else(|| "-".into(), duration));
        table.row([&format!("  {}", count(number)), &gamma, &advance, &error, &moved]);
    }
    if let Some((pass, mirrored)) = replay.passes.iter().rev().find_map(|pass| Some((pass, pass.mirrored?))) {
        let moved = duration(mirrored.largest_move_seconds);
        table.row(["  mirrored", &pass.gamma.to_string(), &moved, &format!("{:.2}", mirrored.error)]);
    }
    table.row(["  unavoidable (D0)", "", &duration(replay.d0_seconds), ""]);
    if let Some(common) = &replay.common_motion {
        table.row(["  common motion", "", &duration(common.largest_seconds), ""]);
        if common.restored_ticks > 0 {
            table.row(["  restored", "", &duration(common.restored_seconds), ""]);
        }
    }
    labelled("Replay", &form, INDENT) + &table.render(FIRST)
}

fn displacement(displacement: &Displacement) -> String {
    let share = if displacement.events == 0 {
        0.0
    } else {
        100.0 * displacement.events_moved as f64 / displacement.events as f64
    };
    let mut text = labelled(
        "Moved",
        &format!("{} ({}) after pre-synchronisation", plural(displacement.events_moved, "event"), percent(share)),
        INDENT,
    );
    if displacement.events_moved > 0 {
        let (largest, mean) = (duration(displacement.largest_seconds), duration(displacement.mean_seconds));
        text += &labelled("", &format!("by {largest} at most, {mean} on average"), INDENT);
    }
    if displacement.from_recorded_events > 0 {
        let (events, largest) =
            (plural(displacement.from_recorded_events, "event"), duration(displacement.from_recorded_largest_seconds));
        text += &labelled("", &format!("{events} from the recorded times, by {largest} at most"), INDENT);
    }
    text + &intervals(&displacement.interval_change)
}

fn intervals(change: &IntervalChange) -> String {
    let (largest, median) = (percent(change.largest_percent), percent(change.median_percent));
    let mut text =
        labelled("Intervals", &format!("changed by {largest} of their length at most, median {median}"), INDENT);
    let mut table = TextTable::default();
    for class in change.classes.iter().filter(|class| class.intervals > 0) {
        let name = match class.up_to_percent {
            Some(0.0) => "  unchanged".into(),
            Some(bound) => format!("  up to {bound} %"),
            None => "  more".into(),
        };
        table.row([&name, &count(class.intervals)]);
    }
    text += &table.render(FIRST);
    text
}

/// Everything that takes no part in the replay; nothing if there is nothing to say.
pub(super) fn left_out(report: &Report) -> String {
    let matching = &report.matching;
    let mut lines = Vec::new();
    let mut number = |number: u64, what: &str| {
        if number > 0 {
            lines.push((number, what.to_owned()));
        }
    };
    number(matching.unmatched_sends, "sends without a receive");
    number(matching.unmatched_receives, "receives without a send");
    for call in &matching.calls_without_records {
        number(call.count, &format!("{} without a record of what it communicated", call.region));
    }
    number(matching.contradicted_orders, "doubtful orders that contradict the rest of the trace");
    number(matching.undefined_peers, "messages to or from an undefined rank");
    number(matching.receives_never_completed, "posted receives without completion");
    number(matching.cancelled_requests, "cancelled requests");
    for op in &matching.collectives {
        number(op.incomplete, &format!("{} with members missing", op.operation));
        number(op.inconsistent, &format!("{} on which members disagree", op.operation));
        for reason in &op.unconstrained_reasons {
            number(reason.count, &format!("{}: {}", op.operation, reason.reason));
        }
    }
    let windows = &matching.windows;
    number(
        windows.lock_accesses,
        "accesses to windows under locks: the trace does not show the order in which the locks were held",
    );
    for steps in &matching.threads {
        number(steps.left_out, &format!("{} that were not compared", steps.kind.name()));
    }
    number(windows.unmatched_steps, "post, start, complete or wait steps without a partner");
    let others =
        report.coverage.one_sided.saturating_sub(windows.lock_accesses).saturating_sub(windows.unmatched_steps);
    number(others, "other one-sided operations without a known order");
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "Not replayed\n".to_owned();
    let width = lines.iter().map(|(number, _)| count(*number).len()).max().unwrap_or(0);
    for (number, what) in lines {
        text += &labelled(&format!("  {:>width$}", count(number)), &what, width + 4);
    }
    if !matching.unmatched_pairs.is_empty() {
        let mut table = TextTable::default();
        table.row(["Unmatched by pair", "sends", "receives"]);
        for pair in &matching.unmatched_pairs {
            let name = format!("  rank {} to {}", pair.sender, pair.receiver);
            table.row([&name, &count(pair.sends), &count(pair.receives)]);
        }
        text += &table.render(FIRST);
        if matching.further_unmatched_pairs > 0 {
            let _ = writeln!(text, "  and {}", plural(matching.further_unmatched_pairs, "further pair"));
        }
    }
    text + &in_doubt(matching)
}

/// Channels in which records are missing, or which several threads share.
fn in_doubt(matching: &Matching) -> String {
    if matching.channels_in_doubt == 0 {
        return String::new();
    }
    let mut table = TextTable::default();
    table.row(["Channels in doubt", "sends", "receives", "matched", "implied orders"]);
    for channel in &matching.doubtful_channels {
        let DoubtfulChannel { sender, receiver, communicator, tag, .. } = channel;
        let threads = if channel.several_threads { ", several threads" } else { "" };
        let name = format!("  rank {sender} to {receiver}, communicator {communicator}, tag {tag}{threads}");
        let numbers = [channel.sends, channel.receives, channel.matched, channel.implied_orders].map(count);
        table.row([&name, &numbers[0], &numbers[1], &numbers[2], &numbers[3]]);
    }
    let mut text = table.render(FIRST);
    let further = matching.channels_in_doubt.saturating_sub(matching.doubtful_channels.len() as u64);
    if further > 0 {
        let _ = writeln!(text, "  and {}", plural(further, "further channel"));
    }
    text
}

pub(super) fn phases(report: &Report) -> String {
    let mut table = TextTable::default();
    let total: f64 = report.phases.iter().map(|phase| phase.seconds).sum();
    let ranks = plural(report.program.analysis_ranks, "rank");
    table.row(["Time", &duration(total), &format!("on {ranks}")]);
    for phase in &report.phases {
        table.row([&format!("  {}", shorten(&phase.name, 20)), &duration(phase.seconds), &phase.rate()]);
    }
    let mut text = table.render(FIRST);
    let memory = &report.memory;
    if memory.largest_rank_bytes > 0 {
        let (largest, all) = (bytes(memory.largest_rank_bytes), bytes(memory.all_ranks_bytes));
        text += &labelled("Memory", &format!("{largest} at most on one rank, {all} on all"), INDENT);
    }
    text
}

/// Warnings, one per line.
pub(crate) fn warnings_text(warnings: &[Warning]) -> String {
    let mut text = String::new();
    for warning in warnings {
        let times = if warning.count > 1 { format!(" ({} times)", count(warning.count)) } else { String::new() };
        text += &labelled("Warning:", &format!("{}{times}", warning.text), 9);
    }
    text
}
