//! Exchanges between nodes by the kernel's own messages (UDP), without MPI: a thread answers at any time, also while the program computes.
//!
//! Both sides sleep until a message comes. The kernel wakes a sleeper at once, also on a busy machine, where a thread that looks again and again has used up its
//! share of the core when the message is there. And both directions are made alike, which those of an MPI library are not.

use crate::clock;
use crate::exchange::{Batch, Exchange};
use crate::global_time;
use crate::line::{self, Line, Placed};
use crate::threads;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Network addresses of a process that others are told. Chosen by hand: nodes have a few networks; each address is tried by everybody who asks.
pub(crate) const ADDRESSES: usize = 4;
/// How long an answer is waited for, and how often in vain before a partner that has not answered yet is taken to be out of reach. Chosen by hand: a
/// shorter time gives up on a busy node, a longer one holds up the exchanges where networks are closed.
const TIMEOUT: Duration = Duration::from_millis(50);
const LOST: usize = 4;
/// How often the thread that answers looks whether it is to end. Chosen by hand: more often wakes it for nothing, less often keeps it after the end.
const LOOK: Duration = Duration::from_secs(1);
/// Exchanges of a batch, at most. So many are made in a row: after a pause, the threads may find themselves on other cores, and woken in another way.
const MOST: usize = 2048;
const ROW: usize = 32;
const PAUSE: Duration = Duration::from_micros(500);

/// What a process tells the others: how it is reached. All zero if it is not.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Reach {
    /// What its messages have to begin with.
    secret: u64,
    port: u32,
    /// 1 if there is one.
    open: u32,
    addresses: [u32; ADDRESSES],
}

/// Third word of a question for the global time, and how many are asked for the best answer; that of the wish for a row of exchanges through common memory, whose fourth
/// word is the rank of who asks, and its core in the upper half. It is 0 in all others.
const GLOBAL: u64 = 1;
const LINE: u64 = 2;
const TRIES: usize = 8;
/// Exchanges through common memory of a batch, at most, and how many times as many as others are made at least, for they take a hundredth of the time; and which part of the
/// time it is tried for. Chosen by hand: more take longer; with fewer, no exchange may have been undisturbed. What is left of the time is for
/// messages if the memory does not do.
const MOST_ON_LINE: usize = 8192;
const MORE_ON_LINE: usize = 4;
const TIME_ON_LINE: u32 = 2;

/// Bytes of a [`Reach`].
pub(crate) const REACH: usize = std::mem::size_of::<Reach>();

/// The side of a process that answers. It ends when this is dropped or told to.
pub(crate) struct Server {
    reach: Reach,
    ended: &'static AtomicBool,
}

/// The side that asks, of one partner.
pub(crate) struct Client {
    socket: UdpSocket,
    partner: Reach,
    candidates: Vec<SocketAddr>,
    /// Which of them answers.
    found: OnceLock<Option<SocketAddr>>,
    /// The directory of the recording and the own rank, if the partner is on the same node; and the memory there.
    place: Option<(PathBuf, u64)>,
    line: OnceLock<Option<Line>>,
}

type Packet = [u64; 4];

