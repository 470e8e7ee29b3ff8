//! What every transport can do, built from what it has to.

use crate::comm::{AnalysisRank, Channel, ReduceOp, Transport};
use clc_trace::codec::{decode, encode};
use clc_trace::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, HashMap};

/// Sends messages to some ranks and returns those sent here, by sender in ascending order (messages of one sender in
/// the order in which they were sent); messages to oneself included. Every rank takes part, nobody knows beforehand from
/// whom it receives. Costs no memory or message per rank of the world; uses the vote. The task is that of dynamic sparse data exchange, and so is the
/// way (NBX: T. Hoefler, C. Siebert, A. Lumsdaine, Scalable Communication Protocols for Dynamic Sparse Data Exchange, PPoPP 2010), with sums of
/// messages sent and received in the vote instead of synchronous sends and a barrier.
///
/// # Errors
/// A destination that does not exist (then on every rank); failures of the transport.
pub fn sparse_exchange(
    transport: &mut dyn Transport,
    outgoing: Vec<(AnalysisRank, Vec<u64>)>,
) -> Result<Vec<(AnalysisRank, Vec<u64>)>> {
    exchange_outcomes(transport, outgoing.into_iter().map(|(destination, words)| (destination, Ok(words))))
}

/// As [`sparse_exchange`], with values: a list of them for each rank, and the lists of those that sent one here. Those to oneself are not encoded.
///
/// # Errors
/// As [`sparse_exchange`]; a value that cannot be encoded (then on every rank), or is damaged.
pub fn exchange_values<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    mut outgoing: BTreeMap<AnalysisRank, Vec<T>>,
) -> Result<Vec<(AnalysisRank, Vec<T>)>> {
    let here = transport.rank();
    let own = outgoing.remove(&here);
    let encoded = outgoing.into_iter().map(|(to, values)| (to, encode(&values).map(|bytes| pack(&bytes))));
    let received = exchange_outcomes(transport, encoded)?;
    let mut lists = Vec::with_capacity(received.len() + 1);
    for (source, words) in received {
        lists.push((source, unpack(&words)?));
    }
    if let Some(own) = own {
        let place = lists.partition_point(|(source, _)| *source < here);
        lists.insert(place, (here, own));
    }
    Ok(lists)
}

/// As [`sparse_exchange`]; of a message that could not be made every rank hears why.
fn exchange_outcomes(
    transport: &mut dyn Transport,
    outgoing: impl Iterator<Item = (AnalysisRank, Result<Vec<u64>>)>,
) -> Result<Vec<(AnalysisRank, Vec<u64>)>> {
    let channel = next_channel(transport);
    let here = transport.rank();
    let mut received = Vec::new();
    let mut failure = None;
    let mut balance = 0;
    for (destination, words) in outgoing {
        let posted = words.and_then(|words| {
            if destination == here {
                received.push((here, words));
            } else {
                transport.post(destination, channel, words)?;
                balance += 1;
            }
            Ok(())
        });
        failure = failure.or(posted.err());
    }
    // All messages are sent before the first vote. So when sent and received are equal over all ranks, all have arrived.
    loop {
        transport.start_vote(&[balance, i64::from(failure.is_some())])?;
        let sums = loop {
            while let Some(message) = transport.poll(channel)? {
                received.push(message);
                balance -= 1;
            }
            match transport.poll_vote()? {
                Some(sums) => break sums,
                None => transport.idle(),
            }
        };
        match sums[..] {
            [0, 0] => break,
            [_, 0] => {}
            // Everybody knows now that somebody failed, and hears how.
            _ => return agree(transport, failure.map_or_else(|| Ok(Vec::new()), Err)),
        }
    }
    received.sort_by_key(|(source, _)| *source);
    Ok(received)
}

/// A rank may leave an exchange and send in the next one while another still waits for the end; it cannot get to the one
/// after that. So two channels keep them apart.
fn next_channel(transport: &mut dyn Transport) -> Channel {
    if transport.next_exchange().is_multiple_of(2) { Channel::EvenExchange } else { Channel::OddExchange }
}

/// The values of all ranks combined in order of ranks, on every rank. `merge` has to be associative: neighbours are combined along a
/// tree. Costs no memory per rank of the world, unlike a gather.
///
/// # Errors
/// A value that cannot be encoded, then on every rank; failures of the transport.
pub fn merge_values<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    value: T,
    merge: impl Fn(&mut T, T),
) -> Result<T> {
    let merged = merge_at_root(transport, value, merge)?;
    // Also keeps the ranks together: nobody leaves before all messages of the tree have been received.
    let root = merged.unwrap_or_else(|| Err(Error::new("")));
    broadcast_value(transport, AnalysisRank::FIRST, root)?
}

/// As [`merge_values`], at rank 0 only.
///
/// # Errors
/// As [`merge_values`].
pub fn merge_to_first<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    value: T,
    merge: impl Fn(&mut T, T),
) -> Result<Option<T>> {
    let merged = merge_at_root(transport, value, merge)?;
    let failure = match &merged {
        Some(Err(error)) => Some(error.clone()),
        _ => None,
    };
    match broadcast_value(transport, AnalysisRank::FIRST, failure)? {
        Some(error) => Err(error),
        None => merged.transpose(),
    }
}

