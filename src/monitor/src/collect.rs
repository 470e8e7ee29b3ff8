//! Gathers what all agents of a job know.

use crate::diagnose::{SilentNode, Snapshot, duration};
use crate::jobs::{AgentFile, Job, read_json};
use crate::query::{AgentReport, ClockRemark, Question, ask, ask_reached};
use crate::stacks::ProcessStacks;
use crate::state::{Life, now};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long the node of an agent may take to accept a connection.
const PATIENCE: Duration = Duration::from_millis(800);
/// How long an agent may take to answer if its node accepts connections, or others call it alive: then it is not silent, but slow, as all are on a machine that is busy. Should it die
/// meanwhile, others say that, or its kernel refuses the connection.
const LONG: Duration = Duration::from_millis(2_900);
/// The same of one that has not answered a moment ago, or that others call dead: if it is there again, it answers at once.
const SHORT: Duration = Duration::from_millis(100);
/// How often somebody is asked whether it calls those dead who do not answer.
const AGAIN: Duration = Duration::from_millis(50);
/// How long it may take to tell stacks: longer than it may take to find them.
const STACKS: Duration = Duration::from_secs(5);
/// So many agents are asked at the same time.
const AT_ONCE: usize = 64;

/// What all agents of a job say, at about the same time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Collected {
    /// The states of all ranks.
    pub snapshot: Snapshot,
    /// What each agent said; of those that have ended what they knew last.
    pub reports: Vec<AgentReport>,
    /// Number of agents that are there.
    pub alive: usize,
    /// Those that have not answered, and since when they have been asked: seconds since 1970.
    pub unheard: BTreeMap<u32, f64>,
}

/// A clock that has failed, as agents say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClockWord {
    /// What is wrong, as the agent says who noticed first.
    pub remark: ClockRemark,
    /// How many agents say so.
    pub agents: usize,
}

/// What agents say of one clock within so many seconds is the same: their windows begin when they like.
const SAME: f64 = 15.0;

impl Collected {
    /// What the agent knows that knows most nodes: of the whole job there are many who know.
    pub fn best_informed(&self) -> Option<&AgentReport> {
        self.reports.iter().max_by_key(|report| report.members.len())
    }

    /// Clocks that have failed, the latest last.
    pub(crate) fn clock_words(&self) -> Vec<ClockWord> {
        let mut remarks: Vec<&ClockRemark> = self.reports.iter().flat_map(|report| &report.remarks).collect();
        remarks.sort_by(|one, other| one.time.total_cmp(&other.time));
        let kind = |remark: &ClockRemark| remark.what.split(' ').next().map(str::to_owned);
        let mut words: Vec<ClockWord> = Vec::new();
        for remark in remarks {
            let same = |word: &&mut ClockWord| {
                let known = &word.remark;
                (known.number, &known.clock, kind(known)) == (remark.number, &remark.clock, kind(remark))
                    && remark.time - known.time < SAME
            };
            match words.iter_mut().find(same) {
                Some(word) => word.agents += 1,
                None => words.push(ClockWord { remark: remark.clone(), agents: 1 }),
            }
        }
        words
    }

    /// Formulas and clocks as lines of text; nothing if there is nothing to say.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for formula in self.best_informed().into_iter().flat_map(|report| &report.formulas) {
            let value = formula.value.map_or_else(|| "not known".to_owned(), |value| format!("{value:.6}"));
            text += &format!("\n{} = {value} ({})\n", formula.name, formula.formula);
        }
        for ClockWord { remark, agents } in self.clock_words() {
            let ago = duration((self.snapshot.time - remark.time).max(0.0));
            let (clock, host, what) = (&remark.clock, &remark.host, &remark.what);
            text += &format!(
                "\nthe {clock} of {host} {what}, {ago} ago (reported by {agents} of {} agents)\n",
                self.reports.len()
            );
        }
        text
    }
}

/// Asks all agents, for the places of ranks in these communicators too.
pub fn collect(job: &Job, comms: &BTreeSet<u64>) -> Collected {
    collect_again(job, comms, &BTreeMap::new())
}

/// What a thread that asks an agent has heard.
enum Heard {
    /// Whether the node of this agent has accepted a connection in time. Only who asks can tell: others do not know whether it got a core to do so.
    Reached(u32, bool),
    /// What the agent at this place says; nothing if it does not answer.
    Answer(usize, Option<AgentReport>),
    /// What an agent that has answered before knows of others by now.
    Again(Option<AgentReport>),
}

/// What is known of agents while some have not answered.
#[derive(Default)]
struct Expectations {
    /// Who is not expected to answer.
    gone: BTreeSet<u32>,
    /// Whom some other agent called alive when it was asked last.
    alive: BTreeSet<u32>,
    /// Whose nodes have not accepted a connection in time.
    unreached: BTreeSet<u32>,
}

impl Expectations {
    fn learn(&mut self, report: &AgentReport) {
        for known in &report.members {
            match known.liveness.as_str() {
                "alive" => self.alive.insert(known.number),
                "dead" => self.gone.insert(known.number),
                _ => self.alive.remove(&known.number),
            };
        }
    }

