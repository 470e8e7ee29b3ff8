//! Telling the events of matched messages which channels they are on.

use crate::matching::channels::{InChannel, OutChannel};
use crate::matching::extracted::Extract;
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::matched::Messages;
use crate::matching::sync::{SyncKind, SyncTimeline};
use clc_trace::workers::Workers;
use std::sync::{Mutex, PoisonError};

/// Links the events of all channels to these. Timelines are shared out among `workers`.
pub(super) fn link(messages: &mut Messages, extracts: &mut [Extract], workers: Workers) {
    let Messages { incoming, outgoing, fans, joins, .. } = messages;
    fans.clear();
    joins.clear();
    let mut ends: Vec<[Vec<u32>; 2]> = vec![<[Vec<u32>; 2]>::default(); extracts.len()];
    (0..).zip(&*incoming).for_each(|(index, channel)| ends[channel.destination][0].push(index));
    (0..).zip(&*outgoing).for_each(|(index, channel)| ends[channel.source][1].push(index));
    let timelines: Vec<Mutex<&mut SyncTimeline>> =
        extracts.iter_mut().map(|extract| Mutex::new(&mut extract.sync)).collect();
    let linked = workers.map(timelines.len(), |local| {
        let mut timeline = timelines[local].lock().unwrap_or_else(PoisonError::into_inner);
        link_timeline(&mut timeline, &ends[local], incoming, outgoing)
    });
    // Each has numbered its lists by itself.
    for (local, [joined, fanned]) in (0..).map(LocalTimeline).zip(linked) {
        for (several, all, kind) in [(joined, &mut *joins, SyncKind::Join), (fanned, &mut *fans, SyncKind::Fan)] {
            for (event, list) in several.events.into_iter().zip(several.lists) {
                extracts[local].sync.activate(event, kind, all.len() as u32);
                all.push(list);
            }
        }
    }
}

/// Events of a timeline that are on several channels, and these.
#[derive(Default)]
struct Several {
    events: Vec<u32>,
    lists: Vec<Vec<u32>>,
}

/// The same for the channels of one timeline; the events that receive on several, and those that send.
fn link_timeline(
    timeline: &mut SyncTimeline,
    [receiving, sending]: &[Vec<u32>; 2],
    incoming: &[InChannel],
    outgoing: &[OutChannel],
) -> [Several; 2] {
    let [mut joined, mut fanned] = [Several::default(), Several::default()];
    let mut put = |event: u32, kind: SyncKind, channel: u32, several: &mut Several| {
        if timeline.link_to(event, kind, channel, &mut several.lists) {
            several.events.push(event);
        }
    };
    for &channel in receiving {
        let receives = incoming[channel as usize].receives.each();
        receives.for_each(|event| put(event, SyncKind::Receive, channel, &mut joined));
    }
    for &channel in sending {
        let sends = outgoing[channel as usize].sends.each();
        sends.for_each(|event| put(event, SyncKind::Send, channel, &mut fanned));
    }
    [joined, fanned]
}
