//! Running one replay, or several at the same time: what one of them waits for is under way while another one goes on.
//!
//! Termination is found by counting messages in two rounds (the four-counter method of F. Mattern, Algorithms for distributed termination detection,
//! Distributed Computing 2, 1987).

use super::flight::damaged;
use super::outbox::Outbox;
use clc_trace::Result;

/// Turns of timelines between two looks at the network. Chosen by hand: with more, others wait for timestamps that have come; with fewer, more of the
/// time goes into looking.
const GLANCE: u32 = 8;
/// Idle turns after which a rank asks whether the others are idle, too. Chosen by hand: with fewer, votes are taken while timestamps are merely on
/// their way; with more, a cycle is noticed later.
const PATIENCE: u32 = 256;

/// In the first word of an entry of a batch, above what the entry is: which of the replays it belongs to.
pub const WHICH: u64 = 1 << 3;

/// A replay that is run in turns.
pub trait Turns {
    /// Gets ready; `which` of those that run at the same time this is.
    ///
    /// # Errors
    /// Failures of the transport.
    fn begin_turns(&mut self, which: u64, out: &mut Outbox<'_>) -> Result<()>;

    /// Runs the timelines that others wait for, as far as they get.
    ///
    /// # Errors
    /// Failures of the transport.
    fn urgent(&mut self, out: &mut Outbox<'_>) -> Result<()>;

    /// Gives one of the other timelines its turn; `false` if none can go on.
    ///
    /// # Errors
    /// Failures of the transport.
    fn turn(&mut self, out: &mut Outbox<'_>) -> Result<bool>;

    /// Whether a timeline can go on that others wait for.
    fn has_urgent(&self) -> bool;

    /// Whether any other one can.
    fn has_runnable(&self) -> bool;

    /// Takes the entry at the beginning of a batch; returns what follows it.
    ///
    /// # Errors
    /// The entry is damaged; failures of the transport.
    fn take<'w>(&mut self, words: &'w [u64], out: &mut Outbox<'_>) -> Result<&'w [u64]>;

    /// Timelines that have not ended.
    fn unfinished(&self) -> i64;
}

/// Runs until no rank can go on; returns of which replays all timelines of all ranks have ended. At most two of them. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub fn run(replays: &mut [&mut dyn Turns], out: &mut Outbox<'_>) -> Result<Vec<bool>> {
    let alone = out.transport.size() == 1;
    let mut last_vote: Option<Vec<i64>> = None;
    let mut voting = false;
    // Turns without anything to do; how many events are missing, counted once while there is nothing to do.
    let (mut idle, mut received, mut missing) = (0u32, -1, Vec::new());
    for (which, replay) in (0..).zip(&mut *replays) {
        replay.begin_turns(which, out)?;
    }
    let mut turns = 0u32;
    loop {
        for replay in &mut *replays {
            replay.urgent(out)?;
        }
        if !alone {
            out.flush()?;
            turns += 1;
            if turns.is_multiple_of(GLANCE) || !replays.iter().any(|replay| replay.has_runnable()) {
                receive(replays, out)?;
            }
        }
        let mut went_on = false;
        for replay in &mut *replays {
            went_on |= replay.turn(out)?;
        }
        if went_on {
            continue;
        }
        if alone {
            return Ok(replays.iter().map(|replay| replay.unfinished() == 0).collect());
        }
        if replays.iter().any(|replay| replay.has_urgent()) {
            continue;
        }
        out.flush()?;
        if receive(replays, out)? {
            continue;
        }
        // Most idle moments end with the next batch, and a vote costs as much as one: who still has events asks later than who has none.
        idle += 1;
        if received != out.received {
            (idle, received) = (0, out.received);
            missing = replays.iter().map(|replay| replay.unfinished()).collect();
        }
        // If all ranks are idle and no batch is under way in two votes in a row, nothing can move any more.
        if !voting && (missing.iter().all(|&missing| missing == 0) || idle >= PATIENCE) {
            let values: Vec<i64> = [out.sent, out.received].into_iter().chain(missing.iter().copied()).collect();
            out.transport.start_vote(&values)?;
            voting = true;
        }
        if let Some(sums) = out.transport.poll_vote()? {
            voting = false;
            if sums[0] == sums[1] && last_vote.as_ref() == Some(&sums) {
                // Another rank may not have seen this vote yet: what the next replay sends must not reach it in this one.
                out.transport.barrier()?;
                return Ok(sums[2..].iter().map(|&missing| missing == 0).collect());
            }
            last_vote = Some(sums);
        } else {
            out.transport.idle();
        }
    }
}

/// Takes in what has arrived; returns whether anything had.
fn receive(replays: &mut [&mut dyn Turns], out: &mut Outbox<'_>) -> Result<bool> {
    let mut any = false;
    while let Some(batch) = out.next()? {
        any = true;
        let mut words = &batch[..];
        while let Some(head) = words.first() {
            let which = usize::from(head & WHICH != 0);
            words = replays.get_mut(which).ok_or_else(damaged)?.take(words, out)?;
        }
    }
    Ok(any)
}
