//! Whether threads of the program wait in MPI: a good moment for whatever else is to be done.

use crate::clock;
use crate::session::Session;
use crate::stream::Stream;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A call of MPI that takes longer waits for others, in nanoseconds.
const WAITS: u64 = 100_000;

/// About how long ticks of the counter are.
pub struct Ticks {
    begin: (u64, Instant),
    per_tick: f64,
}

impl Ticks {
    /// Learns it from now on.
    pub fn new() -> Ticks {
        Ticks { begin: (clock::before(), Instant::now()), per_tick: 1.0 }
    }

    /// To be called now and then.
    pub fn look(&mut self) {
        let ticks = clock::before().saturating_sub(self.begin.0);
        self.per_tick = self.begin.1.elapsed().as_nanos() as f64 / ticks.max(1) as f64;
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.per_tick) as u64
    }

    /// Whether the thread of a stream waits.
    pub fn waits(&self, stream: &Stream) -> bool {
        let since = stream.inside_since.load(Ordering::Relaxed);
        since != 0 && self.nanoseconds(clock::before().saturating_sub(since)) > WAITS
    }

    /// Whether any thread waits.
    pub fn any_waits(&self, session: &Session) -> bool {
        let mut stream = session.streams.load(Ordering::Acquire);
        // SAFETY: streams live as long as the process; of those of other threads only what allows it is used.
        while let Some(one) = unsafe { stream.as_ref() } {
            if self.waits(one) {
                return true;
            }
            stream = one.next.load(Ordering::Acquire);
        }
        false
    }
}
