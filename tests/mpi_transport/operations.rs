//! Every operation of a transport against what it has to give, for any number of ranks. Called by all of them.

use clc_engine::comm::{
    AnalysisRank, Channel, Farewell, MaxExcluding, ReduceOp, Transport, agree, all_gather_values, broadcast_value,
    gather_owned, gather_values, merge_to_first, merge_values, sparse_exchange,
};
use clc_trace::{CommRank, Error, EventNumber};
use std::time::Duration;

/// All of them, the order-sensitive ones several times in a row.
pub(crate) fn all(t: &mut dyn Transport) {
    posts(t);
    long_messages(t);
    votes(t);
    collectives(t);
    gathers_of_nothing(t);
    values_and_errors(t);
    for round in 0..30 {
        exchange(t, round);
        merges(t, round);
    }
    times(t);
    groups(t);
    wrong_arguments(t);
    assert_eq!(t.leave(Duration::from_secs(60)), Farewell::Together);
}

/// A repeatable choice, different for every pair of numbers.
fn mix(a: usize, b: usize) -> usize {
    let mixed = (a as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b as u64 + 7).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ (mixed >> 29)) as usize >> 8
}

/// The number of this rank, for calculations.
fn rank_of(t: &dyn Transport) -> usize {
    t.rank().place()
}

fn receive(t: &mut dyn Transport, channel: Channel) -> (usize, Vec<u64>) {
    loop {
        match t.poll(channel).unwrap() {
            Some((source, words)) => return (source.place(), words),
            None => t.idle(),
        }
    }
}

/// Neighbours in rank order, whatever the tree; ranks that are done at once must not disturb what follows.
fn merges(t: &mut dyn Transport, round: usize) {
    let own = vec![(rank_of(t), "x".repeat(mix(round, rank_of(t)) % 40))];
    let expected: Vec<_> = (0..t.size()).map(|rank| (rank, "x".repeat(mix(round, rank) % 40))).collect();
    let join = |all: &mut Vec<(usize, String)>, part| all.extend(part);
    if round.is_multiple_of(3) {
        assert_eq!(merge_values(t, own.clone(), join).unwrap(), expected);
    }
    let first = rank_of(t) == 0;
    assert_eq!(merge_to_first(t, own, join).unwrap(), first.then_some(expected));
}

/// Nobody has anything, one rank has nothing, one rank has something; at the root or elsewhere.
fn gathers_of_nothing(t: &mut dyn Transport) {
    let of = |has: &dyn Fn(usize) -> bool, rank: usize| if has(rank) { vec![rank as u8; 3] } else { Vec::new() };
    let (size, here) = (t.size(), rank_of(t));
    for one in [0, size - 1] {
        for has in [&|_| false, &(move |rank| rank == one), &(move |rank| rank != one)] as [&dyn Fn(usize) -> bool; 3] {
            let expected: Vec<Vec<u8>> = (0..size).map(|rank| of(has, rank)).collect();
            let own = of(has, here);
            assert_eq!(t.all_gather(&own).unwrap(), expected);
            assert_eq!(t.gather(AnalysisRank::FIRST, &own).unwrap(), (here == 0).then_some(expected));
            let value = |rank: usize| (rank, of(has, rank));
            let expected = (here == 0).then(|| (0..size).map(value).collect::<Vec<_>>());
            assert_eq!(gather_owned(t, AnalysisRank::FIRST, value(here)).unwrap(), expected);
        }
    }
}

/// Two channels at once, many messages of changing lengths to everybody: all arrive, in order by sender and channel.
fn posts(t: &mut dyn Transport) {
    const MESSAGES: usize = 200;
    let channels = [Channel::Replay, Channel::OddExchange];
    for number in 0..MESSAGES {
        for destination in 0..t.size() {
            let mut words = vec![number as u64; 1 + mix(number, destination) % 300];
            words[0] = rank_of(t) as u64;
            t.post(AnalysisRank::at(destination), channels[number % 2], words).unwrap();
        }
    }
    for (parity, channel) in channels.into_iter().enumerate() {
        let mut next = vec![parity; t.size()];
        for _ in 0..t.size() * MESSAGES / 2 {
            let (source, words) = receive(t, channel);
            let number = next[source];
            next[source] += 2;
            assert_eq!(words[0], source as u64);
            assert_eq!(words.len(), 1 + mix(number, rank_of(t)) % 300, "message {number} of {source}");
            assert!(words[1..].iter().all(|&word| word == number as u64));
        }
        assert_eq!(t.poll(channel).unwrap(), None);
    }
    t.barrier().unwrap();
}

