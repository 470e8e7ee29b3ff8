//! Threads of one analysis rank, for work on many files or lists that do not know each other.
//!
//! Results come back in the order of the jobs, and of several errors the one of the first job is returned, so that nothing depends on the
//! number of threads. The thread that asks does not work itself: it tells the progress, since others must not (only the main thread calls
//! MPI). The threads are begun once and kept: where other programs want the cores as well, a new thread waits for milliseconds until it gets one.

use crate::Result;
use crate::progress::{Progress, Silent};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How many threads may work at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    threads: usize,
}

/// Tells the progress of a job: so many more events are done.
pub type Advance<'a> = &'a dyn Fn(u64);

/// How often the thread that asks looks how far the others are. Were it woken for every block of events and every job, it would take a core from them each time.
const TOLD_EVERY: Duration = Duration::from_millis(50);

impl Workers {
    /// Everything is done by the thread that asks.
    pub const ONE: Workers = Workers { threads: 1 };

    /// Most threads that are used without being asked for: reading and writing files does not get faster for ever.
    const DEFAULT_MOST: usize = 16;

    /// Most threads: no machine has more cores for one process, and each needs a stack of its own.
    pub const MOST: usize = 1024;

    /// One for each core that this process may use, up to 16.
    pub fn of_this_machine() -> Workers {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Workers { threads: cores.min(Workers::DEFAULT_MOST) }
    }

    /// Most threads per core: beyond that, those that look for work take the core from the one that has some. (A thousand on two cores took seconds for what sixteen do in
    /// hundredths of one.)
    const PER_CORE: usize = 32;

    /// At most `threads` of them, and no more than [`Workers::MOST`] or 32 per core.
    pub fn new(threads: NonZero<usize>) -> Workers {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Workers { threads: threads.get().min(Workers::MOST).min(Workers::PER_CORE * cores) }
    }

    /// How many there are at most.
    pub fn threads(self) -> usize {
        self.threads
    }

    /// Does the jobs 0 to `count - 1`; their results in this order.
    ///
    /// # Errors
    /// That of the first job that failed. Jobs that had not begun by then are left out.
    pub fn run<R: Send>(
        self,
        count: usize,
        progress: &dyn Progress,
        work: impl Fn(usize, Advance<'_>) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let alone = || (0..count).map(|job| work(job, &|events| progress.advance(events))).collect();
        if self.threads.min(count) < 2 {
            return alone();
        }
        let Some(pool) = self.pool() else { return alone() };
        let (next, failed, advanced) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let mut results: Vec<Option<Result<R>>> = (0..count).map(|_| None).collect();
        pool.in_place_scope(|scope| {
            let (done, heard) = mpsc::channel();
            for _ in 0..self.threads.min(count) {
                let done = done.clone();
                let (next, failed, advanced, work) = (&next, &failed, &advanced, &work);
                scope.spawn(move |_| {
                    let advance = |events| _ = advanced.fetch_add(events, Ordering::Relaxed);
                    let mut own = Vec::new();
                    while !failed.load(Ordering::Relaxed) {
                        let job = next.fetch_add(1, Ordering::Relaxed);
                        if job >= count {
                            break;
                        }
                        let result = work(job, &advance);
                        failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        own.push((job, result));
                    }
                    // Nobody hears it only if the asking thread has panicked.
                    let _ = done.send(own);
                });
            }
            drop(done);
            let tell = || match advanced.swap(0, Ordering::Relaxed) {
                0 => {}
                events => progress.advance(events),
            };
            loop {
                match heard.recv_timeout(TOLD_EVERY) {
                    Ok(own) => own.into_iter().for_each(|(job, result)| results[job] = Some(result)),
                    Err(RecvTimeoutError::Timeout) => tell(),
                    Err(RecvTimeoutError::Disconnected) => break tell(),
                }
            }
        });
        // Jobs are begun in order: behind one that was left out there is none that was not, but before it is the error.
        results.into_iter().flatten().collect()
    }

    /// Does the jobs 0 to `count - 1`, which cannot fail; their results in this order.
    pub fn map<R: Send>(self, count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
        self.run(count, &Silent, |job, _| Ok(work(job))).unwrap_or_default()
    }

    /// Both results; the second is worked out by another thread meanwhile, if there may be one. The first may use what belongs to the
    /// thread that asks.
    pub fn both<A, B: Send>(self, one: impl FnOnce() -> A, other: impl Fn() -> B + Send + Sync) -> (A, B) {
        let Some(pool) = self.pool() else { return (one(), other()) };
        let mut second = None;
        let first = pool.in_place_scope(|scope| {
            scope.spawn(|_| second = Some(other()));
            one()
        });
        let second = second.unwrap_or_else(other);
        (first, second)
    }

    /// Does `work`, which has many short rounds, as one of the threads: between rounds others look for the next one instead of falling asleep at once.
    pub fn together<R: Send>(self, work: impl FnOnce(Team) -> R + Send) -> R {
        match self.pool() {
            Some(pool) => pool.install(|| work(Team { several: true })),
            None => work(Team { several: false }),
        }
    }

    /// The threads, which stay until the program ends; none if there is only one, if this is one of them (which must not wait for others), or if the system has none left.
    fn pool(self) -> Option<&'static ThreadPool> {
        static POOLS: Mutex<BTreeMap<usize, &'static ThreadPool>> = Mutex::new(BTreeMap::new());
        if self.threads < 2 || rayon::current_thread_index().is_some() {
            return None;
        }
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&self.threads) {
            return Some(pool);
        }
        // With little memory there are fewer of them: each attempt that fails has begun, and ends, nearly as many as it asks for.
        let fewer = std::iter::successors(Some(self.threads), |threads| Some(threads / 2).filter(|half| *half >= 2));
        let mut build = fewer.map(|threads| ThreadPoolBuilder::new().num_threads(threads).build());
        let pool = build.find_map(std::result::Result::ok)?;
        let pool: &'static ThreadPool = Box::leak(Box::new(pool));
        pools.insert(self.threads, pool);
        Some(pool)
    }
}

