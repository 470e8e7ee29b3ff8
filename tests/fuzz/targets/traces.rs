//! Small traces of any events in any order, against the dense reference: the same times, or both find that the trace contradicts itself.

use super::Choices;
use crate::reference::against::{Choice, compare};
use crate::reference::model::{Process, Recorded, Trace};
use clc_trace::{Collective, CollectiveOp, CommId, CommMembers, Communicator, Event, Message, MpiRank, RegionId, Root};
use controlled_logical_clock::CorrectionForm;

const WORLD: CommId = CommId(3);
const PART: CommId = CommId(4);
/// Events of a trace are limited, so that the reference, which is slow, is not what is measured.
const MOST: usize = 120;
const OPS: [CollectiveOp; 9] = [
    CollectiveOp::BARRIER,
    CollectiveOp::BCAST,
    CollectiveOp::REDUCE,
    CollectiveOp::ALLREDUCE,
    CollectiveOp::SCAN,
    CollectiveOp::EXSCAN,
    CollectiveOp::GATHER,
    CollectiveOp::SCATTER,
    CollectiveOp::ALLTOALLV,
];

/// The target.
pub(crate) fn target(input: &[u8]) -> Result<(), String> {
    let mut choices = Choices(input);
    let choice = Choice {
        decay: [0, 10_995_116, 1 << 30, 1 << 36, 1 << 39][choices.below(5)],
        slope: [10_995_116_278, 1 << 40, 1 << 20, 1][choices.below(4)],
        delta: [0, 1, 7][choices.below(3)],
        same_node: i64::from(choices.byte()),
        other_node: 8 * i64::from(choices.byte()),
        alltoallv: choices.below(2) == 1,
        form: CorrectionForm::Common,
        median: false,
        fences: clc_engine::matching::collectives::fences::Fences::Auto,
        handles: false,
    };
    let trace = trace(&mut choices);
    let processes = trace.processes.len();
    let mut ranks = vec![1, 2, processes];
    ranks.dedup();
    compare(&trace, choice, &ranks).map(|_| ())
}

/// A trace from the choices: what a process does next is chosen, with whom, and how much time passes.
fn trace(choices: &mut Choices<'_>) -> Trace {
    let count = 1 + choices.below(5);
    let part: Vec<u32> = (0..count as u32).filter(|_| choices.below(3) > 0).collect();
    let communicator = |id: CommId, members: Vec<u32>| Communicator {
        id,
        name: String::new(),
        members: CommMembers::Intra(members.into_iter().map(MpiRank).collect()),
        global_ranks: false,
    };
    let mut communicators = vec![communicator(WORLD, (0..count as u32).rev().collect())];
    let members = [(0..count as u32).rev().collect::<Vec<u32>>(), part.clone()];
    if !part.is_empty() {
        communicators.push(communicator(PART, part));
    }
    let mut builders: Vec<Builder> = (0..count).map(|_| Builder::new(choices)).collect();
    let mut events = 0;
    while !choices.is_empty() && events < MOST {
        events += 1;
        let own = choices.below(count);
        builders[own].step(choices, own as u32, &members);
    }
    Trace { processes: builders.into_iter().map(Builder::finish).collect(), communicators, ..Trace::default() }
}

/// One process.
struct Builder {
    node: u32,
    streams: Vec<Vec<Recorded>>,
    times: Vec<i64>,
    next_request: u64,
    sending: Vec<u64>,
    receiving: Vec<(u64, Message)>,
    /// Instances begun per communicator: what the k-th one is follows from k, so that all members agree.
    begun: [u32; 2],
    open: Vec<(u64, Collective)>,
}

impl Builder {
    fn new(choices: &mut Choices<'_>) -> Self {
        let locations = 1 + usize::from(choices.below(4) == 3);
        let start = 16 * i64::from(choices.byte());
        Builder {
            node: choices.below(2) as u32,
            streams: vec![Vec::new(); locations],
            times: vec![start; locations],
            next_request: 0,
            sending: Vec::new(),
            receiving: Vec::new(),
            begun: [0; 2],
            open: Vec::new(),
        }
    }

    fn record(&mut self, location: usize, step: u8, event: Event) {
        // Most steps are short, some are long, some are none.
        self.times[location] += match step {
            0..16 => i64::from(step / 2),
            16..200 => i64::from(step),
            _ => i64::from(step) << (step % 16),
        };
        self.streams[location].push(Recorded { time: self.times[location], event });
    }

    fn step(&mut self, choices: &mut Choices<'_>, own: u32, members: &[Vec<u32>; 2]) {
        let what = choices.below(12);
        let location = choices.below(self.streams.len());
        let which = usize::from(choices.below(4) == 3 && members[1].contains(&own));
        let step = choices.byte();
        let comm = [WORLD, PART][which];
        let peer = choices.below(members[which].len()) as u32;
        let message = Message { peer, comm, tag: choices.below(2) as u32, length: 8 };
        match what {
            0 | 1 => self.record(location, step, Event::MpiSend(message)),
            2 | 3 => self.record(location, step, Event::MpiRecv(message)),
            4 => {
                let request = self.request();
                self.sending.push(request);
                self.record(location, step, Event::MpiIsend(message, request));
            }
            5 => {
                let request = self.request();
                self.receiving.push((request, message));
                self.record(location, step, Event::MpiIrecvRequest(request));
            }
            6 if !self.receiving.is_empty() => {
                let (request, message) = self.receiving.remove(choices.below(self.receiving.len()));
                self.record(location, step, Event::MpiIrecv(message, request));
            }
            7 if !self.sending.is_empty() => {
                let request = self.sending.remove(choices.below(self.sending.len()));
                let cancel = choices.below(4) == 3;
                let event = if cancel { Event::MpiRequestCancelled } else { Event::MpiIsendComplete };
                self.record(location, step, event(request));
            }
            8 => {
                let collective = self.collective(which, own, members);
                self.record(location, step, Event::MpiCollectiveBegin);
                self.record(location, choices.byte(), Event::MpiCollectiveEnd(collective));
            }
            9 => {
                let collective = self.collective(which, own, members);
                let request = self.request();
                self.open.push((request, collective));
                self.record(location, step, Event::NonBlockingCollectiveRequest(request));
            }
            10 if !self.open.is_empty() => {
                let (request, collective) = self.open.remove(choices.below(self.open.len()));
                self.record(location, step, Event::NonBlockingCollectiveComplete(collective, request));
            }
            _ => self.record(location, step, Event::Enter(RegionId(0))),
        }
    }

    fn request(&mut self) -> u64 {
        self.next_request += 1;
        self.next_request
    }

    /// The next instance of a communicator. The members agree on operation and root; who sends and receives bytes differs.
    fn collective(&mut self, which: usize, own: u32, members: &[Vec<u32>; 2]) -> Collective {
        let k = self.begun[which];
        self.begun[which] += 1;
        let op = OPS[(k as usize * 5 + which) % OPS.len()];
        let rooted =
            [CollectiveOp::BCAST, CollectiveOp::REDUCE, CollectiveOp::GATHER, CollectiveOp::SCATTER].contains(&op);
        let root = if rooted { Root::Rank(k % members[which].len() as u32) } else { Root::None };
        let bytes = |salt: u32| u64::from(!(k + own + salt).is_multiple_of(7)) * 8;
        Collective { op, comm: [WORLD, PART][which], root, sent: bytes(0), received: bytes(3) }
    }

    fn finish(self) -> Process {
        Process { node: self.node, locations: self.streams }
    }
}
