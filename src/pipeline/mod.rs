//! The stages that commands share: open, load, match, write. The only layer that knows both archives and the replay.

pub(crate) mod convert;
pub(crate) mod describe;
pub(crate) mod displacement;
pub(crate) mod export;
pub mod generated;
pub(crate) mod inputs;
pub mod load;
pub(crate) mod local_trace;
pub(crate) mod location_clock;
pub mod open;
mod own_clocks;
pub(crate) mod silent;
mod timeline_scan;
pub(crate) mod timing;
mod visits;
pub(crate) mod write;
