//! Ranks, communicators and nodes as tables.

use super::{WatchedPage, nothing};
use crate::report::html::element::{escape, fold, table};
use clc_monitor::diagnose::{RankRow, Ranks, duration, moment};
use clc_monitor::query::AgentReport;

/// With more ranks than that, the table is folded away. Chosen by hand: a longer one pushes the rest of the page out of sight.
const SHOWN: usize = 64;

/// What each rank does.
pub(super) fn ranks(page: &WatchedPage) -> String {
    let rows = page.found.rows.iter().map(|row| {
        let name = match row.rank.is_some_and(|rank| page.found.ranks.contains(&rank)) {
            true => format!("<span class=\"blamed\">{}</span>", escape(&row.name())),
            false => escape(&row.name()),
        };
        let RankRow { host, process, state, seconds, call, region, moves, .. } = row;
        let text = [host.clone(), process.to_string(), state.clone(), duration(*seconds), call.clone(), region.clone()];
        let mut cells = vec![name];
        cells.extend(text.iter().map(|text| escape(text)));
        cells.push(moves.to_string());
        cells
    });
    let head = ["rank", "node", "process", "state", "for", "call", "region", "calls"];
    let table = table("What each rank does, or did last; ranks to blame are highlighted", &head, rows);
    match page.found.rows.len() {
        0 => nothing("No process is known."),
        count if count > SHOWN => fold(&format!("All {count} ranks"), &table),
        _ => table,
    }
}

/// Who waits in which operation.
pub(super) fn communicators(page: &WatchedPage) -> String {
    if page.found.comms.is_empty() {
        return nothing("No rank waits in an operation of a communicator.");
    }
    let rows = page.found.comms.iter().map(|comm| {
        vec![
            escape(&comm.name),
            escape(&comm.function),
            comm.sequence.to_string(),
            format!("{} of {}", comm.waiting, comm.size),
            escape(&comm.behind()),
        ]
    });
    table("Operations in which ranks wait", &["communicator", "operation", "number", "wait", "behind"], rows)
}

/// What is known of each node.
pub(super) fn nodes(page: &WatchedPage) -> String {
    let there = page.seen.reports.iter().map(|report| {
        let mut ranks: Vec<u32> = report.ranks.iter().filter_map(|state| state.rank).collect();
        ranks.sort_unstable();
        let whose = if ranks.is_empty() { "-".to_owned() } else { Ranks(&ranks).to_string() };
        let data = report.own_data();
        let said = moment(report.time);
        let (forged, replayed) = (report.traffic.forged, report.traffic.replayed);
        let text = [
            report.host.clone(),
            whose,
            format!("answered at {said}"),
            noticed(page, report),
            format!("{forged} forged, {replayed} replayed"),
            data.join(", "),
        ];
        text.iter().map(|text| escape(text)).collect::<Vec<String>>()
    });
    let silent = page.seen.snapshot.silent.iter().map(|node| {
        let ago = duration(page.seen.snapshot.time - node.since);
        let whose = if node.ranks.is_empty() { "-".to_owned() } else { Ranks(&node.ranks).to_string() };
        let text = [node.host.clone(), whose, format!("silent for {ago}"), String::new(), String::new(), String::new()];
        text.iter().map(|text| escape(text)).collect()
    });
    let rows: Vec<Vec<String>> = there.chain(silent).collect();
    if rows.is_empty() {
        return nothing("No agent is known.");
    }
    table("Agents", &["node", "ranks", "state", "nodes not alive", "packets dropped", "data"], rows)
}

/// Other nodes that an agent does not take for alive.
fn noticed(page: &WatchedPage, report: &AgentReport) -> String {
    let missed = report.members.iter().filter(|known| known.liveness != "alive");
    let words: Vec<String> = missed
        .map(|known| {
            // It said so then, not now.
            let since = known.seconds + (page.seen.snapshot.time - report.time).max(0.0);
            format!("{} {} for {}", known.host, known.liveness, duration(since))
        })
        .collect();
    if words.is_empty() { "nobody".to_owned() } else { words.join(", ") }
}