    /// How long the slowest of these may take.
    fn patience<'a>(&self, mut waits: impl Iterator<Item = &'a u32>) -> Duration {
        let lives = |number: &u32| self.alive.contains(number) || !self.unreached.contains(number);
        let slow = waits.any(|number| !self.gone.contains(number) && lives(number));
        // A little longer than it takes those who ask to give up.
        SHORT + if slow { LONG } else { Duration::ZERO }
    }
}

/// Asks agents at the same time, and waits for their answers: for those that others call alive, or whose nodes can be reached, longer, and no longer than a moment for those that are not expected to
/// answer, because they have not before, or because those who answer call them dead. While somebody is silent, one who has answered is asked again what it
/// knows of it.
fn ask_all(
    job: &Job,
    agents: &[AgentFile],
    question: &Question,
    known: &mut Expectations,
) -> Vec<(AgentFile, Option<AgentReport>)> {
    let (tell, told) = mpsc::channel();
    let mut answers: Vec<(AgentFile, Option<AgentReport>)> = agents.iter().map(|agent| (agent.clone(), None)).collect();
    let mut waits: BTreeMap<usize, u32> = BTreeMap::new();
    for (place, agent) in agents.iter().enumerate() {
        let (job, agent, question, tell) = (job.clone(), agent.clone(), question.clone(), tell.clone());
        waits.insert(place, agent.number);
        std::thread::spawn(move || {
            // Who does not wait for it any more does not hear it.
            let reached = |whether| drop(tell.send(Heard::Reached(agent.number, whether)));
            let _ = tell.send(Heard::Answer(place, report(&job, &agent, &question, reached)));
        });
    }
    let begun = Instant::now();
    // Of those who have answered, the one that is asked again, when, and whether its answer is still awaited.
    let (mut witness, mut asked, mut awaited): (Option<AgentFile>, Instant, bool) = (None, begun, false);
    while !waits.is_empty() {
        let left = known.patience(waits.values()).saturating_sub(begun.elapsed());
        if left.is_zero() {
            break;
        }
        if let Some(agent) = witness.as_ref().filter(|_| !awaited && asked.elapsed() >= AGAIN) {
            (asked, awaited) = (Instant::now(), true);
            let (job, agent, tell) = (job.clone(), agent.clone(), tell.clone());
            std::thread::spawn(move || {
                let again = ask::<AgentReport>(agent.query, &job.key, &Question::Report(Vec::new()), PATIENCE);
                let _ = tell.send(Heard::Again(again.ok()));
            });
        }
        match told.recv_timeout(left.min(AGAIN)) {
            Ok(Heard::Answer(place, answer)) => {
                waits.remove(&place);
                answer.iter().for_each(|report| known.learn(report));
                if answer.is_some() && agents[place].ended.is_none() {
                    witness.get_or_insert_with(|| agents[place].clone());
                }
                answers[place].1 = answer;
            }
            Ok(Heard::Reached(number, false)) => drop(known.unreached.insert(number)),
            Ok(Heard::Reached(number, true)) => drop(known.unreached.remove(&number)),
            Ok(Heard::Again(report)) => {
                awaited = false;
                report.iter().for_each(|report| known.learn(report));
            }
            Err(_) => {}
        }
    }
    answers
}

fn collect_again(job: &Job, comms: &BTreeSet<u64>, unheard: &BTreeMap<u32, f64>) -> Collected {
    let asked_at = now();
    let agents = AgentFile::all(job);
    let question = Question::Report(comms.iter().copied().collect());
    let mut known = Expectations { gone: unheard.keys().copied().collect(), ..Expectations::default() };
    let asked = agents.chunks(AT_ONCE).flat_map(|some| ask_all(job, some, &question, &mut known));
    let answers: Vec<(AgentFile, Option<AgentReport>)> = asked.collect();
    let mut collected = Collected::default();
    let mut silent = Vec::new();
    for (agent, answer) in answers {
        match answer {
            Some(report) => {
                collected.alive += usize::from(agent.ended.is_none());
                collected.reports.push(report);
            }
            None => silent.push(agent),
        }
    }
    let time = now();
    let since_when = |number: u32| unheard.get(&number).copied().unwrap_or(asked_at);
    collected.unheard = silent.iter().map(|agent| (agent.number, since_when(agent.number))).collect();
    silent.retain(|agent| !is_replaced(agent, &collected.reports));
    for agent in silent {
        // Others may have noticed before.
        let known = collected.reports.iter().flat_map(|report| &report.members);
        let longest =
            known.filter(|known| known.number == agent.number && known.liveness != "alive").map(|known| known.seconds);
        let since = (time - longest.fold(0.0, f64::max)).min(since_when(agent.number));
        collected.snapshot.silent.push(SilentNode { host: agent.host, since, ranks: agent.ranks });
    }
    collected.snapshot.time = time;
    collected.snapshot.ranks = collected.reports.iter().flat_map(|report| report.ranks.iter().cloned()).collect();
    collected
}

