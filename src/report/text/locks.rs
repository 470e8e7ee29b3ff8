//! Locks that overlap, as text.

use super::table::labelled;
use crate::report::{Locks, Report};
use clc_trace::format::{count, duration, plural};

/// What to say of the locks in a report; nothing if there are none.
pub(super) fn text(report: &Report, indent: usize) -> String {
    let Some(stages) = &report.locks else { return String::new() };
    let last = stages.last();
    let overlaps = |locks: &Locks| match &locks.worst {
        None => "none".to_owned(),
        Some(worst) => format!("{} ({} at most)", count(locks.overlapping), duration(worst.seconds)),
    };
    let found = match &stages.after {
        Some(after) => format!("{} before the correction, {} after", overlaps(&stages.before), overlaps(after)),
        None => overlaps(&stages.before),
    };
    let compared = plural(last.compared, "lock");
    let mut text = labelled("Locks", &format!("{compared} compared, overlaps: {found}"), indent);
    if last.assumed > 0 {
        let assumed = plural(last.assumed, "acquisition");
        text += &labelled("", &format!("{assumed} not recorded: assumed when the requesting call returned"), indent);
    }
    if let Some(worst) = &last.worst {
        text += &labelled("", &worst.words(), indent);
    }
    text
}