/// Long and short ones alternate, so that the short ones would overtake if they could; empty ones arrive too.
fn long_messages(t: &mut dyn Transport) {
    let lengths = [0, 1, 400_000, 0, 3, 100_000, 2];
    let to = (rank_of(t) + 1) % t.size();
    for length in lengths {
        t.post(AnalysisRank::at(to), Channel::Replay, (0..length).collect()).unwrap();
    }
    for length in lengths {
        let (source, words) = receive(t, Channel::Replay);
        assert_eq!(source, (rank_of(t) + t.size() - 1) % t.size());
        assert!(words.iter().copied().eq(0..length));
    }
    t.barrier().unwrap();
}

fn vote(t: &mut dyn Transport) -> Vec<i64> {
    loop {
        match t.poll_vote().unwrap() {
            Some(sums) => return sums,
            None => t.idle(),
        }
    }
}

fn votes(t: &mut dyn Transport) {
    let size = t.size() as i64;
    assert_eq!(t.poll_vote().unwrap(), None);
    for round in 0..20 {
        t.start_vote(&[rank_of(t) as i64, 1, -round]).unwrap();
        // A vote does not get in the way of other collective operations.
        if rank_of(t).is_multiple_of(2) {
            t.idle();
        }
        let mut sum = [round];
        t.all_reduce(ReduceOp::Sum, &mut sum).unwrap();
        assert_eq!(sum[0], round * size);
        assert_eq!(vote(t), [size * (size - 1) / 2, size, -round * size]);
        assert_eq!(t.poll_vote().unwrap(), None);
    }
    // The other order on every other rank: votes and the rest are independent.
    if rank_of(t).is_multiple_of(2) {
        t.start_vote(&[1]).unwrap();
        t.barrier().unwrap();
    } else {
        t.barrier().unwrap();
        t.start_vote(&[1]).unwrap();
    }
    assert_eq!(vote(t), [size]);
}

fn collectives(t: &mut dyn Transport) {
    let (rank, size) = (rank_of(t) as i64, t.size() as i64);
    for (op, expected) in [
        (ReduceOp::Min, [-size, 0]),
        (ReduceOp::Max, [-1, size - 1]),
        (ReduceOp::Sum, [-size * (size + 1) / 2, size * (size - 1) / 2]),
    ] {
        let mut values = [-rank - 1, rank];
        t.all_reduce(op, &mut values).unwrap();
        assert_eq!(values, expected, "{op:?}");
    }
    let own: Vec<u8> = (0..mix(rank_of(t), 5) % 5000).map(|i| (i + rank_of(t)) as u8).collect();
    let expected: Vec<Vec<u8>> =
        (0..t.size()).map(|rank| (0..mix(rank, 5) % 5000).map(|i| (i + rank) as u8).collect()).collect();
    assert_eq!(t.all_gather(&own).unwrap(), expected);
    for root in 0..t.size().min(3) {
        let gathered = t.gather(AnalysisRank::at(root), &own).unwrap();
        assert_eq!(gathered, (root == rank_of(t)).then(|| expected.clone()));
        assert_eq!(t.broadcast(AnalysisRank::at(root), own.clone()).unwrap(), expected[root]);
        assert_eq!(t.broadcast(AnalysisRank::at(root), Vec::new()).unwrap(), Vec::<u8>::new());
    }
    let megabytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let sent = if rank_of(t) == 0 { megabytes.clone() } else { Vec::new() };
    assert!(t.broadcast(AnalysisRank::FIRST, sent).unwrap() == megabytes);
}

fn values_and_errors(t: &mut dyn Transport) {
    let (rank, size) = (rank_of(t), t.size());
    let last = size - 1;
    assert_eq!(broadcast_value(t, AnalysisRank::at(last), format!("from {rank}")).unwrap(), format!("from {last}"));
    let names: Vec<String> = (0..size).map(|rank| format!("rank {rank}")).collect();
    assert_eq!(all_gather_values(t, &names[rank]).unwrap(), names);
    assert_eq!(gather_values(t, AnalysisRank::at(last), &names[rank]).unwrap(), (rank == last).then_some(names));

    assert_eq!(agree(t, Ok(rank)).unwrap(), rank);
    let failing = size / 2;
    let error = |rank: usize| Error::new(format!("rank {rank} failed")).at_event(EventNumber(7)).hint("try again");
    let outcome = if rank >= failing { Err(error(rank)) } else { Ok(()) };
    assert_eq!(agree(t, outcome).unwrap_err(), error(failing));
}

/// Each rank sends to a few, different ones each round, without a pause between rounds.
fn exchange(t: &mut dyn Transport, round: usize) {
    let size = t.size();
    let plan = |source: usize| -> Vec<(AnalysisRank, Vec<u64>)> {
        (0..mix(source, round) % 6)
            .map(|i| (AnalysisRank::at(mix(mix(source, round), i) % size), vec![round as u64, i as u64, source as u64]))
            .collect()
    };
    let mut expected = Vec::new();
    for source in 0..size {
        let own = plan(source).into_iter().filter(|(to, _)| *to == t.rank());
        expected.extend(own.map(|(_, words)| (AnalysisRank::at(source), words)));
    }
    let outgoing = plan(rank_of(t));
    assert_eq!(sparse_exchange(t, outgoing).unwrap(), expected, "round {round}");
}