/// Threads that work together on the rounds of one thing.
#[derive(Debug, Clone, Copy)]
pub struct Team {
    several: bool,
}

impl Team {
    /// Does the jobs 0 to `count - 1` of a round; their results in this order.
    pub fn map<R: Send>(self, count: usize, work: impl Fn(usize) -> R + Send + Sync) -> Vec<R> {
        match self.several {
            true => (0..count).into_par_iter().with_max_len(1).map(work).collect(),
            false => (0..count).map(work).collect(),
        }
    }
}

/// Consecutive jobs, put together until their weights reach `least`: jobs that take less than starting a thread, or than taking the next one.
pub fn blocks(weights: impl IntoIterator<Item = usize>, least: usize) -> Vec<Range<usize>> {
    let (mut blocks, mut begin, mut end, mut weight) = (Vec::new(), 0, 0, 0);
    for one in weights {
        end += 1;
        weight += one;
        if weight >= least {
            blocks.push(begin..end);
            (begin, weight) = (end, 0);
        }
    }
    if begin < end {
        blocks.push(begin..end);
    }
    blocks
}

/// Divides things of these `weights`, which follow each other, into `count` parts of about the same weight: each belongs to the part in which its middle lies. Parts may be empty.
pub fn shares(weights: &[u64], count: usize) -> Vec<Range<usize>> {
    let all: u128 = weights.iter().copied().map(u128::from).sum();
    let mut before = 0;
    let part_of = |&weight: &u64| {
        let middle = 2 * before + u128::from(weight);
        before += u128::from(weight);
        ((middle * count as u128 / (2 * all).max(1)) as usize).min(count.saturating_sub(1))
    };
    let parts: Vec<usize> = weights.iter().map(part_of).collect();
    let mut begin = 0;
    let end_of = |part: usize| parts.partition_point(|&own| own <= part);
    (0..count).map(|part| std::mem::replace(&mut begin, end_of(part))..end_of(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use proptest::prelude::*;
    use std::cell::Cell;

    fn workers(threads: usize) -> Workers {
        Workers::new(NonZero::new(threads).unwrap())
    }

    #[test]
    fn both_results_come_back_from_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let mut own = 0;
            let one = || {
                own += 7;
                own
            };
            assert_eq!(workers(threads).both(one, || vec![3]), (7, vec![3]));
            assert_eq!(workers(threads).map(9, |job| job * job), [0, 1, 4, 9, 16, 25, 36, 49, 64]);
        }
    }

    #[test]
    fn there_are_never_more_than_a_machine_has_use_for() {
        assert_eq!(workers(7).threads(), 7);
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        assert_eq!(workers(usize::MAX).threads(), Workers::MOST.min(32 * cores));
    }

    #[test]
    fn rounds_have_their_results_in_order() {
        for threads in [1, 2, 5] {
            let rounds =
                |team: Team| -> Vec<Vec<usize>> { (0..20).map(|round| team.map(round, |job| job * round)).collect() };
            let expected: Vec<Vec<usize>> = (0..20).map(|round| (0..round).map(|job| job * round).collect()).collect();
            assert_eq!(workers(threads).together(rounds), expected);
            // By one of the threads, which does not wait for others.
            assert_eq!(workers(threads).map(3, |_| workers(threads).together(rounds)), vec![expected; 3]);
        }
    }

    /// Counts what it is told.
    #[derive(Default)]
    struct Counted(Cell<u64>);

    impl Progress for Counted {
        fn phase(&self, _: &'static str, _: u64) {}
        fn advance(&self, events: u64) {
            self.0.set(self.0.get() + events);
        }
        fn finish(&self) {}
    }

    #[test]
    fn results_are_in_order_and_progress_is_told() {
        for threads in [1, 2, 3, 8] {
            for count in [0, 1, 2, 7, 100] {
                let progress = Counted::default();
                let work = |job: usize, advance: Advance<'_>| {
                    advance(job as u64);
                    Ok(job * job)
                };
                let results = workers(threads).run(count, &progress, work).unwrap();
                assert_eq!(results, (0..count).map(|job| job * job).collect::<Vec<_>>());
                assert_eq!(progress.0.get(), (0..count as u64).sum::<u64>());
            }
        }
    }

    #[test]
    fn the_first_of_several_errors_is_returned() {
        for threads in [1, 2, 5] {
            for _ in 0..50 {
                let work = |job: usize, _: Advance<'_>| match job {
                    3 | 4 | 9 => Err(Error::new(format!("job {job}"))),
                    _ => Ok(()),
                };
                let error = workers(threads).run(20, &Silent, work).unwrap_err();
                assert_eq!(error.to_string(), "job 3");
            }
        }
    }

    #[test]
    fn work_within_work_does_not_wait_for_threads_that_wait() {
        let sums = workers(2).map(8, |job| workers(2).map(5, |part| job * part).into_iter().sum::<usize>());
        assert_eq!(sums, (0..8).map(|job| 10 * job).collect::<Vec<_>>());
        let (one, other) =
            workers(2).both(|| workers(2).map(3, |job| workers(2).both(|| job, || 1)), || workers(2).map(2, |job| job));
        assert_eq!((one, other), (vec![(0, 1), (1, 1), (2, 1)], vec![0, 1]));
    }

    #[test]
    fn blocks_are_as_heavy_as_they_have_to_be() {
        assert_eq!(blocks([3, 1, 4, 1, 5, 9, 2], 5), [0..3, 3..5, 5..6, 6..7]);
        assert_eq!(blocks([0, 5, 0], 5), [0..2, 2..3]);
        assert_eq!(blocks([], 5), [] as [Range<usize>; 0]);
    }

    #[test]
    fn several_threads_do_work_at_once() {
        let meeting = std::sync::Barrier::new(2);
        let work = |_: usize, _: Advance<'_>| Ok(meeting.wait().is_leader());
        let leaders = workers(2).run(2, &Silent, work).unwrap();
        assert_eq!(leaders.into_iter().filter(|leader| *leader).count(), 1);
    }

    proptest! {
        #[test]
        fn everything_is_in_one_share(weights in prop::collection::vec(0u64..9, 0..12), count in 1usize..6) {
            let found = shares(&weights, count);
            prop_assert_eq!(found.len(), count);
            let all: Vec<usize> = found.into_iter().flatten().collect();
            prop_assert_eq!(all, (0..weights.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn shares_weigh_about_the_same() {
        // The first two are a little less than half of all.
        assert_eq!(shares(&[99, 99, 101, 101], 2), [0..2, 2..4]);
        assert_eq!(shares(&[1, 1, 8, 1, 1], 3), [0..2, 2..3, 3..5]);
        // More parts than things; nothing to weigh, at the end or at all.
        assert_eq!(shares(&[5, 5], 4), [0..0, 0..1, 1..1, 1..2]);
        assert_eq!(shares(&[0, 0, 1, 0], 2), [0..2, 2..4]);
        assert_eq!(shares(&[], 2), [0..0, 0..0]);
    }
}
