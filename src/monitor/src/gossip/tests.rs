//! The protocol as a whole, on a network that loses nothing and takes no time. `simulation` has the others.

use super::*;
use std::net::SocketAddr;

fn address(id: u32) -> SocketAddr {
    SocketAddr::from(([10, 0, (id >> 8) as u8, id as u8], 7000))
}

fn config(id: u32, group_sizes: &[u32]) -> Config {
    Config {
        group_sizes: group_sizes.to_vec(),
        incarnation: 1_000 * SECOND,
        ..Config::new(NodeId(id), address(id), [9; 32])
    }
}

/// Nodes, of which some do not run, and the time.
struct Net {
    nodes: Vec<Option<Node>>,
    now: Time,
}

impl Net {
    /// All joined through node 0, and known to each other.
    fn new(nodes: u32, group_sizes: &[u32]) -> Net {
        let node = |id| Node::new(config(id, group_sizes), 0).expect("usable");
        let mut net = Net { nodes: (0..nodes).map(node).map(Some).collect(), now: 0 };
        net.nodes.iter_mut().flatten().for_each(|node| node.join(address(0)));
        net.run(6 * SECOND);
        net
    }

    fn run(&mut self, time: Time) {
        let end = self.now + time;
        while self.now < end {
            self.now += 10 * MILLISECOND;
            for sender in 0..self.nodes.len() {
                let packets = self.nodes[sender].as_mut().map(|node| node.poll(self.now)).unwrap_or_default();
                for packet in packets {
                    self.deliver(sender as u32, &packet);
                }
            }
        }
    }

    fn deliver(&mut self, from: u32, packet: &Packet) {
        let receiver = self.nodes.iter_mut().flatten().find(|node| node.config().address == packet.to);
        if let Some(node) = receiver {
            node.receive(self.now, address(from), &packet.bytes);
        }
    }

    fn liveness(&self, viewer: usize, id: u32) -> Option<Liveness> {
        self.nodes[viewer].as_ref()?.member(NodeId(id)).map(|member| member.liveness)
    }

    fn all_say(&self, id: u32, liveness: Liveness) -> bool {
        let others = (0..self.nodes.len()).filter(|&viewer| viewer != id as usize && self.nodes[viewer].is_some());
        others.into_iter().all(|viewer| self.liveness(viewer, id) == Some(liveness))
    }

    fn node(&mut self, id: usize) -> &mut Node {
        self.nodes[id].as_mut().expect("runs")
    }
}

const SHAPES: [(u32, &[u32]); 4] = [(2, &[]), (9, &[]), (20, &[5]), (27, &[3, 3])];

#[test]
fn everybody_meets_everybody_in_any_number_of_layers() {
    for (count, sizes) in SHAPES {
        let net = Net::new(count, sizes);
        for viewer in net.nodes.iter().flatten() {
            let members: Vec<_> = viewer.members().map(|member| (member.id.0, member.name.to_owned())).collect();
            let all: Vec<_> = (0..count).map(|id| (id, format!("node {id}"))).collect();
            assert_eq!(members, all, "{count} nodes, groups {sizes:?}, seen by {}", viewer.id());
            assert!(
                viewer
                    .members()
                    .all(|member| member.liveness == Liveness::Alive && member.address == address(member.id.0))
            );
            assert_eq!(viewer.counters().forged + viewer.counters().misdirected + viewer.counters().malformed, 0);
        }
    }
}

#[test]
fn who_has_got_in_stops_asking() {
    let without = |id| Config { directory: false, ..config(id, &[3, 3]) };
    let node = |id| Some(Node::new(without(id), 0).expect("usable"));
    let mut net = Net { nodes: (0..27).map(node).collect(), now: 0 };
    net.nodes.iter_mut().flatten().for_each(|node| node.join(address(0)));
    // Answers to requests for the time would end it too, if there is one in time.
    net.nodes.iter_mut().flatten().for_each(|node| node.config.probe_every = 0);
    net.run(2 * SECOND);
    assert!(net.nodes.iter().flatten().all(|node| node.joining.is_empty()));
}

#[test]
fn others_than_the_group_get_few_answers() {
    let mut net = Net::new(20, &[5]);
    let answers = |net: &mut Net, askers: std::ops::Range<usize>| {
        net.run(300 * MILLISECOND);
        let now = net.now;
        let asked = net.node(0);
        asked.poll(now);
        asked.answers = 0;
        let contact = message::Contact { id: NodeId(0), address: address(0), incarnation: asked.config.incarnation };
        for asker in askers {
            let node = net.node(asker);
            node.config.probe_every = 1;
            node.outgoing = [outgoing::Outgoing::Gossip(contact)].into();
            for packet in node.poll(now).into_iter().filter(|packet| packet.to == address(0)) {
                net.deliver(asker as u32, &packet);
            }
        }
        net.node(0).outgoing.iter().filter(|what| matches!(what, outgoing::Outgoing::Answer(..))).count()
    };
    assert!(answers(&mut net, 1..5) >= 4, "the group");
    assert_eq!(answers(&mut net, 5..20), 1, "others");
}

