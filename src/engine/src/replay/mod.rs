//! The replay: timelines run, timestamps travel, corrections come out. Knows the clock's mathematics, matching and transport;
//! no file formats, no printing.

pub(crate) mod advances;
pub mod amortise;
pub(crate) mod assumed_fences;
pub mod bounds;
pub mod calls;
pub(crate) mod canonical;
pub mod clock_condition;
pub(crate) mod common;
mod components;
pub mod contributions;
pub mod dataflow;
mod finish;
pub(crate) mod forward;
mod homes;
pub mod latest;
mod mirror;
pub mod observe;
pub mod partners;
pub mod passes;
pub mod profile;
pub mod program;
mod rounds;
pub mod settle;
mod stall;
pub mod upper_bounds;
pub(crate) mod violation;
