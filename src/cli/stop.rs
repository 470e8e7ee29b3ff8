//! How the program ends before or instead of a job: one printer of errors, one place for exit statuses.

use crate::output::files;
use clap::error::{ContextKind, ContextValue};
use clc_trace::Error;
use clc_trace::format::printable;
use std::fmt;
use std::io::Write;

/// The program stops here: what to print, and the exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    text: String,
    status: u8,
}

impl Stop {
    /// Exit status of a trace that has no violations (any more).
    pub const CONSISTENT: u8 = 0;
    /// Exit status of an error: no trace was written, unless the line says so.
    pub const ERROR: u8 = 2;

    /// A wrong use of the program, or of a subcommand.
    pub(crate) fn usage(subcommand: Option<&str>, message: &str) -> Self {
        let command = ["clc-replay"].into_iter().chain(subcommand).collect::<Vec<_>>().join(" ");
        Stop { text: format!("{} (see `{command} --help`)", one_line(message)), status: Stop::ERROR }
    }

    /// What clap says to a command line of the program, or of a subcommand: help, or why it is wrong.
    pub(super) fn of_clap(subcommand: Option<&str>, error: &clap::Error) -> Self {
        let text = error.render().to_string();
        if !error.use_stderr() {
            return Stop { text, status: 0 };
        }
        // clap takes a second word without dash for a misplaced subcommand, and says so in a way that leads nowhere.
        if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) {
            let advice = "pass a single TRACE; a subcommand has to come first";
            return Stop::usage(None, &format!("unexpected argument '{word}': {advice}"));
        }
        // clap prints "error: what", perhaps tips, then the usage and where to find help. What and the tips are kept, but for the one that takes an unknown option
        // for the name of a file.
        let end = text.find("\nUsage:").or_else(|| text.find("\nFor more information")).unwrap_or(text.len());
        let lines = text.get(..end).unwrap_or(&text).lines().filter(|line| !line.contains("as a value, use '-- "));
        let text = lines.collect::<Vec<_>>().join("\n");
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        Stop::usage(subcommand, text.replace("\n\n", ";\n").trim_end_matches([';', '\n']))
    }

    /// 0 after `--help` and `--version`, otherwise [`Stop::ERROR`].
    pub fn status(&self) -> u8 {
        self.status
    }

    /// Prints help to standard output, or one line `clc-replay: error: ...` to standard error; returns the exit status, which is that of an error
    /// if the help cannot be printed. For one rank only.
    pub fn print(&self) -> u8 {
        if self.status == 0 {
            return files::print(self.text.as_bytes()).map_or_else(|error| Stop::from(error).print(), |()| 0);
        }
        // One write: other processes of the job may say something, too. Nobody is left to be told if it fails.
        let _ = std::io::stderr().lock().write_all(format!("{self}\n").as_bytes());
        self.status
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.status == 0 { f.write_str(&self.text) } else { write!(f, "clc-replay: error: {}", self.text) }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop { text: one_line(&error.to_string()), status: Stop::ERROR }
    }
}

/// Joins lines, so that a log has one line per error.
fn one_line(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
