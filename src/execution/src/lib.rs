//! Mathematics of the execution graph: waiting times, degree of parallelism, weights, critical path, call paths. No MPI, no files, no
//! printing. All times are ticks of global time, all sums are exact integers. Definitions and sources: `docs/analysis.md`.

pub mod call_tree;
pub mod locks;
pub mod parallelism;
pub mod path;
pub mod waiting;
pub mod windows;

#[cfg(test)]
mod graph_tests;
