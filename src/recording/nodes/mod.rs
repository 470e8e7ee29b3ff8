//! What the nodes were doing while an application was recorded.
//!
//! [`samples`] were taken at agreed times by the recorder, [`noted`] by the agents of a job that was monitored; [`metrics`] writes either into the trace.

pub(super) mod metrics;
pub(super) mod noted;
pub(super) mod samples;
