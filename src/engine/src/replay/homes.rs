//! What the hosts of the members of communicators have to say meets at the homes of the communicators.

use crate::comm::{AnalysisRank, Transport, sparse_exchange};
use crate::matching::comm_index::CommIndex;
use crate::replay::program::Program;
use clc_trace::Result;
use std::collections::BTreeMap;

/// Something of all instances of a communicator, to which every host of its members adds. As words on its way, since there are as many as collective
/// operations in the trace.
pub(super) trait OfInstances {
    /// Appends it.
    fn encode(&self, words: &mut Vec<u64>);

    /// Adds what [`OfInstances::encode`] wrote, of which `words` begin with as much as there is here, and returns the rest.
    fn merge<'w>(&mut self, words: &'w [u64]) -> &'w [u64];

    /// Forgets what this host has said, before all comes back from the home; not needed where adding it again changes nothing.
    fn clear(&mut self) {}
}

/// Makes `all`, one per communicator of `program`, complete: first to the homes, then back to all hosts. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn meet<T: OfInstances>(transport: &mut dyn Transport, program: &Program, all: &mut [T]) -> Result<()> {
    let comms = &program.collectives.comms;
    let here = transport.rank();
    for to_home in [true, false] {
        let mut outgoing: BTreeMap<AnalysisRank, Vec<u64>> = BTreeMap::new();
        for (comm, own) in comms.iter().zip(&*all) {
            let mut tell = |host: AnalysisRank| {
                let words = outgoing.entry(host).or_default();
                words.push(u64::from(comm.comm.0));
                own.encode(words);
            };
            if to_home && comm.home != here {
                tell(comm.home);
            } else if !to_home && comm.home == here {
                comm.hosts.iter().map(|&(host, _)| host).filter(|&host| host != here).for_each(tell);
            }
        }
        for (_, words) in sparse_exchange(transport, outgoing.into_iter().collect())? {
            let mut rest = &words[..];
            while let [comm, tail @ ..] = rest {
                let own = &mut all[program.comm_index[&CommIndex(*comm as u32)]];
                if !to_home {
                    own.clear();
                }
                rest = own.merge(tail);
            }
        }
    }
    Ok(())
}
