//! The controlled logical clock: pure mathematics per timeline. No MPI, no files, no printing.
//!
//! One file per part of the paper (Becker, Rabenseifner, Wolf, EuroPVM/MPI 2007; section numbers below are those of
//! `docs/algorithm.md`): [`forward`] amortisation, [`backward`] amortisation, the [`controller`] of the control variable γ,
//! minimum [`latency`] and the [`semantics`] of operations as logical sends and receives.

pub mod backward;
pub mod controller;
mod form;
pub mod forward;
pub mod latency;
mod parameters;
pub mod semantics;

pub use form::{Centre, Form};
pub use parameters::{Decay, ErrorLimit, Parameters, Slope};
