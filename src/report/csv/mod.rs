//! The tables of an analysis as comma-separated values, one file each.

mod records;

use crate::report::{Analysis, CriticalPath, DelayCost, Execution, Share, Stages, Waiting};
use clc_trace::format::printable;

pub(crate) use records::CsvTable;

/// Name and contents of every file. Times are in seconds, missing values are empty.
pub(crate) fn analysis_csv(analysis: &Analysis) -> Vec<(String, String)> {
    let tables = [
        ("execution.csv", execution(&analysis.execution)),
        ("parallelism.csv", parallelism(&analysis.execution)),
        ("processes.csv", processes(&analysis.execution)),
        ("waits.csv", waits(analysis)),
        ("waits_details.csv", wait_details(analysis)),
        ("waits_by_call_path.csv", waits_by_call_path(analysis)),
        ("waits_by_process.csv", waits_by_process(analysis)),
        ("waits_by_pair.csv", waits_by_pair(analysis)),
        ("delays_by_region.csv", delays_by_region(analysis)),
        ("delays_by_process.csv", delays_by_process(analysis)),
        ("thread_waits.csv", thread_waits(analysis)),
        ("thread_waits_by_call_path.csv", thread_waits_by_call_path(analysis)),
        ("thread_waits_by_process.csv", thread_waits_by_process(analysis)),
        ("critical_path_by_call_path.csv", path(&analysis.critical_path, "call_path", &by_call_path)),
        ("critical_path_by_region.csv", path(&analysis.critical_path, "region", &by_region)),
        ("critical_path_by_process.csv", path(&analysis.critical_path, "process", &by_process)),
        ("critical_path_stretches.csv", stretches(&analysis.critical_path)),
        ("traffic_by_pair.csv", traffic_by_pair(analysis)),
        ("traffic_over_time.csv", traffic_over_time(analysis)),
    ];
    tables.map(|(name, table)| (name.to_owned(), table)).into()
}

/// A text as a terminal may see it.
fn field(text: &str) -> String {
    printable(text)
}

fn optional<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Both stages with their names.
fn named<T>(stages: &Stages<T>) -> impl Iterator<Item = (&'static str, &T)> {
    std::iter::once(("before", &stages.before)).chain(stages.after.as_ref().map(|after| ("after", after)))
}

/// A file of `header` and the lines that `fill` writes.
fn table(header: &str, fill: impl FnOnce(&mut CsvTable)) -> String {
    let mut records = CsvTable::new(header.split(','));
    fill(&mut records);
    records.into_text()
}

fn line(records: &mut CsvTable, fields: &[String]) {
    records.add(fields);
}

fn execution(stages: &Stages<Execution>) -> String {
    let header = "stage,seconds,processes,computation_seconds,communication_seconds,idle_seconds,waiting_seconds,\
                  speedup,efficiency,load_balance,communication_efficiency,computation_to_communication,granularity_seconds";
    table(header, |text| {
        for (stage, e) in named(stages) {
            let mut fields = vec![stage.to_owned(), e.seconds.to_string(), e.processes.to_string()];
            let times = [e.computation_seconds, e.communication_seconds, e.idle_seconds, e.waiting_seconds];
            fields.extend(times.iter().chain(&[e.speedup, e.efficiency]).map(f64::to_string));
            fields.push(optional(e.load_balance));
            fields.push(e.communication_efficiency.to_string());
            fields.push(optional(e.computation_to_communication));
            fields.push(optional(e.granularity_seconds));
            line(text, &fields);
        }
    })
}

fn parallelism(stages: &Stages<Execution>) -> String {
    table("stage,from_seconds,parallelism", |text| {
        for (stage, execution) in named(stages) {
            for (window, degree) in execution.parallelism.iter().enumerate() {
                let from = window as f64 * execution.window_seconds;
                line(text, &[stage.to_owned(), from.to_string(), degree.to_string()]);
            }
        }
    })
}

fn processes(stages: &Stages<Execution>) -> String {
    let header = "stage,process,computation_seconds,communication_seconds,idle_seconds,waiting_seconds,\
                  computation_to_communication";
    table(header, |text| {
        for (stage, execution) in named(stages) {
            for own in &execution.by_process {
                let times = [own.computation_seconds, own.communication_seconds, own.idle_seconds, own.waiting_seconds];
                let mut fields = vec![stage.to_owned(), own.process.to_string()];
                fields.extend(times.iter().map(f64::to_string));
                fields.push(optional(own.computation_to_communication));
                line(text, &fields);
            }
        }
    })
}

