//! The stages that commands share: open, load, match, write. The only layer that knows both archives and the replay.

pub mod convert;
pub mod export;
pub mod inputs;
pub mod load;
pub mod location_clock;
pub mod made;
pub mod moves;
pub mod open;
pub mod peak_memory;
pub mod silent;
pub mod timing;
pub mod write;
