//! The search of the critical path over the analysis ranks.
//!
//! It runs on the rank that hosts the present process, as far as it gets there, and is handed over to the host of the next one. Memory: the
//! stretches of the hosted processes. The stages are searched at the same time, each by its own.

use clc_engine::comm::{AnalysisRank, Channel, Transport};
use clc_engine::matching::placement::Placement;
use clc_execution::path::{PathSearch, PathWait};
use clc_trace::codec::{decode, encode};
use clc_trace::{Error, Result, TimelineNumber};

/// Where the search of one stage begins and ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathEnds {
    /// The process with the last event, and its time.
    pub last: (u32, i64),
    /// Time of the first event of the trace.
    pub first: i64,
}

/// The critical path of one stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Path {
    /// Stretches on each hosted timeline in order of time: from, to.
    pub stretches: Vec<Vec<(i64, i64)>>,
    /// How often it goes from one process to another.
    pub changes: u64,
    /// How often it is broken, see [`PathSearch::broken`].
    pub broken: u64,
}

/// Finds the critical path of every stage, from its [`PathEnds`] (none without events); `waits` are those of the hosted timelines by stage, the
/// first of which has the number `first`. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn walk(
    transport: &mut dyn Transport,
    placement: &Placement,
    first: TimelineNumber,
    waits: &[Vec<&[PathWait]>],
    ends: &[Option<PathEnds>],
) -> Result<Vec<Path>> {
    let here = transport.rank();
    let mut paths: Vec<Path> =
        waits.iter().map(|waits| Path { stretches: vec![Vec::new(); waits.len()], ..Path::default() }).collect();
    let mut open = ends.iter().flatten().count();
    // Nobody leaves the step before while messages of this one can arrive.
    transport.barrier()?;
    let mut ready: Vec<(usize, PathSearch)> = Vec::new();
    for (stage, ends) in ends.iter().enumerate() {
        if let Some(PathEnds { last: (process, time), .. }) = *ends
            && placement.host_of(TimelineNumber(process)) == here
        {
            ready.push((stage, PathSearch::new(process, time)));
        }
    }
    while open > 0 {
        for (stage, mut search) in ready.drain(..) {
            let Some(PathEnds { first: begin, .. }) = ends[stage] else { continue };
            let finished = loop {
                if placement.host_of(TimelineNumber(search.process)) != here {
                    break false;
                }
                let local = (search.process - first.0) as usize;
                let to = search.time;
                let from = search.step(waits[stage][local]);
                let stretch = (from.unwrap_or(begin).max(begin), to);
                if stretch.0 < stretch.1 {
                    paths[stage].stretches[local].push(stretch);
                }
                if from.is_none() {
                    break true;
                }
            };
            let next = placement.host_of(TimelineNumber(search.process));
            let words = pack(stage, finished, &search)?;
            if finished {
                for rank in AnalysisRank::all(transport.size()).filter(|&rank| rank != here) {
                    transport.post(rank, Channel::Replay, words.clone())?;
                }
                (paths[stage].changes, paths[stage].broken) = (search.changes, search.broken);
                open -= 1;
            } else {
                transport.post(next, Channel::Replay, words)?;
            }
        }
        match transport.poll(Channel::Replay)? {
            Some((_, words)) => {
                let (stage, finished, search) = unpack(&words)?;
                if finished {
                    (paths[stage].changes, paths[stage].broken) = (search.changes, search.broken);
                    open -= 1;
                } else {
                    ready.push((stage, search));
                }
            }
            None if open > 0 => transport.idle(),
            None => {}
        }
    }
    for stretches in paths.iter_mut().flat_map(|path| &mut path.stretches) {
        stretches.reverse();
    }
    Ok(paths)
}

fn pack(stage: usize, finished: bool, search: &PathSearch) -> Result<Vec<u64>> {
    let bytes = encode(search)?;
    let mut words = vec![stage as u64, u64::from(finished), bytes.len() as u64];
    words.extend(bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    }));
    Ok(words)
}

fn unpack(words: &[u64]) -> Result<(usize, bool, PathSearch)> {
    let [stage, finished, length, words @ ..] = words else {
        return Err(Error::new("a message of the critical path is too short; this is a bug"));
    };
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(*length as usize);
    Ok((*stage as usize, *finished != 0, decode(&bytes)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_engine::comm::local::LocalTransport;

    /// Processes in a ring wait for each other in turn.
    fn ring(processes: u32, rounds: i64) -> Vec<Vec<PathWait>> {
        let mut waits = vec![Vec::new(); processes as usize];
        for time in 1..rounds {
            let process = (time as u32) % processes;
            let cause = (process + processes - 1) % processes;
            waits[process as usize].push(PathWait { end: 10 * time, cause, broken: false });
        }
        waits
    }

    #[test]
    fn the_path_is_the_same_on_any_number_of_ranks() {
        let (processes, rounds) = (6, 40);
        let run = |ranks: usize| -> Vec<Vec<(i64, i64)>> {
            let all = ring(processes, rounds);
            let walk_one = |mut transport: LocalTransport| {
                let placement = Placement::new(&[1; 6], processes as usize, ranks);
                let hosted = placement.hosted_by(transport.rank());
                let waits: Vec<&[PathWait]> = hosted.clone().map(|process| all[process].as_slice()).collect();
                let last = (((rounds - 1) as u32) % processes, 10 * rounds);
                let ends = [Some(PathEnds { last, first: 0 }), None];
                let paths = walk(
                    &mut transport,
                    &placement,
                    TimelineNumber(hosted.start as u32),
                    &[waits.clone(), waits],
                    &ends,
                );
                let paths = paths.expect("a path");
                assert_eq!((paths[0].changes, paths[0].broken), (rounds as u64 - 1, 0));
                assert!(paths[1].stretches.iter().all(Vec::is_empty));
                paths[0].stretches.clone()
            };
            std::thread::scope(|scope| {
                let walk_one = &walk_one;
                let world = LocalTransport::world(ranks).into_iter();
                let threads: Vec<_> = world.map(|transport| scope.spawn(move || walk_one(transport))).collect();
                threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
            })
        };
        let one = run(1);
        assert_eq!(one.iter().flatten().map(|(from, to)| to - from).sum::<i64>(), 10 * rounds);
        for ranks in 2..=6 {
            assert_eq!(run(ranks), one, "{ranks} ranks");
        }
    }
}
