//! What the ranks of an in-process world share: mailboxes, and who has left.

use crate::comm::Channel;
use crate::comm::local::meeting::Meeting;
use clc_trace::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

/// Locks, also after a panic of another rank: every change under these locks is complete when it is made.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits for a notification; see [`lock`].
pub fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The ranks that have dropped their transport, so that nobody waits for them.
#[derive(Debug)]
pub struct Departures {
    gone: Vec<AtomicBool>,
    count: AtomicUsize,
    panicked: AtomicBool,
}

impl Departures {
    fn new(size: usize) -> Departures {
        let gone = (0..size).map(|_| AtomicBool::new(false)).collect();
        Departures { gone, count: AtomicUsize::new(0), panicked: AtomicBool::new(false) }
    }

    /// The first of these ranks that has left.
    pub fn first_of(&self, mut ranks: impl Iterator<Item = usize>) -> Option<usize> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        ranks.find(|&rank| self.gone.get(rank).is_some_and(|gone| gone.load(Ordering::SeqCst)))
    }

    /// # Errors
    /// A rank has panicked.
    pub fn check(&self) -> Result<()> {
        if self.panicked.load(Ordering::SeqCst) {
            return Err(Error::new("another analysis rank panicked"));
        }
        Ok(())
    }
}

/// The failure of an operation that waits for a rank that has left.
pub fn departed(rank: usize) -> Error {
    Error::new(format!("analysis rank {rank} ended while others wait for it"))
}

/// What has arrived at one rank.
#[derive(Debug, Default)]
struct Mailbox {
    mail: Mutex<Mail>,
    time_came: Condvar,
}

#[derive(Debug, Default)]
struct Mail {
    messages: [VecDeque<(usize, Vec<u64>)>; Channel::COUNT],
    /// Timestamps by source.
    times: HashMap<usize, VecDeque<[i64; 2]>>,
}

/// A group by its members and tag, and how many times the calling rank has made one of that description.
type GroupKey = (Vec<usize>, u32, u64);

/// The shared part of a world.
#[derive(Debug)]
pub struct Hub {
    mailboxes: Vec<Mailbox>,
    /// Who has left.
    pub departures: Departures,
    /// Groups that not all members have joined yet, with the number of those that have.
    joining: Mutex<HashMap<GroupKey, (Arc<Meeting>, usize)>>,
    meetings: Mutex<Vec<Weak<Meeting>>>,
}

impl Hub {
    /// For `size` ranks.
    pub fn new(size: usize) -> Hub {
        Hub {
            mailboxes: (0..size).map(|_| Mailbox::default()).collect(),
            departures: Departures::new(size),
            joining: Mutex::default(),
            meetings: Mutex::default(),
        }
    }

    fn mailbox(&self, rank: usize) -> Result<&Mailbox> {
        self.mailboxes.get(rank).ok_or_else(|| Error::new(format!("there is no analysis rank {rank}")))
    }

    /// A new meeting of these ranks, whose waiting members hear of departures.
    pub fn meeting(&self, members: Vec<usize>) -> Arc<Meeting> {
        let meeting = Arc::new(Meeting::new(members));
        lock(&self.meetings).push(Arc::downgrade(&meeting));
        meeting
    }

    /// The meeting of a group that is made by each of its members.
    pub fn join(&self, members: &[usize], tag: u32, occurrence: u64) -> Arc<Meeting> {
        let mut joining = lock(&self.joining);
        let key = (members.to_vec(), tag, occurrence);
        let (meeting, joined) = joining.entry(key.clone()).or_insert_with(|| (self.meeting(members.to_vec()), 0));
        *joined += 1;
        let meeting = meeting.clone();
        if *joined == members.len() {
            joining.remove(&key);
        }
        meeting
    }

    /// Puts a message into the mailbox of `destination`.
    pub fn post(&self, source: usize, destination: usize, channel: Channel, words: Vec<u64>) -> Result<()> {
        lock(&self.mailbox(destination)?.mail).messages[channel as usize].push_back((source, words));
        Ok(())
    }

    /// Takes the oldest message out of the mailbox of `rank`.
    pub fn poll(&self, rank: usize, channel: Channel) -> Result<Option<(usize, Vec<u64>)>> {
        let message = lock(&self.mailbox(rank)?.mail).messages[channel as usize].pop_front();
        if message.is_none() {
            self.departures.check()?;
        }
        Ok(message)
    }

    /// Sends a timestamp.
    pub fn send_time(&self, source: usize, destination: usize, words: [i64; 2]) -> Result<()> {
        let mailbox = self.mailbox(destination)?;
        lock(&mailbox.mail).times.entry(source).or_default().push_back(words);
        mailbox.time_came.notify_one();
        Ok(())
    }

    /// Waits for the next timestamp from `source` to `destination`.
    pub fn receive_time(&self, source: usize, destination: usize) -> Result<[i64; 2]> {
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
    pub fn depart(&self, rank: usize, panicked: bool) {
        if let Some(gone) = self.departures.gone.get(rank) {
            gone.store(true, Ordering::SeqCst);
        }
        self.departures.count.fetch_add(1, Ordering::SeqCst);
        if panicked {
            self.departures.panicked.store(true, Ordering::SeqCst);
        }
        // With the lock held once, nobody can be between looking and waiting.
        for mailbox in &self.mailboxes {
            drop(lock(&mailbox.mail));
            mailbox.time_came.notify_all();
        }
        let meetings: Vec<_> = lock(&self.meetings).iter().filter_map(Weak::upgrade).collect();
        for meeting in meetings {
            meeting.wake();
        }
    }
}
