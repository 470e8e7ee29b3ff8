//! What a program gives to the monitor of its job, and asks it: data of its own, which all nodes see, what the sensors of the nodes read, and formulas over both.
//! The same for C and C++: `clc_monitor.h`.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! // After MPI_Init. Where the job is not monitored, there is nobody to connect to.
//! if let Ok(mut monitor) = clc_marks::monitor::Monitor::connect() {
//!     monitor.send("queue", "17")?;
//!     for datum in monitor.receive("queue")? {
//!         println!("node {}: {}", datum.name, datum.value);
//!     }
//!     let spread = monitor.value("load1_max")?;
//!     println!("{spread:?}");
//! }
//! # Ok(())
//! # }
//! ```

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long an agent that is being started is waited for, and how long an answer. Chosen by hand: a shorter time gives up on a busy node, a longer
/// one holds up the application if there is no agent.
const PATIENCE: Duration = Duration::from_secs(5);
/// No line of an answer is longer. Chosen by hand: more than a key, a node and numbers take; a limit for what is no answer.
const LINE: u64 = 1 << 10;

/// A connection to the agent of this node.
#[derive(Debug)]
pub struct Monitor(BufReader<UnixStream>);

/// What a node has given, or what its sensors read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datum {
    /// The number of its agent.
    pub node: u32,
    /// Its name.
    pub name: String,
    /// What it says.
    pub value: String,
}

fn socket() -> Option<PathBuf> {
    let states = std::env::var_os("CLC_RECORDER_STATE").filter(|name| !name.is_empty())?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(PathBuf::from(states).join(host.trim().replace('/', "_")).join("socket"))
}

impl Monitor {
    /// Connects to the agent of this node.
    ///
    /// # Errors
    /// The job is not monitored, or its agent is not there after five seconds.
    pub fn connect() -> Result<Monitor> {
        let path = socket().ok_or(ErrorKind::NotFound)?;
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(&path) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(PATIENCE / 100),
            }
        };
        Monitor::over(stream)
    }

    fn over(stream: UnixStream) -> Result<Monitor> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Monitor(BufReader::new(stream)))
    }

    fn ask(&mut self, word: &str, name: &str, value: Option<&str>) -> Result<()> {
        if name.contains([' ', '\n']) {
            return Err(Error::new(ErrorKind::InvalidInput, "a key has no blanks"));
        }
        let mut bytes = format!("{word} {name}");
        if let Some(value) = value {
            bytes += &format!(" {}\n{value}", value.len());
        } else {
            bytes.push('\n');
        }
        self.0.get_mut().write_all(bytes.as_bytes())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        (&mut self.0).take(LINE).read_line(&mut line)?;
        line.strip_suffix('\n').map(str::to_owned).ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    fn each(&mut self) -> Result<Vec<Datum>> {
        let mut data = Vec::new();
        loop {
            let line = self.line()?;
            if line == "end" {
                return Ok(data);
            }
            let words: Vec<&str> = line.split(' ').collect();
            let datum = match words[..] {
                [node, name, length] => {
                    node.parse().ok().zip(length.parse::<u64>().ok()).map(|(node, length)| (node, name, length))
                }
                _ => None,
            };
            let Some((node, name, length)) = datum.filter(|datum| datum.2 <= LINE) else {
                return Err(Error::new(ErrorKind::InvalidData, line));
            };
            let mut value = String::new();
            (&mut self.0).take(length).read_to_string(&mut value)?;
            data.push(Datum { node, name: name.to_owned(), value });
        }
    }

    /// Gives a text under a key without blanks, in place of what was there. It belongs to the node: other nodes see it some tenths of a second later. All keys and
    /// values of a node have room in 1,000 bytes. A number is a sensor of the program's own, which formulas know as `data_KEY_mean`, `data_KEY_max` and so on.
    ///
    /// # Errors
    /// It is too long; the agent has gone.
    pub fn send(&mut self, key: &str, value: &str) -> Result<()> {
        self.ask("put", key, Some(value))?;
        let answer = self.line()?;
        if answer == "ok" { Ok(()) } else { Err(Error::new(ErrorKind::InvalidInput, answer)) }
    }

    /// What all nodes have given under a key, this one included.
    ///
    /// # Errors
    /// The agent has gone.
    pub fn receive(&mut self, key: &str) -> Result<Vec<Datum>> {
        self.ask("get", key, None)?;
        self.each()
    }

    /// What the sensors of the nodes of this group read: `load1`, `cpu`, `memory` and others.
    ///
    /// # Errors
    /// The agent has gone.
    pub fn read(&mut self, quantity: &str) -> Result<Vec<Datum>> {
        self.ask("read", quantity, None)?;
        self.each()
    }

    /// The value of a formula, or of an aggregate such as `load1_max`; none if it is not known.
    ///
    /// # Errors
    /// The agent has gone.
    pub fn value(&mut self, name: &str) -> Result<Option<f64>> {
        self.ask("value", name, None)?;
        Ok(self.line()?.parse().ok())
    }

    /// Ends the connection, as dropping it does.
    pub fn stop(self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection to somebody who says this, whatever is asked; and what was asked.
    fn with(answer: &'static str, ask: impl FnOnce(&mut Monitor)) -> String {
        let (client, mut server) = UnixStream::pair().unwrap();
        server.write_all(answer.as_bytes()).unwrap();
        let mut monitor = Monitor::over(client).unwrap();
        ask(&mut monitor);
        monitor.stop();
        let mut asked = String::new();
        server.read_to_string(&mut asked).unwrap();
        asked
    }

    #[test]
    fn requests_and_answers_are_those_of_the_agent() {
        let asked = with("ok\nno: too long\n", |monitor| {
            monitor.send("queue", "1\n2").unwrap();
            assert!(monitor.send("queue", "3").is_err() && monitor.send("a b", "3").is_err());
        });
        assert_eq!(asked, "put queue 3\n1\n2put queue 1\n3");
        with("0 n0 3\n1\n21 n1 1\n7end\n1.5\nno: not known yet\n", |monitor| {
            let data = monitor.receive("queue").unwrap();
            let datum = |node, name: &str, value: &str| Datum { node, name: name.into(), value: value.into() };
            assert_eq!(data, [datum(0, "n0", "1\n2"), datum(1, "n1", "7")]);
            assert_eq!(monitor.value("spread").unwrap(), Some(1.5));
            assert_eq!(monitor.value("spread").unwrap(), None);
        });
        with("nonsense\n", |monitor| assert!(monitor.read("load1").is_err()));
    }
}
