//! Exchanges between two processes of a node through memory that both have mapped.
//!
//! A word written by one core is seen by another one after some tens of nanoseconds, a message of the kernel after microseconds. Both threads have to run for it, on two
//! cores: so these are rows of a fraction of a millisecond, which a message of the kernel begins, and whatever is interrupted ends by itself.

use crate::clock;
use crate::exchange::{Batch, Exchange};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::time::{Duration, Instant};

/// Exchanges in a row, at most. Chosen by hand: longer rows are more often interrupted, shorter ones cost a message of the kernel for fewer
/// exchanges.
const ROW: usize = 256;
/// So long the other side is looked for, without a sign of it. Chosen by hand: shorter gives up before the other thread is awake, longer takes a core
/// from the program.
const PATIENCE: Duration = Duration::from_micros(500);
/// How often the memory is looked at between two looks at the time. Chosen by hand: the time costs as much as several looks; with more, the end of
/// the wait is noticed later.
const LOOKS: usize = 64;
/// Flag of a question: there are no more in this row.
const END: u64 = 1 << 63;
const BYTES: usize = 4096;

/// The memory. What one side writes is not in a line, nor in a pair of lines, of what the other side writes.
#[repr(C, align(128))]
struct LinePages {
    question: Padded<AtomicU64>,
    answer: Padded<Answer>,
}

#[repr(C, align(128))]
struct Padded<T>(T);

#[repr(C)]
struct Answer {
    number: AtomicU64,
    /// When the question was seen; the answer left at once.
    came: AtomicU64,
}

/// One end of it.
pub(crate) struct Line {
    page: &'static LinePages,
    path: PathBuf,
}

impl Line {
    /// Where the one of a process is, in the directory of the recording.
    pub(crate) fn path(directory: &Path, rank: u64) -> PathBuf {
        directory.join(format!("{rank}.line"))
    }

    /// Makes it, for the side that asks. None if that is not possible.
    pub(crate) fn create(path: PathBuf) -> Option<Line> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).ok()?;
        let mapped = file.set_len(BYTES as u64).ok().and_then(|()| map(&file));
        if mapped.is_none() {
            let _ = std::fs::remove_file(&path);
        }
        Some(Line { page: mapped?, path })
    }

    /// The one that somebody else has made.
    pub(crate) fn open(path: PathBuf) -> Option<Line> {
        let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        let whole = file.metadata().is_ok_and(|about| about.is_file() && about.len() == BYTES as u64);
        Some(Line { page: if whole { map(&file) } else { None }?, path })
    }

    /// Its file is not needed once both have it.
    pub(crate) fn hide(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// Asks, until the row is full or nobody answers any more.
    pub(crate) fn ask(&self, batch: &mut Batch) {
        let LinePages { question: Padded(question), answer: Padded(answer) } = self.page;
        let mut number = question.load(Ordering::Relaxed) & !END;
        for _ in 0..ROW {
            number += 1;
            // Not before the last answer has been seen to be whole: then it would be too early.
            let asked = clock::after();
            compiler_fence(Ordering::SeqCst);
            question.store(number, Ordering::Release);
            if !until(|| answer.number.load(Ordering::Acquire) == number) {
                break;
            }
            let answered = clock::after();
            let came = answer.came.load(Ordering::Relaxed);
            batch.push(Exchange { asked, answered, came, left: came });
        }
        question.store((number + 1) | END, Ordering::Release);
    }

    /// Answers until the other side has ended its row, or does nothing.
    pub(crate) fn answer(&self) {
        let LinePages { question: Padded(question), answer: Padded(answer) } = self.page;
        // The end of an earlier row, of which this side has not heard, is not that of this one.
        let old = Some(question.load(Ordering::Acquire)).filter(|number| number & END != 0);
        let mut last = old.unwrap_or_else(|| answer.number.load(Ordering::Relaxed));
        for _ in 0..=ROW {
            let mut number = last;
            let seen = until(|| {
                number = question.load(Ordering::Acquire);
                number != last
            });
            let came = clock::after();
            // What was said last stays: the other side may have been interrupted before it has read all of it.
            if !seen || number & END != 0 {
                return;
            }
            answer.came.store(came, Ordering::Relaxed);
            answer.number.store(number, Ordering::Release);
            last = number;
        }
    }
}

