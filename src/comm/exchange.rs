//! What every transport can do, built from what it has to.

use crate::comm::codec::{decode, encode};
use crate::comm::{Channel, ReduceOp, Transport};
use crate::trace::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};

/// Sends messages to some ranks and returns those sent here, by sender in ascending order; messages to oneself included. Every rank
/// takes part, nobody knows beforehand from whom it receives.
///
/// # Errors
/// Failures of the transport.
pub fn sparse_exchange(
    transport: &mut dyn Transport,
    outgoing: Vec<(usize, Vec<u64>)>,
) -> Result<Vec<(usize, Vec<u64>)>> {
    let here = transport.rank();
    let mut received = Vec::new();
    if transport.size() == 1 {
        return Ok(outgoing);
    }
    // How many messages each rank gets. Nobody gets past this sum before everybody has finished the exchange before.
    let mut counts = vec![0i64; transport.size()];
    for (destination, _) in &outgoing {
        counts[*destination] += i64::from(*destination != here);
    }
    transport.all_reduce(ReduceOp::Sum, &mut counts)?;
    let mut expected = counts[here];
    for (destination, words) in outgoing {
        if destination == here {
            received.push((here, words));
        } else {
            transport.post(destination, Channel::Exchange, words)?;
        }
    }
    while expected > 0 {
        match transport.poll(Channel::Exchange)? {
            Some(message) => {
                received.push(message);
                expected -= 1;
            }
            None => transport.idle(),
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
    let (value, error) = match outcome {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    };
    let mut failed = [i64::from(error.is_some())];
    transport.all_reduce(ReduceOp::Max, &mut failed)?;
    if failed[0] != 0 {
        let errors: Vec<Option<Error>> = all_gather_values(transport, &error)?;
        if let Some(first) = errors.into_iter().flatten().next() {
            return Err(first);
        }
    }
    value.ok_or_else(|| Error::new("an analysis rank failed without saying why; this is a bug"))
}

/// The value that `root` has.
///
/// # Errors
/// Failures of the transport.
pub fn broadcast_value<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    root: usize,
    value: T,
) -> Result<T> {
    if transport.size() == 1 {
        return Ok(value);
    }
    let bytes = if transport.rank() == root { encode(&value)? } else { Vec::new() };
    let bytes = transport.broadcast(root, bytes)?;
    if transport.rank() == root { Ok(value) } else { decode(&bytes) }
}

/// The values of all ranks, in order of ranks.
///
/// # Errors
/// Failures of the transport.
pub fn all_gather_values<T: Serialize + DeserializeOwned>(transport: &mut dyn Transport, value: &T) -> Result<Vec<T>> {
    let bytes = encode(value)?;
    transport.all_gather(&bytes)?.iter().map(|bytes| decode(bytes)).collect()
}

/// The values of all ranks, in order of ranks, at `root` only.
///
/// # Errors
/// Failures of the transport.
pub fn gather_values<T: Serialize + DeserializeOwned>(
    transport: &mut dyn Transport,
    root: usize,
    value: &T,
) -> Result<Option<Vec<T>>> {
    let bytes = encode(value)?;
    match transport.gather(root, &bytes)? {
        Some(all) => all.iter().map(|bytes| decode(bytes)).collect::<Result<Vec<T>>>().map(Some),
        None => Ok(None),
    }
}
