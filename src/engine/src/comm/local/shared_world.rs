//! What the ranks of an in-process world share: mailboxes, collective operations, and who has left.

use crate::comm::Channel;
use crate::comm::local::collective_rounds::CollectiveRounds;
use crate::comm::local::departures::{Departures, departed, lock, wait};
use clc_trace::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, Weak};

/// What has arrived at one rank.
#[derive(Debug, Default)]
struct Mailbox {
    mail: Mutex<QueuedMessages>,
    time_came: Condvar,
}

#[derive(Debug, Default)]
struct QueuedMessages {
    messages: [VecDeque<(usize, Vec<u64>)>; Channel::COUNT],
    /// Timestamps by source.
    times: HashMap<usize, VecDeque<[i64; 2]>>,
}

/// A group by its members and tag, and how many times the calling rank has made one of that description.
type GroupDescription = (Vec<usize>, u32, u64);

/// The shared part of a world.
#[derive(Debug)]
pub(super) struct SharedWorld {
    mailboxes: Vec<Mailbox>,
    /// Who has left.
    pub departures: Departures,
    /// Groups that not all members have joined yet, with the number of those that have.
    joining: Mutex<HashMap<GroupDescription, (Arc<CollectiveRounds>, usize)>>,
    collectives: Mutex<Vec<Weak<CollectiveRounds>>>,
}

impl SharedWorld {
    /// For `size` ranks.
    pub(super) fn new(size: usize) -> SharedWorld {
        SharedWorld {
            mailboxes: (0..size).map(|_| Mailbox::default()).collect(),
            departures: Departures::new(size),
            joining: Mutex::default(),
            collectives: Mutex::default(),
        }
    }

    fn mailbox(&self, rank: usize) -> Result<&Mailbox> {
        self.mailboxes.get(rank).ok_or_else(|| Error::new(format!("there is no analysis rank {rank}")))
    }

    /// Collective operations of these ranks, whose waiting members hear of departures.
    pub(super) fn collective_rounds(&self, members: Vec<usize>) -> Arc<CollectiveRounds> {
        let rounds = Arc::new(CollectiveRounds::new(members));
        lock(&self.collectives).push(Arc::downgrade(&rounds));
        rounds
    }

    /// The collective operations of a group that is made by each of its members.
    pub(super) fn join(&self, members: &[usize], tag: u32, occurrence: u64) -> Arc<CollectiveRounds> {
        let mut joining = lock(&self.joining);
        let key = (members.to_vec(), tag, occurrence);
        let (rounds, joined) =
            joining.entry(key.clone()).or_insert_with(|| (self.collective_rounds(members.to_vec()), 0));
        *joined += 1;
        let rounds = rounds.clone();
        if *joined == members.len() {
            joining.remove(&key);
        }
        rounds
    }

    /// Puts a message into the mailbox of `destination`.
    pub(super) fn post(&self, source: usize, destination: usize, channel: Channel, words: Vec<u64>) -> Result<()> {
        lock(&self.mailbox(destination)?.mail).messages[channel as usize].push_back((source, words));
        Ok(())
    }

    /// Takes the oldest message out of the mailbox of `rank`.
    pub(super) fn poll(&self, rank: usize, channel: Channel) -> Result<Option<(usize, Vec<u64>)>> {
        let message = lock(&self.mailbox(rank)?.mail).messages[channel as usize].pop_front();
        if message.is_none() {
            self.departures.check()?;
        }
        Ok(message)
    }

    /// Sends a timestamp.
    pub(super) fn send_time(&self, source: usize, destination: usize, words: [i64; 2]) -> Result<()> {
        let mailbox = self.mailbox(destination)?;
        lock(&mailbox.mail).times.entry(source).or_default().push_back(words);
        mailbox.time_came.notify_one();
        Ok(())
    }

    /// Waits for the next timestamp from `source` to `destination`.
    pub(super) fn receive_time(&self, source: usize, destination: usize) -> Result<[i64; 2]> {
        self.mailbox(source)?;
        let mailbox = self.mailbox(destination)?;
        let mut mail = lock(&mailbox.mail);
        loop {
            if let Some(words) = mail.times.get_mut(&source).and_then(VecDeque::pop_front) {
                return Ok(words);
            }
            self.departures.check()?;
            if source == destination {
                return Err(Error::new(format!("analysis rank {source} waits for a timestamp from itself")));
            }
            if self.departures.first_of(std::iter::once(source)).is_some() {
                return Err(departed(source));
            }
            mail = wait(&mailbox.time_came, mail);
        }
    }

    /// Tells everybody that `rank` takes part in nothing any more.
    pub(super) fn depart(&self, rank: usize, panicked: bool) {
        self.departures.note(rank, panicked);
        // With the lock held once, nobody can be between looking and waiting.
        for mailbox in &self.mailboxes {
            drop(lock(&mailbox.mail));
            mailbox.time_came.notify_all();
        }
        let collectives: Vec<_> = lock(&self.collectives).iter().filter_map(Weak::upgrade).collect();
        for rounds in collectives {
            rounds.wake();
        }
    }
}
