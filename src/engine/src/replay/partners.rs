//! Which send belongs to a receive: asked for some messages only, of the analysis ranks that host the senders.

use crate::comm::{AnalysisRank, Transport, exchange_values};
use crate::matching::visited_times::TimelineTimes;
use crate::replay::clock_condition::{EventPlace, place};
use crate::replay::program::Program;
use clc_trace::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// For the host of the sending end of a channel: which sends.
#[derive(Serialize, Deserialize)]
struct ChannelQuery {
    /// Index of the sending end there.
    sending: u32,
    /// Index of the receiving end here.
    receiving: u32,
    /// Positions.
    wanted: Vec<u32>,
}

/// The sends of the messages `wanted`: positions in each incoming channel, in the order of [`crate::matching::matched::Messages`].
/// The answer has the same shape, with times from `times` (one per visited event of the hosted timelines). Collective over the
/// analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn senders<T: TimelineTimes>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    wanted: &[Vec<u32>],
) -> Result<Vec<Vec<EventPlace>>> {
    let mut questions: BTreeMap<AnalysisRank, Vec<ChannelQuery>> = BTreeMap::new();
    for (receiving, (channel, wanted)) in (0..).zip(program.messages.incoming.iter().zip(wanted)) {
        if !wanted.is_empty() {
            let question = ChannelQuery { sending: channel.remote, receiving, wanted: wanted.clone() };
            questions.entry(channel.host).or_default().push(question);
        }
    }
    let mut answers: BTreeMap<AnalysisRank, Vec<(u32, Vec<EventPlace>)>> = BTreeMap::new();
    for (asker, questions) in exchange_values(transport, questions)? {
        let answers = answers.entry(asker).or_default();
        for ChannelQuery { sending, receiving, wanted } in questions {
            let channel = &program.messages.outgoing[sending as usize];
            let place_of = |k: u32| place(program, times, channel.source, channel.sends.at(k as usize) as usize);
            answers.push((receiving, wanted.into_iter().map(place_of).collect()));
        }
    }
    let mut found: Vec<Vec<EventPlace>> = vec![Vec::new(); wanted.len()];
    for (receiving, places) in exchange_values(transport, answers)?.into_iter().flat_map(|(_, answers)| answers) {
        found[receiving as usize] = places;
    }
    Ok(found)
}