/// Looks again and again whether something is so. Whether it was in time.
fn until(mut is_so: impl FnMut() -> bool) -> bool {
    let mut start = None;
    loop {
        for _ in 0..LOOKS {
            if is_so() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return false;
        }
    }
}

/// Maps it for as long as the process lives.
fn map(file: &std::fs::File) -> Option<&'static LinePages> {
    let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    // SAFETY: a new mapping of a file that is long enough.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, access, shared, file.as_raw_fd(), 0) };
    // SAFETY: it stays mapped, it is as long and as aligned as a page, and any content of it is valid: there are atomic integers only.
    (start != libc::MAP_FAILED).then(|| unsafe { &*start.cast::<LinePages>() })
}

/// Where the calling thread may run for a while: afterwards it may run where it could before.
pub(crate) struct Placed {
    before: Option<libc::cpu_set_t>,
}

const SET: usize = std::mem::size_of::<libc::cpu_set_t>();

impl Placed {
    /// On all its cores but one. None if that is the only one.
    pub(crate) fn away_from(core: usize) -> Option<Placed> {
        // SAFETY: the number of the core is within the set.
        Placed::with(core, |set| unsafe { libc::CPU_CLR(core, set) })
    }

    /// On one of its cores: whoever is woken may otherwise be put on that of its waker.
    pub(crate) fn on(core: usize) -> Option<Placed> {
        // SAFETY: the number of the core is within the set.
        Placed::with(core, |set| unsafe {
            libc::CPU_ZERO(set);
            libc::CPU_SET(core, set);
        })
    }

    fn with(core: usize, change: impl FnOnce(&mut libc::cpu_set_t)) -> Option<Placed> {
        // SAFETY: the set is as long as said, and any bits are one; the number of the core is within it.
        unsafe {
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            if core >= 8 * SET || libc::sched_getaffinity(0, SET, &mut before) != 0 || !libc::CPU_ISSET(core, &before) {
                return Some(Placed { before: None });
            }
            let mut now = before;
            change(&mut now);
            let placed = libc::CPU_COUNT(&now) > 0 && libc::sched_setaffinity(0, SET, &now) == 0;
            placed.then_some(Placed { before: Some(before) })
        }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the set is as long as said.
            unsafe { libc::sched_setaffinity(0, SET, before) };
        }
    }
}

/// The core that the calling thread runs on.
pub(crate) fn core() -> usize {
    // SAFETY: no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(directory: &Path) -> [Line; 2] {
        let path = Line::path(directory, 0);
        [Line::create(path.clone()).expect("the memory"), Line::open(path).expect("the same memory")]
    }

    #[test]
    fn an_answer_stays_when_nothing_follows_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let [asking, answering] = line(directory.path());
        let LinePages { question: Padded(question), answer: Padded(answer) } = asking.page;
        // It is there when the other one first looks, however late that is.
        question.store(1, Ordering::Release);
        let answerer = std::thread::spawn(move || answering.answer());
        while answer.number.load(Ordering::Acquire) != 1 && !answerer.is_finished() {
            std::thread::yield_now();
        }
        let came = answer.came.load(Ordering::Relaxed);
        // The other side is interrupted, for longer than this one waits.
        answerer.join().expect("the answers end");
        let is_answered = answer.number.load(Ordering::Relaxed) == 1;
        assert!(is_answered && answer.came.load(Ordering::Relaxed) == came);
        question.store(2 | END, Ordering::Release);
        asking.answer();
        assert_eq!(answer.came.load(Ordering::Relaxed), came, "nobody asked");
    }

    #[test]
    fn words_come_after_they_left_in_rows_that_follow_each_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let [asking, answering] = line(directory.path());
        let mut batch = Batch::default();
        // On a busy machine either side may have waited too long, many times.
        for row in 0..20_000 {
            if row >= 100 && batch.total() > 0 {
                break;
            }
            std::thread::scope(|scope| {
                scope.spawn(|| answering.answer());
                asking.ask(&mut batch);
            });
        }
        let in_order = |one: &Exchange| one.asked <= one.came && one.left <= one.answered;
        assert!(batch.total() > 0 && batch.exchanges().iter().all(in_order), "{batch:?}");
    }
}
