//! `clc-replay watch JOB --metrics ADDRESS`: what is known of a running job, for Prometheus. Only `GET /metrics` is answered; nobody can make it wait or remember more than a little.

use clc_monitor::collect::{Collected, twice};
use clc_monitor::diagnose::{Diagnosis, diagnose};
use clc_monitor::jobs::{AgentFile, Job};
use clc_trace::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between the two snapshots of a look. Chosen by hand: what moves at all shows in it; a longer one delays every answer.
const PAUSE: Duration = Duration::from_millis(250);
/// Whoever asks within that time after another one gets the same. Chosen by hand: shorter lets several scrapers ask all agents again, longer shows an
/// older state.
const FRESH: Duration = Duration::from_secs(1);
/// How long somebody may take to ask, and to take the answer. Chosen by hand: shorter refuses slow networks, longer lets those who say nothing keep
/// one of the [`ANSWERS`].
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request. Chosen by hand: any scraper's is shorter; more would be memory for whoever connects.
const REQUEST: usize = 8 << 10;
/// Requests that are answered at the same time. Chosen by hand: each is a thread, and all but the first wait for the same snapshot.
const ANSWERS: usize = 8;

/// What was last seen, and when.
type LatestSnapshot = Mutex<Option<(Instant, Arc<String>)>>;

