//! Agents are asked at the same time, and waited for as long as they may be there.

use crate::jobs::{AgentFile, Job, read_json};
use crate::query::{AgentReport, Question, ask, ask_reached};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long the node of an agent may take to accept a connection. Chosen by hand: a shorter time takes busy nodes for dead, a longer one makes
/// everybody wait for those that are.
pub(super) const PATIENCE: Duration = Duration::from_millis(800);
/// How long an agent may take to answer if its node accepts connections, or others call it alive: then it is not silent, but slow, as all are on a machine that is busy. Should it die
/// meanwhile, others say that, or its kernel refuses the connection.
pub(super) const LONG: Duration = Duration::from_millis(2_900);
/// The same of one that has not answered a moment ago, or that others call dead: if it is there again, it answers at once. Chosen by hand: longer
/// makes everybody wait for the dead.
pub(super) const SHORT: Duration = Duration::from_millis(100);
/// How often somebody is asked whether it calls those dead who do not answer. Chosen by hand: more often burdens who is asked, less often waits
/// longer for those who are known to be dead.
const AGAIN: Duration = Duration::from_millis(50);
/// So many agents are asked at the same time. Chosen by hand: each is a thread and a connection; with fewer, a snapshot of a large job takes longer,
/// and its ranks are farther apart in time.
pub(super) const AT_ONCE: usize = 64;

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
pub(super) struct Expectations {
    /// Who is not expected to answer.
    pub gone: BTreeSet<u32>,
    /// Whom some other agent called alive when it was asked last.
    pub alive: BTreeSet<u32>,
    /// Whose nodes have not accepted a connection in time.
    pub unreached: BTreeSet<u32>,
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
    pub(super) fn patience<'a>(&self, mut waits: impl Iterator<Item = &'a u32>) -> Duration {
        let lives = |number: &u32| self.alive.contains(number) || !self.unreached.contains(number);
        let slow = waits.any(|number| !self.gone.contains(number) && lives(number));
        // A little longer than it takes those who ask to give up.
        SHORT + if slow { LONG } else { Duration::ZERO }
    }
}

/// Asks agents at the same time, and waits for their answers: for those that others call alive, or whose nodes can be reached, longer, and no longer than a moment for those that are not expected to
/// answer, because they have not before, or because those who answer call them dead. While somebody is silent, one who has answered is asked again what it
/// knows of it.
pub(super) fn ask_all(
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

/// What an agent says, or has left behind; nothing if it does not answer. `tell` hears whether its node can be reached.
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
