//! How far the times of a trace are from true ones, and traces with known errors.

pub(crate) mod between;
pub(crate) mod compare;
pub(crate) mod distribution;
pub(crate) mod evaluate;
pub(crate) mod judgement;
pub(crate) mod perturb;
pub(crate) mod phase;
