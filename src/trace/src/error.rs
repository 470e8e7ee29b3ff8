//! The one error type of the program: what went wrong, and where in which file.

use crate::{EventNumber, LocationId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it is, for programs that do not read messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// None of the others: what was asked for cannot be done, or a trace contradicts itself.
    #[default]
    Other,
    /// A file or directory does not exist.
    Missing,
    /// The operating system has refused something ([`Error::source`]).
    System,
    /// A file is not what its format demands: truncated, overwritten, or written wrongly.
    Damaged,
    /// A file may be right, but has a version or a form that is not supported.
    Unsupported,
}

/// What the operating system said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SystemError {
    /// Its number of the error, if there is one (`errno`).
    pub code: Option<i32>,
    /// Its words.
    pub message: String,
}

impl From<&std::io::Error> for SystemError {
    fn from(error: &std::io::Error) -> Self {
        SystemError { code: error.raw_os_error(), message: error.to_string() }
    }
}

/// A failure, with as much of its place as is known. It prints as one line:
/// `FILE: location L, event N: what went wrong (what to do)`.
///
/// It is serialisable so that a failure on one analysis rank can be reported once, by rank 0.
///
/// ```
/// use clc_trace::{Error, ErrorKind};
/// use std::path::Path;
///
/// let path = Path::new("no such directory/traces.otf2");
/// let error = Error::io(path, "cannot open", &std::fs::File::open(path).unwrap_err());
/// assert_eq!(error.kind, ErrorKind::Missing);
/// assert!(std::error::Error::source(&error).is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Error {
    /// What kind of failure it is.
    pub kind: ErrorKind,
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
    /// What the operating system said, if that was the cause.
    #[source]
    pub source: Option<Box<SystemError>>,
}

impl Error {
    /// An error that is not tied to a place yet.
    pub fn new(message: impl Into<String>) -> Self {
        Error {
            kind: ErrorKind::Other,
            message: message.into(),
            file: None,
            location: None,
            event: None,
            hint: None,
            source: None,
        }
    }

    /// A file is not what its format demands.
    pub fn damaged(message: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Damaged, ..Error::new(message) }
    }

    /// A file has a version or a form that is not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Unsupported, ..Error::new(message) }
    }

    /// An error of the operating system that is not tied to a place yet.
    pub fn caused_by(message: impl Into<String>, error: &std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::Missing,
            _ => ErrorKind::System,
        };
        Error { kind, source: Some(Box::new(error.into())), ..Error::new(message) }
    }

    /// An error of the operating system on `path`.
    pub fn io(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        Error::caused_by(format!("{doing}: {error}"), error).in_file(path)
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
