//! What every transport can do, built from what it has to.

use crate::comm::{Channel, ReduceOp, Transport};
use crate::trace::codec::{decode, encode};
use crate::trace::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};

/// Sends messages to some ranks and returns those sent here, by sender in ascending order (messages of one sender in
/// the order in which they were sent); messages to oneself included. Every rank takes part, nobody knows beforehand from
/// whom it receives. Costs no memory or message per rank of the world; uses the vote.
///
/// # Errors
/// A destination that does not exist (then on every rank); failures of the transport.
pub fn sparse_exchange(
    transport: &mut dyn Transport,
    outgoing: Vec<(usize, Vec<u64>)>,
) -> Result<Vec<(usize, Vec<u64>)>> {
    // A rank may leave this exchange and send in the next one while another still waits for the last vote; it cannot get
    // to the one after that. So two channels keep them apart.
    let channel =
        if transport.next_exchange().is_multiple_of(2) { Channel::EvenExchange } else { Channel::OddExchange };
    let here = transport.rank();
    let mut received = Vec::new();
    let mut failure = None;
    let mut balance = 0;
    for (destination, words) in outgoing {
        if destination == here {
            received.push((here, words));
            continue;
        }
        match transport.post(destination, channel, words) {
            Ok(()) => balance += 1,
            Err(error) => failure = failure.or(Some(error)),
        }
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

/// Lets every rank know whether any has failed: all get the error of the lowest rank that did.
///
/// # Errors
/// That one; failures of the transport.
pub fn agree<T>(transport: &mut dyn Transport, outcome: Result<T>) -> Result<T> {
    let mut lowest = [if outcome.is_err() { transport.rank() as i64 } else { i64::MAX }];
    transport.all_reduce(ReduceOp::Min, &mut lowest)?;
    if lowest[0] == i64::MAX {
        return outcome;
    }
    let root = lowest[0] as usize;
    match broadcast_value(transport, root, outcome.err())? {
        Some(error) => Err(error),
        None => Err(Error::new(format!("analysis rank {root} has failed without saying why"))),
    }
}

/// The value that `root` has; what the others give is ignored.
///
/// # Errors
/// Failures of the transport; a value that cannot be encoded.
pub fn broadcast_value<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    root: usize,
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
    root: usize,
    value: &T,
) -> Result<Option<Vec<T>>> {
    let (bytes, failure) = split(encode(value));
    let all = transport.gather(root, &bytes)?;
    failure.map_or(Ok(()), Err)?;
    all.map(|all| all.iter().map(|bytes| decode(bytes)).collect()).transpose()
}

fn split(encoded: Result<Vec<u8>>) -> (Vec<u8>, Option<Error>) {
    match encoded {
        Ok(bytes) => (bytes, None),
        Err(error) => (Vec::new(), Some(error)),
    }
}