const WAITING: &str =
    "before_seconds,after_seconds,artefact_seconds,hidden_seconds,artefact_share,before_count,after_count";

fn waiting(waiting: &Waiting) -> [String; 7] {
    [
        waiting.before_seconds.to_string(),
        optional(waiting.after_seconds),
        optional(waiting.artefact_seconds),
        optional(waiting.hidden_seconds),
        optional(waiting.artefact_share),
        waiting.before_count.to_string(),
        optional(waiting.after_count),
    ]
}

fn waits(analysis: &Analysis) -> String {
    table(&format!("kind,{WAITING}"), |text| {
        for kind in &analysis.waits.kinds {
            let mut fields = vec![kind.kind.name().to_owned()];
            fields.extend(waiting(&kind.waiting));
            line(text, &fields);
        }
    })
}

fn wait_details(analysis: &Analysis) -> String {
    table(&format!("kind,part_of,{WAITING}"), |text| {
        for detail in &analysis.waits.details {
            let part_of = detail.part_of.map_or("", |kind| kind.name());
            let mut fields = vec![field(detail.kind.name()), part_of.to_owned()];
            fields.extend(waiting(&detail.waiting));
            line(text, &fields);
        }
    })
}

fn waits_by_call_path(analysis: &Analysis) -> String {
    table(&format!("kind,call_path,{WAITING}"), |text| {
        for entry in &analysis.waits.by_call_path {
            let mut fields = vec![entry.kind.name().to_owned(), field(&entry.call_path.join("/"))];
            fields.extend(waiting(&entry.waiting));
            line(text, &fields);
        }
    })
}

fn waits_by_process(analysis: &Analysis) -> String {
    table(&format!("kind,process,{WAITING}"), |text| {
        for entry in &analysis.waits.by_process {
            let mut fields = vec![entry.kind.name().to_owned(), entry.process.to_string()];
            fields.extend(waiting(&entry.waiting));
            line(text, &fields);
        }
    })
}

fn waits_by_pair(analysis: &Analysis) -> String {
    table("kind,process,cause,before_seconds,after_seconds", |text| {
        for pair in &analysis.waits.by_pair {
            let mut fields = vec![pair.kind.name().to_owned(), pair.process.to_string(), pair.cause.to_string()];
            fields.extend([pair.before_seconds.to_string(), optional(pair.after_seconds)]);
            line(text, &fields);
        }
    })
}

fn cost(cost: &DelayCost) -> [String; 2] {
    [cost.before_seconds.to_string(), optional(cost.after_seconds)]
}

/// The columns of delay costs.
const DELAY: &str = "before_seconds,after_seconds,long_term_before_seconds,long_term_after_seconds";

/// Delays, and in the first column what else the waiting is blamed on.
fn delays_by_region(analysis: &Analysis) -> String {
    let delays = &analysis.waits.delays;
    table(&format!("cause,region,{DELAY}"), |text| {
        let mut add = |cause: &str, region: String, of: &DelayCost, long_term: Option<&DelayCost>| {
            let mut fields = vec![cause.to_owned(), region];
            fields.extend(cost(of));
            fields.extend(long_term.map_or_else(Default::default, cost));
            line(text, &fields);
        };
        for entry in &delays.by_region {
            add("delay", field(&entry.region), &entry.cost, Some(&entry.long_term));
        }
        add("propagated", String::new(), &delays.propagated, Some(&delays.long_term));
        add("unexplained", String::new(), &delays.unexplained, None);
        add("not examined", String::new(), &delays.not_examined, None);
    })
}

fn delays_by_process(analysis: &Analysis) -> String {
    table(&format!("delaying_process,{DELAY}"), |text| {
        for entry in &analysis.waits.delays.by_process {
            let mut fields = vec![entry.process.to_string()];
            fields.extend(cost(&entry.cost));
            fields.extend(cost(&entry.long_term));
            line(text, &fields);
        }
    })
}

fn thread_waits(analysis: &Analysis) -> String {
    table(&format!("thread_kind,{WAITING}"), |text| {
        for kind in &analysis.waits.threads.kinds {
            let mut fields = vec![kind.kind.name().to_owned()];
            fields.extend(waiting(&kind.waiting));
            line(text, &fields);
        }
    })
}

fn thread_waits_by_call_path(analysis: &Analysis) -> String {
    table(&format!("thread_kind,call_path,{WAITING}"), |text| {
        for entry in &analysis.waits.threads.by_call_path {
            let mut fields = vec![entry.kind.name().to_owned(), field(&entry.call_path.join("/"))];
            fields.extend(waiting(&entry.waiting));
            line(text, &fields);
        }
    })
}

