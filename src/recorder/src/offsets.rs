//! Measuring clocks: who exchanges messages with whom, and when.
//!
//! One process of each node, its leader, measures the clock of another leader, its partner: along a binomial tree with rank 0 as its root, so that no leader answers more than
//! a logarithm of their number, or around a ring, which shows by how much the measurements contradict each other, in rounds of pairs that do not disturb each other
//! (`offset_rounds`). The offset is made of the exchanges after the run. Meanwhile everybody else waits without using a core. Partners on the same node share memory for it (`line`). Where partners do not reach each other by messages of
//! the kernel (`endpoint`), or only slowly, leaders exchange messages of MPI with rank 0 as well.
//!
//! The other processes of a node have the clock of their leader. Each compares the counter of its core with that of its leader's all the same, through common memory.

use crate::abi::Abi;
use crate::clock;
use crate::endpoint::{Client, REACH, Reach, Server};
use crate::exchange::{Batch, Exchange, Measured};
use crate::format::measured::{KERNEL, MEMORY, MPI, SAME};
use crate::offset_rounds::{Place, rounds};
use crate::streams::Streams;
use crate::threads;
use crate::waits::TickLength;
use std::collections::HashSet;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Exchanges by messages of the kernel: at least, and how long they may take; at the ends, and in between.
const THOROUGH: (usize, Duration) = (256, Duration::from_millis(200));
const BRIEF: (usize, Duration) = (64, Duration::from_millis(20));
/// Exchanges by MPI: at least, at most, with the time they may take; and if they are only tried.
const LEAST: usize = 64;
const MOST: (usize, Duration) = (1024, Duration::from_millis(100));
const TRIED: (usize, Duration) = (128, Duration::from_millis(5));
/// Exchanges with the leader of the node. Chosen by hand: only whether cores of a node show the same is of interest, which a few good ones tell; a
/// longer time delays the end of all.
const COMPARED: (usize, Duration) = (16, Duration::from_millis(40));
/// Messages of the kernel that take longer, both ways together, may be slower than those of MPI. Chosen by hand: above what kernels usually take
/// within and between nodes; a larger value tries MPI less often.
const SLOW: Duration = Duration::from_micros(20);
/// How long those who wait sleep between two looks, at first and at last. Chosen by hand: shorter takes time of the core, longer delays the exchange
/// when it could begin.
const NAPS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(2)];
/// How often it is looked whether the program waits, in between, at most and at least. Chosen by hand: shorter takes time of the core, longer misses
/// short waits.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];
/// Tag of all messages here; the communicator is the recorder's own.
const TAG: usize = 0;

/// Length of a [`Reach`].
const WORDS: usize = REACH / 8;

/// Who measures, and how they talk.
pub(crate) struct Meter {
    comm: usize,
    rank: usize,
    size: usize,
    /// Whether this process is a leader, but not rank 0.
    leader: bool,
    server: Option<Server>,
    /// Rank of the partner of this process, if it has one, and the way to it.
    partner: Option<(usize, Option<Client>)>,
    /// When it is measured: in which round of how many.
    round: (usize, usize),
    /// How the partner is reached, and where the recording is if it is on the same node.
    reach: Option<(Reach, Option<PathBuf>)>,
    /// The leader of the node, if it has the clock of this process, and the way to it.
    same: Option<(usize, Client)>,
    /// Whether this process is the first one of its node.
    pub first_of_node: bool,
    /// Held while a measurement is made.
    file: Mutex<Option<Measured>>,
    ending: AtomicBool,
    /// How often clocks are measured between the ends.
    every: Option<Duration>,
}