/// Whether another agent of the same node has seen all that this one had: it was killed, and started anew.
fn is_replaced(agent: &AgentFile, reports: &[AgentReport]) -> bool {
    let sees = |report: &AgentReport, rank: u32| report.ranks.iter().any(|state| state.rank == Some(rank));
    let mut others = reports.iter().filter(|report| report.number != agent.number && report.host == agent.host);
    others.any(|report| agent.ranks.iter().all(|&rank| sees(report, rank)))
}

fn report(job: &Job, agent: &AgentFile, question: &Question, tell: impl Fn(bool)) -> Option<AgentReport> {
    if agent.ended.is_some() {
        return read_json(&AgentFile::last(job, agent.number)).ok();
    }
    let begun = Instant::now();
    loop {
        let mut reached = false;
        let here = || {
            reached = true;
            tell(true);
        };
        match ask_reached(agent.query, &job.key, question, [PATIENCE, LONG], here) {
            Ok(report) => return Some(report),
            Err(error) if !reached && is_late(&error) && begun.elapsed() < LONG => tell(false),
            // It answers as many as it can already.
            Err(error) if is_turned_away(&error) && begun.elapsed() < LONG => std::thread::sleep(AGAIN),
            // It may have ended since its file was read.
            Err(_) => return read_json(&AgentFile::last(job, agent.number)).ok(),
        }
    }
}

/// Whether time is over.
fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}

/// Whether a connection was accepted and closed without an answer.
fn is_turned_away(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// The call stacks of ranks, in their order, by the agents of their nodes. What cannot be told of one is said there.
pub fn stacks(job: &Job, seen: &Collected, ranks: &[u32]) -> Vec<ProcessStacks> {
    let agents = AgentFile::all(job);
    let state = |rank: u32| seen.snapshot.ranks.iter().find(|state| state.rank == Some(rank));
    let of_agent = |report: &AgentReport| {
        let here = |rank: &u32| report.ranks.iter().any(|state| state.rank == Some(*rank));
        let wanted: Vec<u32> = ranks.iter().copied().filter(here).collect();
        let agent = agents.iter().find(|agent| agent.number == report.number && agent.ended.is_none());
        agent.filter(|_| !wanted.is_empty()).map(|agent| (agent.query, wanted))
    };
    let questions: Vec<_> = seen.reports.iter().filter_map(of_agent).collect();
    let mut found: BTreeMap<u32, ProcessStacks> = BTreeMap::new();
    for some in questions.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let asked = some.iter().map(|(address, wanted)| {
                scope.spawn(|| {
                    let question = Question::Stacks(wanted.clone());
                    ask::<Vec<ProcessStacks>>(*address, &job.key, &question, STACKS).unwrap_or_default()
                })
            });
            let asked: Vec<_> = asked.collect();
            let told = asked.into_iter().filter_map(|answer| answer.join().ok()).flatten();
            found.extend(told.map(|stacks| (stacks.rank, stacks)));
        });
    }
    let none = |rank: u32| match state(rank) {
        Some(state) if state.life == Life::Gone => {
            ProcessStacks::none(rank, state.process, &state.host, "the process is gone")
        }
        Some(state) => ProcessStacks::none(rank, state.process, &state.host, "the agent of its node has not answered"),
        None => match seen.snapshot.silent.iter().find(|node| node.ranks.contains(&rank)) {
            Some(node) => ProcessStacks::none(rank, 0, &node.host, "its node is silent"),
            None => ProcessStacks::none(rank, 0, "", "no process with this rank is known"),
        },
    };
    ranks.iter().map(|&rank| found.remove(&rank).unwrap_or_else(|| none(rank))).collect()
}

/// Two snapshots, so long after each other: what has moved in between can be told, and who is behind in the operations that are waited for.
pub fn twice(job: &Job, pause: Duration) -> (Collected, Collected) {
    let first = collect(job, &BTreeSet::new());
    std::thread::sleep(pause);
    let comms = first.snapshot.ranks.iter().flat_map(|state| state.comms_of_call()).collect();
    let second = collect_again(job, &comms, &first.unheard);
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::About;
    use crate::query::{AgentTraffic, PeerAgent, SystemClocks, answer};
    use std::net::TcpListener;

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
                report(
                    1,
                    &[(52.0, 2, "jumped forward by 5.1 ms"), (53.0, 2, "stands still"), (53.0, 3, "jumped back")],
                ),
            ],
            ..Collected::default()
        };
        let words = seen.clock_words();
        let said: Vec<_> = words.iter().map(|word| (word.remark.number, word.agents, word.remark.time)).collect();
        assert_eq!(said, [(2, 2, 50.0), (2, 1, 53.0), (3, 1, 53.0), (2, 1, 80.0)]);
        assert!(seen.text().contains("the raw clock of n2 jumped forward by 5.0 ms, "), "{}", seen.text());
        assert!(seen.text().contains("(reported by 2 of 2 agents)"));
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
}
