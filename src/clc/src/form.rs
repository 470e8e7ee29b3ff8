//! Which correction is made.

use serde::{Deserialize, Serialize};

/// The form of the correction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionForm {
    /// The average of the forward replay and of the mirrored one, without the motion that all clocks share.
    #[default]
    Common,
    /// The forward replay alone, as published.
    Paper,
}

impl CorrectionForm {
    /// All of them.
    pub const ALL: [CorrectionForm; 2] = [CorrectionForm::Common, CorrectionForm::Paper];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            CorrectionForm::Common => "common",
            CorrectionForm::Paper => "paper",
        }
    }
}

/// What the clocks show together at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Centre {
    /// Their mean.
    #[default]
    Mean,
    /// Their median: a clock that fails pulls nobody.
    Median,
}
