//! Packets that have come to the socket of an agent, with the times at which they came: several at once, for each look costs about as much as a packet does.
#![allow(unsafe_code)]

use super::clock;
use std::io::Result;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// So many packets are taken from the kernel at once. Chosen by hand: more than come between two looks of an agent; each has room for the longest packet, in memory that is only used if such a one comes.
const MOST: usize = 16;
/// After so many at once it is not over before more have come: somebody floods the socket, which must not fill up. Chosen by hand: an agent gets some six in 50 ms.
const CROWD: usize = 64;
/// So many are taken in without a pause at most. Chosen by hand: what the socket holds; more keep the agent from its own work.
const TOGETHER: usize = 256;
/// No packet is longer.
const LONGEST: usize = 1 << 16;
/// A packet that has waited for longer is taken to have come now: somebody has set the clock.
const OLDEST: u64 = 1_000_000_000;
/// What the system time changes by against the other clock from one look to the next, in nanoseconds, if nobody sets it: it is slewed by half a thousandth at most.
const SLEWED: u64 = 200_000;

/// Room for what the kernel says of a packet beside its bytes: when it came.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Beside([u8; 64]);

/// A packet.
pub(super) struct Arrived<'a> {
    /// By [`clock::raw`], and how long ago that was by it.
    pub(super) came: u64,
    pub(super) waited: u64,
    pub(super) from: SocketAddr,
    pub(super) bytes: &'a [u8],
}

/// What comes to a socket.
pub(super) struct Inbox {
    buffer: Vec<u8>,
    /// What the system time was ahead by at the last look.
    ahead: i64,
    /// Whether the next packet must not wait: so many came at the last look, or stamps say nothing now.
    hasty: bool,
}

impl Inbox {
    /// From now on the kernel notes when packets come to this socket. If it cannot, they have come when they are looked at.
    pub(super) fn new(socket: &UdpSocket) -> Inbox {
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open, and the value is as long as said.
        unsafe {
            let length = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                (&raw const on).cast(),
                length,
            );
        }
        Inbox { buffer: vec![0; MOST * LONGEST], ahead: clock::real_minus_raw(), hasty: false }
    }

    /// Waits for so long, or until something has come: how long that may wait itself is `gather`.
    ///
    /// # Errors
    /// The socket cannot be used any more.
    pub(super) fn wait(&self, socket: &UdpSocket, length: Duration, gather: Duration) -> Result<()> {
        if !gather.is_zero() && !self.hasty {
            std::thread::sleep(length.min(gather));
            return Ok(());
        }
        // At least as long as a timeout can be.
        let timeout = i32::try_from(length.as_micros().div_ceil(1_000)).unwrap_or(i32::MAX).max(1);
        let mut wanted = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the list is one long, and its descriptor is open.
        let found = unsafe { libc::poll(&raw mut wanted, 1, timeout) };
        if found > 0 && wanted.revents & libc::POLLNVAL != 0 {
            return Err(std::io::ErrorKind::NotConnected.into());
        }
        Ok(())
    }

    /// Takes what has come, without waiting.
    pub(super) fn take(&mut self, socket: &UdpSocket, mut each: impl FnMut(Arrived)) {
        let ahead = clock::real_minus_raw();
        // If the system time was set since, nobody knows which one a stamp is of.
        let set = std::mem::replace(&mut self.ahead, ahead).abs_diff(ahead) > SLEWED;
        let mut all = 0;
        while all < TOGETHER {
            let some = self.take_some(socket, |stamp, from, bytes| {
                let now = clock::raw();
                let came = by_raw(stamp.filter(|_| !set), ahead, now);
                each(Arrived { came, waited: now.saturating_sub(came), from, bytes });
            });
            all += some;
            if some < MOST {
                break;
            }
        }
        self.hasty = all >= CROWD || set;
    }

    /// Takes [`MOST`] at most, each with the time at which it came by `CLOCK_REALTIME`, if that is known; returns how many.
    fn take_some(&mut self, socket: &UdpSocket, mut each: impl FnMut(Option<u64>, SocketAddr, &[u8])) -> usize {
        let mut froms = [MaybeUninit::<libc::sockaddr_storage>::zeroed(); MOST];
        let mut besides = [Beside([0; 64]); MOST];
        // SAFETY: both consist of numbers and pointers, which may be zero.
        let (mut parts, mut heads): ([libc::iovec; MOST], [libc::mmsghdr; MOST]) = unsafe { (zeroed(), zeroed()) };
        for (place, head) in heads.iter_mut().enumerate() {
            let bytes = &mut self.buffer[place * LONGEST..(place + 1) * LONGEST];
            parts[place] = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: LONGEST };
            head.msg_hdr.msg_iov = &raw mut parts[place];
            head.msg_hdr.msg_iovlen = 1;
            head.msg_hdr.msg_name = froms[place].as_mut_ptr().cast();
            head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            head.msg_hdr.msg_control = (&raw mut besides[place]).cast();
            head.msg_hdr.msg_controllen = size_of::<Beside>() as _;
        }
        // SAFETY: there are as many heads as said, and what each of them points to is as long as it says and lives until the call returns. It does not wait.
        let taken = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                heads.as_mut_ptr(),
                MOST as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let taken = usize::try_from(taken).unwrap_or(0);
        for (place, head) in heads.iter().take(taken).enumerate() {
            // SAFETY: it was zero before the kernel wrote the address into it.
            let from = unsafe { froms[place].assume_init_ref() };
            let bytes = &self.buffer[place * LONGEST..][..(head.msg_len as usize).min(LONGEST)];
            if let Some(from) = address(from) {
                each(stamp(&head.msg_hdr), from, bytes);
            }
        }
        taken
    }
}

