//! The clocks of this node that gossip measures by.
#![allow(unsafe_code)]

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

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

/// The kernel's names for "when did the packet come that was received last", by `CLOCK_REALTIME`. Asked once, it notes that of each packet.
const SIOCGSTAMPNS: libc::Ioctl = 0x8907;
/// A packet that has waited for longer is taken to have come now: somebody has set the clock.
const LONGEST: u64 = 1_000_000_000;

/// When the packet came that was received last from a socket, by [`raw`], as far as the kernel knows.
pub fn came(socket: &UdpSocket) -> u64 {
    let mut real = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the descriptor is open, and the time is writable.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSTAMPNS, &raw mut real) };
    let ahead = real_minus_raw();
    let now = raw();
    let real = (real.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(real.tv_nsec as u64);
    let came = real.wrapping_sub(ahead as u64);
    if asked == 0 && now.wrapping_sub(came) < LONGEST { came } else { now }
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
        came(&socket);
        let waited = || {
            let sent = raw();
            socket.send_to(b"1", socket.local_addr().unwrap()).unwrap();
            std::thread::sleep(Duration::from_millis(300));
            socket.recv_from(&mut [0]).unwrap();
            came(&socket).wrapping_sub(sent) as i64
        };
        // The kernel begins with it a moment after it was asked.
        let tries: Vec<i64> = (0..5).map(|_| waited()).collect();
        assert!(tries.iter().any(|waited| (-1_000..200_000_000).contains(waited)), "{tries:?}");
    }
}
