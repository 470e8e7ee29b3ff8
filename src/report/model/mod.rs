//! The result of a run as plain data: what JSON has, and what texts and pages are made of. Nothing here is rendered.

pub mod analysis;
pub mod conversion;
pub mod coverage;
pub mod details;
pub mod distances;
pub mod evaluation;
pub mod info;
pub mod locks;
pub mod made;
pub mod matching;
pub mod moves;
pub mod phases;
pub mod run;
pub mod stage;
pub mod violations;
pub mod warnings;
