//! The streams of all threads of the process, for those who look at them from outside.

use crate::stream::Stream;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A list that only grows. Streams live as long as the process, since its threads may end at any time.
#[derive(Default)]
pub(crate) struct Streams {
    /// The last one made; each knows the one before it.
    last: AtomicPtr<Stream>,
}

impl Streams {
    /// Adds one, which belongs to the thread that gets it: of what other threads see of it, they may use only what allows that.
    pub(crate) fn add(&self, stream: Stream) -> *mut Stream {
        let stream = Box::into_raw(Box::new(stream));
        let mut last = self.last.load(Ordering::Acquire);
        loop {
            // SAFETY: it is not shared yet.
            unsafe { (*stream).next.store(last, Ordering::Relaxed) };
            match self.last.compare_exchange_weak(last, stream, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return stream,
                Err(now) => last = now,
            }
        }
    }

    /// All of them, the last one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Stream> {
        // SAFETY: streams live as long as the process; of those of other threads only what allows it is used.
        let at = |place: &AtomicPtr<Stream>| unsafe { place.load(Ordering::Acquire).as_ref() };
        std::iter::successors(at(&self.last), move |stream| at(&stream.next))
    }
}
