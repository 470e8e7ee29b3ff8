//! Two replays without a pause, while some ranks learn late that the first has ended: its messages and those of the second must
//! not mix. They did: a rank that still looked for messages in the first replay took those of the second for its own.

use clc_clock::Method;
use clc_engine::comm::local::LocalTransport;
use clc_engine::comm::{AnalysisRank, Channel, Farewell, GroupId, MaxExcluding, ReduceOp, Transport};
use clc_engine::replay::dataflow::rehearse;
use clc_replay::pipeline::load::{LoadOptions, load};
use clc_replay::pipeline::open::open;
use clc_replay::report::Warnings;
use clc_trace::progress::Silent;
use clc_trace::{CommRank, Result};
use controlled_logical_clock::Parameters;
use std::path::Path;
use std::time::Duration;

/// A transport that hears of the outcome of votes later than the others.
struct Late {
    inner: LocalTransport,
    outcome: Option<Vec<i64>>,
    polls: u32,
}

impl Transport for Late {
    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>> {
        if self.outcome.is_none() {
            self.outcome = self.inner.poll_vote()?;
            self.polls = 0;
        }
        self.polls += 1;
        if self.polls < 50 {
            std::thread::sleep(Duration::from_micros(100));
            return Ok(None);
        }
        Ok(self.outcome.take())
    }

    fn rank(&self) -> AnalysisRank {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn library(&self) -> String {
        self.inner.library()
    }
    fn post(&mut self, destination: AnalysisRank, channel: Channel, words: Vec<u64>) -> Result<()> {
        self.inner.post(destination, channel, words)
    }
    fn poll(&mut self, channel: Channel) -> Result<Option<(AnalysisRank, Vec<u64>)>> {
        self.inner.poll(channel)
    }
    fn next_exchange(&mut self) -> u64 {
        self.inner.next_exchange()
    }
    fn start_vote(&mut self, values: &[i64]) -> Result<()> {
        self.inner.start_vote(values)
    }
    fn idle(&mut self) {
        self.inner.idle();
    }
    fn barrier(&mut self) -> Result<()> {
        self.inner.barrier()
    }
    fn all_reduce(&mut self, op: ReduceOp, values: &mut [i64]) -> Result<()> {
        self.inner.all_reduce(op, values)
    }
    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.inner.all_gather(bytes)
    }
    fn gather(&mut self, root: AnalysisRank, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        self.inner.gather(root, bytes)
    }
    fn broadcast(&mut self, root: AnalysisRank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.inner.broadcast(root, bytes)
    }
    fn create_group(&mut self, members: &[AnalysisRank], tag: u32) -> Result<GroupId> {
        self.inner.create_group(members, tag)
    }
    fn send_time(&mut self, destination: AnalysisRank, words: [i64; 2]) -> Result<()> {
        self.inner.send_time(destination, words)
    }
    fn receive_time(&mut self, source: AnalysisRank) -> Result<[i64; 2]> {
        self.inner.receive_time(source)
    }
    fn group_bcast(&mut self, group: GroupId, root: CommRank, value: i64) -> Result<i64> {
        self.inner.group_bcast(group, root, value)
    }
    fn group_reduce(&mut self, group: GroupId, root: CommRank, value: MaxExcluding) -> Result<Option<MaxExcluding>> {
        self.inner.group_reduce(group, root, value)
    }
    fn group_all_reduce(&mut self, group: GroupId, value: MaxExcluding) -> Result<MaxExcluding> {
        self.inner.group_all_reduce(group, value)
    }
    fn group_exscan(&mut self, group: GroupId, value: i64) -> Result<Option<i64>> {
        self.inner.group_exscan(group, value)
    }
    fn leave(&mut self, patience: Duration) -> Farewell {
        self.inner.leave(patience)
    }
    fn abort(&mut self, status: i32) -> ! {
        self.inner.abort(status)
    }
}

fn replays(transport: &mut dyn Transport) -> Vec<bool> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tracer-halo-4");
    let opened = open(transport, &path).unwrap();
    let parameters = Parameters::default();
    let options = LoadOptions {
        presync: Method::Linear,
        latency: parameters.latency,
        alltoallv: false,
        handles: false,
        fences: clc_engine::matching::collectives::fences::Fences::default(),
        separation: parameters.minimum_separation,
    };
    let loaded = load(transport, &opened, &options, &Silent, &mut Warnings::default()).unwrap();
    (0..5).map(|_| rehearse(transport, &loaded.program).unwrap().is_some()).collect()
}

#[test]
fn messages_of_two_replays_do_not_mix() {
    let outcomes: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let start = |mut inner: LocalTransport| {
            scope.spawn(move || match inner.rank().0 % 2 {
                0 => replays(&mut inner),
                _ => replays(&mut Late { inner, outcome: None, polls: 0 }),
            })
        };
        let threads: Vec<_> = LocalTransport::world(4).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes, vec![vec![true; 5]; 4]);
}
