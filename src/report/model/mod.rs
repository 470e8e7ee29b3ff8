//! The result of a run as plain data: what JSON has, and what texts and pages are made of. Nothing here is rendered.

pub(crate) mod analysis;
pub(crate) mod conversion;
pub(crate) mod coverage;
pub(crate) mod details;
pub(crate) mod displacement;
pub mod distances;
pub(crate) mod evaluation;
pub(crate) mod generated;
pub(crate) mod info;
pub(crate) mod locks;
pub(crate) mod matching;
pub(crate) mod phases;
pub(crate) mod run;
pub(crate) mod stage;
pub(crate) mod violations;
pub(crate) mod warnings;
