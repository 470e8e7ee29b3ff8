//! Standard output.

use crate::trace::{Error, Result};
use std::io::{ErrorKind, Write};

/// Writes to standard output. Whoever has closed its other end (`| head`) wants no more: that is no failure.
///
/// # Errors
/// The operating system refuses.
pub fn print(bytes: &[u8]) -> Result<()> {
    let mut output = std::io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
