//! Point-to-point steps: batches of messages, blocking and not, late receives, and what goes wrong with them.

use super::program::{Channel, Pending, Program};
use clc_trace::{Event, Message};

/// Tags of ordinary messages.
const TAGS: u32 = 3;
/// The tag of messages that only one side records.
const HALF_RECORDED: u32 = 90;

/// A message that is going to be sent.
struct Planned {
    channel: Channel,
    source_rank: u32,
    target_rank: u32,
    /// The receive is posted before the batch is sent.
    early: bool,
}

impl Program<'_> {
    /// Some messages on one communicator: early receives are posted, all is sent, the others are received, some of what
    /// is pending completes. A receive may also be left for later.
    pub(super) fn message_batch(&mut self) {
        let (comm, members) = self.pick_communicator();
        let mut plan = Vec::new();
        for _ in 0..1 + self.rng.below(8) {
            let (source, target) = (self.rng.below(members.len()), self.rng.below(members.len()));
            let tag = self.rng.below(TAGS as usize) as u32;
            plan.push(Planned {
                channel: (members[source], members[target], comm, tag),
                source_rank: source as u32,
                target_rank: target as u32,
                early: self.rng.percent(40),
            });
        }
        for message in plan.iter().filter(|message| message.early) {
            self.post_receive(message.channel, message.source_rank);
        }
        for message in &plan {
            self.send(message.channel, message.target_rank);
        }
        for message in plan.iter().filter(|message| !message.early) {
            match self.rng.below(10) {
                0 => self.deferred.push((message.channel, message.source_rank)),
                1 if self.options.anomalies.unmatched => {} // nobody ever receives it
                _ => self.receive(message.channel, message.source_rank),
            }
        }
        if self.options.anomalies.unmatched && self.rng.percent(30) {
            self.receive_from_silent(&plan[0]);
        }
        if self.options.anomalies.cancelled && self.rng.percent(30) {
            self.cancel_requests(&plan[0]);
        }
        for &process in &members {
            let location = self.rng.below(self.pending[process].len());
            self.complete((process, location), 50);
        }
    }

    /// Makes the receives that were left for later, in random order.
    pub(super) fn receive_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        self.rng.shuffle(&mut deferred);
        for (channel, source_rank) in deferred {
            self.receive(channel, source_rank);
        }
    }

    /// Sends the next message of a channel. No two messages have the same length, so that a test can tell them apart.
    pub(super) fn send(&mut self, channel: Channel, target_rank: u32) {
        let (source, _, comm, tag) = channel;
        let thread = self.thread(source, comm, Some(tag));
        self.messages += 1;
        let message = Message { peer: target_rank, comm, tag, length: self.messages };
        let index = self.sent.get(&channel).map_or(0, Vec::len);
        let posted = self.posted.get(&channel).is_some_and(|posted| *posted > index);
        let synchronous = source != channel.1 && self.rng.percent(20);
        let time = if synchronous && posted && self.rng.percent(50) {
            let end = self.acknowledged(channel, index);
            self.call_named(thread, "MPI_Ssend", end, |program| program.record(thread, 0, Event::MpiSend(message))).1
        } else if synchronous {
            let request = self.new_request(thread);
            self.pending[thread.0][thread.1].push(Pending::SynchronousSend { request, channel, index });
            let event = Event::MpiIsend(message, request);
            self.call_named(thread, "MPI_Issend", 0, |program| program.record(thread, 0, event)).1
        } else if self.rng.percent(50) {
            self.call(thread, |program| program.record(thread, 0, Event::MpiSend(message)))
        } else {
            let request = self.new_request(thread);
            if !(self.options.anomalies.never_completed && self.rng.percent(20)) {
                self.pending[thread.0][thread.1].push(Pending::Send { request });
            }
            self.call(thread, |program| program.record(thread, 0, Event::MpiIsend(message, request)))
        };
        self.sent.entry(channel).or_default().push((time, message.length));
    }

    /// Receives the next message of a channel; the message is on its way already.
    pub(super) fn receive(&mut self, channel: Channel, source_rank: u32) {
        if self.rng.percent(30) {
            return self.post_receive(channel, source_rank);
        }
        let (_, target, comm, tag) = channel;
        let thread = self.thread(target, comm, Some(tag));
        let index = self.next_posted(channel);
        let (arrival, length) = self.arrival(channel, index);
        let message = Message { peer: source_rank, comm, tag, length };
        let event = Event::MpiRecv(message);
        if self.rng.percent(50) {
            let (posted, _) = self.call_named(thread, "MPI_Recv", 0, |program| program.record(thread, arrival, event));
            self.posts.insert((channel, index), posted);
        } else {
            self.call(thread, |program| program.record(thread, arrival, event));
        }
    }

    /// Posts a receive of the next message of a channel, to be completed some time.
    fn post_receive(&mut self, channel: Channel, source_rank: u32) {
        let thread = self.thread(channel.1, channel.2, Some(channel.3));
        let request = self.new_request(thread);
        let index = self.next_posted(channel);
        let lost = self.options.anomalies.never_completed && self.rng.percent(20);
        let event = Event::MpiIrecvRequest(request);
        let posted = if self.rng.percent(50) {
            self.call_named(thread, "MPI_Irecv", 0, |program| program.record(thread, 0, event)).0
        } else {
            self.call(thread, |program| program.record(thread, 0, event))
        };
        self.posts.insert((channel, index), posted);
        let open = Pending::Receive { request, channel, source_rank, index, lost };
        self.pending[thread.0][thread.1].push(open);
    }

    /// The position of the next receive among the receives of a channel, in the order of posting.
    fn next_posted(&mut self, channel: Channel) -> usize {
        let posted = self.posted.entry(channel).or_default();
        *posted += 1;
        *posted - 1
    }

    /// When a message arrives in true time, and its length.
    pub(super) fn arrival(&self, channel: Channel, index: usize) -> (i64, u64) {
        let (sent, length) = self.sent[&channel][index];
        (sent + self.latency(channel.0, channel.1), length)
    }

    /// A receive from a process that did not record its send.
    fn receive_from_silent(&mut self, like: &Planned) {
        let (_, target, comm, _) = like.channel;
        let thread = self.thread(target, comm, Some(HALF_RECORDED));
        let message = Message { peer: like.source_rank, comm, tag: HALF_RECORDED, length: 0 };
        self.call(thread, |program| program.record(thread, 0, Event::MpiRecv(message)));
    }

    /// A send and a receive that are begun and cancelled, on a channel that others use.
    fn cancel_requests(&mut self, like: &Planned) {
        let (source, target, comm, tag) = like.channel;
        let thread = self.thread(source, comm, Some(tag));
        let request = self.new_request(thread);
        let message = Message { peer: like.target_rank, comm, tag, length: 0 };
        self.call(thread, |program| program.record(thread, 0, Event::MpiIsend(message, request)));
        self.call(thread, |program| program.record(thread, 0, Event::MpiRequestCancelled(request)));
        self.free_request(thread, request);
        let thread = self.thread(target, comm, Some(tag));
        let request = self.new_request(thread);
        self.call(thread, |program| program.record(thread, 0, Event::MpiIrecvRequest(request)));
        self.call(thread, |program| program.record(thread, 0, Event::MpiRequestCancelled(request)));
        self.free_request(thread, request);
    }
}
