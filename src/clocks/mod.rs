//! Better clocks from what the messages of a loaded trace tell, and whether they are taken.

mod adopted;
mod curved;
pub(crate) mod division;
mod latency;
mod lives;
pub(crate) mod model_selection;
mod outlying;
pub(crate) mod refine;
mod waiting_calls;
