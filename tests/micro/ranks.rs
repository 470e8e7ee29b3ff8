//! What analysis ranks pay for talking: the costs that the scaling model needs, measured through the program's own transport. And what
//! main memory can do at best, beside which the phases are put.
//!
//! ```text
//! mpirun -n N ranks transport      latency, message rate, bandwidth and collective operations of N MPI ranks
//! ranks threads N                  the same of N threads of one process
//! ranks definitions P              size and memory of the definitions of P processes
//! ranks correct N TRACE [OPTION]   a whole correction by N threads of one process; options of clc-replay
//! ranks memory N                   bandwidth and latency of main memory for N threads at once
//! ```
//!
//! Prints one JSON object. `cargo bench` runs it with two threads, to see that it works; `scripts/bench` runs the rest.
#![allow(clippy::print_stdout)] // the result

use clc_engine::comm::local::LocalTransport;
use clc_engine::comm::{self, AnalysisRank, Channel, ReduceOp, Transport, sparse_exchange};
use clc_engine::matching::communicators::CommTable;
use clc_engine::matching::placement::Placement;
use clc_replay::cli::{CorrectOptions, Invocation};
use clc_replay::commands::{self, Outcome};
use clc_replay::output::peak_memory::peak_bytes;
use clc_simulate::Scenario;
use clc_trace::codec::{decode, encode};
use clc_trace::progress::Silent;
use clc_trace::{Definitions, Result, Timelines};
use serde_json::{Value, json};
use std::hint::black_box;
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["transport"] => {
            let mut transport = comm::start().expect("a transport");
            let outcome = primitives(transport.as_mut()).expect("communication");
            (transport.rank() == AnalysisRank::FIRST).then_some(outcome)
        }
        [] => Some(threads(2, primitives)),
        ["threads", count] => Some(threads(number(count), primitives)),
        ["definitions", processes] => Some(definitions(number(processes))),
        ["decode", file] => Some(decoded(file)),
        ["correct", count, ref options @ ..] => Some(correct(number(count), options)),
        ["memory", count] => Some(memory(number(count))),
        _ => panic!("transport | threads N | definitions P | correct N TRACE [OPTION...] | memory N, not {words:?}"),
    };
    if let Some(outcome) = outcome {
        println!("{outcome}");
    }
}

fn number(word: &str) -> usize {
    word.parse().unwrap_or_else(|_| panic!("'{word}' is not a number"))
}

/// Runs `job` on all ranks of a world of threads; what rank 0 returns.
fn threads<T: Send>(count: usize, job: impl Fn(&mut dyn Transport) -> Result<T> + Sync) -> T {
    let job = &job;
    let outcomes = std::thread::scope(|scope| {
        let start = |mut transport: LocalTransport| {
            let run = move || job(&mut transport).expect("communication");
            std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, run).expect("a thread")
        };
        let ranks: Vec<_> = LocalTransport::world(count).into_iter().map(start).collect();
        ranks.into_iter().map(|rank| rank.join().expect("a rank")).collect::<Vec<T>>()
    });
    outcomes.into_iter().next().expect("rank 0")
}

/// Seconds per repetition of `once`, on the slowest rank: the median of batches of it, which is what ranks that share cores get.
fn measure(transport: &mut dyn Transport, once: impl FnMut(&mut dyn Transport) -> Result<()>) -> Result<f64> {
    batches(transport, once).map(|times| times[times.len() / 2])
}

/// The same of the fastest batch: the cost itself, without those who interrupt.
fn fastest(transport: &mut dyn Transport, once: impl FnMut(&mut dyn Transport) -> Result<()>) -> Result<f64> {
    batches(transport, once).map(|times| times[0])
}

