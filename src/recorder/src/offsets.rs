//! Measuring clocks: exchanges between each node and that of rank 0.
//!
//! One process of each node, its leader, asks rank 0 for the time, many times in a row, until it does not get faster any more; all four times of each exchange are recorded, and the
//! offset is made of them after the run. Everybody else waits without using a core.

use crate::abi::Abi;
use crate::clock;
use crate::format::OFFSETS;
use crate::stream::Stream;
use std::ffi::c_int;
use std::time::Duration;

/// Exchanges per measurement: at least so many, and so many since the fastest one was the last time beaten.
const PATIENCE: usize = 64;
/// Exchanges per measurement, at most.
const MOST: usize = 1024;
/// How long the others sleep between two looks.
const NAP: Duration = Duration::from_micros(50);
/// Tag of all messages here; the communicator is the recorder's own.
const TAG: usize = 0;

/// One exchange: question left and answer came by the own counter, question came and answer left by that of rank 0.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    asked: u64,
    answered: u64,
    came: u64,
    left: u64,
}

/// Who measures, and how they talk.
pub struct Meter {
    comm: usize,
    rank: usize,
    /// Ranks of the leaders, without rank 0.
    leaders: Vec<usize>,
}

impl Meter {
    /// Makes a communicator and finds the leaders. Collective over all processes. None if MPI refuses.
    pub fn new(abi: &Abi, rank: usize, size: usize, node: u64) -> Option<Meter> {
        let mut comm = 0_u64;
        let mut nodes = vec![0_u64; size];
        // With a clock of its own for every process, every process measures.
        let apart = std::env::var("CLC_RECORDER_OFFSETS").is_ok_and(|value| value == "process");
        let mine = if apart { rank as u64 } else { node };
        // SAFETY: the communicator has room for a handle of either kind, and the list for one number of each process.
        unsafe {
            if (abi.mpi.comm_dup)(abi.world as usize, &raw mut comm as usize) != 0 {
                return None;
            }
            let comm = comm as usize;
            // Whatever goes wrong here must not end the program.
            (abi.mpi.comm_set_errhandler)(comm, abi.errors_return as usize);
            let byte = abi.byte as usize;
            let result =
                (abi.mpi.allgather)(&raw const mine as usize, 8, byte, nodes.as_mut_ptr() as usize, 8, byte, comm);
            if result != 0 {
                return None;
            }
        }
        let mut seen = std::collections::HashSet::new();
        let mut leaders: Vec<usize> = (0..size).filter(|&rank| seen.insert(nodes[rank])).collect();
        leaders.retain(|&leader| leader != 0);
        Some(Meter { comm: comm as usize, rank, leaders })
    }

    /// One measurement of every leader, one after the other. Collective over all processes; nobody leaves before everybody has come.
    pub fn measure(&self, abi: &Abi) -> Vec<Exchange> {
        let mut exchanges = Vec::new();
        self.meet(abi);
        if self.rank == 0 {
            for &leader in &self.leaders {
                // Its turn.
                self.send(abi, leader, [0; 2]);
                loop {
                    let [more, _] = self.receive(abi, leader);
                    let came = clock::after();
                    if more == 0 {
                        break;
                    }
                    self.send(abi, leader, [came, clock::before()]);
                }
            }
        } else if self.leaders.contains(&self.rank) {
            exchanges.reserve(MOST);
            while !self.has_come(abi) {
                std::thread::sleep(NAP);
            }
            self.receive(abi, 0);
            let (mut fastest, mut since) = (u64::MAX, 0);
            while since < PATIENCE && exchanges.len() < MOST {
                let asked = clock::before();
                self.send(abi, 0, [1; 2]);
                let [came, left] = self.receive(abi, 0);
                let answered = clock::after();
                exchanges.push(Exchange { asked, answered, came, left });
                since += 1;
                if answered.saturating_sub(asked) < fastest {
                    fastest = answered.saturating_sub(asked);
                    since = 0;
                }
            }
            self.send(abi, 0, [0; 2]);
        }
        self.meet(abi);
        exchanges
    }

    /// Appends a measurement, for which there is room (8 integers for each exchange).
    pub fn record(stream: &mut Stream, exchanges: &[Exchange]) {
        if exchanges.is_empty() {
            return;
        }
        stream.unsigned(OFFSETS);
        stream.unsigned(exchanges.len() as u64);
        for exchange in exchanges {
            stream.unsigned(exchange.asked);
            stream.unsigned(exchange.answered.saturating_sub(exchange.asked));
            stream.unsigned(exchange.came);
            stream.unsigned(exchange.left.saturating_sub(exchange.came));
        }
    }

    /// Waits until everybody has ended, and frees the communicator. Collective over all processes.
    pub fn end(&self, abi: &Abi) {
        self.meet(abi);
        let mut comm = self.comm as u64;
        // SAFETY: it is the recorder's own, and not used any more.
        unsafe { (abi.mpi.comm_free)(&raw mut comm as usize) };
    }

    /// A barrier that leaves the core to others.
    fn meet(&self, abi: &Abi) {
        let (mut request, mut flag) = (0_u64, 0_i32);
        let mut status = [0_u64; 8];
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
                std::thread::sleep(NAP);
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

    fn receive(&self, abi: &Abi, from: usize) -> [u64; 2] {
        let mut times = [0_u64; 2];
        let mut status = [0_u64; 8];
        let (buffer, status) = (times.as_mut_ptr() as usize, status.as_mut_ptr() as usize);
        // SAFETY: the buffer is as long as said, and the status has room for one of either kind.
        unsafe { (abi.mpi.recv)(buffer, 16, abi.byte as usize, from, TAG, self.comm, status) };
        times
    }
}
