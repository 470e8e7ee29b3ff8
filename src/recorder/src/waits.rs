//! Whether threads of the program wait in MPI: a good moment for whatever else is to be done.

use crate::clock;
use crate::stream::Stream;
use crate::streams::Streams;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A call of MPI that takes longer waits for others, in nanoseconds. Chosen by hand: a smaller value takes long transfers for waits, and exchanges
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

    /// Whether the thread of a stream waits.
    pub(crate) fn waits(&self, stream: &Stream) -> bool {
        let since = stream.inside_since.load(Ordering::Relaxed);
        since != 0 && self.nanoseconds(clock::before().saturating_sub(since)) > WAITS
    }

    /// Whether any thread waits.
    pub(crate) fn any_waits(&self, streams: &Streams) -> bool {
        streams.all().any(|stream| self.waits(stream))
    }
}