/// Seconds per repetition of batches of `once`, ascending.
fn batches(transport: &mut dyn Transport, mut once: impl FnMut(&mut dyn Transport) -> Result<()>) -> Result<Vec<f64>> {
    // One batch takes about 20 ms, by a first impression that all ranks share.
    const BATCHES: usize = 7;
    const BATCH: f64 = 0.02;
    let mut batch = |transport: &mut dyn Transport, count: u32| -> Result<f64> {
        transport.barrier()?;
        let start = Instant::now();
        for _ in 0..count {
            once(transport)?;
        }
        let mut nanoseconds = [start.elapsed().as_nanos() as i64];
        transport.all_reduce(ReduceOp::Max, &mut nanoseconds)?;
        Ok(nanoseconds[0] as f64 / 1e9 / f64::from(count))
    };
    batch(transport, 1)?;
    let first = batch(transport, 3)?;
    let count = (BATCH / first).clamp(1.0, 10_000.0) as u32;
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        times.push(batch(transport, count)?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Everything in seconds.
fn primitives(transport: &mut dyn Transport) -> Result<Value> {
    const MESSAGES: usize = 1000;
    const BATCH: usize = 4096;
    let (rank, size) = (transport.rank().place(), transport.size());
    // Once all have talked to all, and before the batches.
    transport.all_gather(&[1])?;
    let mut peak = [peak_bytes() as i64];
    transport.all_reduce(ReduceOp::Max, &mut peak)?;
    let mut found = json!({ "ranks": size, "library": transport.library(), "peak_bytes": peak[0] });
    let mut put = |name: &str, seconds: f64| found[name] = json!(seconds);

    put("allreduce", measure(transport, |t| t.all_reduce(ReduceOp::Max, &mut [1]))?);
    put("allgather", measure(transport, |t| t.all_gather(&[1]).map(drop))?);
    put("vote", measure(transport, vote)?);
    let neighbours = [(rank + 1) % size, (rank + size - 1) % size].map(AnalysisRank::at);
    // Every rank tells two others 16 words, as matching and bounds do.
    let exchange =
        |t: &mut dyn Transport| sparse_exchange(t, neighbours.iter().map(|&to| (to, vec![7; 16])).collect()).map(drop);
    put("exchange", measure(transport, exchange)?);
    // All ranks tell one, and it answers all: what a communicator's home does.
    let star = |t: &mut dyn Transport| {
        sparse_exchange(t, vec![(AnalysisRank::FIRST, vec![rank as u64; 3])])?;
        let answers = if rank == 0 { AnalysisRank::all(size).map(|to| (to, vec![1; 2])).collect() } else { Vec::new() };
        sparse_exchange(t, answers).map(drop)
    };
    put("star", measure(transport, star)?);
    // One step of a dataflow replay of a halo exchange: a batch to each neighbour, and wait for theirs.
    put("step", measure(transport, |t| step(t, neighbours))?);
    if size > 1 {
        // Half a round trip, while the other ranks wait as they do in a replay.
        let ping = |t: &mut dyn Transport| {
            match t.rank().0 {
                0 => {
                    t.send_time(AnalysisRank(1), [1, 2])?;
                    t.receive_time(AnalysisRank(1))?;
                }
                1 => {
                    t.receive_time(AnalysisRank(0))?;
                    t.send_time(AnalysisRank(0), [1, 2])?;
                }
                _ => {}
            }
            Ok(())
        };
        put("latency", fastest(transport, ping)? / 2.0);
        // A timestamp at a time, and in batches.
        put("message", fastest(transport, |t| stream(t, MESSAGES, 2))? / MESSAGES as f64);
        put("batched_word", fastest(transport, |t| stream(t, 64, BATCH))? / (64 * BATCH) as f64);
    }
    transport.leave(Duration::from_secs(60));
    Ok(found)
}

fn vote(transport: &mut dyn Transport) -> Result<()> {
    transport.start_vote(&[1, 2, 3])?;
    while transport.poll_vote()?.is_none() {
        transport.idle();
    }
    Ok(())
}

fn step(transport: &mut dyn Transport, neighbours: [AnalysisRank; 2]) -> Result<()> {
    for to in neighbours {
        transport.post(to, Channel::Replay, vec![3; 8])?;
    }
    receive(transport, 2)
}

fn receive(transport: &mut dyn Transport, count: usize) -> Result<()> {
    let mut missing = count;
    while missing > 0 {
        match transport.poll(Channel::Replay)? {
            Some(message) => {
                black_box(message);
                missing -= 1;
            }
            None => transport.idle(),
        }
    }
    Ok(())
}

/// Rank 0 sends so many messages to rank 1, which says when it has them all.
fn stream(transport: &mut dyn Transport, messages: usize, words: usize) -> Result<()> {
    match transport.rank().0 {
        0 => {
            for _ in 0..messages {
                transport.post(AnalysisRank(1), Channel::Replay, vec![5; words])?;
            }
            receive(transport, 1)
        }
        1 => {
            receive(transport, messages)?;
            transport.post(AnalysisRank(0), Channel::Replay, vec![0])
        }
        _ => Ok(()),
    }
}

/// What every rank has to hold of a trace of so many processes, by the memory of a process that gets nothing else.
fn definitions(processes: usize) -> Value {
    let scenario = Scenario { ranks: processes as u32, ..Scenario::default() };
    let definitions = scenario.definitions();
    let bytes = encode(&definitions).expect("an encoding");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &bytes).expect("a file");
    let program = std::env::current_exe().expect("this program");
    let child = Command::new(program).arg("decode").arg(file.path()).output().expect("a child");
    serde_json::from_slice(&child.stdout).expect("what the child has found")
}

/// The part of [`definitions`] in a process of its own.
fn decoded(file: &str) -> Value {
    let bytes = std::fs::read(file).expect("a file");
    let before = peak_bytes();
    let start = Instant::now();
    let definitions: Definitions = decode(&bytes).expect("definitions");
    let timelines = Timelines::new(&definitions);
    let nodes: Vec<u32> = timelines.all.iter().map(|timeline| timeline.node).collect();
    let placement = Placement::new(&vec![1; timelines.all.len()], timelines.processes, timelines.processes);
    let table = CommTable::new(&definitions);
    let seconds = start.elapsed().as_secs_f64();
    let processes = black_box((&nodes, &placement, &table)).0.len();
    json!({
        "processes": processes, "seconds": seconds, "wire_bytes": bytes.len(), "peak_bytes": peak_bytes() - before,
    })
}

/// Corrects a trace on so many threads; the phases of the report.
fn correct(count: usize, options: &[&str]) -> Value {
    let words = ["clc-replay", "--quiet"].iter().chain(options).map(std::ffi::OsString::from);
    let Ok(Invocation::Correct(options)) = Invocation::parse(words) else {
        panic!("a trace and options of clc-replay, not {options:?}")
    };
    let options: &CorrectOptions = &options;
    let start = Instant::now();
    let outcome = threads(count, |transport| commands::correct(transport, options, &Silent));
    let wall = start.elapsed().as_secs_f64();
    let Some(Outcome::Report(report)) = outcome else { panic!("no report") };
    json!({ "ranks": count, "wall": wall, "report": report.as_ref() })
}

/// Bytes that are read, written and copied: several times what the caches hold.
const AREA: usize = 128 << 20;

/// What is read at once from memory.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line {
    /// Another line; all of them are one cycle in random order.
    next: u32,
}

