//! Every operation between threads of one process: the same checks as between MPI processes, with more ranks.

#[path = "mpi_transport/operations.rs"]
mod operations;

use clc_replay::comm::local::LocalTransport;

#[test]
fn every_operation_on_any_number_of_ranks() {
    for size in [1, 2, 3, 4, 7, 16, 64] {
        std::thread::scope(|scope| {
            for mut transport in LocalTransport::world(size) {
                scope.spawn(move || operations::all(&mut transport));
            }
        });
    }
}
