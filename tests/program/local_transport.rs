//! Every operation between threads of one process: the same checks as between MPI processes, with more ranks.

use clc_engine::comm::local::LocalTransport;
use clc_engine::comm::{AnalysisRank, ReduceOp, Transport, sparse_exchange};

#[test]
fn every_operation_on_any_number_of_ranks() {
    for size in [1, 2, 3, 4, 7, 16, 64] {
        std::thread::scope(|scope| {
            for mut transport in LocalTransport::world(size) {
                scope.spawn(move || crate::operations::all(&mut transport));
            }
        });
    }
}

#[test]
fn a_thousand_ranks() {
    const SIZE: usize = 1024;
    std::thread::scope(|scope| {
        for mut t in LocalTransport::world(SIZE) {
            let run = move || {
                let rank = t.rank().place();
                for round in 1..4 {
                    let mut sum = [1];
                    t.all_reduce(ReduceOp::Sum, &mut sum).unwrap();
                    assert_eq!(sum[0], SIZE as i64);
                    let outgoing = vec![(AnalysisRank::at((rank + round) % SIZE), vec![rank as u64])];
                    let source = (rank + SIZE - round) % SIZE;
                    assert_eq!(
                        sparse_exchange(&mut t, outgoing).unwrap(),
                        [(AnalysisRank::at(source), vec![source as u64])]
                    );
                }
            };
            std::thread::Builder::new().stack_size(1 << 18).spawn_scoped(scope, run).unwrap();
        }
    });
}
