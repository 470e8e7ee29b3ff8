//! The one error type of the program: what went wrong, and where in which file.

use crate::{EventNumber, LocationId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, with as much of its place as is known. It prints as one line:
/// `FILE: location L, event N: what went wrong (what to do)`.
///
/// It is serialisable so that a failure on one analysis rank can be reported once, by rank 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Error {
    /// What went wrong, in one clause.
    pub message: String,
    /// The file it went wrong in.
    pub file: Option<String>,
    /// The location (event stream) it belongs to.
    pub location: Option<LocationId>,
    /// The event of that location.
    pub event: Option<EventNumber>,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl Error {
    /// An error that is not tied to a place yet.
    pub fn new(message: impl Into<String>) -> Self {
        Error { message: message.into(), file: None, location: None, event: None, hint: None }
    }

    /// An error of the operating system on `path`.
    pub fn io(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        Error::new(format!("{doing}: {error}")).in_file(path)
    }

    /// Adds the file, unless one is known already.
    pub fn in_file(mut self, path: &Path) -> Self {
        self.file.get_or_insert_with(|| path.display().to_string());
        self
    }

    /// Adds the location, unless one is known already.
    pub fn at_location(mut self, location: LocationId) -> Self {
        self.location.get_or_insert(location);
        self
    }

    /// Adds the event, unless one is known already.
    pub fn at_event(mut self, event: EventNumber) -> Self {
        self.event.get_or_insert(event);
        self
    }

    /// Adds advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        match (self.location, self.event) {
            (Some(location), Some(event)) => write!(f, "location {location}, event {event}: ")?,
            (Some(location), None) => write!(f, "location {location}: ")?,
            (None, Some(event)) => write!(f, "event {event}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}
