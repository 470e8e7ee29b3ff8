//! Within a process: what its threads and the streams of its accelerators do with each other.
//!
//! [`threads`] reads the events of a process, with those of [`accelerators`], as [`steps`]; `teams` pairs the steps of teams of threads, `through` finds
//! contradictions among what must stay in order, and [`operations`] finds the order of collective operations that threads share, by a `walk` through the steps, or what is certain of `unordered` ones;
//! [`ties`] are steps of one time.

pub mod accelerators;
pub mod operations;
pub mod steps;
mod teams;
pub mod threads;
mod through;
pub mod ties;
mod unordered;
mod walk;
