//! An analysis as text: metrics, waiting times before and after, critical path.

use super::correction::{left_out, phases, trace, warnings_text};
use super::table::{TextTable, labelled, shorten};
use crate::report::{Analysis, CriticalPath, DelayCost, Execution, Report, Share, Waiting};
use clc_trace::format::{count, duration, percent, plural};

/// Column at which the text after a label begins.
const INDENT: usize = 13;
/// Width of the first column of the tables.
const FIRST: usize = 24;
/// Longest call path that is printed. Chosen by hand: a longer one pushes the columns out of a terminal of usual width.
const PATH: usize = 34;
/// The same beside kinds with long names.
const NARROW_PATH: usize = 26;

/// The analysis in `report`, in lines of less than 80 columns (the path of the trace may be longer), the most important sentence first; at most `rows` in
/// each table.
pub fn analysis_text(report: &Report, rows: usize) -> String {
    let Some(analysis) = &report.analysis else { return String::new() };
    let parts = [
        format!("clc-replay {}: ANALYSED\n{}", report.program.version, verdict(analysis)),
        trace(report),
        execution(analysis),
        waits(analysis),
        call_paths(analysis, rows),
        pairs(analysis, rows),
        delays(analysis, rows),
        threads(analysis, rows),
        critical_path(analysis, rows),
        traffic(analysis),
        left_out(report),
        phases(report),
        warnings_text(&report.warnings),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A share of 0 to 1.
fn share(part: f64) -> String {
    percent(part * 100.0)
}

/// One sentence, or two.
pub(crate) fn verdict(analysis: &Analysis) -> String {
    let total = &analysis.waits.total;
    let last = total.after_seconds.unwrap_or(total.before_seconds);
    let in_mpi = analysis.execution.last().communication_seconds;
    let mut text = match (last > 0.0, in_mpi > 0.0) {
        (true, true) => {
            format!("The processes waited {}, {} of their time in MPI.", duration(last), share(last / in_mpi))
        }
        (true, false) => format!("The processes waited {}.", duration(last)),
        (false, _) => "No process waited for another.".to_owned(),
    };
    // Of the kind with the largest artefact.
    let worst = analysis.waits.kinds.iter().filter_map(|kind| {
        let waiting = &kind.waiting;
        Some((waiting.artefact_seconds.filter(|&seconds| seconds > 0.0)?, kind.kind, waiting.artefact_share?))
    });
    if let Some((_, kind, part)) = worst.max_by(|a, b| a.0.total_cmp(&b.0)) {
        text += &format!(
            " {} of the {} time in the recorded trace was an artefact of its clocks.",
            share(part),
            kind.name()
        );
    } else if total.after_seconds.is_some() {
        text += " The correction shortened no waiting time: there was no artefact of the clocks.";
    }
    // What exists after the correction only: clocks can hide more than they feign.
    if let Some(hidden) = total.hidden_seconds.filter(|&hidden| hidden > total.artefact_seconds.unwrap_or(0.0)) {
        text += &format!(" {} of waiting were hidden by the clocks.", duration(hidden));
    }
    labelled("", &text, 0).trim_start().to_owned()
}

fn execution(analysis: &Analysis) -> String {
    let stages: Vec<&Execution> =
        std::iter::once(&analysis.execution.before).chain(&analysis.execution.after).collect();
    let mut table = TextTable::default();
    let mut row = |label: &str, value: &dyn Fn(&Execution) -> String| {
        let cells = stages.iter().map(|stage| value(stage));
        table.push(std::iter::once(label.to_owned()).chain(cells).collect());
    };
    let headings = ["before", "after"];
    let mut heading = headings.iter();
    let title = std::cell::RefCell::new(&mut heading);
    row("Execution", &|_| title.borrow_mut().next().copied().unwrap_or_default().to_owned());
    row("execution time", &|stage| duration(stage.seconds));
    row("computation, all", &|stage| duration(stage.computation_seconds));
    row("communication, all", &|stage| duration(stage.communication_seconds));
    row("  of which waiting", &|stage| duration(stage.waiting_seconds));
    row("idle, all", &|stage| duration(stage.idle_seconds));
    row("speedup", &|stage| format!("{:.2}", stage.speedup));
    row("efficiency", &|stage| share(stage.efficiency));
    row("  load balance", &|stage| stage.load_balance.map_or_else(|| "-".to_owned(), share));
    row("  communication", &|stage| share(stage.communication_efficiency));
    row("computation/communication", &|stage| {
        stage.computation_to_communication.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
    });
    row("computation per message", &|stage| stage.granularity_seconds.map_or_else(|| "-".to_owned(), duration));
    let lowest = |stage: &Execution| stage.parallelism.iter().copied().fold(1.0, f64::min);
    row("lowest parallelism", &|stage| share(lowest(stage)));
    table.render(FIRST)
}

/// Cells of a waiting time.
fn cells(waiting: &Waiting) -> Vec<String> {
    let mut cells = vec![duration(waiting.before_seconds)];
    if let Some(after) = waiting.after_seconds {
        cells.push(duration(after));
        cells.push(waiting.artefact_share.map_or_else(|| "-".to_owned(), share));
    }
    cells
}

/// Headings that go with [`cells`].
fn headings(first: &str, analysis: &Analysis) -> Vec<String> {
    let all = [first, "before", "after", "artefact"];
    let shown = if analysis.waits.total.after_seconds.is_some() { 4 } else { 2 };
    all.iter().take(shown).map(|&heading| heading.to_owned()).collect()
}

fn waits(analysis: &Analysis) -> String {
    let details = || analysis.waits.details.iter().filter(|detail| detail.waiting.occurs());
    let row = |name: &str, waiting: &Waiting| std::iter::once(name.to_owned()).chain(cells(waiting)).collect();
    let mut table = TextTable::default();
    table.push(headings("Waiting", analysis));
    for kind in analysis.waits.kinds.iter().filter(|kind| kind.waiting.occurs()) {
        table.push(row(kind.kind.name(), &kind.waiting));
        for detail in details().filter(|detail| detail.part_of == Some(kind.kind)) {
            table.push(row(&format!("  {}", detail.kind.name()), &detail.waiting));
        }
    }
    table.push(row("all", &analysis.waits.total));
    for detail in details().filter(|detail| detail.part_of.is_none()) {
        table.push(row(&format!("({})", detail.kind.name()), &detail.waiting));
    }
    table.render(FIRST)
}

/// The end of a call path that fits: the innermost regions say most.
fn path_text(path: &[String], width: usize) -> String {
    if path.is_empty() {
        return "outside of any region".to_owned();
    }
    let mut text = String::new();
    for (at, region) in path.iter().enumerate().rev() {
        let region = shorten(region, width);
        let longer = if text.is_empty() { region } else { format!("{region}/{text}") };
        if longer.chars().count() + usize::from(at > 0) * 3 > width && !text.is_empty() {
            return format!("../{text}");
        }
        text = longer;
    }
    text
}

fn further(text: &mut String, printed: usize, listed: usize, further: u64, what: &str) {
    let more = (listed - printed) as u64 + further;
    if more > 0 {
        *text += &format!("  and {} more {what}\n", count(more));
    }
}

fn call_paths(analysis: &Analysis, rows: usize) -> String {
    let list = &analysis.waits.by_call_path;
    if list.is_empty() {
        return String::new();
    }
    let mut table = TextTable::default();
    let mut heads = headings("Waiting by call path", analysis);
    heads.insert(1, "kind".to_owned());
    table.push(heads);
    for entry in list.iter().take(rows) {
        let mut row = vec![path_text(&entry.call_path, PATH), entry.kind.name().to_owned()];
        row.extend(cells(&entry.waiting));
        table.push(row);
    }
    let mut text = table.render(0);
    further(&mut text, rows.min(list.len()), list.len(), analysis.waits.further_call_paths, "in --report");
    text
}

fn pairs(analysis: &Analysis, rows: usize) -> String {
    let list = &analysis.waits.by_pair;
    if list.is_empty() {
        return String::new();
    }
    let mut table = TextTable::default();
    let mut heads = vec!["Who waited for whom".to_owned(), "process".to_owned(), "for".to_owned(), "before".to_owned()];
    if analysis.waits.total.after_seconds.is_some() {
        heads.push("after".to_owned());
    }
    table.push(heads);
    for pair in list.iter().take(rows) {
        let mut row = vec![pair.kind.name().to_owned(), pair.process.to_string(), pair.cause.to_string()];
        row.push(duration(pair.before_seconds));
        row.extend(pair.after_seconds.map(duration));
        table.push(row);
    }
    let mut text = table.render(FIRST);
    further(&mut text, rows.min(list.len()), list.len(), analysis.waits.further_pairs, "in --report");
    text
}

/// Delay costs: nothing where nobody waited.
fn delays(analysis: &Analysis, rows: usize) -> String {
    let delays = &analysis.waits.delays;
    let cells = |name: String, cost: &DelayCost, long_term: Option<&DelayCost>| -> Vec<String> {
        let both = std::iter::once(cost.before_seconds).chain(cost.after_seconds);
        // Of the last stage.
        let long_term = long_term.map(|cost| duration(cost.after_seconds.unwrap_or(cost.before_seconds)));
        std::iter::once(name).chain(both.map(duration)).chain(long_term).collect()
    };
    let occurs = |cost: &DelayCost| cost.before_seconds > 0.0 || cost.after_seconds.unwrap_or(0.0) > 0.0;
    if !occurs(&delays.propagated) && !occurs(&delays.unexplained) && delays.by_region.is_empty() {
        return String::new();
    }
    let mut table = TextTable::default();
    let columns = headings("What made others wait", analysis).into_iter().take(3);
    table.push(columns.chain(["long-term".to_owned()]).collect());
    for entry in delays.by_region.iter().take(rows) {
        let name =
            if entry.region.is_empty() { "outside of any region".to_owned() } else { shorten(&entry.region, PATH) };
        table.push(cells(name, &entry.cost, Some(&entry.long_term)));
    }
    let others = [
        ("(waiting of those)", &delays.propagated, Some(&delays.long_term)),
        ("(unexplained)", &delays.unexplained, None),
        ("(not examined)", &delays.not_examined, None),
    ];
    for (name, cost, long_term) in others.into_iter().filter(|(_, cost, _)| occurs(cost)) {
        table.push(cells(name.to_owned(), cost, long_term));
    }
    let mut text = table.render(FIRST);
    let listed = delays.by_region.len();
    further(&mut text, rows.min(listed), listed, delays.further_regions, "regions in --report");
    text
}

/// Waiting of threads: nothing where none waited.
fn threads(analysis: &Analysis, rows: usize) -> String {
    let threads = &analysis.waits.threads;
    let kinds: Vec<_> = threads.kinds.iter().filter(|kind| kind.waiting.occurs()).collect();
    if kinds.is_empty() {
        return String::new();
    }
    let mut table = TextTable::default();
    table.push(headings("Threads", analysis));
    for kind in kinds {
        table.push(std::iter::once(kind.kind.name().to_owned()).chain(cells(&kind.waiting)).collect());
    }
    let mut text = table.render(FIRST) + "\n";
    let list = &threads.by_call_path;
    let mut table = TextTable::default();
    let mut heads = headings("Threads by call path", analysis);
    heads.insert(1, "kind".to_owned());
    table.push(heads);
    for entry in list.iter().take(rows) {
        let mut row = vec![path_text(&entry.call_path, NARROW_PATH), entry.kind.name().to_owned()];
        row.extend(cells(&entry.waiting));
        table.push(row);
    }
    text += &table.render(0);
    further(&mut text, rows.min(list.len()), list.len(), threads.further_call_paths, "in --report");
    text
}

fn critical_path(analysis: &Analysis, rows: usize) -> String {
    let path: &CriticalPath = analysis.critical_path.last();
    if path.seconds == 0.0 {
        return String::new();
    }
    let of_path = |seconds: f64| share(seconds / path.seconds);
    let mut content = format!(
        "{} long: {} computation, {} communication, {} before or after a process; {} between processes.",
        duration(path.seconds),
        of_path(path.computation_seconds),
        of_path(path.communication_seconds),
        of_path(path.idle_seconds),
        plural(path.changes, "change"),
    );
    if path.weight_seconds > 0.0 {
        content += &format!(" Its weight is {}.", duration(path.weight_seconds));
    }
    if path.broken > 0 {
        content += &format!(" It is broken by {}.", plural(path.broken, "violation"));
    }
    if let Some(before) = analysis.critical_path.after.as_ref().map(|_| &analysis.critical_path.before)
        && before.broken > 0
    {
        content += &format!(" Before the correction it is broken by {}.", plural(before.broken, "violation"));
    }
    let mut text = labelled("Critical path", &content, INDENT + 2);
    let cells = |share_of: &Share| [duration(share_of.seconds), share(share_of.share), share(share_of.weight_share)];
    let mut table = TextTable::default();
    let header = |first: &str| [first, "time", "of path", "of weight"].map(str::to_owned).to_vec();
    table.push(header("  by call path"));
    for entry in path.by_call_path.iter().take(rows) {
        table.push(
            std::iter::once(format!("  {}", path_text(&entry.call_path, PATH))).chain(cells(&entry.share)).collect(),
        );
    }
    text += &table.render(FIRST);
    further(
        &mut text,
        rows.min(path.by_call_path.len()),
        path.by_call_path.len(),
        path.further_call_paths,
        "in --report",
    );
    let mut table = TextTable::default();
    table.push(header("  by process"));
    for entry in path.by_process.iter().take(rows) {
        table.push(std::iter::once(format!("  {}", entry.process)).chain(cells(&entry.share)).collect());
    }
    text += &table.render(FIRST);
    further(&mut text, rows.min(path.by_process.len()), path.by_process.len(), path.further_processes, "in --report");
    text
}

fn traffic(analysis: &Analysis) -> String {
    let traffic = &analysis.traffic;
    if traffic.messages == 0 {
        return String::new();
    }
    let content = format!(
        "{}, {}, between {}",
        plural(traffic.messages, "message"),
        clc_trace::format::bytes(traffic.bytes),
        plural(traffic.pairs.len() as u64, "pair")
    );
    labelled("Traffic", &content, INDENT)
}
