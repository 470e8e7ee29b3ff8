//! Better clocks from what the messages of a loaded trace tell, and whether they are taken.

mod latency;
pub mod model_selection;
pub mod refine;
mod waiting_calls;
