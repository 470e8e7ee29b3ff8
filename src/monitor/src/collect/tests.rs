//! Agents that are slow, silent or gone, and what all of them say.

use super::asking::{Expectations, LONG, PATIENCE, SHORT, ask_all};
use super::*;
use crate::jobs::About;
use crate::query::{AgentTraffic, PeerAgent, SystemClocks, answer};
use std::net::TcpListener;
use std::time::Instant;

fn report(number: u32, remarks: &[(f64, u32, &str)]) -> AgentReport {
    let remark = |&(time, number, what): &(f64, u32, &str)| ClockRemark {
        time,
        number,
        host: format!("n{number}"),
        what: what.to_owned(),
        clock: "raw clock".to_owned(),
    };
    AgentReport {
        number,
        host: format!("n{number}"),
        time: 100.0,
        ranks: Vec::new(),
        members: Vec::new(),
        data: Vec::new(),
        resources: Vec::new(),
        traffic: AgentTraffic::default(),
        job: Vec::new(),
        formulas: Vec::new(),
        clocks: SystemClocks::default(),
        remarks: remarks.iter().map(remark).collect(),
    }
}

#[test]
fn what_several_say_of_a_clock_is_said_once() {
    let seen = Collected {
        reports: vec![
            report(0, &[(50.0, 2, "jumped forward by 5.0 ms"), (80.0, 2, "jumped back by 1.0 ms")]),
            report(1, &[(52.0, 2, "jumped forward by 5.1 ms"), (53.0, 2, "stands still"), (53.0, 3, "jumped back")]),
        ],
        ..Collected::default()
    };
    let words = seen.clock_words();
    let said: Vec<_> = words.iter().map(|word| (word.remark.number, word.agents, word.remark.time)).collect();
    assert_eq!(said, [(2, 2, 50.0), (2, 1, 53.0), (3, 1, 53.0), (2, 1, 80.0)]);
    assert!(seen.text().contains("the raw clock of n2 jumped forward by 5.0 ms, "), "{}", seen.text());
    assert!(seen.text().contains("(reported by 2 of 2 agents)"));
}

#[test]
fn data_of_nodes_are_told_up_to_a_few() {
    // Each agent knows those of all nodes.
    let data: Vec<(String, String)> = (0..20).map(|number| (format!("n{number}: phase"), number.to_string())).collect();
    let reports = [0, 1].map(|number| AgentReport { data: data.clone(), ..report(number, &[]) }).to_vec();
    assert_eq!(reports[1].own_data(), ["phase = 1"]);
    let text = Collected { reports, ..Collected::default() }.text();
    assert!(text.starts_with("\nn0: phase = 0\nn1: phase = 1\n"), "{text}");
    assert!(text.ends_with("\nn15: phase = 15\nand 4 more data of nodes\n"), "{text}");
}

/// An agent with that number, which answers each question after so long with the next of these states of agent 1, and goes on with the last; without any it is silent.
fn agent(job: &Job, number: u32, states: &'static [&'static str], after: Duration) -> AgentFile {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let query = listener.local_addr().expect("its address");
    let key = job.key;
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        let states = states.iter().chain(std::iter::repeat_with(|| states.last()).flatten());
        let mut states = states.peekable();
        for stream in listener.incoming().flatten() {
            let Some(state) = states.next() else {
                silent.push(stream);
                continue;
            };
            let member = PeerAgent {
                number: 1,
                host: "n1".to_owned(),
                liveness: (*state).to_owned(),
                seconds: 1.5,
                clock: None,
            };
            let said = AgentReport { members: vec![member], ..report(number, &[]) };
            std::thread::sleep(after);
            let _ = answer(stream, &key, |_| serde_json::to_vec(&said).expect("JSON"));
        }
    });
    let host = format!("n{number}");
    AgentFile { number, host, process: 1, gossip: query, query, begun: 0.0, ended: None, ranks: vec![number] }
}

fn job(directory: &std::path::Path) -> Job {
    let about = About {
        id: String::new(),
        name: String::new(),
        command: String::new(),
        host: String::new(),
        begun: 0.0,
        interface: None,
        interval: 0.1,
        nodes: None,
        alarm: None,
    };
    Job::create(&directory.join("job"), about).expect("a job")
}

