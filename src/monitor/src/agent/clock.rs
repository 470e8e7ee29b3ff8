//! The clocks of this node that gossip measures by.
#![allow(unsafe_code)]

use super::leads::Lead;
use std::time::Duration;

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: nobody sets it, and nobody changes its rate.
pub(super) fn raw() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// `CLOCK_MONOTONIC` in nanoseconds: what is due when. Nobody sets it either, and it is no clock that is compared: whatever is wrong with those, gossip goes on.
pub(super) fn steady() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// What `CLOCK_REALTIME` is ahead of it, in nanoseconds.
pub(super) fn real_minus_raw() -> i64 {
    lead().ahead
}

/// The same, and at which time of [`raw`].
pub(super) fn lead() -> Lead {
    // Of several tries the one that was interrupted least.
    let once = || {
        let before = raw();
        let real = read(libc::CLOCK_REALTIME);
        let length = raw().wrapping_sub(before);
        let raw = before.wrapping_add(length / 2);
        (length, Lead { raw, ahead: real.wrapping_sub(raw) as i64 })
    };
    (0..5).map(|_| once()).min_by_key(|&(length, _)| length).map_or(Lead { raw: 0, ahead: 0 }, |(_, lead)| lead)
}

/// This thread may be woken so much later than it wants to, together with others or by the next tick of the kernel: a timer of its own costs more than being late does.
pub(super) fn wake_late(by: Duration) {
    // SAFETY: takes two numbers. If the kernel refuses, timers are as exact as ever.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, by.as_nanos() as libc::c_ulong) };
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
