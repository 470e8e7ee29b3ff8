//! The agent of a node: sees what the processes of the job there do and whether they live, tells agents of other nodes, answers who asks.
//!
//! | file | what |
//! | --- | --- |
//! | `local` | the processes of the job on this node |
//! | `ends` | when processes end, to the millisecond |
//! | `interface` | on which address it listens |
//! | `peers`, `inbox`, `clock` | gossip with the agents of other nodes, the packets that come from them, and the clock that it measures by |
//! | `neighbours`, `leads` | the clocks of those nodes |
//! | `settings`, `together` | what it is told to compute and read, and what the nodes have together |
//! | `files` | numbers that are read from files |
//! | `callers` | who is connected to ask something |
//! | `desk` | what programs of this node give and ask |
//! | `alarm` | what is written when nothing moves |
//! | `detach` | becoming independent of the process that has started it |

mod alarm;
mod callers;
mod clock;
mod desk;
mod detach;
mod ends;
mod files;
mod inbox;
mod interface;
mod leads;
mod local;
mod neighbours;
mod peers;
mod settings;
mod together;

pub use detach::{become_independent, start_detached};

use crate::history::HistoryWriter;
use crate::jobs::{self, AgentFile, Job};
use crate::query::{self, AgentReport, Question};
use crate::stacks;
use crate::state::now;
use alarm::Watchman;
use callers::Callers;
use local::Local;
use peers::{AgentPeers, PeerView};
use settings::AgentSettings;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Result;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it looks at the processes of its node: as often as gossip tells of them.
const LOOK: Duration = Duration::from_millis(100);
/// How late it may wake up. Chosen by hand: a tick of the kernel; more makes gossip uneven, less costs timers.
const LATE: Duration = Duration::from_millis(4);
/// How often it looks whether the job was removed. Chosen by hand: more often reads the directory for nothing, less often leaves agents behind for
/// longer.
const CHECK: Duration = Duration::from_secs(1);
/// How long it stays when all processes of its node are gone, so that others hear of it: longer than the cleanup time of the gossip (1 s).
const LINGER: Duration = Duration::from_millis(1500);
/// How long it waits for the job, and then for its first process: a launcher may take a minute to start thousands of processes.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to find the stacks of processes of its node. Chosen by hand: shorter leaves stacks of many processes out, longer keeps who
/// asks waiting.
const STACKS: Duration = Duration::from_secs(3);

/// Who has asked something is expected to ask again within this time: until then what is known of others is written down often. Chosen by hand: shorter lets those wait who ask every few
/// seconds, longer does it for nobody.
const ASKS_AGAIN: Duration = Duration::from_secs(3);
/// What is told of others is not older than that, unless this agent does not get to it. Chosen by hand: less makes those wait who ask often, more makes the answers older.
const OLD: Duration = Duration::from_millis(300);