impl Server {
    /// Opens a socket and starts the thread. None if the system refuses.
    pub(crate) fn start(directory: &Path) -> Option<Server> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.set_read_timeout(Some(LOOK)).ok()?;
        let mut secret = [0_u8; 8];
        // SAFETY: it is as long as said.
        if unsafe { libc::getrandom(secret.as_mut_ptr().cast(), secret.len(), 0) } != 8 {
            return None;
        }
        let secret = u64::from_le_bytes(secret);
        let port = u32::from(socket.local_addr().ok()?.port());
        let ended: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let directory = directory.to_owned();
        threads::spawn("clc-clock", move || answer(&socket, secret, &directory, ended))?;
        Some(Server { reach: Reach { secret, port, open: 1, addresses: addresses() }, ended })
    }

    /// How it is reached.
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Server {
    /// Ends it within a second.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Answers who knows the secret: when the question came, and when the answer left.
fn answer(socket: &UdpSocket, secret: u64, directory: &Path, ended: &AtomicBool) {
    let mut bytes = [0_u8; 33];
    let mut lines: HashMap<u64, Option<Line>> = HashMap::new();
    while !ended.load(Ordering::Relaxed) {
        let received = socket.recv_from(&mut bytes);
        let came = clock::after();
        let Ok((32, from)) = received else { continue };
        let mut packet = unpack(&bytes);
        if packet[0] != secret {
            continue;
        }
        if packet[2] == LINE {
            let (rank, core) = (packet[3] & u64::from(u32::MAX), (packet[3] >> 32) as usize);
            let line = lines.entry(rank).or_insert_with(|| Line::open(Line::path(directory, rank)));
            let ready = line.as_ref().zip(Placed::away_from(core));
            packet[2] = u64::from(ready.is_some());
            if socket.send_to(&pack(packet), from).is_ok()
                && let Some((line, _placed)) = &ready
            {
                line.answer();
            }
            continue;
        }
        if packet[2] == GLOBAL {
            packet[2] = global_time::now();
        } else {
            packet[2] = came;
            packet[3] = clock::before();
        }
        // If it gets lost, the other side asks again.
        let _ = socket.send_to(&pack(packet), from);
    }
}

impl Client {
    /// Of a partner; `here` if it is on the same node: with the directory of the recording and the own rank. None if it cannot be reached.
    pub(crate) fn new(partner: Reach, here: Option<(&Path, usize)>) -> Option<Client> {
        let port = u16::try_from(partner.port).ok().filter(|_| partner.open == 1)?;
        let addresses = if here.is_some() { vec![Ipv4Addr::LOCALHOST] } else { partner.known() };
        let candidates = addresses.into_iter().map(|address| SocketAddr::new(IpAddr::V4(address), port)).collect();
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.set_read_timeout(Some(TIMEOUT)).ok()?;
        let place = here.map(|(directory, rank)| (directory.to_owned(), rank as u64));
        Some(Client { socket, partner, candidates, found: OnceLock::new(), place, line: OnceLock::new() })
    }

    /// As `measure`, through memory that a partner on the same node shares; none if there is none, or the two never ran at the same time.
    pub(crate) fn measure_by_memory(&self, least: usize, longest: Duration, may: &dyn Fn() -> bool) -> Option<Batch> {
        let to = (*self.found.get_or_init(|| self.find()))?;
        let (directory, rank) = self.place.as_ref()?;
        let line = self.line.get_or_init(|| Line::create(Line::path(directory, *rank))).as_ref()?;
        let start = Instant::now();
        let mut batch = Batch::default();
        while batch.total() < MOST_ON_LINE && start.elapsed() < longest / TIME_ON_LINE && may() {
            let number = clock::before();
            let core = line::core();
            let _placed = Placed::on(core);
            let wish = [self.partner.secret, number, LINE, rank | (core as u64) << 32];
            let answer = self.answered(wish, to);
            line.hide();
            // The other side cannot map it, or has no other core to run on.
            if matches!(answer, Some(((0, _), _))) {
                return None;
            }
            if answer.is_some() {
                line.ask(&mut batch);
            }
            if batch.total() >= MORE_ON_LINE * least && batch.is_settled() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        (batch.total() > 0).then_some(batch)
    }

    /// A batch of at least so many exchanges, if they do not take longer, and as long as `may` says so after each row of them; none if the partner does not answer.
    pub(crate) fn measure(&self, least: usize, longest: Duration, may: &dyn Fn() -> bool) -> Option<Batch> {
        let to = (*self.found.get_or_init(|| self.find()))?;
        let start = Instant::now();
        let mut batch = Batch::default();
        for number in 1.. {
            let enough = batch.total() >= least && batch.is_settled();
            if enough || batch.total() == MOST || start.elapsed() > longest {
                break;
            }
            if let Some(exchange) = self.exchange(to) {
                batch.push(exchange);
            }
            if number % ROW == 0 {
                if !may() {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
        (batch.total() > 0).then_some(batch)
    }

    /// What has to be added to `CLOCK_MONOTONIC_RAW` here for the global time that the partner knows, in nanoseconds; none if it does not answer, or knows none yet.
    pub(crate) fn ahead(&self) -> Option<i64> {
        let to = (*self.found.get_or_init(|| self.find()))?;
        let raw = || clock::nanoseconds(libc::CLOCK_MONOTONIC_RAW);
        let once = || {
            let asked = raw();
            let (global, _) = self.answered([self.partner.secret, asked, GLOBAL, 0], to)?.0;
            let answered = raw();
            let here = asked + (answered - asked) / 2;
            (global > 0).then_some((answered - asked, global.wrapping_sub(here) as i64))
        };
        (0..TRIES).filter_map(|_| once()).min().map(|(_, ahead)| ahead)
    }

    /// The first of its addresses that answers.
    fn find(&self) -> Option<SocketAddr> {
        for _ in 0..LOST {
            let question = pack([self.partner.secret, 0, 0, 0]);
            for &to in &self.candidates {
                // A network that cannot be reached is one of several.
                let _ = self.socket.send_to(&question, to);
            }
            let mut bytes = [0_u8; 33];
            while let Ok((length, from)) = self.socket.recv_from(&mut bytes) {
                if length == 32 && unpack(&bytes)[0] == self.partner.secret && self.candidates.contains(&from) {
                    return Some(from);
                }
            }
        }
        None
    }

    fn exchange(&self, to: SocketAddr) -> Option<Exchange> {
        let asked = clock::before();
        // Its time is its number: there may still be answers to earlier ones on the way, also from an earlier batch.
        let ((came, left), answered) = self.answered([self.partner.secret, asked, 0, 0], to)?;
        Some(Exchange { asked, answered, came, left })
    }

    /// The last two words of the answer to a question, and when it came.
    fn answered(&self, packet: Packet, to: SocketAddr) -> Option<((u64, u64), u64)> {
        let mut bytes = [0_u8; 33];
        self.socket.send_to(&pack(packet), to).ok()?;
        loop {
            let received = self.socket.recv_from(&mut bytes);
            let answered = clock::after();
            let (length, from) = received.ok()?;
            let [secret, number, third, fourth] = unpack(&bytes);
            // Anything else is an answer that came too late, or not for us.
            if length == 32 && from == to && secret == self.partner.secret && number == packet[1] {
                return Some(((third, fourth), answered));
            }
        }
    }
}

impl Reach {
    fn known(&self) -> Vec<Ipv4Addr> {
        self.addresses.iter().filter(|&&address| address != 0).map(|&address| Ipv4Addr::from(address)).collect()
    }
}

fn pack(packet: Packet) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(packet) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn unpack(bytes: &[u8; 33]) -> Packet {
    let mut packet = [0; 4];
    for (word, place) in packet.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(place.try_into().unwrap_or_default());
    }
    packet
}

/// The first addresses of this node by which others may reach it.
fn addresses() -> [u32; ADDRESSES] {
    let mut found = [0; ADDRESSES];
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the list is freed below; each entry and its address are valid until then, and an address of this family has this type.
    unsafe {
        if libc::getifaddrs(&mut list) != 0 {
            return found;
        }
        let (mut count, mut next) = (0, list);
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let flags = entry.ifa_flags as i32;
            let usable = flags & libc::IFF_UP != 0 && flags & libc::IFF_LOOPBACK == 0 && !entry.ifa_addr.is_null();
            if usable && i32::from((*entry.ifa_addr).sa_family) == libc::AF_INET && count < ADDRESSES {
                let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                found[count] = u32::from_be(address.sin_addr.s_addr);
                count += 1;
            }
        }
        libc::freeifaddrs(list);
    }
    found
}
