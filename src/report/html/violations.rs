//! The chapter on violations: by kind, over time, by distance, by operation.

use super::element::{duration, escape, figure, fold, table};
use super::plot::{PlotFrame, short, ticks};
use crate::report::{CollectiveKind, Details, Locks, Report, StageDetails, StageViolations};
use clc_trace::format::{count, percent, sum};

pub(super) fn body(report: &Report) -> String {
    let mut html = String::from(
        "<p>A communication violates the clock condition if its receive is earlier than its send plus the minimum \
        latency. A collective operation counts once, no matter how many of its members are too early.</p>\n",
    );
    html += &by_kind(report);
    html += &locks(report);
    if let Some(details) = &report.details {
        html += &over_time(details, report.trace.span_seconds);
        html += &distances(details);
        html += &by_operation(details);
    }
    html
}

fn stages(report: &Report) -> Vec<(&'static str, &StageViolations)> {
    report.violations.by_stage().map(|(stage, found)| (stage.words(), found)).collect()
}

fn by_kind(report: &Report) -> String {
    let stages = stages(report);
    let Some((_, any)) = stages.first() else { return String::new() };
    let mut head = vec!["", "checked"];
    head.extend(stages.iter().map(|(name, _)| *name));
    let row = |name: &str, checked: u64, violated: &dyn Fn(&StageViolations) -> u64| {
        let mut row = vec![escape(name), count(checked)];
        row.extend(stages.iter().map(|(_, stage)| number(violated(stage))));
        row
    };
    let mut rows = vec![row("messages", any.point_to_point.checked, &|stage| stage.point_to_point.violated)];
    for kind in CollectiveKind::ALL {
        let checked = any.collective(kind).instances_checked;
        if checked > 0 {
            rows.push(row(kind.name(), checked, &|stage| stage.collective(kind).violated));
        }
    }
    rows.push(row("all", any.checked(), &StageViolations::violated));
    let mut worst = vec!["worst".to_owned(), String::new()];
    worst.extend(stages.iter().map(|(_, s)| s.worst.as_ref().map_or("none".to_owned(), |w| duration(w.seconds))));
    rows.push(worst);
    table("Violations before and after", &head, rows)
}

/// Locks that exclude each other and were held at the same time: findings, no violations.
fn locks(report: &Report) -> String {
    let Some(stages) = &report.locks else { return String::new() };
    let mut head = vec!["", "compared", "before"];
    let mut row = vec!["held while excluded by others".to_owned(), count(stages.last().compared)];
    row.push(number(stages.before.overlapping));
    let mut longest = vec!["longest".to_owned(), String::new()];
    let worst = |locks: &Locks| locks.worst.as_ref().map_or("none".to_owned(), |worst| duration(worst.seconds));
    longest.push(worst(&stages.before));
    if let Some(after) = &stages.after {
        head.push("corrected");
        row.push(number(after.overlapping));
        longest.push(worst(after));
    }
    let place = stages.last().worst.as_ref().map(|worst| format!("<p>{}.</p>\n", escape(&worst.words())));
    table("Locks of windows", &head, vec![row, longest]) + &place.unwrap_or_default()
}

/// A count of violations; zero recedes.
fn number(violated: u64) -> String {
    if violated == 0 { "<span class=\"zero\">0</span>".to_owned() } else { count(violated) }
}

fn legend(stages: &[StageDetails]) -> String {
    let keys =
        stages.iter().map(|s| format!("<li><span class=\"key {}\"></span>{}</li>", s.stage.name(), s.stage.words()));
    format!("<ul class=\"legend\">{}</ul>", keys.collect::<String>())
}

/// Share of too early receives, one stepped line per stage.
fn over_time(details: &Details, span: f64) -> String {
    let frame = PlotFrame::new(900.0, 230.0);
    let share = |stage: &StageDetails, window: usize| {
        let (checked, violated) = (stage.checked.get(window).copied(), stage.violated.get(window).copied());
        match (checked, violated) {
            (Some(checked), Some(violated)) if checked > 0 => Some(100.0 * violated as f64 / checked as f64),
            _ => None,
        }
    };
    let windows = details.stages.iter().map(|stage| stage.checked.len()).max().unwrap_or(0);
    let shares = details.stages.iter().flat_map(|stage| (0..windows).filter_map(move |window| share(stage, window)));
    let most = shares.fold(0.0, f64::max);
    if most == 0.0 || windows == 0 {
        return "<p>No receive is too early at any stage.</p>\n".to_owned();
    }
    let top = ticks(0.0, most * 1.25, 4).last().copied().unwrap_or(most).max(most);
    let marks: Vec<_> = ticks(0.0, top, 4).into_iter().map(|at| (at / top, format!("{} %", short(at)))).collect();
    let length = (details.window_seconds * windows as f64).max(span).max(f64::MIN_POSITIVE);
    let times: Vec<_> = ticks(0.0, length, 8).into_iter().map(|at| (at / length, short(at))).collect();
    let mut svg = frame.y_axis(&marks, "receives too early");
    for stage in &details.stages {
        let mut path = String::new();
        let mut open = false;
        for window in 0..windows {
            let Some(share) = share(stage, window) else {
                open = false;
                continue;
            };
            let at = |window: usize| frame.x(window as f64 * details.window_seconds / length);
            let y = frame.y(share / top);
            path += &format!("{}{:.1} {y:.1}H{:.1}", if open { "L" } else { "M" }, at(window), at(window + 1));
            open = true;
        }
        svg += &format!("<path class=\"line {}\" d=\"{path}\"/>", stage.stage.name());
    }
    svg += &frame.x_axis(&times, "time since the first event [s]");
    let totals = details.stages.iter().map(|stage| {
        let (checked, violated) = (sum(stage.checked.iter().copied()), sum(stage.violated.iter().copied()));
        let share = if checked == 0 { 0.0 } else { 100.0 * violated as f64 / checked as f64 };
        format!("{} {} on average", stage.stage.words(), percent(share))
    });
    let label = format!("Share of receives that are too early over time: {}.", totals.collect::<Vec<_>>().join(", "));
    figure("Share of receives that are too early over time", &(legend(&details.stages) + &frame.svg(&label, &svg)))
}

