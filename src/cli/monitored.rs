//! The options of jobs that can be monitored while they run: a recording, a correction.

use clap::Args;
use clc_monitor::jobs::Alarm;
use clc_trace::Duration;
use std::path::PathBuf;

/// Options of jobs that can be monitored: an application that is recorded, a correction.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct MonitoredOptions {
    /// Monitor the job while it runs; `clc-replay watch` shows it
    ///
    /// An agent on each node knows in which MPI call each process is and whether it is alive. Its files are in DIR.monitor, next to the output.
    #[arg(long, help_heading = "Monitor")]
    pub monitor: bool,

    /// Raise an alarm after this time without progress: 60s, or 60s=FILE
    ///
    /// The alarm appends to FILE which rank is missing where; it is also raised when a process ends without MPI_Finalize. Default: alarm.txt in DIR.monitor; no alarm for an application, 10s for a correction.
    #[arg(long, value_name = "TIME[=FILE]", requires = "monitor", value_parser = alarm, help_heading = "Monitor")]
    pub alarm: Option<Alarm>,

    /// Network interface on which the agents listen: its name or address, or a network (10.1.0.0/16)
    ///
    /// Default: the loopback interface if the job has one node, otherwise the first other interface.
    #[arg(long, value_name = "INTERFACE", requires = "monitor", help_heading = "Monitor")]
    pub interface: Option<String>,
}

/// Picoseconds per second.
const PICOSECONDS: f64 = 1e12;

fn alarm(text: &str) -> Result<Alarm, String> {
    let (time, file) = text.split_once('=').unwrap_or((text, "alarm.txt"));
    let seconds = Duration::parse(time)?.picoseconds() as f64 / PICOSECONDS;
    if seconds < 1.0 {
        return Err("must be at least 1s".to_owned());
    }
    if file.is_empty() {
        return Err("no file name after =".to_owned());
    }
    // Of a file that is named it is known where it is meant to be; the other one goes to the job.
    let named = text.contains('=').then(|| std::path::absolute(file));
    let file = named.transpose().map_err(|error| error.to_string())?.unwrap_or_else(|| PathBuf::from(file));
    Ok(Alarm { seconds, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_read() {
        assert_eq!(alarm("60s"), Ok(Alarm { seconds: 60.0, file: "alarm.txt".into() }));
        assert_eq!(alarm("15min").map(|alarm| alarm.seconds), Ok(900.0));
        assert_eq!(alarm("1.5s=/tmp/a=b"), Ok(Alarm { seconds: 1.5, file: "/tmp/a=b".into() }));
        assert!(alarm("60s=here").unwrap().file.is_absolute());
        for wrong in ["", "60", "10ms", "-5s", "60s=", "soon", "99999999min"] {
            assert!(alarm(wrong).is_err(), "{wrong}");
        }
    }
}