/// Bytes per second that all threads together read, write and copy, and seconds per random read of one of them: of reads that
/// wait for the one before, and of reads that do not. The best of several runs: what the machine can do.
fn memory(count: usize) -> Value {
    const RUNS: usize = 5;
    let together = Barrier::new(count);
    let figures = |_| {
        let mut area = vec![1u64; AREA / 8];
        let mut other = area.clone();
        let lines = cycle(AREA / size_of::<Line>());
        let best = |once: &mut dyn FnMut()| {
            let run = |_| {
                together.wait();
                let start = Instant::now();
                once();
                start.elapsed().as_secs_f64()
            };
            (0..RUNS).map(run).fold(f64::INFINITY, f64::min)
        };
        let read = best(&mut || {
            black_box(black_box(&area).iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
        });
        let copy = best(&mut || black_box(&mut other).copy_from_slice(black_box(&area)));
        let write = best(&mut || black_box(&mut area).fill(black_box(7)));
        let steps = lines.len() / 4;
        let mut at = 0;
        let dependent = best(&mut || (0..steps).for_each(|_| at = lines[at as usize].next)) / steps as f64;
        black_box(at);
        let mut random = 1u64;
        let independent = best(&mut || {
            let sum = (0..steps).fold(0, |sum: u32, _| sum.wrapping_add(lines[below(&mut random, lines.len())].next));
            black_box(sum);
        });
        [read, write, copy, dependent, independent / steps as f64]
    };
    // What the slowest needs.
    let slowest = |one: [f64; 5], other: [f64; 5]| std::array::from_fn(|at| one[at].max(other[at]));
    let [read, write, copy, dependent, independent] = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|thread| scope.spawn(move || figures(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).fold([0.0; 5], slowest)
    });
    let rate = |seconds: f64| (AREA * count) as f64 / seconds;
    json!({
        "threads": count, "read": rate(read), "write": rate(write), "copy": rate(copy),
        "dependent": dependent, "independent": independent,
    })
}

/// Lines that name each other in a cycle of random order (Sattolo's algorithm).
fn cycle(count: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = (0..count as u32).map(|next| Line { next }).collect();
    let mut random = 1;
    for last in (1..count).rev() {
        lines.swap(last, below(&mut random, last));
    }
    lines
}

/// The next number of a series that looks random, below `count`.
#[inline]
fn below(state: &mut u64, count: usize) -> usize {
    // A linear congruential generator (Knuth's MMIX); its upper bits are the good ones.
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) as usize * count) >> 31
}