/// Serves the metrics of a job there, until its agents are gone.
///
/// # Errors
/// The address cannot be used.
pub(crate) fn serve_metrics(job: &Job, address: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<()> {
    let failed = |error: std::io::Error| Error::new(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?);
    let (latest, job) = (Arc::new(LatestSnapshot::default()), Arc::new(job.clone()));
    let of_job = Arc::clone(&job);
    let accepting = move || {
        let answering = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                std::thread::sleep(PAUSE);
                continue;
            };
            // Whoever is too much is not answered.
            if answering.load(Ordering::Relaxed) >= ANSWERS {
                continue;
            }
            answering.fetch_add(1, Ordering::Relaxed);
            let (job, latest, counted) = (Arc::clone(&of_job), Arc::clone(&latest), Arc::clone(&answering));
            let answer = move || {
                // If it fails, the one who asked is gone.
                let _ = answer(stream, || current(&job, &latest));
                counted.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new().spawn(answer).is_err() {
                answering.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::Builder::new().name("metrics".into()).spawn(accepting).map_err(failed)?;
    while is_there(&job) {
        std::thread::sleep(FRESH);
    }
    Ok(())
}

/// Whether the job is still that one, and an agent of it has not ended.
fn is_there(job: &Job) -> bool {
    let agents = AgentFile::all(job);
    Job::open(&job.directory).is_ok_and(|now| now.about.id == job.about.id)
        && (agents.is_empty() || agents.iter().any(|agent| agent.ended.is_none()))
}

fn current(job: &Job, latest: &LatestSnapshot) -> Arc<String> {
    let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
    match &*latest {
        Some((time, text)) if time.elapsed() < FRESH => Arc::clone(text),
        _ => {
            let (first, second) = twice(job, PAUSE);
            let found = diagnose(Some(&first.snapshot), &second.snapshot);
            let text = Arc::new(text(&job.about.name, &second, &found));
            *latest = Some((Instant::now(), Arc::clone(&text)));
            text
        }
    }
}

/// Answers one request.
fn answer(mut stream: TcpStream, metrics: impl FnOnce() -> Arc<String>) -> std::io::Result<()> {
    let (begun, mut request) = (Instant::now(), Vec::new());
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() || request.len() > REQUEST {
            return Ok(());
        }
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut part)? {
            0 => return Ok(()),
            length => request.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
    }
    let line = String::from_utf8_lossy(request.split(|&byte| byte == b'\r').next().unwrap_or_default()).into_owned();
    let mut words = line.split(' ');
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", metrics()),
        (Some("GET"), _) => ("404 Not Found", Arc::new("only /metrics is served\n".to_owned())),
        _ => ("405 Method Not Allowed", Arc::new("only GET\n".to_owned())),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nAllow: GET\r\nConnection: close\r\n\r\n"
    );
    // Each write may wait; all of them together not for long either.
    let begun = Instant::now();
    let mut rest = [head.as_bytes(), body.as_bytes()].concat();
    while !rest.is_empty() && begun.elapsed() < PATIENCE {
        stream.set_write_timeout(Some(PATIENCE.saturating_sub(begun.elapsed()).max(Duration::from_millis(1))))?;
        let written = stream.write(&rest)?;
        rest.drain(..written);
    }
    Ok(())
}

/// Metrics in the text format of Prometheus, one family after the other.
#[derive(Default)]
struct Families {
    /// Kind and meaning, and the samples by their labels, by name. Of two with the same labels, which nobody would take, the later one counts.
    all: BTreeMap<&'static str, (&'static str, &'static str, BTreeMap<String, f64>)>,
}

impl Families {
    fn add(&mut self, about: (&'static str, &'static str, &'static str), labels: &[(&str, &str)], value: f64) {
        let (name, kind, help) = about;
        let (.., samples) = self.all.entry(name).or_insert((kind, help, BTreeMap::new()));
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        samples.insert(labels.join(","), value);
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, (kind, help, samples)) in &self.all {
            // Writing to memory does not fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        }
        text
    }
}

/// A value of a label, as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn text(job: &str, seen: &Collected, found: &Diagnosis) -> String {
    const VERDICT: (&str, &str, &str) = ("clc_job_verdict", "gauge", "1 for the current verdict on the job");
    const QUIET: (&str, &str, &str) =
        ("clc_job_quiet_seconds", "gauge", "Time since an MPI call last returned on any rank");
    const RANKS: (&str, &str, &str) = ("clc_job_ranks", "gauge", "Number of ranks in a state");
    const WAITS: (&str, &str, &str) =
        ("clc_rank_state_seconds", "gauge", "Time for which a rank has been in its state");
    const MOVES: (&str, &str, &str) =
        ("clc_rank_calls_total", "counter", "MPI calls of a rank that have made progress");
    const UP: (&str, &str, &str) = ("clc_node_up", "gauge", "Whether the agent of a node answers");
    const RESOURCE: (&str, &str, &str) =
        ("clc_node_resource", "gauge", "Resource of a node that is available or in use");
    const AHEAD: (&str, &str, &str) =
        ("clc_node_clock_ahead_seconds", "gauge", "How far the system time of a node is ahead of that of another");
    const BOUND: (&str, &str, &str) =
        ("clc_node_clock_bound_seconds", "gauge", "Error bound of clc_node_clock_ahead_seconds");
    const PACKETS: (&str, &str, &str) = ("clc_agent_packets_total", "counter", "Gossip packets of an agent");
    const BYTES: (&str, &str, &str) = ("clc_agent_sent_bytes_total", "counter", "Gossip bytes that an agent has sent");
    const VALUE: (&str, &str, &str) =
        ("clc_job_value", "gauge", "Aggregates over the nodes of the job, and the user's formulas");
    const DISTANCE: (&str, &str, &str) = (
        "clc_node_clock_distance_seconds",
        "gauge",
        "How far the system time of a node is ahead of the median of all nodes",
    );
    let mut families = Families::default();
    let own = ("job", job);
    families.add(VERDICT, &[own, ("verdict", super::json::word(found.verdict))], 1.0);
    families.add(QUIET, &[own], found.quiet);
    let mut states: BTreeMap<&str, f64> = BTreeMap::new();
    for row in &found.rows {
        *states.entry(&row.state).or_default() += 1.0;
        let name = row.name();
        let labels = [own, ("rank", &name), ("node", &row.host)];
        families.add(MOVES, &labels, row.moves as f64);
        families.add(WAITS, &[labels[0], labels[1], labels[2], ("state", &row.state)], row.seconds);
    }
    states.into_iter().for_each(|(state, count)| families.add(RANKS, &[own, ("state", state)], count));
    for report in &seen.reports {
        let (number, traffic) = (report.number.to_string(), &report.traffic);
        let labels = [own, ("node", &report.host), ("agent", &number)];
        families.add(UP, &labels[..2], 1.0);
        for (name, value, unit) in &report.resources {
            families.add(RESOURCE, &[labels[0], labels[1], ("name", name), ("unit", unit)], *value);
        }
        let counts = [traffic.sent, traffic.received, traffic.forged, traffic.replayed];
        for (what, count) in ["sent", "received", "forged", "replayed"].into_iter().zip(counts) {
            families.add(PACKETS, &[labels[0], labels[1], labels[2], ("what", what)], count as f64);
        }
        families.add(BYTES, &labels, traffic.sent_bytes as f64);
    }
    seen.snapshot.silent.iter().for_each(|node| families.add(UP, &[own, ("node", &node.host)], 0.0));
    if let Some(report) = seen.best_informed() {
        report
            .job
            .iter()
            .for_each(|(name, value, unit)| families.add(VALUE, &[own, ("name", name), ("unit", unit)], *value));
        for formula in &report.formulas {
            let labels = [own, ("name", &formula.name), ("unit", "")];
            formula.value.into_iter().for_each(|value| families.add(VALUE, &labels, value));
        }
        for &(number, distance, _) in &report.clocks.distances {
            let host = seen.reports.iter().find(|known| known.number == number).map(|known| known.host.as_str());
            host.into_iter().for_each(|host| families.add(DISTANCE, &[own, ("node", host)], distance));
        }
    }
    // As the first one that knows others sees them.
    let from = seen.reports.iter().find(|report| !report.members.is_empty());
    for (from, known) in from.into_iter().flat_map(|from| from.members.iter().map(move |known| (from, known))) {
        if let Some((ahead, bound)) = known.clock {
            let labels = [own, ("node", &known.host), ("of", &from.host)];
            families.add(AHEAD, &labels, ahead);
            families.add(BOUND, &labels, bound);
        }
    }
    families.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is answered to these bytes, and how long it took.
    fn asked(bytes: &[u8]) -> (String, Duration) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        let begun = Instant::now();
        let answering = std::thread::spawn(move || answer(stream, || Arc::new("metrics\n".to_owned())));
        // It may have had enough before all is sent.
        let _ = client.write_all(bytes);
        let _ = answering.join().unwrap();
        let mut said = Vec::new();
        let _ = client.read_to_end(&mut said);
        (String::from_utf8_lossy(&said).into_owned(), begun.elapsed())
    }

    #[test]
    fn only_get_metrics_is_answered() {
        let (said, _) = asked(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\nmetrics\n"), "{said}");
        assert!(asked(b"GET / HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 404"));
        assert!(asked(b"GET /metrics/../key HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 404"));
        assert!(asked(b"POST /metrics HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 405"));
        assert!(asked(b"\xff\x00\r\n\r\n").0.starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn who_does_not_ask_is_not_waited_for() {
        let (said, took) = asked(b"GET /metrics HTTP/1.1\r\n");
        assert!(said.is_empty() && took < 2 * PATIENCE, "{said} {took:?}");
        let (said, took) = asked(&[b'a'; 3 * REQUEST]);
        assert!(said.is_empty() && took < PATIENCE, "{said} {took:?}");
    }

    #[test]
    fn labels_are_escaped_and_families_stand_together() {
        let mut families = Families::default();
        let [one, other] = [("one", "gauge", "first"), ("other", "counter", "second")];
        families.add(one, &[("node", "a\"b\\c\nd")], 1.0);
        families.add(other, &[], 0.5);
        families.add(one, &[("node", "e")], 2.0);
        let text = families.text();
        let expected = "# HELP one first\n# TYPE one gauge\none{node=\"a\\\"b\\\\c\\nd\"} 1\none{node=\"e\"} 2\n";
        assert!(text.starts_with(expected) && text.ends_with("other{} 0.5\n"), "{text}");
    }
}