impl Meter {
    /// Makes a communicator and finds the leaders. Collective over all processes. None if MPI refuses.
    pub(crate) fn new(
        abi: &Abi,
        directory: &Path,
        rank: usize,
        size: usize,
        [node, machine]: [u64; 2],
    ) -> Option<Meter> {
        let mut comm = 0_u64;
        // With a clock of its own for every process, every process measures.
        let apart = std::env::var("CLC_RECORDER_OFFSETS").is_ok_and(|value| value == "process");
        let schedule = std::env::var("CLC_RECORDER_SCHEDULE").unwrap_or_default();
        let mine = if apart { rank as u64 } else { node };
        // SAFETY: the communicator has room for a handle of either kind. Whatever goes wrong from then on must not end the program.
        unsafe {
            if (abi.mpi.comm_dup)(abi.world as usize, &raw mut comm as usize) != 0 {
                return None;
            }
            (abi.mpi.comm_set_errhandler)(comm as usize, abi.errors_return as usize);
        }
        let comm = comm as usize;
        let gathered = |words: &[u64]| gather(abi, comm, size, words);
        // SAFETY: it only returns a number.
        let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let nodes = gathered(&[mine, node])?;
        let places = gathered(&[machine, u64::try_from(cores).unwrap_or(1)])?;
        let places: Vec<Place> =
            places.chunks_exact(2).map(|place| Place { machine: place[0], cores: place[1] as usize }).collect();
        let mut seen = HashSet::new();
        let leaders: Vec<usize> = (0..size).filter(|&rank| seen.insert(nodes[2 * rank])).collect();
        let place = leaders.iter().position(|&leader| leader == rank).filter(|_| leaders.len() > 1);
        let led = |leader: usize| (0..size).filter(|&other| nodes[2 * other] == nodes[2 * leader]).count();
        let asked = place.is_some() || leaders.contains(&rank) && led(rank) > 1;
        let server = if asked { Server::start(directory) } else { None };
        let reach = server.as_ref().map(Server::reach).unwrap_or_default();
        // SAFETY: it consists of integers without gaps.
        let words = unsafe { std::mem::transmute::<Reach, [u64; WORDS]>(reach) };
        let all = gathered(&words)?;
        let reached = |other: usize| {
            let mut words = [0; WORDS];
            words.copy_from_slice(&all[other * WORDS..][..WORDS]);
            // SAFETY: made from one on the other side.
            unsafe { std::mem::transmute::<[u64; WORDS], Reach>(words) }
        };
        let here = |other: usize| (nodes[2 * other + 1] == node).then_some(directory);
        let client = |other: usize| Client::new(reached(other), here(other).map(|directory| (directory, rank)));
        let partner_of = |place: usize| partner_of(place, leaders.len(), schedule == "ring");
        let partner = place.and_then(partner_of).map(|partner| leaders[partner]);
        let round = round_of(rank, &leaders, partner_of, &places);
        let reach = partner.map(|partner| (reached(partner), here(partner).map(Path::to_owned)));
        let partner = partner.map(|partner| (partner, client(partner)));
        let leads = leaders.iter().copied().find(|&leader| nodes[2 * leader] == nodes[2 * rank]);
        let same = leads.filter(|&leader| leader != rank).and_then(|leader| Some((leader, client(leader)?)));
        let first_of_node = (0..size).find(|&rank| nodes[2 * rank + 1] == node) == Some(rank);
        let measures = partner.is_some() || same.is_some();
        let file = if measures { Measured::create(directory, rank) } else { None };
        let every = schedule.parse().ok();
        let every = every.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).filter(|time| !time.is_zero());
        let leader = place.is_some_and(|place| place > 0);
        let (file, ending) = (Mutex::new(file), AtomicBool::new(false));
        Some(Meter {
            comm,
            rank,
            size,
            leader,
            server,
            partner,
            round,
            reach,
            same,
            first_of_node,
            file,
            ending,
            every,
        })
    }

    /// One measurement of every leader. Collective over all processes; nobody leaves before everybody has come.
    pub(crate) fn measure(&self, abi: &Abi) {
        self.meet(abi);
        self.compare();
        self.meet(abi);
        let (own, rounds) = self.round;
        let mut quick = None;
        for round in 0..rounds {
            if round == own {
                quick = self.directly(THOROUGH, &|| true);
            }
            self.meet(abi);
        }
        // Messages of MPI for whom those of the kernel do not do.
        let most = match quick {
            Some(time) if time < SLOW => None,
            Some(_) => Some(TRIED),
            None => Some(MOST),
        };
        let wanted = gather(abi, self.comm, self.size, &[u64::from(self.leader && most.is_some())]);
        let Some(wanted) = wanted else { return };
        if self.rank == 0 {
            (0..self.size).filter(|&rank| wanted[rank] == 1).for_each(|leader| self.answer(abi, leader));
        } else if let Some(most) = most.filter(|_| self.leader) {
            self.ask(abi, most);
        }
        self.meet(abi);
    }

    /// Measures from now on in between, if that is wanted: within half of the period when the program waits in MPI, where it costs nothing; else then.
    pub(crate) fn go_on(&'static self, streams: &'static Streams) {
        if let Some(every) = self.every.filter(|_| self.partner.is_some()) {
            let _ = threads::spawn("clc-offsets", move || {
                let start = Instant::now();
                let mut ticks = TickLength::new();
                let (own, rounds) = self.round;
                let later = every.mul_f64(own as f64 / rounds.max(1) as f64);
                for turn in 1.. {
                    let next = every.saturating_mul(turn).saturating_add(later);
                    std::thread::sleep(next.saturating_sub(start.elapsed()));
                    ticks.look();
                    let nap = (every / 100).clamp(LOOKS[0], LOOKS[1]);
                    let is_open = || start.elapsed() < next + every / 2 && !self.ending.load(Ordering::Acquire);
                    while is_open() && !ticks.any_waits(streams) {
                        std::thread::sleep(nap);
                    }
                    if self.ending.load(Ordering::Acquire) {
                        return;
                    }
                    // Whoever is late leaves turns out.
                    if start.elapsed() < next + every {
                        // The program is not to notice it: what has begun while it waits ends when it goes on.
                        let waited = ticks.any_waits(streams);
                        self.directly(BRIEF, &|| !waited || ticks.any_waits(streams));
                    }
                }
            });
        }
    }

    /// Another way to the partner. None if there is no partner to follow, which holds for rank 0, or it cannot be reached.
    pub(crate) fn another_client(&self) -> Option<Client> {
        let (reach, here) = self.reach.as_ref().filter(|_| self.rank > 0)?;
        Client::new(*reach, here.as_deref().map(|directory| (directory, self.rank)))
    }

    /// Through common memory, otherwise by messages of the kernel. Returns how long the fastest ones took, both directions together; none if the partner was not reached.
    fn directly(&self, (least, longest): (usize, Duration), may: &dyn Fn() -> bool) -> Option<Duration> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (partner, client) = self.partner.as_ref()?;
        let start = Instant::now();
        let client = client.as_ref()?;
        let (method, batch) = match client.measure_by_memory(least, longest, may) {
            Some(batch) => (MEMORY, batch),
            None => (KERNEL, client.measure(least, longest, may)?),
        };
        let range = batch.range(start.elapsed());
        file.as_mut()?.append(*partner, method, batch);
        Some(range)
    }

    /// What the counter of this core shows beside that of the leader of the node, which is the clock of both.
    fn compare(&self) {
        let Some((leader, client)) = &self.same else { return };
        let (least, longest) = COMPARED;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((file, batch)) = file.as_mut().zip(client.measure_by_memory(least, longest, &|| true)) {
            file.append(*leader, SAME, batch);
        }
    }

    /// Answers a leader by messages of MPI, until it has had enough.
    fn answer(&self, abi: &Abi, leader: usize) {
        // Its turn.
        self.send(abi, leader, [0; 2]);
        while let Some([more, _]) = self.receive(abi, leader) {
            let came = clock::after();
            if more == 0 {
                return;
            }
            self.send(abi, leader, [came, clock::before()]);
        }
    }

    /// A batch of exchanges with rank 0 by messages of MPI.
    fn ask(&self, abi: &Abi, (most, time): (usize, Duration)) {
        let mut nap = NAPS[0];
        while !self.has_come(abi) {
            std::thread::sleep(nap);
            nap = (2 * nap).min(NAPS[1]);
        }
        if self.receive(abi, 0).is_none() {
            return;
        }
        let start = Instant::now();
        let mut batch = Batch::default();
        while (batch.total() < LEAST || !batch.is_settled()) && batch.total() < most && start.elapsed() < time {
            let asked = clock::before();
            self.send(abi, 0, [1; 2]);
            let Some([came, left]) = self.receive(abi, 0) else { return };
            let answered = clock::after();
            batch.push(Exchange { asked, answered, came, left });
        }
        self.send(abi, 0, [0; 2]);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = file.as_mut().filter(|_| batch.total() > 0) {
            file.append(0, MPI, batch);
        }
    }

    /// No measurement in between begins any more, and none is being made.
    pub(crate) fn stop(&self) {
        self.ending.store(true, Ordering::Release);
        drop(self.file.lock());
    }

    /// Waits until everybody has ended, and frees the communicator. Collective over all processes.
    pub(crate) fn end(&self, abi: &Abi) {
        self.meet(abi);
        if let Some(server) = &self.server {
            server.end();
        }
        let mut comm = self.comm as u64;
        // SAFETY: it is the recorder's own, and not used any more.
        unsafe { (abi.mpi.comm_free)(&raw mut comm as usize) };
    }

    /// A barrier that leaves the core to others.
    fn meet(&self, abi: &Abi) {
        let (mut request, mut flag) = (0_u64, 0_i32);
        let mut status = [0_u64; 8];
        let mut nap = NAPS[0];
        // SAFETY: request and status have room for those of either kind.
        unsafe {
            if (abi.mpi.ibarrier)(self.comm, &raw mut request as usize) != 0 {
                return;
            }
            loop {
                let (request, flag_at) = (&raw mut request as usize, &raw mut flag as usize);
                if (abi.mpi.test)(request, flag_at, status.as_mut_ptr() as usize) != 0 || flag != 0 {
                    return;
                }
                std::thread::sleep(nap);
                nap = (2 * nap).min(NAPS[1]);
            }
        }
    }

    fn has_come(&self, abi: &Abi) -> bool {
        let mut flag: c_int = 0;
        let mut status = [0_u64; 8];
        // SAFETY: the status has room for one of either kind.
        let result =
            unsafe { (abi.mpi.iprobe)(0, TAG, self.comm, &raw mut flag as usize, status.as_mut_ptr() as usize) };
        result != 0 || flag != 0
    }

    fn send(&self, abi: &Abi, to: usize, times: [u64; 2]) {
        // SAFETY: the message is as long as said.
        unsafe { (abi.mpi.send)(times.as_ptr() as usize, 16, abi.byte as usize, to, TAG, self.comm) };
    }

    /// None if MPI fails.
    fn receive(&self, abi: &Abi, from: usize) -> Option<[u64; 2]> {
        let mut times = [0_u64; 2];
        let mut status = [0_u64; 8];
        let (buffer, status) = (times.as_mut_ptr() as usize, status.as_mut_ptr() as usize);
        // SAFETY: the buffer is as long as said, and the status has room for one of either kind.
        let result = unsafe { (abi.mpi.recv)(buffer, 16, abi.byte as usize, from, TAG, self.comm, status) };
        (result == 0).then_some(times)
    }
}

