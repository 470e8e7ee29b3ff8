//! Signs of life between ranks, for the watchdog ([`crate::comm::watchdog`]).
//!
//! A rank gives them where it is in touch with MPI anyway: while it waits, and wherever it reports progress. So no thread beside the main
//! one calls MPI. They are few and small: per rank two messages to each watcher's one, some seconds apart, and only in waits or parts that
//! long.

use crate::comm::mpi::call::{ImmediateOperation, MpiCommunicator};
use crate::comm::watchdog::{self, Home, Sign, WATCHERS, Watchdog};
use clc_trace::Result;
use clc_trace::progress::Progress;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Tag of all messages on the communicator of the signs.
const TAG: i32 = 0;

/// The signs of life of this rank. Copies share their state.
#[derive(Clone)]
pub(super) struct Heartbeat(Option<Rc<RefCell<Beats>>>);

struct Beats {
    on: MpiCommunicator,
    /// Time between two signs.
    interval: Duration,
    last: Instant,
    part: &'static str,
    expected: u64,
    done: u64,
    sending: Vec<ImmediateOperation<Box<[u64]>>>,
    /// Signs sent to each watcher, and received here.
    sent: [i64; WATCHERS],
    received: i64,
    watchdog: Option<Watchdog>,
}

impl Heartbeat {
    /// Of a rank on `on`, a communicator for nothing else. Tells the watchers where this process runs.
    pub(super) fn start(on: MpiCommunicator, node: String) -> Result<Heartbeat> {
        let Some(patience) = watchdog::patience().filter(|_| on.size > 1) else { return Ok(Heartbeat(None)) };
        let now = Instant::now();
        let here = Home::here(node);
        let mut beats = Beats {
            on,
            interval: patience / 4,
            last: now,
            part: "",
            expected: 0,
            done: 0,
            sending: Vec::new(),
            sent: [0; WATCHERS],
            received: 0,
            watchdog: (on.rank < WATCHERS).then(|| Watchdog::new(on.rank, on.size, here.clone(), patience, now)),
        };
        beats.send(false, &here.encode())?;
        Ok(Heartbeat(Some(Rc::new(RefCell::new(beats)))))
    }

    /// Called again and again while this rank waits, so far for `waited`.
    pub(super) fn waiting(&self, waited: Duration) -> Result<()> {
        let Some(beats) = &self.0 else { return Ok(()) };
        let mut beats = beats.borrow_mut();
        if waited < beats.interval {
            return Ok(());
        }
        beats.beat(true)?;
        beats.look(waited)
    }

    /// What reports progress of this rank to the watchers.
    pub(super) fn progress(&self) -> Box<dyn Progress> {
        Box::new(Reporter(self.clone()))
    }

    /// When nothing more is to be done: takes in the signs that are still on their way, so that MPI can be finalised. Returns whether all
    /// ranks took part before `deadline`.
    pub(super) fn end(&self, deadline: Instant) -> bool {
        self.0.as_ref().is_none_or(|beats| beats.borrow_mut().end(deadline).unwrap_or(false))
    }
}

impl Beats {
    fn sign(&self, waits: bool) -> Sign {
        let done = (self.expected > 0)
            .then(|| (u128::from(self.done.min(self.expected)) * 1000 / u128::from(self.expected)) as u16);
        Sign { waits, part: Sign::name(self.part), done }
    }

    /// Sends a sign, if the last one was long ago, and takes in those of others.
    fn beat(&mut self, waits: bool) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(self.last) < self.interval {
            return Ok(());
        }
        self.last = now;
        self.listen()?;
        self.send(waits, &[])
    }

    fn send(&mut self, waits: bool, more: &[u64]) -> Result<()> {
        let mut open = Vec::new();
        for mut request in self.sending.drain(..) {
            if !request.test()? {
                open.push(request);
            }
        }
        self.sending = open;
        // Whoever takes in nothing has enough of them.
        if self.sending.len() > 2 * WATCHERS {
            return Ok(());
        }
        let words = [&self.sign(waits).encode()[..], more].concat();
        for watcher in (0..WATCHERS.min(self.on.size)).filter(|&watcher| watcher != self.on.rank) {
            let mut request = self.on.send(watcher, TAG, words.clone())?;
            self.sent[watcher] += 1;
            if !request.test()? {
                self.sending.push(request);
            }
        }
        Ok(())
    }

    /// Takes in the signs that have arrived.
    fn listen(&mut self) -> Result<()> {
        let Some(watch) = &mut self.watchdog else { return Ok(()) };
        let now = Instant::now();
        while let Some(mut incoming) = self.on.receive(TAG)? {
            // It has been matched, and is short.
            while !incoming.request.test()? {
                std::thread::yield_now();
            }
            self.received += 1;
            let words = incoming.request.finish()?;
            if let [part, rest, more @ ..] = &words[..] {
                let home = (!more.is_empty()).then(|| Home::decode(more));
                if let Some(line) = watch.hear(incoming.source, Sign::decode([*part, *rest]), home, now) {
                    tracing::warn!("{line}");
                }
            }
        }
        Ok(())
    }

    fn look(&mut self, waited: Duration) -> Result<()> {
        let Some(watch) = &mut self.watchdog else { return Ok(()) };
        for line in watch.look(waited, Instant::now()) {
            tracing::warn!("{line}");
        }
        Ok(())
    }

    fn end(&mut self, deadline: Instant) -> Result<bool> {
        let mut count = self.on.all_reduce(crate::comm::ReduceOp::Sum, &self.sent)?;
        while !count.test()? {
            self.listen()?;
            if Instant::now() >= deadline {
                // It stays under way, and keeps its buffers.
                std::mem::forget(count);
                return Ok(false);
            }
            std::thread::yield_now();
        }
        let (_, sums) = count.finish()?;
        if let Some(&expected) = sums.get(self.on.rank) {
            while self.received < expected && Instant::now() < deadline {
                self.listen()?;
                std::thread::yield_now();
            }
        }
        for request in &mut self.sending {
            while !request.test()? && Instant::now() < deadline {
                std::thread::yield_now();
            }
        }
        Ok(self.sending.iter_mut().all(|request| request.test().unwrap_or(false)))
    }
}

/// Passes on how far this rank is.
struct Reporter(Heartbeat);

impl Reporter {
    fn report(&self, change: impl FnOnce(&mut Beats)) {
        if let Some(beats) = &self.0.0 {
            let mut beats = beats.borrow_mut();
            change(&mut beats);
            // A failure of MPI shows where its results are needed.
            let _ = beats.beat(false);
        }
    }
}

impl Progress for Reporter {
    fn phase(&self, name: &'static str, events: u64) {
        self.report(|beats| (beats.part, beats.expected, beats.done) = (name, events, 0));
    }

    fn advance(&self, events: u64) {
        self.report(|beats| beats.done += events);
    }

    fn finish(&self) {}

    fn step(&self, name: &'static str) {
        self.report(|beats| (beats.part, beats.expected, beats.done) = (name, 0, 0));
    }
}
