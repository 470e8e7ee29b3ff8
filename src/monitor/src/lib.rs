//! Monitor.
pub mod agent;
pub mod collect;
pub mod diagnose;
pub mod jobs;
pub mod query;
pub mod state;
