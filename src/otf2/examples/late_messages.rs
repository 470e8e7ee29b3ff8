//! Reads an OTF2 archive and prints the messages that arrive before they were sent, by the recorded times.
//!
//!     cargo run -p clc-otf2 --example late_messages -- TRACE
#![allow(clippy::print_stdout)]

use clc_otf2::{CommId, CommMembers, EventRecord, MpiRank, Otf2Archive, Result};
use std::collections::{HashMap, VecDeque};
use std::path::Path;

/// A line for each message that is received before it is sent. Ranks are those of the world.
pub(crate) fn late_messages(trace: &Path) -> Result<Vec<String>> {
    let archive = Otf2Archive::open(trace)?;
    let (definitions, _) = archive.read_definitions()?;
    // Records name ranks of communicators.
    let world = |me: MpiRank, communicator: CommId, rank: u32| {
        let communicator = definitions.communicators.iter().find(|known| known.id == communicator)?;
        match &communicator.members {
            CommMembers::Intra(members) => members.get(rank as usize).copied(),
            CommMembers::SelfOnly => Some(me),
            _ => None,
        }
    };
    // By sender, receiver, communicator and tag: the k-th send belongs to the k-th receive in the order in which receives were posted.
    let (mut sends, mut receives) = (HashMap::<_, VecDeque<u64>>::new(), Vec::new());
    for (rank, &location) in (0..).map(MpiRank).zip(&definitions.processes) {
        let mut posted = HashMap::new();
        for event in archive.events(location)? {
            let event = event?;
            match event.record {
                EventRecord::MpiSend { receiver, communicator, tag, .. }
                | EventRecord::MpiIsend { receiver, communicator, tag, .. } => {
                    let to = world(rank, communicator, receiver);
                    sends.entry((Some(rank), to, communicator, tag)).or_default().push_back(event.time);
                }
                EventRecord::MpiRecv { sender, communicator, tag, .. } => {
                    let from = world(rank, communicator, sender);
                    receives.push(Some(((from, Some(rank), communicator, tag), event.time)));
                }
                EventRecord::MpiIrecvRequest { request } => {
                    posted.insert(request, receives.len());
                    receives.push(None);
                }
                EventRecord::MpiIrecv { sender, communicator, tag, request, .. } => {
                    let from = world(rank, communicator, sender);
                    let receive = Some(((from, Some(rank), communicator, tag), event.time));
                    match posted.remove(&request) {
                        Some(place) => receives[place] = receive,
                        None => receives.push(receive),
                    }
                }
                _ => {}
            }
        }
    }
    let late = receives.into_iter().flatten().filter_map(|(channel, received)| {
        let sent = sends.get_mut(&channel)?.pop_front()?;
        let (from, to) = (channel.0?, channel.1?);
        (received < sent).then(|| format!("rank {from} to {to}: sent at {sent}, received at {received}"))
    });
    Ok(late.collect())
}

#[allow(dead_code)] // the tests only want the function
fn main() -> Result<()> {
    let trace = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    late_messages(Path::new(&trace))?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
