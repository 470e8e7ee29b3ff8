//! The options of `clc-replay record` that tell the recorder what to record, and with how much memory.

use clap::{Args, ValueEnum};
use clc_trace::Duration;

/// Picoseconds per nanosecond.
const PICOSECONDS: u64 = 1000;

/// What to record, and with how much memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct RecorderOptions {
    /// Memory for the events of each thread: two alternating buffers, or with --ring one ring
    ///
    /// A number of bytes, with or without K, M or G; at least 64K. Default: 4M.
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Recorder")]
    pub memory: Option<u64>,

    /// Calls that ask whether something has happened (`MPI_Test`, `MPI_Iprobe`, ...) and find nothing, one after the other: record all, or join those after the first eight
    ///
    /// Joined calls become one region `MPI polls in vain` with the times of the first and the last one, and their number. A call that finds something is always recorded.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t, help_heading = "Recorder")]
    pub polls: Polls,

    /// Keep only the latest events, as many as fit into --memory
    #[arg(long, help_heading = "Recorder")]
    pub ring: bool,

    /// With --ring: when a process receives this signal (USR1, USR2, HUP, ...), the events in its ring are kept permanently
    #[arg(long, value_name = "NAME", requires = "ring", value_parser = signal, help_heading = "Recorder")]
    pub on_signal: Option<i32>,

    /// Sample the utilisation of all nodes at the same times, every TIME (100ms); samples later than BOUND (default: a tenth of TIME) are discarded
    ///
    /// The shares of the cores' time and of the network links' capacity that were used since the previous sample become metrics of the nodes. One thread on each node
    /// takes the samples.
    #[arg(long, value_name = "TIME[,BOUND]", value_parser = sampling, help_heading = "Recorder")]
    pub sample: Option<String>,

    /// Start recording at time=5s after MPI_Init, at the first begin of a user-defined region=NAME, or at its N-th begin, iteration=NAME:N
    #[arg(long, value_name = "WHEN", value_parser = moment, help_heading = "Recorder")]
    pub start: Option<String>,

    /// Stop recording at time=8s after MPI_Init, or at the end of region=NAME or iteration=NAME:N
    #[arg(long, value_name = "WHEN", value_parser = moment, help_heading = "Recorder")]
    pub stop: Option<String>,
}

/// Which polls in vain are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Polls {
    /// All but the first ones in a row are joined.
    #[default]
    Joined,
    /// Each of them.
    All,
}

impl RecorderOptions {
    /// The environment of the recorder.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let list = [
            ("CLC_RECORDER_MEMORY", self.memory.map(|bytes| bytes.to_string())),
            ("CLC_RECORDER_POLLS", (self.polls == Polls::All).then(|| "all".to_owned())),
            ("CLC_RECORDER_RING", self.ring.then(|| "1".to_owned())),
            ("CLC_RECORDER_SIGNAL", self.on_signal.map(|signal| signal.to_string())),
            ("CLC_RECORDER_SAMPLE", self.sample.clone()),
            ("CLC_RECORDER_START", self.start.clone()),
            ("CLC_RECORDER_STOP", self.stop.clone()),
        ];
        list.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

fn size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes, with or without K, M or G".to_owned();
    let (number, factor) = match text.char_indices().last().ok_or_else(wrong)? {
        (place, 'K' | 'k') => (&text[..place], 1 << 10),
        (place, 'M' | 'm') => (&text[..place], 1 << 20),
        (place, 'G' | 'g') => (&text[..place], 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)?;
    match bytes {
        0..0x1_0000 => Err("must be at least 64K".to_owned()),
        0x1_0000..=0x1_0000_0000 => Ok(bytes),
        _ => Err("must be at most 4G".to_owned()),
    }
}

fn signal(text: &str) -> Result<i32, String> {
    let known = [
        ("HUP", libc::SIGHUP),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("ALRM", libc::SIGALRM),
        ("CONT", libc::SIGCONT),
        ("URG", libc::SIGURG),
        ("WINCH", libc::SIGWINCH),
    ];
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let found = known.iter().find(|(known, _)| *known == name).map(|&(_, number)| number);
    found.ok_or_else(|| format!("expected one of {}", known.map(|(name, _)| name).join(", ")))
}

/// Shortest period of samples in nanoseconds: the kernel counts the cores' time in hundredths of a second.
const SHORTEST: u64 = 20_000_000;

/// Checks a period of samples and how late they may be; returns both in nanoseconds, as the recorder reads them.
fn sampling(text: &str) -> Result<String, String> {
    let nanoseconds = |text: &str| Ok::<u64, String>(Duration::parse(text)?.picoseconds() / PICOSECONDS);
    let (period, bound) = match text.split_once(',') {
        Some((period, bound)) => (nanoseconds(period)?, nanoseconds(bound)?),
        None => (nanoseconds(text)?, nanoseconds(text)? / 10),
    };
    match (period, bound) {
        (..SHORTEST, _) => Err("the period must be at least 20 ms".to_owned()),
        (_, 0) => Err("the bound must be above 0".to_owned()),
        _ if bound > period / 2 => Err("the bound must be at most half of the period".to_owned()),
        _ => Ok(format!("{period}:{bound}")),
    }
}

/// Checks a moment; returns it as the recorder reads it: without an equals sign, with which Open MPI would not hand it on to other nodes.
fn moment(text: &str) -> Result<String, String> {
    let wrong = || "expected time=5s, region=NAME or iteration=NAME:N".to_owned();
    match text.split_once('=').ok_or_else(wrong)? {
        ("time", time) => Ok(format!("time:{}", Duration::parse(time)?.picoseconds() / PICOSECONDS)),
        ("region", name) if !name.is_empty() => Ok(format!("region:{name}")),
        ("iteration", text) => match text.rsplit_once(':').map(|(name, number)| (name, number.parse::<u64>())) {
            Some((name, Ok(number))) if !name.is_empty() && number > 0 => Ok(format!("iteration:{name}:{number}")),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("8M"), Ok(8 << 20));
        assert_eq!(size("1000000"), Ok(1_000_000));
        for wrong in ["", "K", "1K", "-1", "5T", "99999999999999999999", "5G", "1é"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal("USR1"), signal("SIGUSR1"));
        assert!(signal("KILL").is_err() && signal("").is_err());
    }

    #[test]
    fn periods_of_samples_are_checked() {
        assert_eq!(sampling("100ms").as_deref(), Ok("100000000:10000000"));
        assert_eq!(sampling("1s,200us").as_deref(), Ok("1000000000:200000"));
        for wrong in ["", "0s", "1ms", "100ms,0s", "100ms,60ms", "often", "100ms,", ",1ms"] {
            assert!(sampling(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_checked() {
        assert_eq!(moment("time=1.5s").as_deref(), Ok("time:1500000000"));
        assert_eq!(moment("time=20min").as_deref(), Ok("time:1200000000000"));
        assert_eq!(moment("region=solve").as_deref(), Ok("region:solve"));
        assert_eq!(moment("iteration=a:b:3").as_deref(), Ok("iteration:a:b:3"));
        for wrong in [
            "",
            "solve",
            "time=",
            "time=soon",
            "time=-1s",
            "region=",
            "iteration=solve",
            "iteration=solve:0",
            "iteration=:1",
        ] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
