//! The critical path against a brute-force longest path through the dense execution graph, on graphs made by hand and at random.

use super::parallelism::Parallelism;
use super::path::{PathSearch, PathWait};
use super::waiting::waits_until;
use super::windows::Windows;
use proptest::prelude::*;

/// One thing that a process does.
#[derive(Debug, Clone)]
enum TestStep {
    /// Computes so long.
    Compute(i64),
    /// Sends message number `message`, which takes so long.
    Send(usize, i64),
    /// Receives message number `message`; after it is there it takes so long.
    Receive(usize, i64),
    /// The `n`-th barrier of all; after the last one is there it takes so long.
    Barrier(usize, i64),
}

/// An executed step.
#[derive(Debug, Clone, Copy)]
struct Executed {
    enter: i64,
    leave: i64,
    /// Enters of the step that this one needs: (process, step).
    needs: Option<(usize, usize)>,
}

/// Runs the programs: a receive ends when its message was sent and it was entered, plus its duration.
fn execute(programs: &[Vec<TestStep>]) -> Vec<Vec<Executed>> {
    let n = programs.len();
    let mut done: Vec<Vec<Executed>> = vec![Vec::new(); n];
    // Enters of steps whose process has come so far.
    let clock = |done: &[Executed]| done.last().map_or(0, |last: &Executed| last.leave);
    loop {
        let mut moved = false;
        for process in 0..n {
            let Some(step) = programs[process].get(done[process].len()) else { continue };
            let enter = clock(&done[process]);
            let executed = match step {
                TestStep::Compute(time) | TestStep::Send(_, time) => {
                    Some(Executed { enter, leave: enter + time, needs: None })
                }
                TestStep::Receive(message, time) => {
                    find(programs, &done, |step| matches!(step, TestStep::Send(m, _) if m == message))
                        .first()
                        .copied()
                        .map(|(sender, at, sent)| Executed {
                            enter,
                            leave: enter.max(sent) + time,
                            needs: Some((sender, at)),
                        })
                }
                TestStep::Barrier(number, time) => {
                    let entered = entered(programs, &done, *number);
                    (entered.len() == n).then(|| {
                        let others = entered.into_iter().filter(|(other, ..)| *other != process);
                        match others.max_by_key(|&(other, _, enter)| (enter, std::cmp::Reverse(other))) {
                            Some((last, at, latest)) => {
                                Executed { enter, leave: enter.max(latest) + time, needs: Some((last, at)) }
                            }
                            None => Executed { enter, leave: enter + time, needs: None },
                        }
                    })
                }
            };
            if let Some(executed) = executed {
                done[process].push(executed);
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    assert!(programs.iter().zip(&done).all(|(program, done)| program.len() == done.len()), "the programs end");
    done
}

fn find(
    programs: &[Vec<TestStep>],
    done: &[Vec<Executed>],
    is: impl Fn(&TestStep) -> bool,
) -> Vec<(usize, usize, i64)> {
    let mut found = Vec::new();
    for (process, program) in programs.iter().enumerate() {
        for (at, executed) in done[process].iter().enumerate() {
            if is(&program[at]) {
                found.push((process, at, executed.enter));
            }
        }
    }
    found
}

/// Who has come to a barrier: (process, step, enter), those that are in it included.
fn entered(programs: &[Vec<TestStep>], done: &[Vec<Executed>], number: usize) -> Vec<(usize, usize, i64)> {
    let is = |step: &TestStep| matches!(step, TestStep::Barrier(n, _) if *n == number);
    let mut found = find(programs, done, is);
    for (process, program) in programs.iter().enumerate() {
        let at = done[process].len();
        if program.get(at).is_some_and(is) {
            found.push((process, at, done[process].last().map_or(0, |last| last.leave)));
        }
    }
    found
}

/// Longest path by dynamic programming over the dense graph, edges weighted by `weight(from, to)`. Every step is an edge from enter to
/// leave; one that needs another has edges from both enters to where it is ready, which weigh nothing, and one from there on.
fn longest(programs: &[Vec<TestStep>], done: &[Vec<Executed>], weight: &dyn Fn(i64, i64) -> i128) -> i128 {
    // Largest weight of a path to the enter of each step; by time, which is a topological order here with repeated rounds.
    let mut at_enter: Vec<Vec<i128>> = done.iter().map(|steps| vec![0; steps.len()]).collect();
    let mut best = 0;
    loop {
        let mut changed = false;
        for (process, steps) in done.iter().enumerate() {
            let mut here = 0i128;
            for (at, step) in steps.iter().enumerate() {
                if at_enter[process][at] != here {
                    at_enter[process][at] = here;
                    changed = true;
                }
                let (ready, ready_at) = match step.needs {
                    Some((other, other_at)) => {
                        let remote = done[other][other_at].enter;
                        (here.max(at_enter[other][other_at]), step.enter.max(remote))
                    }
                    None => (here, step.enter),
                };
                here = ready + weight(ready_at, step.leave);
            }
            best = best.max(here);
        }
        if !changed {
            break;
        }
    }
    assert_eq!(programs.len(), done.len());
    best
}

/// The path found backwards: (process, from, to).
fn walked(done: &[Vec<Executed>]) -> (Vec<(usize, i64, i64)>, PathSearch) {
    let waits: Vec<Vec<PathWait>> = done
        .iter()
        .map(|steps| {
            let wait = |step: &Executed| {
                let (other, at) = step.needs?;
                let ready = done[other][at].enter;
                let end = waits_until(step.enter, ready, step.leave)?;
                Some(PathWait { end, cause: other as u32, broken: ready > step.leave })
            };
            steps.iter().filter_map(wait).collect()
        })
        .collect();
    let ends = done.iter().map(|steps| steps.last().map_or(0, |last| last.leave));
    let (process, time) = ends.enumerate().max_by_key(|&(p, t)| (t, std::cmp::Reverse(p))).expect("a process");
    let mut search = PathSearch::new(process as u32, time);
    let mut path = Vec::new();
    loop {
        let (process, to) = (search.process as usize, search.time);
        let from = search.step(&waits[process]);
        path.push((process, from.unwrap_or(0), to));
        if from.is_none() {
            return (path, search);
        }
    }
}

/// Degree of parallelism: everything but computing is communication.
fn parallelism(programs: &[Vec<TestStep>], done: &[Vec<Executed>], count: usize) -> Parallelism {
    let last = done.iter().flatten().map(|step| step.leave).max().unwrap_or(0);
    let windows = Windows::new(0, last, count);
    let mut computing = vec![0i128; count];
    for (step, executed) in programs.iter().flatten().zip(done.iter().flatten()) {
        if matches!(step, TestStep::Compute(_)) {
            windows.parts(executed.enter, executed.leave, |index, from, to| computing[index] += i128::from(to - from));
        }
    }
    Parallelism::new(windows, programs.len() as u64, computing)
}

/// Walk and brute force agree on length and weight; the walk is a path of the graph.
fn check(programs: &[Vec<TestStep>], windows: usize) {
    let done = execute(programs);
    let (path, search) = walked(&done);
    assert_eq!(search.broken, 0);
    let length: i128 = path.iter().map(|&(_, from, to)| i128::from(to - from)).sum();
    assert_eq!(length, longest(programs, &done, &|from, to| i128::from(to - from)));
    let parallelism = parallelism(programs, &done, windows);
    let weight: i128 = path.iter().map(|&(_, from, to)| parallelism.scaled_weight_between(from, to)).sum();
    assert_eq!(weight, longest(programs, &done, &|from, to| parallelism.scaled_weight_between(from, to)));
    for (later, earlier) in path.iter().zip(path.iter().skip(1)) {
        // From process to process only where one waited for the other, and no stretch goes over a wait.
        assert_eq!(later.1, earlier.2);
        let edge = done[later.0]
            .iter()
            .any(|step| step.needs.is_some_and(|(other, at)| other == earlier.0 && done[other][at].enter == later.1));
        assert!(edge, "no edge from {} to {} at {}", earlier.0, later.0, later.1);
    }
    for &(process, from, to) in &path {
        let crossed = done[process].iter().any(|step| {
            let Some((other, at)) = step.needs else { return false };
            let end = step.enter.max(done[other][at].enter);
            end > step.enter && from < end && step.enter < to && end <= to
        });
        assert!(!crossed, "the path of process {process} from {from} to {to} waits");
    }
}

#[test]
fn two_processes_by_hand() {
    // 0 computes 10 and sends; 1 computes 4, waits until 10, receives for 2, computes 5: it ends at 17.
    let programs = vec![
        vec![TestStep::Compute(10), TestStep::Send(0, 1)],
        vec![TestStep::Compute(4), TestStep::Receive(0, 2), TestStep::Compute(5)],
    ];
    let done = execute(&programs);
    let (path, _) = walked(&done);
    assert_eq!(path, [(1, 10, 17), (0, 0, 10)]);
    // Windows of one tick: 0..4 both compute, 4..10 one, 10..12 none, 12..17 one; n = 2.
    let parallelism = parallelism(&programs, &done, 17);
    let weights: Vec<f64> =
        path.iter().map(|&(_, from, to)| parallelism.ticks(parallelism.scaled_weight_between(from, to))).collect();
    assert_eq!(weights, [2.0 * 2.0 + 5.0 * 1.5, 4.0 + 6.0 * 1.5]);
    check(&programs, 17);
}

#[test]
fn a_barrier_by_hand() {
    // The last one to come decides, each time another one.
    let programs = vec![
        vec![TestStep::Compute(1), TestStep::Barrier(0, 1), TestStep::Compute(9), TestStep::Barrier(1, 1)],
        vec![TestStep::Compute(7), TestStep::Barrier(0, 1), TestStep::Compute(2), TestStep::Barrier(1, 1)],
        vec![TestStep::Compute(3), TestStep::Barrier(0, 1), TestStep::Compute(3), TestStep::Barrier(1, 1)],
    ];
    let (path, _) = walked(&execute(&programs));
    assert_eq!(path, [(0, 7, 18), (1, 0, 7)]);
    check(&programs, 5);
}

/// Rounds of computing, then messages along a shift or a barrier. A message is sent before its receive is entered by program order, so
/// no program waits for ever.
fn programs() -> impl Strategy<Value = Vec<Vec<TestStep>>> {
    let round = (0usize..4, prop::collection::vec((0i64..12, 0i64..4), 5));
    (1usize..=5, prop::collection::vec(round, 0..7)).prop_map(|(n, rounds)| {
        let mut programs: Vec<Vec<TestStep>> = vec![Vec::new(); n];
        for (number, (shift, times)) in rounds.into_iter().enumerate() {
            for (process, program) in programs.iter_mut().enumerate() {
                let (compute, duration) = times[process];
                program.push(TestStep::Compute(compute));
                if shift == 0 {
                    program.push(TestStep::Barrier(number, duration));
                } else if shift % n != 0 {
                    let source = (process + n - shift % n) % n;
                    program.push(TestStep::Send(number * n + process, duration / 2));
                    program.push(TestStep::Receive(number * n + source, duration));
                }
            }
        }
        programs
    })
}

proptest! {
    #[test]
    fn no_path_is_longer(programs in programs(), windows in 1usize..40) {
        check(&programs, windows);
    }
}
