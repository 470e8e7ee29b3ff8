//! What a user tells all agents of a job while it runs.

use serde::{Deserialize, Serialize};

/// What is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// A formula: see [`Formula`](crate::resources::Formula).
    Formula,
    /// A file of each node with a number in it, which becomes a datum of that name.
    Sensor,
}

/// A setting. An empty text takes an earlier one back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// What it is.
    pub kind: SettingKind,
    /// Its name.
    pub name: String,
    /// The formula, or the path.
    pub text: String,
    /// When it was given: nanoseconds since 1970.
    pub given: u64,
}