#[test]
fn a_dead_node_is_named_by_all_and_welcomed_back() {
    for (count, sizes) in SHAPES {
        let mut net = Net::new(count, sizes);
        net.nodes[1] = None;
        net.run(800 * MILLISECOND);
        assert!(net.all_say(1, Liveness::Alive), "{count}: before the cleanup time nobody is suspected");
        net.run(5 * SECOND);
        assert!(net.all_say(1, Liveness::Dead), "{count} nodes");
        assert!(net.node(0).events().iter().any(|event| event.kind == EventKind::Dead(NodeId(1))));
        let again = Config { incarnation: 1_012 * SECOND, ..config(1, sizes) };
        let mut node = Node::new(again, net.now).expect("usable");
        node.join(address(0));
        net.nodes[1] = Some(node);
        net.run(5 * SECOND);
        assert!(net.all_say(1, Liveness::Alive), "{count} nodes");
        let back = net.node(0).events().iter().filter(|event| event.kind == EventKind::Rejoined(NodeId(1))).count();
        assert_eq!(back, 1, "{count} nodes");
    }
}

#[test]
fn one_who_leaves_is_not_dead() {
    let mut net = Net::new(20, &[5]);
    net.node(3).leave();
    net.run(3 * SECOND);
    assert!(net.all_say(3, Liveness::Left));
    assert!(net.node(3).poll(Time::MAX / 2).is_empty(), "it is silent from then on");
}

#[test]
fn a_group_that_dies_is_named_where_nobody_knew_its_nodes() {
    let mut net = Net::new(20, &[5]);
    (5..10).for_each(|id| net.nodes[id] = None);
    net.run(8 * SECOND);
    assert!((5..10).all(|id| net.all_say(id, Liveness::Dead)));
    assert!(net.node(12).groups().any(|group| (group.layer, group.index, group.liveness) == (2, 1, Liveness::Dead)));
}

#[test]
fn one_that_is_cut_off_alone_calls_nobody_dead() {
    let mut net = Net::new(9, &[]);
    let alone = net.nodes[4].take();
    let mut island = Net { nodes: vec![alone], now: net.now };
    island.run(20 * SECOND);
    assert!((0..9).filter(|&id| id != 4).all(|id| island.liveness(0, id) == Some(Liveness::Suspect)));
}

#[test]
fn newer_data_win_and_reach_the_group_or_all() {
    let mut net = Net::new(20, &[5]);
    net.node(6).put(1, b"old").expect("short");
    net.node(6).put(1, b"new").expect("short");
    net.node(6).put_everywhere(2, b"all").expect("short");
    net.run(4 * SECOND);
    for viewer in 0..20 {
        let node = net.node(viewer);
        assert_eq!(node.get(NodeId(6), 2), Some(&b"all"[..]));
        let near = (5..10).contains(&viewer);
        assert_eq!(node.get(NodeId(6), 1), near.then_some(&b"new"[..]), "seen by {viewer}");
    }
    assert_eq!(net.node(0).put(1, &[0; MAX_DATUM + 1]), Err(NotPut::TooLong(MAX_DATUM + 1)));
    assert_eq!(net.node(0).put(u16::MAX, b""), Err(NotPut::Reserved));
}

#[test]
fn forged_replayed_and_foreign_packets_are_counted_and_dropped() {
    let mut net = Net::new(3, &[]);
    net.run(95 * MILLISECOND);
    let (packet, from) = loop {
        net.now += 10 * MILLISECOND;
        let now = net.now;
        let packets = net.node(2).poll(now);
        if let Some(packet) = packets.into_iter().find(|packet| packet.to != address(2)) {
            break (packet, 2);
        }
    };
    let target = (0..3).find(|&id| address(id) == packet.to).expect("a node") as usize;
    let other = 1 - target;
    let count = |net: &mut Net, id: usize| {
        let counters = net.node(id).counters();
        (counters.received, counters.forged, counters.replayed, counters.misdirected)
    };
    let start = count(&mut net, target);
    net.deliver(from, &packet);
    net.deliver(from, &packet);
    let mut forged = packet.clone();
    forged.bytes[20] ^= 1;
    net.deliver(from, &forged);
    net.deliver(from, &Packet { to: packet.to, bytes: b"GET / HTTP/1.1\r\n\r\n".to_vec(), sequence: 0 });
    assert_eq!(count(&mut net, target), (start.0 + 1, start.1 + 2, start.2 + 1, start.3));
    let before = count(&mut net, other);
    net.deliver(from, &Packet { to: address(other as u32), ..packet.clone() });
    assert_eq!(count(&mut net, other), (before.0, before.1, before.2, before.3 + 1), "for another node");
    let again = Config { incarnation: 2_000 * SECOND, ..config(target as u32, &[]) };
    net.nodes[target] = Some(Node::new(again, net.now).expect("usable"));
    net.deliver(from, &packet);
    assert_eq!(count(&mut net, target), (0, 0, 0, 1), "for the node before it was started anew");
    let foreign = Config { key: [8; 32], ..config(7, &[]) };
    let mut foreign = Node::new(foreign, net.now).expect("usable");
    foreign.join(packet.to);
    for packet in foreign.poll(net.now + SECOND) {
        net.deliver(7, &packet);
    }
    assert_eq!(count(&mut net, target), (0, 1, 0, 1), "of another job");
}

