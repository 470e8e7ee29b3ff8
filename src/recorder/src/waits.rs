//! Whether threads of the program wait in MPI: a good moment for whatever else is to be done.

use crate::clock;
use crate::stream::Stream;
use crate::streams::Streams;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A call of MPI that takes longer waits for others, in nanoseconds, and so does a row of polls in vain. Chosen by hand: a smaller value takes long transfers for waits, and exchanges
/// then disturb the program; a larger one finds few.
const WAITS: u64 = 100_000;

/// About how long ticks of the counter are.
pub(crate) struct TickLength {
    begin: (u64, Instant),
    per_tick: f64,
}

impl TickLength {
    /// Learns it from now on.
    pub(crate) fn new() -> TickLength {
        TickLength { begin: (clock::before(), Instant::now()), per_tick: 1.0 }
    }

    /// To be called now and then.
    pub(crate) fn look(&mut self) {
        let ticks = clock::before().saturating_sub(self.begin.0);
        self.per_tick = self.begin.1.elapsed().as_nanos() as f64 / ticks.max(1) as f64;
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.per_tick) as u64
    }

    /// Whether the thread of a stream waits: in a call, or in a row of polls in vain that still goes on.
    pub(crate) fn waits(&self, stream: &Stream) -> bool {
        let long = |from: u64, to: u64| self.nanoseconds(to.saturating_sub(from)) > WAITS;
        let now = clock::before();
        let inside = stream.inside_since.load(Ordering::Relaxed);
        let [first, last] = [0, 1].map(|end| stream.polled[end].load(Ordering::Relaxed));
        inside != 0 && long(inside, now) || last != 0 && long(first, last) && !long(last, now)
    }

    /// Whether any thread waits.
    pub(crate) fn any_waits(&self, streams: &Streams) -> bool {
        streams.all().any(|stream| self.waits(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;

    const TEST: u64 = 1;
    /// The number of the first function that polls.
    const POLL: u8 = 1;
    /// Time of a poll, in ticks.
    const LENGTH: u64 = 1_000_000;
    /// So short that this test takes no time by comparison.
    const PER_TICK: f64 = 1e-3;

    /// Polls in vain, `apart` from each other, of which the last one ends `ago`.
    fn polled(stream: &mut Stream, count: u64, apart: u64, ago: u64) {
        let first = clock::before() - ago - count * (LENGTH + apart);
        for poll in 0..count {
            let began = first + poll * (LENGTH + apart);
            assert!(stream.reserve(64));
            let in_row = stream.poll_begins();
            stream.enter_at(TEST, began);
            if !in_row {
                stream.commit();
            }
            if !stream.joins_poll(POLL, began + LENGTH) {
                stream.leave(began + LENGTH, false);
            }
            stream.commit();
            stream.poll_was_in_vain();
        }
    }

    /// Whether a thread that has polled so waits.
    fn waits_after(count: u64, apart: u64, ago: u64) -> bool {
        let directory = tempfile::tempdir().expect("a directory");
        let buffers = Buffers::create(&directory.path().join("0-0.raw"), 2, 1 << 20, false).expect("buffers");
        let mut stream = Stream::new(buffers);
        let ticks = TickLength { begin: (0, Instant::now()), per_tick: PER_TICK };
        assert!(!ticks.waits(&stream));
        polled(&mut stream, count, apart, ago);
        ticks.waits(&stream)
    }

    #[test]
    fn a_thread_that_polls_in_vain_waits() {
        assert!(waits_after(500, LENGTH / 2, 0));
        assert!(!waits_after(500, LENGTH / 2, 1000 * LENGTH), "it has stopped");
        assert!(!waits_after(20, LENGTH / 2, 0), "it has just begun");
        assert!(!waits_after(500, 2 * LENGTH, 0), "it computes in between");
    }
}
