//! Master and workers: rank 0 hands out tasks and receives results from any source, in the order of their arrival. The
//! records name the actual source, as a tracer's do. All messages are small enough to be sent eagerly.

use super::Work;
use crate::engine::Engine;
use crate::sink::EventSink;
use clc_trace::Result;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const TASK: u32 = 1;
const RESULT: u32 = 2;
const STOP: u32 = 3;

/// Results on their way to the master: arrival time and worker. Every worker has exactly one, so the earliest is the one
/// that a wildcard receive matches.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    results: BinaryHeap<Reverse<(i64, usize)>>,
}

impl Tasks {
    /// As many results as there are workers, each followed by a new task.
    pub(super) fn step<S>(&mut self, work: &Work, engine: &mut Engine<'_, S>) -> Result<()>
    where
        S: EventSink + ?Sized,
    {
        if self.results.is_empty() {
            for worker in 1..work.ranks() {
                self.hand_out(work, engine, worker)?;
            }
        }
        for _ in 1..work.ranks() {
            if let Some(Reverse((arrival, worker))) = self.results.pop() {
                engine.receive_at(0, worker, RESULT, work.bytes, arrival)?;
                self.hand_out(work, engine, worker)?;
            }
        }
        engine.check_time()
    }

    /// Takes the last results and tells the workers to stop.
    pub(super) fn finish<S>(&mut self, work: &Work, engine: &mut Engine<'_, S>) -> Result<()>
    where
        S: EventSink + ?Sized,
    {
        while let Some(Reverse((arrival, worker))) = self.results.pop() {
            engine.receive_at(0, worker, RESULT, work.bytes, arrival)?;
            let arrival = engine.send_eager(0, worker, STOP, 0)?;
            engine.receive_at(worker, 0, STOP, 0, arrival)?;
        }
        Ok(())
    }

    /// The master sends a task; the worker computes it and sends its result.
    fn hand_out<S>(&mut self, work: &Work, engine: &mut Engine<'_, S>, worker: usize) -> Result<()>
    where
        S: EventSink + ?Sized,
    {
        let arrival = engine.send_eager(0, worker, TASK, work.bytes)?;
        engine.receive_at(worker, 0, TASK, work.bytes, arrival)?;
        let duration = work.duration(worker, &mut engine.processes[worker].random);
        engine.compute(worker, duration)?;
        let arrival = engine.send_eager(worker, 0, RESULT, work.bytes)?;
        self.results.push(Reverse((arrival, worker)));
        Ok(())
    }
}
