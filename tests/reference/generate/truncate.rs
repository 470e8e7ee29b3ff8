//! Processes that stop recording before the program ends.

use super::super::matching::calls_of;
use super::super::model::Timeline;
use super::super::windows::cuts_a_call;
use super::{Generated, rng::Rng};

/// Cuts the tail off one process or two.
pub(super) fn truncate(rng: &mut Rng, generated: &mut Generated) {
    for _ in 0..1 + rng.below(2) {
        let process = rng.below(generated.trace.processes.len());
        let timeline = generated.trace.processes[process].timeline();
        let mut cut = settle(&timeline, rng.below(timeline.len() + 1));
        while let Some(before) = cuts_a_call(&generated.trace, &timeline, cut) {
            cut = settle(&timeline, before);
        }
        let locations = &mut generated.trace.processes[process].locations;
        for (location, events) in locations.iter_mut().enumerate() {
            let kept = timeline[..cut].iter().filter(|entry| entry.location == location).count();
            events.truncate(kept);
            generated.truth[process][location].truncate(kept);
        }
    }
}

/// Moves a cut to the left until no collective is cut in two whose successor on the communicator is complete. The trace
/// would not say on which communicator the open one was, and the successor would be taken for it.
fn settle(timeline: &Timeline, mut cut: usize) -> usize {
    let calls = calls_of(timeline);
    loop {
        let open = calls.iter().enumerate().find(|(i, open)| {
            let overtaken = calls[i + 1..].iter().any(|c| c.collective.comm == open.collective.comm && c.end < cut);
            open.begin < cut && cut <= open.end && overtaken
        });
        match open {
            Some((_, open)) => cut = open.begin,
            None => return cut,
        }
    }
}
