//! The chapter on the run: passes, times, memory, and everything that is needed to do it again.

use super::element::{duration, escape, table};
use crate::report::{LatencyUsed, ReplayForm, Report};
use clc_trace::format::{bytes, count, plural};
use controlled_logical_clock::CorrectionForm;

pub(super) fn body(report: &Report) -> String {
    passes(report) + &costs(report) + &left_out(report) + &again(report) + &warnings(report)
}

/// What the steps of a correction are, for who reads such a page for the first time.
const STEPS: &str = "<p><em>Pre-synchronisation</em> converts the times of every clock to one common time, by clock offsets that were recorded or by clocks estimated from the \
    messages. The <em>forward</em> replay follows the communication and advances each receive that still precedes its send; what comes after it on the same process \
    keeps a part of that advance, which decays because intervals there count only γ times their length. The <em>backward</em> amortisation spreads each \
    advance over the events before it, so that none jumps. Both are described in <code>docs/algorithm.md</code>.</p>\n";

fn passes(report: &Report) -> String {
    let Some(replay) = &report.replay else { return String::new() };
    let form = match replay.form {
        ReplayForm::Canonical => "repeated the operations one by one, on one analysis rank per process",
        ReplayForm::Dataflow => "exchanged timestamps in batches",
    };
    let error = |error: f64| if error.is_finite() { format!("{error:.2}") } else { "unbounded".to_owned() };
    let rows = replay.passes.iter().enumerate().flat_map(|(index, pass)| {
        let gamma = pass.gamma.to_string();
        let (number, advance) = (count(index as u64 + 1), duration(pass.largest_advance_seconds));
        let moved = pass.displacement_seconds.map(duration).unwrap_or_default();
        let forward = vec![number, gamma.clone(), advance, error(pass.error), moved];
        let mirrored = pass.mirrored.map(|mirrored| {
            let moved = duration(mirrored.largest_move_seconds);
            vec!["mirrored".to_owned(), gamma, moved, error(mirrored.error), String::new()]
        });
        [Some(forward), mirrored].into_iter().flatten()
    });
    let meaning = match replay.correction {
        CorrectionForm::Common => {
            "the error of a pass is the sum of its jumps over that of the violations. The mirrored replay moves sends before their \
             receives; the correction is the average of both"
        }
        CorrectionForm::Paper => "the error of a pass is its largest advance over that",
    };
    let mut text = STEPS.to_owned();
    text += &format!(
        "<p>The forward replay {form}. No γ can avoid an advance of {} (D<sub>0</sub>); {meaning}.</p>\n",
        duration(replay.d0_seconds)
    );
    if let Some(common) = &replay.common_motion {
        text += &format!(
            "<p>A displacement shared by the clocks of all processes was then removed: at most {}, changing by at \
            most {:.0e}.",
            duration(common.largest_seconds),
            common.steepest
        );
        if common.restored_ticks > 0 {
            let restored = duration(common.restored_seconds);
            text += &format!(" Finally, displacements of up to {restored} restored latencies and distances.");
        }
        text += "</p>\n";
    }
    text + &table("Forward passes", &["pass", "γ", "largest advance", "error", "moved by at most"], rows)
}

fn costs(report: &Report) -> String {
    let total: f64 = report.phases.iter().map(|phase| phase.seconds).sum();
    let mut rows: Vec<Vec<String>> = report
        .phases
        .iter()
        .map(|phase| vec![escape(&phase.name), duration(phase.seconds), escape(&phase.rate())])
        .collect();
    rows.push(vec!["all".to_owned(), duration(total), String::new()]);
    let memory = &report.memory;
    if memory.largest_rank_bytes > 0 {
        rows.push(vec!["memory of the largest rank".to_owned(), bytes(memory.largest_rank_bytes), String::new()]);
        rows.push(vec!["memory of all ranks".to_owned(), bytes(memory.all_ranks_bytes), String::new()]);
    }
    let ranks = plural(report.program.analysis_ranks, "rank");
    table(&format!("Time and memory on {ranks}"), &["phase", "time", "speed"], rows)
}

