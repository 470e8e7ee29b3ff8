//! The stages that commands share: open, load, match, write. The only layer that knows both archives and the replay.

pub mod accuracy;
pub mod analysis;
pub mod between;
pub mod choice;
pub mod clocks;
pub mod convert;
pub mod details;
pub mod estimator;
pub mod evaluate;
pub mod export;
pub mod files;
pub mod inputs;
pub mod interrupt;
pub mod load;
pub mod made;
mod manifest;
pub mod memory;
pub mod moves;
pub mod open;
pub mod output;
pub mod overwrite;
pub mod perturb;
pub mod regions;
mod stale;
pub mod targets;
pub mod timing;
pub mod write;