/// Whose clocks leader `place` of `count` measures: that of its parent in the tree, or that of the one before it in the ring, which the first one closes.
fn partner_of(place: usize, count: usize, ring: bool) -> Option<usize> {
    match (place, ring && count > 2) {
        (0, false) => None,
        (0, true) => Some(count - 1),
        (place, false) => Some(place & (place - 1)),
        (place, true) => Some(place - 1),
    }
}

/// The round in which a process measures, and the number of all.
fn round_of(
    rank: usize,
    leaders: &[usize],
    partner_of: impl Fn(usize) -> Option<usize>,
    places: &[Place],
) -> (usize, usize) {
    let pairs: Vec<[usize; 2]> =
        (0..leaders.len()).filter_map(|place| Some([leaders[place], leaders[partner_of(place)?]])).collect();
    let (chosen, count) = rounds(&pairs, places);
    let own = pairs.iter().position(|&[asks, _]| asks == rank);
    (own.map_or(0, |own| chosen[own]), count)
}

/// What all processes contribute, in the order of their ranks. None if MPI refuses.
fn gather(abi: &Abi, comm: usize, size: usize, words: &[u64]) -> Option<Vec<u64>> {
    let mut all = vec![0; size * words.len()];
    let (bytes, byte) = (8 * words.len(), abi.byte as usize);
    // SAFETY: the list has room for what every process contributes.
    let result = unsafe {
        (abi.mpi.allgather)(words.as_ptr() as usize, bytes, byte, all.as_mut_ptr() as usize, bytes, byte, comm)
    };
    (result == 0).then_some(all)
}