/// What the threads of an agent share.
struct AgentState {
    job: Job,
    number: u32,
    host: String,
    local: Mutex<Local>,
    /// What was last heard of other agents, and when somebody asked for it last.
    heard: Mutex<PeerView>,
    asked: Mutex<Option<Instant>>,
    data: Mutex<BTreeMap<String, String>>,
    settings: Mutex<AgentSettings>,
    forged: AtomicU64,
    callers: Callers,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until all processes of the job on this node are gone. `wanted` is the job that it was started for, if that is known: then an earlier one in the same place is
/// not taken for it. `holds` tells that this process has inherited the mark of its node.
///
/// # Errors
/// The job does not come; another agent of it runs on this node; no socket can be opened; the directory of the job cannot be written.
pub fn run(directory: &Path, wanted: Option<&str>, holds: bool) -> Result<()> {
    let job = wait_for(directory, wanted)?;
    let host = jobs::host();
    let outcome = run_for(job.clone(), host.clone(), holds);
    if let Err(error) = &outcome
        && error.kind() != std::io::ErrorKind::AddrInUse
        && job.is_there()
    {
        // Nobody reads what the agent of an application says.
        jobs::note_failure(&job, &host, &error.to_string());
    }
    outcome
}

fn run_for(job: Job, host: String, holds: bool) -> Result<()> {
    let states = job.states(&host)?;
    let _mark = if holds { None } else { Some(jobs::hold(&states)?) };
    let _ = jobs::sweep();
    let address = interface::address(job.about.interface.as_deref())?;
    let listener = TcpListener::bind((address, 0))?;
    let socket = std::net::UdpSocket::bind((address, 0))?;
    let number = jobs::claim(&job)?;
    let local = Local::new(&states, &host);
    let mut own = AgentFile {
        number,
        host: host.clone(),
        process: std::process::id(),
        gossip: socket.local_addr()?,
        query: listener.local_addr()?,
        begun: now(),
        ended: None,
        ranks: Vec::new(),
    };
    let mut peers = AgentPeers::new(&job, &own, socket)?;
    own.write(&job)?;
    jobs::forget_failure(&job, &host);
    replace_killed(&job, &own);
    let shared = Arc::new(AgentState {
        job,
        number,
        host,
        local: Mutex::new(local),
        heard: Mutex::default(),
        asked: Mutex::default(),
        data: Mutex::default(),
        settings: Mutex::default(),
        forged: AtomicU64::new(0),
        callers: Callers::default(),
    });
    let answers = Arc::clone(&shared);
    std::thread::Builder::new().name("answers".into()).spawn(move || serve(&listener, &answers))?;
    desk::open(&states, &shared);
    files::read_on(&shared);
    watch(&shared, &mut peers, &mut own)?;
    peers.leave();
    end(&shared, own)
}

/// Looks at the processes of the node, and tells other agents and hears from them, until the job is over or gone.
fn watch(shared: &AgentState, peers: &mut AgentPeers, own: &mut AgentFile) -> Result<()> {
    let number = shared.number;
    clock::wake_late(LATE);
    let mut watchman = shared.job.about.alarm.clone().map(|alarm| Watchman::new(&shared.job, alarm, number));
    // Without a log, it is monitored all the same.
    let mut log = HistoryWriter::create(&AgentFile::log(&shared.job, number), number, &shared.host).ok();
    let begun = Instant::now();
    let (mut last_seen, mut checked) = (Instant::now(), Instant::now());
    loop {
        peers.run(&shared.job, LOOK)?;
        peers.put(&lock(&shared.data));
        peers.set(&mut lock(&shared.settings));
        // What is noted is new.
        let due = log.as_ref().is_some_and(|log| log.is_due(now()));
        let heard = if due { Some(peers.fresh(&shared.job)) } else { peers.heard(shared.is_asked()) };
        if let Some(heard) = heard {
            *lock(&shared.heard) = heard;
        }
        let (seen, alive, quiet, ranks) = {
            let mut local = lock(&shared.local);
            local.look();
            (local.count(), local.alive(), local.quiet(), local.ranks())
        };
        if ranks != own.ranks {
            ranks.iter().filter(|rank| !own.ranks.contains(rank)).for_each(|&rank| peers.note_rank(rank));
            own.ranks = ranks;
            // If the job has just been removed, it is noticed soon.
            let _ = own.write(&shared.job);
        }
        if alive > 0 {
            last_seen = Instant::now();
        } else {
            // The recording may be made into an archive now.
            peers.flush();
        }
        note(&mut log, shared, false);
        if let Some(watchman) = &mut watchman {
            watchman.look(&shared.job, quiet, alive < seen, &peers.gone());
        }
        let over = seen > 0 && alive == 0 && last_seen.elapsed() > LINGER;
        let nothing = seen == 0 && begun.elapsed() > PATIENCE;
        let gone = checked.elapsed() > CHECK && {
            checked = Instant::now();
            !shared.job.is_there()
        };
        if over || nothing || gone {
            break;
        }
    }
    note(&mut log, shared, true);
    Ok(())
}

/// Notes what is seen now, if that is due or the last time. If it cannot be written, no more is noted.
fn note(log: &mut Option<HistoryWriter>, shared: &AgentState, last: bool) {
    let Some(writer) = log.as_mut().filter(|writer| last || writer.is_due(now())) else { return };
    let states = lock(&shared.local).glance();
    let heard = lock(&shared.heard).clone();
    if writer.note(now(), clock::raw(), &states, &heard.members, &heard.resources).is_err() {
        *log = None;
    }
}

/// Notes that earlier agents of this node have ended: this one has its mark, so they were killed.
fn replace_killed(job: &Job, own: &AgentFile) {
    let earlier = AgentFile::all(job).into_iter().filter(|agent| agent.host == own.host && agent.number != own.number);
    for mut agent in earlier.filter(|agent| agent.ended.is_none()) {
        agent.ended = Some(own.begun);
        // Otherwise it is silent, which it is.
        let _ = agent.write(job);
    }
}

fn wait_for(directory: &Path, wanted: Option<&str>) -> Result<Job> {
    let begun = Instant::now();
    loop {
        match Job::open(directory) {
            Ok(job) if wanted.is_none_or(|id| id == job.about.id) => return Ok(job),
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Ok(_) if begun.elapsed() > PATIENCE => return Err(std::io::ErrorKind::NotFound.into()),
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// Leaves what it knows, and removes the states of processes that are gone.
fn end(shared: &AgentState, mut own: AgentFile) -> Result<()> {
    // Of a job that was removed nothing is left behind, nor is anything put into a new one in its place.
    if shared.job.is_there() {
        jobs::write_json(&AgentFile::last(&shared.job, shared.number), &shared.report(&BTreeSet::new()))?;
        own.ended = Some(now());
        own.write(&shared.job)?;
    }
    lock(&shared.local).remove();
    if let Ok(states) = shared.job.states(&shared.host) {
        let _ = std::fs::remove_file(states.join(desk::NAME));
        let _ = std::fs::remove_dir(states);
    }
    if let Ok(states) = jobs::state_directory(&shared.job.about.id) {
        // If other nodes are emulated on this machine, theirs are in it.
        let _ = std::fs::remove_dir(states);
    }
    Ok(())
}

fn serve(listener: &TcpListener, shared: &Arc<AgentState>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            std::thread::sleep(LOOK);
            continue;
        };
        let Some(number) = shared.callers.admit(&stream) else { continue };
        let own = Arc::clone(shared);
        let spawned = std::thread::Builder::new().spawn(move || {
            let reply = |question| {
                own.callers.has_asked(number);
                own.answer(question)
            };
            if matches!(query::answer(stream, &own.job.key, reply), Ok(false)) {
                own.forged.fetch_add(1, Ordering::Relaxed);
            }
            own.callers.is_closed(number);
        });
        if spawned.is_err() {
            shared.callers.is_closed(number);
        }
    }
}

impl AgentState {
    fn answer(&self, question: Question) -> Vec<u8> {
        match question {
            Question::Report(comms) => {
                serde_json::to_vec(&self.report(&comms.into_iter().collect())).unwrap_or_default()
            }
            Question::Stacks(ranks) => {
                let wanted = lock(&self.local).processes(&ranks);
                serde_json::to_vec(&stacks::of(&wanted, &self.host, STACKS)).unwrap_or_default()
            }
            Question::Put(key, value) => {
                let fits = self.put(&key, &value);
                if fits { b"true".to_vec() } else { b"false".to_vec() }
            }
            Question::Set(setting) => {
                let why = lock(&self.settings).take(setting).err();
                serde_json::to_vec(&why).unwrap_or_default()
            }
        }
    }

    /// Whether somebody has asked lately.
    fn is_asked(&self) -> bool {
        lock(&self.asked).is_some_and(|asked| asked.elapsed() < ASKS_AGAIN)
    }

    /// What was heard of other agents, for somebody who asks: who is the first to ask for some time waits until it has been written down anew.
    fn heard(&self) -> MutexGuard<'_, PeerView> {
        let asked = Instant::now();
        *lock(&self.asked) = Some(asked);
        loop {
            let heard = lock(&self.heard);
            let old = heard.at.is_none_or(|at| asked.duration_since(at) > OLD);
            if !old || asked.elapsed() > LOOK * 3 / 2 {
                return heard;
            }
            drop(heard);
            std::thread::sleep(LOOK / 10);
        }
    }

    /// Keeps a datum for all to see; returns whether there is room for it.
    fn put(&self, key: &str, value: &str) -> bool {
        let mut data = lock(&self.data);
        let before = data.insert(key.to_owned(), value.to_owned());
        let fits = peers::fits(&data);
        if !fits {
            match before {
                Some(before) => drop(data.insert(key.to_owned(), before)),
                None => drop(data.remove(key)),
            }
        }
        fits
    }

    fn report(&self, comms: &BTreeSet<u64>) -> AgentReport {
        let PeerView { at, mut members, data, resources, mut traffic, slow } = self.heard().clone();
        traffic.forged += self.forged.load(Ordering::Relaxed);
        let since = at.map_or(0.0, |at| at.elapsed().as_secs_f64());
        members.iter_mut().for_each(|member| member.seconds += since);
        AgentReport {
            number: self.number,
            host: self.host.clone(),
            time: now(),
            ranks: lock(&self.local).states(comms),
            members,
            data: data.into_iter().map(|datum| (format!("{}: {}", datum.host, datum.key), datum.value)).collect(),
            resources,
            traffic,
            job: slow.job.clone(),
            formulas: slow.formulas.clone(),
            clocks: slow.clocks.clone(),
            remarks: slow.remarks.clone(),
        }
    }
}