/// The time that the kernel says beside a packet.
fn stamp(head: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has written what is beside the packet, and how long that is, into the head.
    let mut beside = unsafe { libc::CMSG_FIRSTHDR(head) };
    while !beside.is_null() {
        // SAFETY: the pointer is to a whole header within what is beside the packet: the functions of the system see to that.
        let (level, kind) = unsafe { ((*beside).cmsg_level, (*beside).cmsg_type) };
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: of this kind are the bytes of a time, wherever they begin.
            let time: libc::timespec = unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(beside).cast()) };
            return Some((time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64));
        }
        // SAFETY: see above.
        beside = unsafe { libc::CMSG_NXTHDR(head, beside) };
    }
    None
}

/// Whom a packet is from.
fn address(from: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let start = &raw const *from;
    match i32::from(from.ss_family) {
        libc::AF_INET => {
            // SAFETY: it is an address of this family, which is shorter than the storage and needs no stricter alignment.
            let from = unsafe { &*start.cast::<libc::sockaddr_in>() };
            Some(SocketAddr::from((from.sin_addr.s_addr.to_ne_bytes(), u16::from_be(from.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: see above.
            let from = unsafe { &*start.cast::<libc::sockaddr_in6>() };
            let (ip, port) = (Ipv6Addr::from(from.sin6_addr.s6_addr), u16::from_be(from.sin6_port));
            Some(SocketAddrV6::new(ip, port, from.sin6_flowinfo, from.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// The stamp `real` by the other clock, which shows `now` and which the system time is `ahead` of; now, if there is none or it makes no sense.
fn by_raw(real: Option<u64>, ahead: i64, now: u64) -> u64 {
    let came = real.map(|real| real.wrapping_sub(ahead as u64));
    came.filter(|came| now.wrapping_sub(*came) < OLDEST).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets() -> (UdpSocket, UdpSocket) {
        (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap())
    }

    #[test]
    fn packets_have_come_before_they_are_received() {
        let (socket, other) = sockets();
        let mut inbox = Inbox::new(&socket);
        let mut waited = || {
            let sent = clock::raw();
            let mut waited = Vec::new();
            for text in [&b"1"[..], b"22", b""] {
                other.send_to(text, socket.local_addr().unwrap()).unwrap();
            }
            inbox.wait(&socket, Duration::from_secs(1), Duration::from_millis(300)).unwrap();
            inbox.take(&socket, |packet| {
                assert_eq!(packet.from, other.local_addr().unwrap());
                waited.push((packet.bytes.len(), packet.came.wrapping_sub(sent) as i64));
            });
            assert_eq!(waited.iter().map(|packet| packet.0).collect::<Vec<_>>(), [1, 2, 0]);
            waited
        };
        // The kernel begins with it a moment after it was asked.
        let tries: Vec<_> = (0..5).map(|_| waited()).collect();
        let in_time =
            |packets: &Vec<(usize, i64)>| packets.iter().all(|packet| (-1_000..200_000_000).contains(&packet.1));
        assert!(tries.iter().any(in_time), "{tries:?}");
    }

    #[test]
    fn who_does_not_gather_is_woken_by_a_packet_and_who_is_flooded_too() {
        let (socket, other) = sockets();
        let mut inbox = Inbox::new(&socket);
        let to = socket.local_addr().unwrap();
        let waits = |inbox: &mut Inbox, packets: usize, gather: u64| {
            for _ in 0..packets {
                other.send_to(b"1", to).unwrap();
            }
            let begun = std::time::Instant::now();
            inbox.wait(&socket, Duration::from_secs(20), Duration::from_millis(gather)).unwrap();
            let (waited, mut came) = (begun.elapsed(), 0);
            inbox.take(&socket, |_| came += 1);
            assert_eq!(came, packets);
            waited
        };
        assert!(waits(&mut inbox, 1, 0) < Duration::from_secs(10));
        assert!(waits(&mut inbox, CROWD, 400) >= Duration::from_millis(400));
        assert!(waits(&mut inbox, 1, 15_000) < Duration::from_secs(10), "flooded");
        assert!(waits(&mut inbox, 1, 400) >= Duration::from_millis(400), "no more");
    }

    #[test]
    fn a_stamp_is_shown_by_the_other_clock() {
        assert_eq!(by_raw(Some(1_000_000_500), 1_000_000_000, 900), 500);
        assert_eq!(by_raw(None, 1_000_000_000, 900), 900);
        assert_eq!(by_raw(Some(1_000_000_500), 1_000_000_000, 2_000_000_000), 2_000_000_000, "a second and more ago");
        assert_eq!(by_raw(Some(1_000_001_000), 1_000_000_000, 900), 900, "to come");
    }

    #[test]
    fn a_system_time_that_is_set_moves_no_packet() {
        let (socket, other) = sockets();
        let mut inbox = Inbox::new(&socket);
        // As if it had been set back by a tenth of a second since the last look: stamps of before would be wrong by as much.
        inbox.ahead += 100_000_000;
        other.send_to(b"1", socket.local_addr().unwrap()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let (before, mut came) = (clock::raw(), 0);
        inbox.take(&socket, |packet| came = packet.came);
        assert!(came >= before, "taken to have come now");
        assert!(inbox.hasty, "where stamps say nothing, packets are looked at as they come");
        inbox.take(&socket, |_| {});
        assert!(!inbox.hasty);
    }
}
