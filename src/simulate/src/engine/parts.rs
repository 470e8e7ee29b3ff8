//! What the further locations of a process do with it: teams of threads, and streams of an accelerator.

use super::ops::region;
use super::{Engine, WINDOW};
use crate::sink::EventSink;
use clc_trace::{CallParameter, CommId, Event, ParameterId, Result, ThreadEvent, WindowTransfer};

/// OTF2 `Paradigm` OpenMP.
const OPENMP: u8 = 3;
/// The parameter of call sites.
pub(crate) const CALLSITE: ParameterId = ParameterId(0);
/// Until a thread that is woken up runs, and until one that waits goes on, in picoseconds: at least this, plus up to as much at random.
const WAKE: i64 = 500_000;
/// Until a stream begins with what was issued to it, at least. Chosen by hand: 3 µs, about what starting a kernel takes on an accelerator.
const ISSUE: i64 = 3_000_000;
/// Until a call that waits for a stream goes on, at least. Chosen by hand: 1 µs, about what polling for completion takes.
const NOTICE: i64 = 1_000_000;

impl<S: EventSink + ?Sized> Engine<'_, S> {
    /// A duration from `least` to twice that.
    fn about(&mut self, rank: usize, least: i64) -> i64 {
        least + self.processes[rank].random.below(least as u64) as i64
    }

    /// Between half and all of a computation.
    fn share(&mut self, rank: usize, duration: i64) -> i64 {
        let share = (1 << 31) + (self.processes[rank].random.next() >> 33) as i64;
        ((i128::from(duration) * i128::from(share)) >> 32) as i64
    }

    /// A team of all threads of a process computes, meets in a barrier, and is joined.
    pub(super) fn team(&mut self, rank: usize, duration: i64) -> Result<()> {
        let (first, threads) = (rank * self.threads, self.threads);
        let team = CommId(1 + rank as u32);
        self.enter(rank, region::PARALLEL)?;
        self.emit(rank, Event::Thread(ThreadEvent::Fork { model: OPENMP, threads: threads as u32 }))?;
        let forked = self.processes[rank].now;
        let mut met = forked;
        for thread in 0..threads {
            // The main thread need not be woken up.
            let begun = if thread == 0 { forked } else { forked + self.about(rank, WAKE) };
            let arrived = begun + self.share(rank, duration);
            self.record(first + thread, begun, Event::Thread(ThreadEvent::TeamBegin(team)))?;
            self.record(first + thread, arrived, Event::Enter(region::THREAD_BARRIER))?;
            met = met.max(arrived);
        }
        let mut ended = met;
        for thread in 0..threads {
            let left = met + self.about(rank, WAKE);
            self.record(first + thread, left, Event::Leave(region::THREAD_BARRIER))?;
            let end = left + self.about(rank, WAKE / 4);
            self.record(first + thread, end, Event::Thread(ThreadEvent::TeamEnd(team)))?;
            ended = ended.max(end);
        }
        self.processes[rank].now = ended;
        self.emit(rank, Event::Thread(ThreadEvent::Join { model: OPENMP }))?;
        self.leave(rank, region::PARALLEL)
    }

    /// A process launches a kernel on each of its streams, copies what the first one has computed, and waits for all.
    pub(super) fn offload(&mut self, rank: usize, duration: i64, bytes: u64) -> Result<()> {
        let first = rank * self.threads;
        for stream in 1..self.threads {
            let parameter = CallParameter { parameter: CALLSITE, value: stream as u64 };
            self.enter(rank, region::LAUNCH)?;
            let issued = self.processes[rank].now;
            self.emit(rank, Event::Parameter(parameter))?;
            self.leave(rank, region::LAUNCH)?;
            let begin = self.busy[first + stream].max(issued + self.about(rank, ISSUE));
            let end = begin + self.share(rank, duration);
            self.record(first + stream, begin, Event::Enter(region::KERNEL))?;
            self.record(first + stream, begin, Event::Parameter(parameter))?;
            self.record(first + stream, end, Event::Leave(region::KERNEL))?;
            self.busy[first + stream] = end;
        }
        self.enter(rank, region::COPY)?;
        let issued = self.processes[rank].now;
        let begin = self.busy[first + 1].max(issued + self.about(rank, ISSUE));
        // 16 bytes per nanosecond.
        let end = begin + self.about(rank, ISSUE) + (bytes as i64).saturating_mul(1000) / 16;
        let matching = self.processes[rank].next_request;
        self.processes[rank].next_request += 1;
        let transfer = WindowTransfer { window: WINDOW, remote: rank as u32, bytes, matching };
        self.record(first + 1, begin, Event::RmaPut(transfer))?;
        self.record(first + 1, end, Event::RmaOpCompleteBlocking(WINDOW, matching))?;
        self.busy[first + 1] = end;
        self.processes[rank].now = end + self.about(rank, NOTICE);
        self.leave(rank, region::COPY)?;
        self.enter(rank, region::DEVICE_WAIT)?;
        let done = self.busy[first + 1..first + self.threads].iter().copied().max().unwrap_or(0);
        let noticed = done + self.about(rank, NOTICE);
        let process = &mut self.processes[rank];
        process.now = process.now.max(noticed);
        self.leave(rank, region::DEVICE_WAIT)
    }
}
