//! `clc-replay export TRACE -o FILE`: a part of a trace for other tools.

use crate::clc::latency::MinimumLatency;
use crate::cli::{ExportFormat, ExportOptions};
use crate::comm::{Transport, agree};
use crate::commands::Outcome;
use crate::pipeline::clocks::refine;
use crate::pipeline::export::{Exported, Window, perfetto, violations};
use crate::pipeline::files;
use crate::pipeline::load::{LoadOptions, load};
use crate::pipeline::open::open;
use crate::report::format::plural;
use crate::trace::progress::Progress;
use crate::trace::{Error, Result, Ticks};
use std::io::Write;
use std::path::Path;

/// Exports a part of a trace. Collective over the analysis ranks; the outcome is on rank 0.
///
/// # Errors
/// The trace cannot be read; the file exists or cannot be written.
pub fn export(
    transport: &mut dyn Transport,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Option<Outcome>> {
    let to_stdout = options.output == Path::new("-");
    let exists = !to_stdout && !options.force && options.output.symlink_metadata().is_ok();
    let free = if exists {
        Err(Error::new("the file exists").in_file(&options.output).hint("--force replaces it"))
    } else {
        Ok(())
    };
    agree(transport, free)?;
    let mut opened = open(transport, &options.trace)?;
    let mut warnings = std::mem::take(&mut opened.warnings);
    let resolution = opened.definitions.clock.resolution;
    let latency: MinimumLatency = options.synchronisation.latency.to_ticks(resolution)?;
    let load_options = LoadOptions {
        presync: options.synchronisation.presync.unwrap_or_default(),
        latency,
        alltoallv: options.synchronisation.alltoallv,
        separation: Ticks::ZERO,
    };
    let mut loaded = load(transport, &opened, &load_options, progress, &mut warnings)?;
    refine(transport, &opened, &mut loaded, &load_options, options.synchronisation.wanted(), progress)?;
    let ticks = |bound: Option<crate::cli::Duration>| bound.map(|bound| bound.to_ticks(resolution)).transpose();
    let (from, to) = options.window.map_or((None, None), |window| (window.from, window.to));
    let window = Window::new(&loaded, ticks(from)?, ticks(to)?);
    let exported = match options.format {
        ExportFormat::Perfetto => perfetto(transport, &opened, &loaded, window)?,
        ExportFormat::ViolationsCsv => violations(transport, &opened, &loaded, window)?,
    };
    let mut said = None;
    let written = match exported {
        Some(exported) if to_stdout => {
            said = Some(String::new());
            files::print(exported.text.as_bytes())
        }
        Some(exported) => {
            said = Some(summary(options, &exported));
            write(&options.output, exported.text.as_bytes())
        }
        None => Ok(()),
    };
    agree(transport, written)?;
    Ok(said.map(Outcome::Text))
}

fn summary(options: &ExportOptions, exported: &Exported) -> String {
    let what = match options.format {
        ExportFormat::Perfetto => {
            format!("{} and {}", plural(exported.items, "region"), plural(exported.messages, "message"))
        }
        ExportFormat::ViolationsCsv => {
            format!("{}, {} of them", plural(exported.items, "violation"), plural(exported.messages, "message"))
        }
    };
    format!("Wrote {what} to {}\n", options.output.display())
}

/// Writes a file that appears complete or not at all.
///
/// # Errors
/// The operating system refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A device, a pipe or a link (`/dev/stdout` is one) is written to, not replaced.
    let special = path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file());
    let outcome = if special {
        std::fs::write(path, bytes)
    } else {
        tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(directory)
            .and_then(|mut file| file.write_all(bytes).and_then(|()| file.persist(path).map_err(|error| error.error)))
            .map(|_| ())
    };
    outcome.map_err(|error| Error::io(path, "cannot write", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for text in ["first and longer", "second"] {
            write(&link, text.as_bytes()).unwrap();
            assert!(link.symlink_metadata().unwrap().is_symlink());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        write(&file, b"third").unwrap();
        assert_eq!(std::fs::read(&link).unwrap(), b"third");
        write(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