/// Who of agents 0 and 1 has answered in time, who is gone, and how long that took: 0 answers at once, with these states of 1 in turn.
fn asked(states: &'static [&'static str], slow: Option<Duration>) -> (Vec<bool>, BTreeSet<u32>, Duration) {
    let directory = tempfile::tempdir().expect("a directory");
    let job = job(directory.path());
    let other: &[&str] = if slow.is_some() { &["alive"] } else { &[] };
    let agents = [agent(&job, 0, states, Duration::ZERO), agent(&job, 1, other, slow.unwrap_or_default())];
    let (begun, mut known) = (Instant::now(), Expectations::default());
    let answers = ask_all(&job, &agents, &Question::Report(Vec::new()), &mut known);
    (answers.iter().map(|(_, answer)| answer.is_some()).collect(), known.gone, begun.elapsed())
}

#[test]
fn a_silent_agent_is_not_waited_for_once_others_call_it_dead() {
    let (answered, gone, took) = asked(&["alive", "suspect", "dead"], None);
    assert_eq!((answered, gone), (vec![true, false], BTreeSet::from([1])));
    assert!(took < PATIENCE, "{took:?}");
}

#[test]
fn a_slow_agent_is_waited_for_as_long_as_others_call_it_alive() {
    let slow = PATIENCE + SHORT + Duration::from_millis(400);
    let (answered, ..) = asked(&["alive"], Some(slow));
    assert_eq!(answered, [true, true]);
}

/// The only agent of a job on a busy machine has nobody who calls it alive.
#[test]
fn a_slow_agent_of_a_node_that_accepts_connections_is_waited_for() {
    let slow = PATIENCE + SHORT + Duration::from_millis(400);
    let (answered, gone, took) = asked(&["suspect"], Some(slow));
    assert_eq!((answered, gone), (vec![true, true], BTreeSet::new()), "{took:?}");
}

#[test]
fn an_agent_whose_node_cannot_be_reached_is_waited_for_only_if_others_call_it_alive() {
    let (mut known, waits) = (Expectations::default(), [1]);
    assert_eq!(known.patience(waits.iter()), SHORT + LONG, "it has not been found out");
    known.unreached.insert(1);
    assert_eq!(known.patience(waits.iter()), SHORT);
    known.alive.insert(1);
    assert_eq!(known.patience(waits.iter()), SHORT + LONG);
    known.gone.insert(1);
    assert_eq!(known.patience(waits.iter()), SHORT);
}

/// An address of the documentation block, which nobody has.
#[test]
fn a_node_that_does_not_accept_a_connection_is_given_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let job = job(directory.path());
    let nowhere = "192.0.2.1:9".parse().expect("an address");
    let lost = AgentFile { query: nowhere, ..agent(&job, 1, &[], Duration::ZERO) };
    let agents = [agent(&job, 0, &["suspect"], Duration::ZERO), lost];
    let begun = Instant::now();
    let answers = ask_all(&job, &agents, &Question::Report(Vec::new()), &mut Expectations::default());
    assert_eq!(answers.iter().map(|(_, answer)| answer.is_some()).collect::<Vec<_>>(), [true, false]);
    assert!(begun.elapsed() < PATIENCE + SHORT + Duration::from_millis(500), "{:?}", begun.elapsed());
}

/// As one does that answers as many others as it can.
#[test]
fn an_agent_that_turns_a_question_away_is_asked_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let job = job(directory.path());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let query = listener.local_addr().expect("its address");
    let key = job.key;
    std::thread::spawn(move || {
        for (place, stream) in listener.incoming().flatten().enumerate() {
            if place > 3 {
                let said = serde_json::to_vec(&report(0, &[])).expect("JSON");
                let _ = answer(stream, &key, |_| said);
            }
        }
    });
    let agent = AgentFile {
        number: 0,
        host: "n0".to_owned(),
        process: 1,
        gossip: query,
        query,
        begun: 0.0,
        ended: None,
        ranks: vec![0],
    };
    agent.write(&job).expect("its file");
    let seen = collect(&job, &BTreeSet::new());
    assert_eq!((seen.alive, seen.snapshot.silent), (1, Vec::new()));
}

#[test]
fn one_who_is_silent_has_been_so_since_it_was_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let job = job(directory.path());
    agent(&job, 0, &[], Duration::ZERO).write(&job).expect("its file");
    let begun = now();
    let (_, second) = twice(&job, Duration::ZERO);
    let node = &second.snapshot.silent[0];
    assert!((begun - 0.01..begun + 1.0).contains(&node.since), "{} s after", node.since - begun);
}
