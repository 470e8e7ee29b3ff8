//! What concerns threads only; the operations themselves are tested on both transports.

use super::*;
use crate::comm::{exchange_values, sparse_exchange};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn on_all<T: Send>(size: usize, run: impl Fn(&mut LocalTransport) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let run = &run;
        let start = |mut transport| scope.spawn(move || run(&mut transport));
        let threads: Vec<_> = LocalTransport::world(size).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Destination and length of each message of one rank.
type Messages = Vec<(usize, usize)>;

/// Number of ranks; messages by exchange and rank.
fn exchanges() -> impl Strategy<Value = (usize, Vec<Vec<Messages>>)> {
    (1_usize..6).prop_flat_map(|size| {
        let messages = proptest::collection::vec((0..size, 0_usize..5), 0..8);
        let exchange = proptest::collection::vec(messages, size);
        (Just(size), proptest::collection::vec(exchange, 1..6))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn exchanges_deliver_exactly_what_was_sent((size, plan) in exchanges()) {
        let results = on_all(size, |t| {
            let mut all = Vec::new();
            for exchange in &plan {
                let own = exchange[t.rank().place()].iter().enumerate();
                let outgoing = own.map(|(i, &(to, length))| (AnalysisRank::at(to), vec![i as u64; length])).collect();
                all.push(sparse_exchange(t, outgoing).unwrap());
            }
            all
        });
        for (rank, received) in results.iter().enumerate() {
            for (exchange, received) in plan.iter().zip(received) {
                let mut expected = Vec::new();
                for (source, messages) in exchange.iter().enumerate() {
                    let to_rank = messages.iter().enumerate().filter(|(_, (to, _))| *to == rank);
                    expected.extend(to_rank.map(|(i, &(_, length))| (AnalysisRank::at(source), vec![i as u64; length])));
                }
                prop_assert_eq!(received, &expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn values_are_exchanged_as_words_are((size, plan) in exchanges()) {
        // Of each value its length as well, in a list: nothing is like its neighbours.
        let value = |from: usize, number: usize, length: usize| (from as u32, vec![-(number as i64); length]);
        let results = on_all(size, |t| {
            let mut all = Vec::new();
            for exchange in &plan {
                let mut outgoing: BTreeMap<AnalysisRank, Vec<(u32, Vec<i64>)>> = BTreeMap::new();
                for (number, &(to, length)) in exchange[t.rank().place()].iter().enumerate() {
                    outgoing.entry(AnalysisRank::at(to)).or_default().push(value(t.rank().place(), number, length));
                }
                all.push(exchange_values(t, outgoing).unwrap());
            }
            all
        });
        for (rank, received) in results.iter().enumerate() {
            for (exchange, received) in plan.iter().zip(received) {
                let mut expected = Vec::new();
                for (source, messages) in exchange.iter().enumerate() {
                    let to_rank = messages.iter().enumerate().filter(|(_, (to, _))| *to == rank);
                    let list: Vec<_> = to_rank.map(|(number, &(_, length))| value(source, number, length)).collect();
                    if !list.is_empty() {
                        expected.push((AnalysisRank::at(source), list));
                    }
                }
                prop_assert_eq!(received, &expected);
            }
        }
    }
}

#[test]
fn a_value_that_cannot_be_encoded_is_an_error_on_all_ranks() {
    struct Broken;
    impl serde::Serialize for Broken {
        fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("broken"))
        }
    }
    impl<'de> serde::Deserialize<'de> for Broken {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> std::result::Result<Self, D::Error> {
            Ok(Broken)
        }
    }
    let said = on_all(3, |t| {
        let outgoing = if t.rank() == AnalysisRank(1) {
            BTreeMap::from([(AnalysisRank(2), vec![Broken])])
        } else {
            BTreeMap::new()
        };
        exchange_values(t, outgoing).err().map(|error| error.message.contains("broken"))
    });
    assert_eq!(said, vec![Some(true); 3]);
}

#[test]
fn a_panic_is_an_error_for_all_who_wait() {
    let mut world = LocalTransport::world(4);
    let (mut third, mut second, mut first, broken) =
        (world.pop().unwrap(), world.pop().unwrap(), world.pop().unwrap(), world.swap_remove(0));
    std::thread::scope(|scope| {
        let waiting = [
            scope.spawn(move || first.barrier().unwrap_err()),
            scope.spawn(move || second.receive_time(AnalysisRank(0)).unwrap_err()),
            scope.spawn(move || {
                loop {
                    match third.poll(Channel::Replay) {
                        Ok(_) => third.idle(),
                        Err(error) => break error,
                    }
                }
            }),
        ];
        std::thread::sleep(Duration::from_millis(20));
        let panicked = scope.spawn(move || {
            let _transport = broken;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(panicked.join().is_err());
        for thread in waiting {
            let message = thread.join().unwrap().message;
            assert!(message.contains("panicked") || message.contains("ended while others wait"), "{message}");
        }
    });
}

#[test]
fn those_who_wait_for_a_rank_that_has_left_get_an_error() {
    let results = on_all(3, |t| {
        if t.rank() == AnalysisRank(1) {
            t.send_time(AnalysisRank(0), [5, 6]).unwrap();
            return Vec::new();
        }
        t.start_vote(&[1]).unwrap();
        let vote = loop {
            match t.poll_vote() {
                Ok(None) => t.idle(),
                other => break other,
            }
        };
        let sent = if t.rank() == AnalysisRank(0) { t.receive_time(AnalysisRank(1)).is_ok() } else { true };
        vec![
            sent,
            vote.is_err(),
            t.receive_time(AnalysisRank(1)).is_err(),
            t.barrier().is_err(),
            t.leave(Duration::from_secs(60)) == Farewell::First,
        ]
    });
    assert_eq!(results, [vec![true; 5], vec![], vec![true; 5]]);
}

#[test]
fn one_sided_operations_do_not_wait() {
    let mut world = LocalTransport::world(2);
    let (mut one, mut zero) = (world.pop().unwrap(), world.pop().unwrap());
    let both = [AnalysisRank(0), AnalysisRank(1)];
    let (g0, g1) = (zero.create_group(&both, 1).unwrap(), one.create_group(&both, 1).unwrap());
    // Rank 0 is far ahead: it gives to broadcasts, reductions and scans that rank 1 has not come to.
    for value in 0..3 {
        assert_eq!(zero.group_bcast(g0, CommRank(0), value).unwrap(), value);
        assert_eq!(zero.group_reduce(g0, CommRank(1), MaxExcluding::one(value, 0)).unwrap(), None);
        assert_eq!(zero.group_exscan(g0, value).unwrap(), None);
    }
    for value in 0..3 {
        assert_eq!(one.group_bcast(g1, CommRank(0), -1).unwrap(), value);
        let top = one.group_reduce(g1, CommRank(1), MaxExcluding::one(9, 1)).unwrap().unwrap();
        assert_eq!(top, MaxExcluding { max: 9, holder: 1, second: value });
        assert_eq!(one.group_exscan(g1, 0).unwrap(), Some(value));
    }
}

#[test]
fn different_operations_at_the_same_time_are_an_error() {
    let results = on_all(2, |t| {
        let outcome = if t.rank() == AnalysisRank(0) { t.barrier() } else { t.all_reduce(ReduceOp::Max, &mut [1]) };
        outcome.is_err()
    });
    // One finds the contradiction, the other that the first does not come.
    assert_eq!(results, [true, true]);
}

#[test]
fn different_lengths_are_an_error() {
    let results = on_all(2, |t| t.all_reduce(ReduceOp::Sum, &mut vec![i64::MAX; t.rank().place() + 1]).is_err());
    assert!(results.contains(&true));
}

#[test]
fn leaving_gives_up_after_its_patience() {
    let mut world = LocalTransport::world(2);
    assert_eq!(world[0].leave(Duration::from_millis(10)), Farewell::First);
    assert_eq!(world[1].leave(Duration::from_secs(60)), Farewell::Together);
    assert_eq!(world[0].leave(Duration::ZERO), Farewell::Together);
}
