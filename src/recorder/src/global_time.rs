//! The *global time*: `CLOCK_MONOTONIC_RAW` of the node of rank 0, as far as it is known here.

use crate::clock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// It is so much ahead of `CLOCK_MONOTONIC_RAW` here, if it is known.
static AHEAD: AtomicI64 = AtomicI64::new(0);
static KNOWN: AtomicBool = AtomicBool::new(false);

/// It is that of this process, or nobody knows it yet.
pub(crate) fn begin(own: bool) {
    KNOWN.store(own, Ordering::Release);
}

/// It has turned out to be so much ahead.
pub(crate) fn follow(ahead: i64) {
    AHEAD.store(ahead, Ordering::Relaxed);
    KNOWN.store(true, Ordering::Release);
}

/// Whether it is known.
pub(crate) fn is_known() -> bool {
    KNOWN.load(Ordering::Acquire)
}

/// It in nanoseconds; 0 if it is not known.
pub(crate) fn now() -> u64 {
    if is_known() { raw().wrapping_add_signed(AHEAD.load(Ordering::Relaxed)) } else { 0 }
}

/// When it is `global`, by `CLOCK_MONOTONIC_RAW` here.
pub(crate) fn here(global: u64) -> u64 {
    global.wrapping_add_signed(-AHEAD.load(Ordering::Relaxed))
}

pub(crate) fn raw() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC_RAW)
}
