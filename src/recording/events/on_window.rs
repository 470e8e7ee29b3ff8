//! Calls on windows, as they begin.

use crate::recording::windows::WindowKey;
use clc_trace::MpiRank;
use std::sync::Arc;

/// What a call on a window was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OnWindow {
    /// It makes one.
    Makes(WindowKey, bool),
    /// It is on the one with this handle, with a target (negative for nobody, or all), and an exclusive lock.
    Uses(u64, i64, bool),
    /// It begins an epoch with a group.
    Epoch(u64, Arc<[MpiRank]>),
}