/// Timestamps around the ring in both directions, and to oneself.
fn times(t: &mut dyn Transport) {
    let (rank, size) = (rank_of(t), t.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    for number in 0..100 {
        t.send_time(AnalysisRank::at(next), [i64::MIN + rank as i64, number]).unwrap();
        t.send_time(AnalysisRank::at(previous), [rank as i64, -number]).unwrap();
    }
    t.send_time(AnalysisRank::at(rank), [1, 2]).unwrap();
    if size > 2 {
        for number in 0..100 {
            assert_eq!(t.receive_time(AnalysisRank::at(previous)).unwrap(), [i64::MIN + previous as i64, number]);
            assert_eq!(t.receive_time(AnalysisRank::at(next)).unwrap(), [next as i64, -number]);
        }
        assert_eq!(t.receive_time(AnalysisRank::at(rank)).unwrap(), [1, 2]);
    } else {
        for number in 0..100 {
            assert_eq!(t.receive_time(AnalysisRank::at(next)).unwrap(), [i64::MIN + next as i64, number]);
            assert_eq!(t.receive_time(AnalysisRank::at(next)).unwrap(), [next as i64, -number]);
        }
        assert_eq!(t.receive_time(AnalysisRank::at(rank)).unwrap(), [1, 2]);
    }
    t.barrier().unwrap();
}

/// The world, the world reversed, the even ranks, single ranks and every pair, partly with the same tag.
fn groups(t: &mut dyn Transport) {
    let size = t.size();
    let mut plans: Vec<(Vec<usize>, u32)> = vec![
        ((0..size).collect(), 1),
        ((0..size).rev().collect(), 1),
        ((0..size).collect(), 1),
        ((0..size).step_by(2).collect(), u32::MAX),
    ];
    plans.extend((0..size).map(|rank| (vec![rank], 2)));
    plans.extend((1..size).map(|rank| (vec![rank, rank - 1], 3)));
    let mut own = Vec::new();
    for (members, tag) in &plans {
        if let Some(place) = members.iter().position(|&member| member == rank_of(t)) {
            let group: Vec<AnalysisRank> = members.iter().map(|&member| AnalysisRank::at(member)).collect();
            own.push((t.create_group(&group, *tag).unwrap(), members, place));
        }
    }
    for round in 0..20 {
        for (group, members, place) in &own {
            let value = |rank: usize| (mix(rank, round) % 5) as i64 - 2;
            let values: Vec<i64> = members.iter().map(|&member| value(member)).collect();
            let mine = values[*place];
            let max = values.iter().copied().max().unwrap();
            let holder = values.iter().position(|&value| value == max).unwrap();
            let others = |except: usize| {
                values.iter().enumerate().filter(|(i, _)| *i != except).map(|(_, &v)| v).max().unwrap_or(i64::MIN)
            };
            let top = MaxExcluding { max, holder: holder as i64, second: others(holder) };
            let root = round % members.len();
            let one = MaxExcluding::one(mine, *place as i64);

            assert_eq!(t.group_bcast(*group, CommRank(root as u32), mine).unwrap(), values[root]);
            assert_eq!(t.group_reduce(*group, CommRank(root as u32), one).unwrap(), (root == *place).then_some(top));
            let all = t.group_all_reduce(*group, one).unwrap();
            assert_eq!(all, top);
            assert_eq!(all.excluding(*place as i64), others(*place));
            assert_eq!(t.group_exscan(*group, mine).unwrap(), values[..*place].iter().copied().max());
        }
    }
    t.barrier().unwrap();
}

/// What names no rank is an error, before anybody waits for it.
fn wrong_arguments(t: &mut dyn Transport) {
    let (rank, size) = (t.rank(), t.size());
    let (nobody, next) = (AnalysisRank::at(size), AnalysisRank::at((rank.place() + 1) % size));
    assert!(t.post(nobody, Channel::Replay, vec![1]).is_err());
    assert!(t.post(AnalysisRank(u32::MAX), Channel::Replay, vec![1]).is_err());
    assert!(t.create_group(&[rank, nobody], 1).is_err());
    assert!(t.create_group(&[rank, rank], 1).is_err());
    assert!(t.create_group(&[next], 1).is_err() || size == 1);
    assert!(t.gather(nobody, &[]).is_err());
    assert!(t.broadcast(nobody, Vec::new()).is_err());
    let outgoing = if rank.place() == size / 2 { vec![(nobody, vec![1])] } else { Vec::new() };
    assert!(sparse_exchange(t, outgoing).is_err());
    t.start_vote(&[1]).unwrap();
    assert!(t.start_vote(&[1]).is_err());
    assert_eq!(vote(t), [size as i64]);
}
