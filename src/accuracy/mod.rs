//! How far the times of a trace are from true ones, and traces with known errors.

pub mod between;
pub mod compare;
pub mod distribution;
pub mod judgement;
pub mod perturb;
