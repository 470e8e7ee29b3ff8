//! The clocks of this node that gossip measures by.
#![allow(unsafe_code)]

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: nobody sets it, and nobody changes its rate.
pub(super) fn raw() -> u64 {
    read(libc::CLOCK_MONOTONIC_RAW)
}

/// What `CLOCK_REALTIME` is ahead of it, in nanoseconds.
pub(super) fn real_minus_raw() -> i64 {
    // Of several tries the one that was interrupted least.
    let once = || {
        let before = raw();
        let real = read(libc::CLOCK_REALTIME);
        let length = raw().wrapping_sub(before);
        (length, real.wrapping_sub(before.wrapping_add(length / 2)) as i64)
    };
    (0..5).map(|_| once()).min_by_key(|&(length, _)| length).map_or(0, |(_, difference)| difference)
}

/// The kernel's names for "when did the packet come that was received last", by `CLOCK_REALTIME`. Asked once, it notes that of each packet.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
/// A packet that has waited for longer is taken to have come now: somebody has set the clock.
const LONGEST: u64 = 1_000_000_000;
/// What the system time changes by against the other clock from one packet to the next, in nanoseconds, if nobody sets it: it is slewed by half a thousandth at most.
const SLEWED: u64 = 200_000;

/// When packets come to a socket, as far as the kernel knows.
#[derive(Debug)]
pub(super) struct PacketStamps {
    /// What the system time was ahead by when the last one was asked for.
    ahead: i64,
}

impl PacketStamps {
    /// From now on the kernel notes when packets come to this socket.
    pub(super) fn new(socket: &UdpSocket) -> PacketStamps {
        let mut stamps = PacketStamps { ahead: real_minus_raw() };
        stamps.came(socket);
        stamps
    }

    /// When the packet came that was received last, by [`raw`].
    pub(super) fn came(&mut self, socket: &UdpSocket) -> u64 {
        let mut real = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the descriptor is open, and the time is writable.
        let asked = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS, &raw mut real) };
        let real = (real.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(real.tv_nsec as u64);
        let ahead = real_minus_raw();
        self.by_raw((asked == 0).then_some(real), ahead, raw())
    }

    /// The stamp `real` by the other clock, which shows `now` and which the system time is `ahead` of.
    fn by_raw(&mut self, real: Option<u64>, ahead: i64, now: u64) -> u64 {
        // If the system time was set since the last packet, nobody knows which one the stamp is of.
        let set = std::mem::replace(&mut self.ahead, ahead).abs_diff(ahead) > SLEWED;
        let came = real.filter(|_| !set).map(|real| real.wrapping_sub(ahead as u64));
        came.filter(|came| now.wrapping_sub(*came) < LONGEST).unwrap_or(now)
    }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn packets_have_come_before_they_are_received() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut stamps = PacketStamps::new(&socket);
        let mut waited = || {
            let sent = raw();
            socket.send_to(b"1", socket.local_addr().unwrap()).unwrap();
            std::thread::sleep(Duration::from_millis(300));
            socket.recv_from(&mut [0]).unwrap();
            stamps.came(&socket).wrapping_sub(sent) as i64
        };
        // The kernel begins with it a moment after it was asked.
        let tries: Vec<i64> = (0..5).map(|_| waited()).collect();
        assert!(tries.iter().any(|waited| (-1_000..200_000_000).contains(waited)), "{tries:?}");
    }

    #[test]
    fn a_system_time_that_is_set_moves_no_packet() {
        let mut stamps = PacketStamps { ahead: 1_000_000_000 };
        assert_eq!(stamps.by_raw(Some(1_000_000_500), 1_000_000_000, 900), 500);
        assert_eq!(stamps.by_raw(Some(1_000_100_600), 1_000_100_000, 900), 600, "slewed");
        // Set forward by 5 ms after a packet had come: by the time of now it would have come 5 ms before it was sent.
        assert_eq!(stamps.by_raw(Some(1_010_100_700), 1_005_100_000, 10_000_900), 10_000_900);
        assert_eq!(stamps.by_raw(Some(1_015_100_800), 1_005_100_000, 10_000_900), 10_000_800, "the next one");
        assert_eq!(stamps.by_raw(None, 1_005_100_000, 10_000_900), 10_000_900);
    }
}
