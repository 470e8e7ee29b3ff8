//! The extended controlled logical clock: pure mathematics per location. No MPI, no files, no printing.

mod parameters;

pub use parameters::{Decay, ErrorLimit, Latency, Parameters, Slope};