#[test]
fn round_trips_carry_the_times_of_both_clocks() {
    let ahead = 5 * SECOND;
    let mut nodes = [0, 1].map(|id| Node::new(config(id, &[]), u64::from(id) * ahead).expect("usable"));
    nodes[1].join(address(0));
    let mut trips = Vec::new();
    for step in 1..300 {
        let now = step * 10 * MILLISECOND;
        for sender in 0..2 {
            for packet in nodes[sender].poll(now + sender as u64 * (ahead + 2 * MILLISECOND)) {
                let receiver = 1 - sender;
                let arrival = now + MILLISECOND + sender as u64 * 2 * MILLISECOND + receiver as u64 * ahead;
                nodes[receiver].receive(arrival, address(sender as u32), &packet.bytes);
            }
        }
        trips.extend(nodes[0].round_trips());
    }
    assert!(trips.len() >= 3);
    let good = |trip: &RoundTrip| (trip.delay(), trip.offset()) == (2 * MILLISECOND as i64, ahead as i64);
    assert!(trips.iter().all(|trip| trip.peer == NodeId(1) && trip.t3 >= trip.t2 && good(trip)), "{trips:?}");
}

/// What becomes a rhythm depends on when everybody starts: with every fifth message, some pairs were not compared for minutes.
#[test]
fn all_pairs_of_a_group_are_compared_whatever_their_rhythm() {
    for followers in 0..=2 {
        for start in 0..12 {
            let with =
                |id: u32| Config { clock_packets: followers, seed: u64::from(7 * id + start), ..config(id, &[]) };
            let mut net = Net { nodes: Vec::new(), now: 0 };
            for id in 0..4 {
                let mut node = Node::new(with(id), net.now).expect("usable");
                node.join(address(0));
                net.nodes.push(Some(node));
                net.run(u64::from(1 + (start + id) % 5) * 30 * MILLISECOND);
            }
            net.run(10 * SECOND);
            net.nodes.iter_mut().flatten().for_each(|node| drop(node.round_trips()));
            net.run(40 * SECOND);
            for id in 0..4 {
                let asked: std::collections::BTreeSet<u32> =
                    net.node(id).round_trips().iter().map(|trip| trip.peer.0).collect();
                assert_eq!(
                    asked.len(),
                    3,
                    "{id} of those that start {start} with {followers} followers has asked {asked:?}"
                );
            }
        }
    }
}

/// One to the next living member once in that time, and nothing else changes: whoever stood still makes up for nothing.
#[test]
fn packets_for_those_who_compare_clocks_are_dense_and_go_round() {
    let every = |clock_every| {
        let with = |id| Config { clock_every, ..config(id, &[]) };
        let nodes = (0..4).map(|id| Some(Node::new(with(id), 0).expect("usable"))).collect();
        let mut net = Net { nodes, now: 0 };
        net.nodes.iter_mut().flatten().for_each(|node| node.join(address(0)));
        net.run(6 * SECOND);
        net
    };
    // Packets of node 1 within a second in which nobody else sends, by whom they go to.
    let sent = |net: &mut Net, from: Time| {
        let mut to = [0; 4];
        for step in 0..500 {
            for packet in net.node(1).poll(from + step * 2 * MILLISECOND) {
                to[(0..4).find(|&id| address(id) == packet.to).expect("a member") as usize] += 1;
            }
        }
        to
    };
    let now = 6 * SECOND + MILLISECOND;
    let without = sent(&mut every(0), now);
    let mut net = every(10 * MILLISECOND);
    let with = sent(&mut net, now);
    assert!(without.iter().sum::<usize>() < 40 && (98..=102).contains(&(with[2] - without[2])), "{without:?} {with:?}");
    assert!((0..4).filter(|&id| id != 2).all(|id| with[id] < 40), "{with:?}");
    // After a pause of a second there are no hundred at once.
    assert!(net.node(1).poll(now + 2 * SECOND).len() < 20);
    // Without node 2, they go to the next one.
    let mut net = every(10 * MILLISECOND);
    net.nodes[2] = None;
    net.run(4 * SECOND);
    assert!(net.all_say(2, Liveness::Dead));
    let later = net.now + MILLISECOND;
    let with = sent(&mut net, later);
    assert!(with[3] > 90 && with[2] < 20, "{with:?}");
    net.node(1).stop_clock_packets(0);
    let later = net.now + 2 * SECOND;
    assert!(sent(&mut net, later).iter().sum::<usize>() < 60);
    // Alone, there is nobody; who has left is silent.
    let mut alone = Node::new(Config { clock_every: 10, ..config(0, &[]) }, 0).expect("usable");
    assert!((0..1_000).all(|step| alone.poll(step * MILLISECOND).is_empty()));
    net.node(1).leave();
    let end = net.now + 10 * SECOND;
    net.node(1).poll(end);
    assert!(net.node(1).poll(end + SECOND).is_empty());
}
