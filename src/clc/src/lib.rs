//! The extended controlled logical clock: pure mathematics per timeline. No MPI, no files, no printing.
//!
//! One file per part of the paper (Becker, Rabenseifner, Wolf, EuroPVM/MPI 2007; section numbers below are those of
//! `docs/algorithm.md`): [`forward`] amortisation, [`backward`] amortisation, the [`controller`] of the control variable γ,
//! minimum [`latency`] and the [`semantics`] of operations as logical sends and receives.
//!
//! ```
//! use clc_trace::Ticks;
//! use controlled_logical_clock::Parameters;
//! use controlled_logical_clock::forward::{ForwardClock, ForwardParameters};
//!
//! let parameters = Parameters::default();
//! let mut clock = ForwardClock::new(ForwardParameters {
//!     decay: parameters.decay.fraction(),
//!     separation: parameters.minimum_separation,
//! });
//! // A send at 100, by a clock that is right; it was received at 80 by a clock that is 25 behind, and takes at least 5.
//! let receive = clock.step(Ticks(80), None, Ticks(100 + 5));
//! assert_eq!((receive.time, receive.jump), (Ticks(105), Ticks(25)));
//! // What comes next on the same timeline keeps its distance, but for the part that is forgotten: a millionth here and there.
//! let next = clock.step(Ticks(180), Some((Ticks(80), receive.time)), Ticks::MIN);
//! assert_eq!(next.time, Ticks(205));
//! ```
#![deny(missing_docs)]
#![deny(clippy::cast_lossless)]
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

pub mod backward;
pub mod controller;
mod form;
pub mod forward;
pub mod latency;
mod parameters;
pub mod semantics;

pub use form::{Centre, CorrectionForm};
pub use parameters::{Decay, ErrorLimit, Parameters, Slope};
