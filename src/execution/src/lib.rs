//! Mathematics of the execution graph of a parallel program: waiting times, degree of parallelism, weights, critical path, call paths. No MPI, no files, no
//! printing. All times are ticks of global time, all sums are exact integers. Definitions and sources: `docs/analysis.md`.
//!
//! ```
//! use clc_execution::waiting::waits_until;
//!
//! // A receive that was entered at 10 and left at 50, of a message that was sent at 40: it waited for the sender until then.
//! assert_eq!(waits_until(10, 40, 50), Some(40));
//! // Sent before: no wait.
//! assert_eq!(waits_until(10, 5, 50), None);
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod call_tree;
pub mod delays;
pub mod locks;
pub mod parallelism;
pub mod path;
pub mod threads;
pub mod waiting;
pub mod windows;

#[cfg(test)]
mod graph_tests;