/// Combines along a binomial tree: rank r takes in r+1, r+2, r+4, ... with what those have taken in, and hands the sum to the rank
/// without r's lowest bit.
fn merge_at_root<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    value: T,
    merge: impl Fn(&mut T, T),
) -> Result<Option<Result<T>>> {
    let channel = next_channel(transport);
    let (rank, size) = (transport.rank().place(), transport.size());
    // Fails if a rank has ended before, for which the tree would wait in vain.
    transport.barrier()?;
    let mut early: HashMap<AnalysisRank, Vec<u64>> = HashMap::new();
    let mut sum: Result<T> = Ok(value);
    let mut step = 1;
    while rank & step == 0 && step < size {
        let child = AnalysisRank::at(rank + step);
        step *= 2;
        if child.place() >= size {
            continue;
        }
        let words = loop {
            if let Some(words) = early.remove(&child) {
                break words;
            }
            match transport.poll(channel)? {
                Some((source, words)) => drop(early.insert(source, words)),
                None => transport.idle(),
            }
        };
        sum = match (sum, unpack::<Result<T>>(&words).and_then(|part| part)) {
            (Ok(mut sum), Ok(part)) => {
                merge(&mut sum, part);
                Ok(sum)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
    }
    if rank == 0 {
        return Ok(Some(sum));
    }
    let bytes = encode(&sum).or_else(|error| encode::<Result<T>>(&Err(error)))?;
    transport.post(AnalysisRank::at(rank - step), channel, pack(&bytes))?;
    Ok(None)
}

/// Bytes as words, with their number in front.
fn pack(bytes: &[u8]) -> Vec<u64> {
    let word = |part: &[u8]| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    };
    std::iter::once(bytes.len() as u64).chain(bytes.chunks(8).map(word)).collect()
}

fn unpack<T: DeserializeOwned>(words: &[u64]) -> Result<T> {
    let (length, words) = words.split_first().ok_or_else(|| Error::new("received an empty message"))?;
    let mut bytes = Vec::with_capacity(8 * words.len());
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.truncate(usize::try_from(*length).unwrap_or(usize::MAX));
    decode(&bytes)
}

/// Lets every rank know whether any has failed: all get the error of the lowest rank that did.
///
/// # Errors
/// That one; failures of the transport.
pub fn agree<T>(transport: &mut dyn Transport, outcome: Result<T>) -> Result<T> {
    let mut lowest = [if outcome.is_err() { i64::from(transport.rank().0) } else { i64::MAX }];
    transport.all_reduce(ReduceOp::Min, &mut lowest)?;
    if lowest[0] == i64::MAX {
        return outcome;
    }
    let root = AnalysisRank(lowest[0] as u32);
    match broadcast_value(transport, root, outcome.err())? {
        Some(error) => Err(error),
        None => Err(Error::new(format!("analysis rank {root} failed without giving a reason"))),
    }
}

/// The value that `root` has; what the others give is ignored.
///
/// # Errors
/// Failures of the transport; a value that cannot be encoded.
pub fn broadcast_value<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    root: AnalysisRank,
    value: T,
) -> Result<T> {
    if transport.size() == 1 {
        return Ok(value);
    }
    if transport.rank() != root {
        return decode(&transport.broadcast(root, Vec::new())?);
    }
    // The others wait in any case, and fail to decode nothing.
    let (bytes, failure) = split(encode(&value));
    transport.broadcast(root, bytes)?;
    failure.map_or(Ok(value), Err)
}

/// The values of all ranks, in order of ranks.
///
/// # Errors
/// Failures of the transport; a value that cannot be encoded.
pub fn all_gather_values<T: Serialize + DeserializeOwned>(transport: &mut dyn Transport, value: &T) -> Result<Vec<T>> {
    let (bytes, failure) = split(encode(value));
    let all = transport.all_gather(&bytes)?;
    failure.map_or(Ok(()), Err)?;
    all.iter().map(|bytes| decode(bytes)).collect()
}

/// The values of all ranks, in order of ranks, at `root` only.
///
/// # Errors
/// Failures of the transport; a value that cannot be encoded.
pub fn gather_values<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    root: AnalysisRank,
    value: &T,
) -> Result<Option<Vec<T>>> {
    let (bytes, failure) = split(encode(value));
    let all = transport.gather(root, &bytes)?;
    failure.map_or(Ok(()), Err)?;
    all.map(|all| all.iter().map(|bytes| decode(bytes)).collect()).transpose()
}

/// As [`gather_values`], of large values: that of `root` stays as it is.
///
/// # Errors
/// As [`gather_values`].
pub fn gather_owned<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    root: AnalysisRank,
    value: T,
) -> Result<Option<Vec<T>>> {
    if transport.rank() != root {
        return gather_values(transport, root, &value);
    }
    let Some(all) = transport.gather(root, &[])? else { return Ok(None) };
    let mut own = Some(value);
    let values = all.iter().enumerate().map(|(rank, bytes)| match own.take_if(|_| rank == root.place()) {
        Some(own) => Ok(own),
        None => decode(bytes),
    });
    values.collect::<Result<Vec<T>>>().map(Some)
}

fn split(encoded: Result<Vec<u8>>) -> (Vec<u8>, Option<Error>) {
    match encoded {
        Ok(bytes) => (bytes, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}
