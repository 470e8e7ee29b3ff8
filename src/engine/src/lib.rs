//! Matching and replay of the communication that a trace records, on any number of analysis ranks.
//!
//! [`comm`] is how ranks talk: the [`comm::Transport`] seam with MPI behind it (feature `mpi`) or threads of one process. [`matching`] finds out who communicated with
//! whom, before anything is replayed; [`replay`] runs timelines against each other, and makes corrections of what it finds. The mathematics is that of
//! [`clc_clock`] and [`controlled_logical_clock`]; no file formats, no printing. Results are the same for any number of ranks.
//!
//! ```
//! use clc_engine::comm::local::LocalTransport;
//! use clc_engine::comm::{ReduceOp, Transport};
//!
//! // Three ranks as threads: each knows its number, together they know the largest.
//! let ranks = LocalTransport::world(3).into_iter().map(|mut transport| {
//!     std::thread::spawn(move || {
//!         let mut number = [i64::from(transport.rank().0)];
//!         transport.all_reduce(ReduceOp::Max, &mut number).map(|()| number[0])
//!     })
//! });
//! let ranks: Vec<_> = ranks.collect();
//! assert!(ranks.into_iter().all(|rank| rank.join().expect("a rank") == Ok(2)));
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]

pub mod comm;
pub mod matching;
pub mod replay;
