//! The stages of a correction at which violations are counted.

use serde::{Deserialize, Serialize};

/// Which times of a trace are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// As recorded.
    #[default]
    Raw,
    /// After pre-synchronisation: what a reader of the trace sees.
    Presynchronised,
    /// As corrected.
    Corrected,
}

impl Stage {
    /// All of them, in the order of a correction.
    pub const ALL: [Stage; 3] = [Stage::Raw, Stage::Presynchronised, Stage::Corrected];

    /// Its name in reports, which is also its class in pages.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Raw => "raw",
            Stage::Presynchronised => "presynchronised",
            Stage::Corrected => "corrected",
        }
    }

    /// Its name in words.
    pub fn words(self) -> &'static str {
        match self {
            Stage::Raw => "as recorded",
            Stage::Presynchronised => "after pre-synchronisation",
            Stage::Corrected => "corrected",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_json() {
        for stage in Stage::ALL {
            assert_eq!(serde_json::to_value(stage).expect("JSON"), stage.name());
        }
    }
}
