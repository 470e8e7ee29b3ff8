//! What to say when a replay cannot go on.

use crate::comm::{Transport, all_gather_values};
use crate::matching::sync::SyncKind;
use crate::matching::undefined::UndefinedPeer;
use crate::replay::forward::PENDING;
use crate::replay::program::Program;
use crate::trace::{Error, LocationId, Result};
use serde::{Deserialize, Serialize};

/// An event that waits for a timestamp which will never come.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Waiting {
    process: u32,
    location: LocationId,
    event: u64,
    /// The process it waits for, if it is one.
    waits_for: Option<u32>,
    what: String,
}

/// Does nothing if the replay has `finished`. Otherwise some events wait for each other in a circle, which only a trace that
/// contradicts itself can contain: the error names the circle, or the first waiting event. Collective over the analysis ranks.
pub fn check(
    transport: &mut dyn Transport,
    program: &Program,
    position: &[usize],
    bounds: &[Vec<i64>],
    finished: bool,
) -> Result<()> {
    if finished {
        return Ok(());
    }
    let mut waiting = Vec::new();
    for (local, (timeline, &at)) in program.timelines.iter().zip(position).enumerate() {
        if at >= timeline.len() || bounds[local][at] != PENDING {
            continue;
        }
        let link = timeline.link[at] as usize;
        let (waits_for, what) = match timeline.kind[at] {
            SyncKind::Receive => {
                let source = program.messages.incoming[link].source;
                (Some(source), format!("receives a message of process {source}"))
            }
            _ => {
                let membership = program.collectives.memberships[link];
                let comm = &program.collectives.comms[membership.comm as usize];
                let member = &comm.members[membership.member as usize];
                let which = member.ends.iter().position(|&end| end as usize == at).unwrap_or(0);
                (None, format!("ends {} on a communicator of {} processes", comm.instances[which].op, comm.size))
            }
        };
        waiting.push(Waiting {
            process: program.first + local as u32,
            location: program.locations[local][timeline.location[at] as usize],
            event: timeline.number[at],
            waits_for,
            what,
        });
    }
    let mut waiting: Vec<Waiting> = all_gather_values(transport, &waiting)?.into_iter().flatten().collect();
    waiting.sort_by_key(|w| w.process);
    let suspects: Vec<String> =
        all_gather_values(transport, &program.undefined_peers)?.into_iter().flatten().map(|s| s.to_string()).collect();
    let Some(first) = waiting.first() else {
        return Err(Error::new("the replay stopped without a waiting event; this is a bug"));
    };
    let circle = circle(&waiting);
    let named = if circle.is_empty() { waiting.iter().take(4).collect() } else { circle };
    let list: Vec<String> = named
        .iter()
        .map(|w| format!("process {} {} (location {}, event {})", w.process, w.what, w.location, w.event))
        .collect();
    let error = Error::new(format!(
        "the trace contradicts itself: events wait for each other in a circle: {}",
        list.join("; ")
    ))
    .at_location(first.location)
    .at_event(first.event);
    Err(if suspects.is_empty() {
        error
    } else {
        let most = &suspects[..suspects.len().min(UndefinedPeer::EXAMPLES)];
        error.hint(format!(
            "messages to or from an undefined rank may have shifted the later ones of their tag: {}",
            most.join(", ")
        ))
    })
}

/// A circle of processes that wait for messages of one another, if there is one.
fn circle(waiting: &[Waiting]) -> Vec<&Waiting> {
    let find = |process: u32| waiting.binary_search_by_key(&process, |w| w.process).ok().map(|i| &waiting[i]);
    for start in waiting {
        let mut path: Vec<&Waiting> = vec![start];
        while let Some(next) = path.last().and_then(|w| w.waits_for).and_then(find) {
            if next.process == start.process {
                return path;
            }
            if path.len() > waiting.len() {
                break;
            }
            path.push(next);
        }
    }
    Vec::new()
}
