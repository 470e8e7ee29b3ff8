//! Monitor.
pub mod diagnose;
pub mod state;
