//! Within a process: what its threads and the streams of its accelerators do with each other.
//!
//! [`threads`] reads the events of a process, with those of [`accelerators`], as [`steps`]; `teams` pairs the steps of teams of threads, `through` finds
//! contradictions among what must stay in order.

pub mod accelerators;
pub mod steps;
mod teams;
pub mod threads;
mod through;
