//! The oracle of the project: the extended controlled logical clock, written down literally.
//!
//! Everything here is serial, dense (every event, not only the synchronisation events) and as slow as it takes to be
//! obviously right. It shares nothing with the program but the vocabulary of [`clc_replay::trace`], so that a mistake
//! in one of them shows as a difference:
//!
//! * [`model`]: a trace as plain data, and its timelines;
//! * [`matching`]: every happened-before pair of a trace; [`channel`]: what is known of messages when records are missing;
//!   [`halves`] and [`uneven`]: of collective calls; [`windows`]: which fences are barriers; [`calls`]: what calls of MPI synchronise by more than their records;
//! * [`forward`]: the forward replay; [`backward`]: the backward amortisation;
//! * [`common`]: the mirrored replay, the average, the common time;
//! * [`violations`] and [`properties`]: checkers that know what a result must satisfy, not how it is computed;
//! * [`against`]: the program and the oracle on the same trace;
//! * [`threads`]: hybrid programs, in which threads have clocks of their own;
//! * [`generate`]: random traces of valid MPI programs, with the true time of every event.
//!
//! A test uses it by `mod reference;`.

// Every integration test is a crate of its own and uses only a part of this module.
#![allow(dead_code)]

pub(crate) mod against;
pub(crate) mod backward;
pub(crate) mod calls;
pub(crate) mod channel;
pub(crate) mod common;
pub(crate) mod forward;
pub(crate) mod generate;
pub(crate) mod halves;
pub(crate) mod matching;
pub(crate) mod model;
pub(crate) mod properties;
pub(crate) mod threads;
pub(crate) mod uneven;
pub(crate) mod violations;
pub(crate) mod windows;
