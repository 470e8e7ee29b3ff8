//! The clocks of this node that gossip measures by.
#![allow(unsafe_code)]

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: nobody sets it, and nobody changes its rate.
pub fn raw() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// What `CLOCK_REALTIME` is ahead of it, in nanoseconds.
pub fn real_minus_raw() -> i64 {
    // Of several tries the one that was interrupted least.
    let once = || {
        let before = raw();
        let real = read(libc::CLOCK_REALTIME);
        let length = raw().wrapping_sub(before);
        (length, real.wrapping_sub(before.wrapping_add(length / 2)) as i64)
    };
    (0..5).map(|_| once()).min_by_key(|&(length, _)| length).map_or(0, |(_, difference)| difference)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
