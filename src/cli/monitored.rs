//! The options of jobs that can be watched while they run: a recording, a correction.

use clap::Args;
use clc_monitor::jobs::Alarm;
use clc_trace::Duration;
use std::path::PathBuf;

/// Options of jobs that can be watched: an application that is recorded, a correction.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct MonitoredOptions {
    /// Have the job watched while it runs: see `clc-replay watch`
    ///
    /// An agent on each node knows what each process does in MPI and whether it lives. What belongs to it is in DIR.monitor, beside the output.
    #[arg(long, help_heading = "Monitor")]
    pub monitor: bool,

    /// Write who is missing where when nothing has moved for so long: 60s, or 60s=FILE
    ///
    /// Also when a process ends without MPI_Finalize. Default: alarm.txt in DIR.monitor; no alarm for an application, 10s for a correction.
    #[arg(long, value_name = "TIME[=FILE]", requires = "monitor", value_parser = alarm, help_heading = "Monitor")]
    pub alarm: Option<Alarm>,

    /// Where agents listen: the name or address of a network interface, or a network (10.1.0.0/16)
    ///
    /// Default: the loopback interface if the job has one node, else the first other one.
    #[arg(long, value_name = "INTERFACE", requires = "monitor", help_heading = "Monitor")]
    pub interface: Option<String>,
}

/// Picoseconds per second.
const PICOSECONDS: f64 = 1e12;

fn alarm(text: &str) -> Result<Alarm, String> {
    let (time, file) = text.split_once('=').unwrap_or((text, "alarm.txt"));
    let seconds = Duration::parse(time)?.picoseconds() as f64 / PICOSECONDS;
    if seconds < 1.0 {
        return Err("at least 1s".to_owned());
    }
    if file.is_empty() {
        return Err("no file after =".to_owned());
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