/// How far receives are too early, bars side by side.
fn distances(details: &Details) -> String {
    let stages: Vec<&StageDetails> = details.stages.iter().filter(|stage| !stage.distances.is_empty()).collect();
    if stages.is_empty() {
        return String::new();
    }
    // The classes of all stages, by their lower end.
    let mut classes: Vec<(f64, Option<f64>)> =
        stages.iter().flat_map(|s| &s.distances).map(|class| (class.over_seconds, class.up_to_seconds)).collect();
    classes.sort_by(|a, b| a.0.total_cmp(&b.0));
    classes.dedup();
    let of = |stage: &StageDetails, over: f64| {
        stage
            .distances
            .iter()
            .find(|class| class.over_seconds == over)
            .map_or(0, |c| c.messages.saturating_add(c.collective_ends))
    };
    let most = stages.iter().flat_map(|s| classes.iter().map(move |class| of(s, class.0))).max().unwrap_or(0).max(1);
    let frame = PlotFrame::new(900.0, 250.0);
    // Logarithmic: a stage with few violations must be seen beside one with many.
    let scale = |number: u64| ((number as f64).log10() + 0.3) / ((most as f64).log10() + 0.3);
    let powers = (0..19).map(|power| 10u64.pow(power)).take_while(|&power| power <= most);
    let marks: Vec<_> = powers.map(|power| (scale(power), count(power))).collect();
    let mut svg = frame.y_axis(&marks, "receives (log.)");
    let width = 1.0 / classes.len() as f64;
    let name = |class: &(f64, Option<f64>)| match class.1 {
        Some(to) => format!("{} to {}", duration(class.0), duration(to)),
        None => format!("over {}", duration(class.0)),
    };
    for (index, class) in classes.iter().enumerate() {
        for (place, stage) in stages.iter().enumerate() {
            let number = of(stage, class.0);
            if number == 0 {
                continue;
            }
            let bar = 0.86 * width / stages.len() as f64;
            let from = frame.x(index as f64 * width + 0.07 * width + place as f64 * bar);
            let to = frame.x(index as f64 * width + 0.07 * width + (place + 1) as f64 * bar);
            let y = frame.y(scale(number));
            svg += &format!(
                "<rect class=\"bar {}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{}: {} {}</title></rect>",
                stage.stage.name(),
                (to - from).max(0.5),
                (frame.bottom - y).max(0.5),
                name(class),
                count(number),
                stage.stage.words()
            );
        }
    }
    let every = classes.len().div_ceil(9);
    let labels: Vec<_> = classes
        .iter()
        .enumerate()
        .filter(|(index, _)| index.is_multiple_of(every))
        .map(|(index, class)| (index as f64 * width, duration(class.0)))
        .collect();
    svg += &frame.x_axis(&labels, "too early by");
    let label = "How early receives are, by stage. The table below has the numbers.";
    let mut head = vec!["too early by"];
    head.extend(stages.iter().flat_map(|stage| [stage.stage.words(), "of which in collectives"]));
    let rows = classes.iter().map(|class| {
        let mut row = vec![name(class)];
        for stage in &stages {
            let collective =
                stage.distances.iter().find(|c| c.over_seconds == class.0).map_or(0, |c| c.collective_ends);
            row.extend([number(of(stage, class.0)), number(collective)]);
        }
        row
    });
    figure("How early they are", &(legend(&details.stages) + &frame.svg(label, &svg)))
        + &fold("The numbers", &table("Receives too early by distance", &head, rows))
}

fn by_operation(details: &Details) -> String {
    let Some(first) = details.stages.first() else { return String::new() };
    let mut head = vec!["operation", "checked"];
    head.extend(details.stages.iter().map(|stage| stage.stage.words()));
    let rows = first.operations.iter().map(|operation| {
        let mut row = vec![escape(&operation.operation), count(operation.checked)];
        row.extend(details.stages.iter().map(|stage| {
            let same = stage.operations.iter().find(|other| other.operation == operation.operation);
            number(same.map_or(0, |same| same.violated))
        }));
        row
    });
    table("Violations by operation", &head, rows)
}
