//! Which send belongs to a receive: asked for some messages only, of the analysis ranks that host the senders.

use crate::comm::{Transport, sparse_exchange};
use crate::replay::program::Program;
use crate::replay::survey::{EventPlace, place};
use clc_trace::{LocationId, Result};
use std::collections::BTreeMap;

/// The sends of the messages `wanted`: positions in each incoming channel, in the order of [`crate::matching::matched::Messages`].
/// The answer has the same shape, with times from `times` (one per visited event of the hosted timelines). Collective over the
/// analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn senders<T: AsRef<[i64]>>(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[T],
    wanted: &[Vec<u32>],
) -> Result<Vec<Vec<EventPlace>>> {
    // Question: the sending end's index, the receiving end's index, how many, which. Answer: the receiving end's index, how
    // many, and location, event number and time of each.
    let mut questions: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (index, (channel, wanted)) in program.messages.incoming.iter().zip(wanted).enumerate() {
        if !wanted.is_empty() {
            let words = questions.entry(channel.host as usize).or_default();
            words.extend([u64::from(channel.remote), index as u64, wanted.len() as u64]);
            words.extend(wanted.iter().map(|&k| u64::from(k)));
        }
    }
    let mut answers: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (asker, words) in sparse_exchange(transport, questions.into_iter().collect())? {
        let mut rest = &words[..];
        while let [sending, receiving, length, tail @ ..] = rest {
            let (positions, next) = tail.split_at(*length as usize);
            rest = next;
            let channel = &program.messages.outgoing[*sending as usize];
            let answer = answers.entry(asker).or_default();
            answer.extend([*receiving, *length]);
            for &k in positions {
                let at = place(program, times, channel.source as usize, channel.sends[k as usize] as usize);
                answer.extend([at.location.0, at.number, at.time as u64]);
            }
        }
    }
    let mut found: Vec<Vec<EventPlace>> = vec![Vec::new(); wanted.len()];
    for (_, words) in sparse_exchange(transport, answers.into_iter().collect())? {
        let mut rest = &words[..];
        while let [receiving, length, tail @ ..] = rest {
            let (places, next) = tail.split_at(3 * *length as usize);
            rest = next;
            let process = program.messages.incoming[*receiving as usize].source;
            found[*receiving as usize] = places
                .chunks_exact(3)
                .map(|words| EventPlace {
                    process,
                    location: LocationId(words[0]),
                    number: words[1],
                    time: words[2] as i64,
                })
                .collect();
        }
    }
    Ok(found)
}
