//! When a thread began that the program has made: what its file begins with ([`pthreads`](crate::pthreads)).

use crate::format::{PTHREAD, pthread};
use crate::functions::ROOM;
use crate::stream::Stream;
use std::cell::Cell;

thread_local! {
    /// Number of this thread, and when it began; number 0 if it is not to be recorded.
    static BEGUN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// This thread, which has a number, has begun at a time.
pub(crate) fn began(number: u64, time: u64) {
    BEGUN.set((number, time));
}

/// The first record of a thread, if it was made by a thread that records.
#[cold]
pub(crate) fn begin_file(stream: &mut Stream) {
    let (number, time) = BEGUN.get();
    if number == 0 || !stream.reserve(ROOM) {
        return;
    }
    stream.unsigned(PTHREAD);
    stream.stamp(time);
    stream.unsigned(pthread::BEGIN);
    stream.unsigned(number);
    // SAFETY: it has no conditions.
    stream.unsigned(unsafe { libc::pthread_self() });
    stream.commit();
}
