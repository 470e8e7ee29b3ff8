//! The options of `clc-replay convert`.

use super::options::LogOptions;
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clc_archive::Format;
use clc_trace::{Error, Result};
use std::path::{Path, PathBuf};

pub(super) const ABOUT: &str = "\
Converts an OTF2 archive to a native trace, or a native trace to an OTF2 archive. Events, times and clock offsets are \
preserved; nothing is corrected.

A native trace (a directory NAME.clct) holds what a correction needs: definitions, clock offsets, and for each event its time, its type and, for regions and MPI, its fields. It takes a third to a half of the space, has checksums, and is easy for other programs to read. Everything else that an OTF2 archive can hold (source lines, metrics, attributes, markers, ...) is dropped, and the summary says how much. Keep the original.

The true times of a simulated trace (its directory `truth`) are copied as well. Correcting an OTF2 archive and correcting the native trace made from it give the same times.";

pub(super) const AFTER: &str = "\
Examples:
  clc-replay convert traces/run1 run1.clct               OTF2 to native
  clc-replay run1.clct                                   correct it; writes run1-clc.clct
  clc-replay convert run1-clc.clct run1-clc              native to OTF2, for otf2-print, Vampir, Scalasca
  clc-replay convert --report lost.json traces/run1 run1.clct

Exit status:
  0  the trace was converted completely, except for what the summary lists as left out
  2  an error; no trace was written, unless the message says so

The native format, byte by byte: docs/formats.md";

/// Options of `clc-replay convert`.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct ConvertOptions {
    /// The trace: the directory of an OTF2 archive or its anchor file (traces.otf2), or a native trace (NAME.clct)
    pub trace: PathBuf,

    /// Directory to write; a name that ends in .clct selects the native format, any other name OTF2
    ///
    /// It appears only once it is complete.
    #[arg(value_name = "TARGET")]
    pub output: PathBuf,

    /// Format to write, overriding the name of TARGET
    #[arg(long, value_name = "FORMAT", help_heading = "Output",
          value_parser = PossibleValuesParser::new(["otf2", "native"]).map(format_of))]
    pub to: Option<Format>,

    /// Replace TARGET if it exists and clc-replay wrote everything in it, and an existing --report file
    #[arg(long, help_heading = "Output")]
    pub force: bool,

    /// Also write the printed information as JSON to FILE ("-": standard output, instead of the text)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,

    /// What to log.
    #[command(flatten)]
    pub log: LogOptions,
}

impl ConvertOptions {
    /// The format to write: `--to`, or what the target's name asks for.
    ///
    /// # Errors
    /// The target is named like an anchor file.
    pub(crate) fn format(&self) -> Result<Format> {
        target_format(self.to, &self.output)
    }
}

/// The format that is asked for, or what the target's name asks for.
///
/// # Errors
/// The target is named like an anchor file.
pub(super) fn target_format(asked: Option<Format>, target: &Path) -> Result<Format> {
    if target.extension().is_some_and(|extension| extension == "otf2") {
        return Err(Error::new(
            "an OTF2 archive is a directory that contains an anchor file; the name of the directory does not end in \
            .otf2",
        )
        .in_file(target)
        .hint(format!("for example {}", target.with_extension("").display())));
    }
    Ok(asked.unwrap_or_else(|| Format::of_name(target)))
}

pub(super) fn format_of(name: String) -> Format {
    if name == "native" { Format::Native } else { Format::Otf2 }
}
