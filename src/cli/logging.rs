//! The log: lines on standard error, each with the analysis rank that wrote it.

use super::options::LogOptions;
use super::progress;
use clc_engine::comm::AnalysisRank;
use std::fmt;
use std::io::{self, Write};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Sends the log of this process to standard error from now on. `rank` is its analysis rank.
///
/// `--log` decides what is logged, else the environment variable RUST_LOG, else warnings and errors; with `--quiet`
/// and no `--log`, errors only. A second call changes nothing.
pub fn init(options: &LogOptions, rank: AnalysisRank) {
    let environment = std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let (filter, complaint) = filter(options, environment.as_deref());
    // Fails only if a subscriber is set already, by a program that embeds this one: then the log is its business.
    let _ = subscriber(filter, rank, AroundTheBar).try_init();
    if let Some(complaint) = complaint.filter(|_| rank == AnalysisRank::FIRST) {
        tracing::warn!("{complaint}");
    }
}

fn subscriber<W>(filter: EnvFilter, rank: AnalysisRank, writer: W) -> impl Subscriber + Send + Sync + 'static
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).log_internal_errors(false);
    builder.event_format(LogLine { rank }).with_writer(writer).finish()
}

/// The filter in force, and what is wrong with RUST_LOG if it cannot be used.
fn filter(options: &LogOptions, environment: Option<&str>) -> (EnvFilter, Option<String>) {
    let fallback = if options.quiet { "error" } else { "warn" };
    // `--log` has been checked while reading the command line.
    if let Some(filter) = options.filter.as_deref().and_then(|filter| EnvFilter::try_new(filter).ok()) {
        return (filter, None);
    }
    match environment.filter(|_| !options.quiet).map(EnvFilter::try_new) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(fallback), Some(format!("RUST_LOG is ignored: {error}"))),
        None => (EnvFilter::new(fallback), None),
    }
}

/// `clc-replay: [rank 3] WARN: message`, with the module from debug level on.
struct LogLine {
    rank: AnalysisRank,
}

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let metadata = event.metadata();
        write!(line, "clc-replay: [rank {}] {}: ", self.rank, metadata.level())?;
        if *metadata.level() > tracing::Level::INFO {
            write!(line, "{}: ", metadata.target())?;
        }
        context.format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

/// Standard error, with the progress bar taken away while a line is written. A line that cannot be written is lost: there is no better
/// place to say so, and a log on a full disk is no reason to end a run.
struct AroundTheBar;

impl<'writer> MakeWriter<'writer> for AroundTheBar {
    type Writer = AroundTheBar;

    fn make_writer(&'writer self) -> AroundTheBar {
        AroundTheBar
    }
}

impl Write for AroundTheBar {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Whole lines at once: the lines of many ranks share one terminal.
        let _ = progress::suspended(|| io::stderr().lock().write_all(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("one thread").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log(options: &LogOptions, environment: Option<&str>) -> String {
        let memory = LogBuffer::default();
        let writer = memory.clone();
        let subscriber = subscriber(filter(options, environment).0, AnalysisRank(3), move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!("broken");
            tracing::warn!(records = 2, "odd");
            tracing::debug!("detail");
        });
        let bytes = memory.0.lock().expect("one thread").clone();
        String::from_utf8(bytes).expect("text")
    }

    fn options(filter: Option<&str>, quiet: bool) -> LogOptions {
        LogOptions { filter: filter.map(str::to_owned), quiet }
    }

    #[test]
    fn every_line_names_its_rank() {
        let text = log(&options(None, false), None);
        assert_eq!(text, "clc-replay: [rank 3] ERROR: broken\nclc-replay: [rank 3] WARN: odd records=2\n");
    }

    #[test]
    fn log_wins_over_quiet_and_quiet_over_the_environment() {
        assert!(
            log(&options(Some("debug"), true), Some("off")).contains("DEBUG: clc_replay::cli::logging::tests: detail")
        );
        assert_eq!(log(&options(None, true), Some("debug")).lines().count(), 1);
        assert_eq!(log(&options(None, false), Some("off")), "");
        assert_eq!(log(&options(None, false), Some("debug")).lines().count(), 3);
        assert!(filter(&options(None, false), Some("a=b=c")).1.expect("complaint").contains("RUST_LOG"));
    }
}