fn left_out(report: &Report) -> String {
    let matching = &report.matching;
    let mut rows = Vec::new();
    let mut row = |number: u64, what: &str| {
        if number > 0 {
            rows.push(vec![escape(what), count(number)]);
        }
    };
    row(matching.unmatched_sends, "sends without a receive");
    row(matching.unmatched_receives, "receives without a send");
    row(matching.contradicted_orders, "doubtful orders that contradict the rest of the trace");
    row(matching.undefined_peers, "messages to or from an undefined rank");
    row(matching.receives_never_completed, "posted receives without completion");
    row(matching.cancelled_requests, "cancelled requests");
    for op in &matching.collectives {
        row(op.incomplete, &format!("{} with members missing", op.operation));
        row(op.inconsistent, &format!("{} on which members disagree", op.operation));
        for reason in &op.unconstrained_reasons {
            row(reason.count, &format!("{}: {}", op.operation, reason.reason));
        }
    }
    let not_replayed = if rows.is_empty() { String::new() } else { table("Not replayed", &["", "count"], rows) };
    not_replayed + &in_doubt(report)
}

fn in_doubt(report: &Report) -> String {
    let channels = &report.matching.doubtful_channels;
    if channels.is_empty() {
        return String::new();
    }
    let rows = channels.iter().map(|channel| {
        let names = [channel.sender, channel.receiver, channel.communicator, channel.tag].map(|name| name.to_string());
        let counts = [channel.sends, channel.receives, channel.matched, channel.implied_orders].map(count);
        let why = if channel.several_threads { "threads in any order" } else { "records missing" };
        names.into_iter().chain(counts).chain([why.to_owned()]).collect()
    });
    let all = plural(report.matching.channels_in_doubt, "channel");
    let head = ["from rank", "to rank", "communicator", "tag", "sends", "receives", "matched", "implied orders", "why"];
    table(&format!("In doubt: {all}"), &head, rows)
}

fn again(report: &Report) -> String {
    let (program, parameters) = (&report.program, &report.parameters);
    let LatencyUsed { same_node_seconds, other_node_seconds, .. } = parameters.latency;
    let mut rows = vec![
        ("clc-replay", program.version.clone()),
        ("MPI library", program.mpi_library.clone()),
        ("analysis ranks", format!("{} (does not affect the result)", count(program.analysis_ranks))),
        ("trace", report.trace.path.clone()),
        ("written by", report.trace.creator.clone()),
        ("timer", format!("{} ticks per second", count(report.trace.timer_resolution))),
        ("--presync", parameters.presync.name().to_owned()),
        (
            "minimum latency",
            format!("{} within a node, {} between nodes", duration(same_node_seconds), duration(other_node_seconds)),
        ),
        ("--alltoallv", if parameters.alltoallv { "yes" } else { "no" }.to_owned()),
        ("--handles", if parameters.handles { "yes" } else { "no" }.to_owned()),
    ];
    if let Some(replay) = &report.replay {
        rows.push(("--correction", replay.correction.name().to_owned()));
    }
    if let Some(gamma) = parameters.gamma {
        rows.push(("--gamma", gamma.to_string()));
    }
    if let Some(passes) = parameters.max_passes {
        rows.push(("--max-passes", passes.to_string()));
    }
    if let Some(error) = parameters.max_error {
        rows.push(("--max-error", error.to_string()));
    }
    if let Some(slope) = parameters.slope {
        rows.push(("--slope", slope.to_string()));
    }
    let command = program.command_line.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), escape(&value)]);
    format!("<h3>Reproducing this run</h3>\n<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(&command))
        + &table("Versions and parameters used", &["", ""], rows)
}

/// A word of a command line as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn warnings(report: &Report) -> String {
    if report.warnings.is_empty() {
        return String::new();
    }
    let item = |warning: &crate::report::Warning| {
        let times = if warning.count > 1 { format!(" ({} times)", count(warning.count)) } else { String::new() };
        format!("<li>{}{times}</li>", escape(&warning.text))
    };
    format!("<h3>Warnings</h3>\n<ul>{}</ul>\n", report.warnings.iter().map(item).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(["a/b-c.otf2", "a b", "it's", ""].map(quoted), ["a/b-c.otf2", "'a b'", "'it'\\''s'", "''"]);
    }
}