fn thread_waits_by_process(analysis: &Analysis) -> String {
    table(&format!("thread_kind,process,{WAITING}"), |text| {
        for entry in &analysis.waits.threads.by_process {
            let mut fields = vec![entry.kind.name().to_owned(), entry.process.to_string()];
            fields.extend(waiting(&entry.waiting));
            line(text, &fields);
        }
    })
}

/// Name and share of every entry of a list.
type ShareEntries = Vec<(String, Share)>;

fn by_call_path(path: &CriticalPath) -> ShareEntries {
    path.by_call_path.iter().map(|entry| (field(&entry.call_path.join("/")), entry.share)).collect()
}

fn by_region(path: &CriticalPath) -> ShareEntries {
    path.by_region.iter().map(|entry| (field(&entry.region), entry.share)).collect()
}

fn by_process(path: &CriticalPath) -> ShareEntries {
    path.by_process.iter().map(|entry| (entry.process.to_string(), entry.share)).collect()
}

fn path(stages: &Stages<CriticalPath>, name: &str, entries: &dyn Fn(&CriticalPath) -> ShareEntries) -> String {
    table(&format!("stage,{name},seconds,share,weight_seconds,weight_share"), |text| {
        for (stage, path) in named(stages) {
            for (name, share) in entries(path) {
                let mut fields = vec![stage.to_owned(), name];
                let numbers = [share.seconds, share.share, share.weight_seconds, share.weight_share];
                fields.extend(numbers.iter().map(f64::to_string));
                line(text, &fields);
            }
        }
    })
}

fn stretches(stages: &Stages<CriticalPath>) -> String {
    table("stage,process,from_seconds,to_seconds,weight_seconds", |text| {
        for (stage, path) in named(stages) {
            for stretch in &path.stretches {
                let mut fields = vec![stage.to_owned(), stretch.process.to_string()];
                let numbers = [stretch.from_seconds, stretch.to_seconds, stretch.weight_seconds];
                fields.extend(numbers.iter().map(f64::to_string));
                line(text, &fields);
            }
        }
    })
}

fn traffic_by_pair(analysis: &Analysis) -> String {
    table("sender,receiver,messages,bytes", |text| {
        for pair in &analysis.traffic.pairs {
            line(
                text,
                &[pair.sender, pair.receiver]
                    .map(|unit| unit.to_string())
                    .into_iter()
                    .chain([pair.messages, pair.bytes].map(|number| number.to_string()))
                    .collect::<Vec<_>>(),
            );
        }
    })
}

fn traffic_over_time(analysis: &Analysis) -> String {
    let over = &analysis.traffic.over_time;
    table("from_seconds,sender,receiver,messages,bytes", |text| {
        let ends = over.window.iter().zip(&over.senders).zip(&over.receivers);
        for (((window, sender), receiver), (messages, bytes)) in ends.zip(over.messages.iter().zip(&over.bytes)) {
            let from = f64::from(*window) * over.window_seconds;
            let mut fields = vec![from.to_string(), sender.to_string(), receiver.to_string()];
            fields.extend([messages.to_string(), bytes.to_string()]);
            line(text, &fields);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_a_table() {
        let written = |text: &str| {
            let table = table("a,b", |text_of| line(text_of, &[field(text), "1".into()]));
            table.strip_prefix("a,b\n").and_then(|rest| rest.strip_suffix(",1\n")).map(str::to_owned)
        };
        assert_eq!(written("main").as_deref(), Some("main"));
        assert_eq!(written("f(int, char)").as_deref(), Some("\"f(int, char)\""));
        assert_eq!(written("a\u{1b}[2J\r\u{202e},").as_deref(), Some("\"a\u{fffd}[2J\u{fffd}\u{fffd},\""));
        assert_eq!(written("say \"x\"\n").as_deref(), Some("\"say \"\"x\"\"\n\""));
    }

    #[test]
    fn every_line_has_as_many_fields_as_its_header() {
        for (name, table) in analysis_csv(&crate::report::analysis_sample::analysis()) {
            let mut lines = table.lines();
            let columns = lines.next().map_or(0, |header| header.split(',').count());
            assert!(columns > 1 && lines.clone().count() > 0, "{name}");
            assert!(lines.all(|line| line.split(',').count() == columns), "{name}: {table}");
        }
    }
}
