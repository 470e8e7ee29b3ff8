//! The counter that gives times, and anchors that tell its rate.
//!
//! Where the kernel itself keeps time by the processor's time stamp counter, all cores of the node show the same and it never changes its rate:
//! reading it costs a fraction of a system's clock. Otherwise `CLOCK_MONOTONIC_RAW`.

use crate::format;
use std::sync::atomic::{AtomicBool, Ordering};

static SYSTEM_CLOCK: AtomicBool = AtomicBool::new(true);

/// Chooses the counter; returns how the header of a raw file names it.
pub(crate) fn choose() -> u64 {
    let wanted = std::env::var("CLC_RECORDER_TIMER").unwrap_or_default();
    let kernel = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let usable = cfg!(target_arch = "x86_64") && kernel.is_ok_and(|name| name.trim() == "tsc") && invariant();
    let counter = usable && wanted != "clock";
    SYSTEM_CLOCK.store(!counter, Ordering::Relaxed);
    if counter { format::TSC } else { format::NANOSECONDS }
}

#[cfg(target_arch = "x86_64")]
fn invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant() -> bool {
    false
}

/// The time before a call.
#[inline]
pub(crate) fn before() -> u64 {
    if SYSTEM_CLOCK.load(Ordering::Relaxed) {
        return nanoseconds(libc::CLOCK_MONOTONIC_RAW);
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// The time after a call: nothing of the call comes after it.
#[inline]
pub(crate) fn after() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction. It waits until all instructions before it, loads included, are done.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    before()
}

/// A clock of the system in nanoseconds.
pub(crate) fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Counter, `CLOCK_MONOTONIC_RAW` and `CLOCK_REALTIME` at the same moment: of several tries, the one that was interrupted least.
pub(crate) fn anchor() -> [u64; 3] {
    let once = || {
        let first = after();
        let raw = nanoseconds(libc::CLOCK_MONOTONIC_RAW);
        let middle = after();
        let real = nanoseconds(libc::CLOCK_REALTIME);
        (after().wrapping_sub(first), [first + middle.wrapping_sub(first) / 2, raw, real])
    };
    let best = (0..16).map(|_| once()).min_by_key(|&(length, _)| length);
    let mut anchor = best.map_or([0; 3], |(_, anchor)| anchor);
    if SYSTEM_CLOCK.load(Ordering::Relaxed) {
        anchor[0] = anchor[1];
    }
    anchor
}
