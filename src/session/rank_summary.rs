//! What one analysis rank knows about its part of a trace, for the report, and what of it is odd.

use crate::output::manifest::is_corrected;
use crate::pipeline::open::TraceHandle;
use crate::pipeline::silent::SilentCalls;
use crate::report::{ClockCounts, Warnings};
use clc_engine::matching::collectives::instances::CollectiveCounts;
use clc_engine::matching::communicators::name as name_of;
use clc_engine::matching::extracted::Leftovers;
use clc_engine::matching::matched::{InDoubt, MessageCounts};
use clc_engine::matching::undefined::UndefinedPeer;
use clc_engine::matching::within::steps::Unpaired;
use clc_trace::format::plural;
use clc_trace::{Definitions, LocationId, RegionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one analysis rank knows about its part of the trace.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct RankSummary {
    pub(super) events: u64,
    pub(super) by_kind: BTreeMap<String, u64>,
    pub(super) clocks: ClockCounts,
    pub(super) lone_offsets: Vec<LocationId>,
    pub(super) no_offsets: Vec<LocationId>,
    pub(super) messages: MessageCounts,
    pub(super) collectives: CollectiveCounts,
    pub(super) leftovers: Leftovers,
    pub(super) undefined_peers: Vec<UndefinedPeer>,
    pub(super) joined_communicators: u64,
    pub(super) without_records: BTreeMap<String, SilentCalls>,
    pub(super) warnings: Warnings,
}

impl RankSummary {
    /// Adds what the next ranks know.
    pub(super) fn merge(&mut self, part: RankSummary) {
        self.events += part.events;
        for (kind, count) in part.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
        }
        self.clocks.identity += part.clocks.identity;
        self.clocks.constant += part.clocks.constant;
        self.clocks.piecewise += part.clocks.piecewise;
        self.lone_offsets.extend(part.lone_offsets);
        self.no_offsets.extend(part.no_offsets);
        self.messages.merge(&part.messages);
        self.collectives.merge(&part.collectives);
        self.leftovers.add(&part.leftovers);
        self.undefined_peers.extend(part.undefined_peers);
        for (region, calls) in part.without_records {
            self.without_records.entry(region).and_modify(|own| own.count += calls.count).or_insert(calls);
        }
        self.warnings.merge(part.warnings);
    }
}

/// Names at most a few locations.
fn name(locations: &[LocationId]) -> String {
    list(locations, 8, locations.len())
}

/// Names at most `most` of `all` things.
fn list(things: &[impl ToString], most: usize, all: usize) -> String {
    let mut names: Vec<String> = things.iter().take(most).map(ToString::to_string).collect();
    if all > names.len() {
        names.push(format!("and {} more", all - names.len()));
    }
    names.join(", ")
}

pub(super) fn warn(sum: &mut RankSummary, opened: &TraceHandle) {
    let needed = || opened.timelines.all.len() > 1 && !is_corrected(opened.archive.directory());
    if !sum.no_offsets.is_empty() && needed() {
        sum.warnings.add(format!(
            "{} of {} locations have no clock offset; their recorded times are taken as global: {}",
            sum.no_offsets.len(),
            opened.definitions.locations.len(),
            name(&sum.no_offsets)
        ));
    }
    if !sum.lone_offsets.is_empty() {
        sum.warnings.add(format!(
            "{} locations have only one clock offset; it is applied as a constant, whereas libotf2 ignores it: {}",
            sum.lone_offsets.len(),
            name(&sum.lone_offsets)
        ));
    }
    if opened.timelines.processes == 0 {
        sum.warnings.add("the archive defines no MPI processes, so nothing can be compared between processes");
    }
    if sum.joined_communicators > 0 {
        sum.warnings.add(format!(
            "{} communicators have different ids on different processes; they were matched by members and order",
            sum.joined_communicators
        ));
    }
    let left = &sum.leftovers;
    if left.undefined_peer > 0 {
        sum.warnings.add_many(
            format!(
                "messages to or from an undefined rank are ignored, and their partners stay unmatched: {}",
                list(&sum.undefined_peers, UndefinedPeer::EXAMPLES, left.undefined_peer as usize)
            ),
            left.undefined_peer,
        );
    }
    for (why, count) in std::mem::take(&mut sum.messages.threads.1) {
        sum.warnings.add_many(unpaired(&why, &opened.definitions), count);
    }
    let counted = [
        (
            left.foreign_accesses,
            "one-sided operations on windows without MPI processes (such as between hosts and accelerators) order no \
            processes",
        ),
        (left.foreign_windows, "collective operations on windows without MPI processes are ignored"),
        (
            left.open_collectives,
            "collective operations without a begin or an end are left out; where their communicator is not known, so is what \
            follows on communicators that lack one",
        ),
        (
            left.unordered_collectives,
            "threads of a process, with clocks of their own, take part in collective operations on a communicator or window that they share in an order that the trace does not tell: only what \
            all possible orders have in common is kept; `check` of the output numbers them by its times, and may find \
            violations there",
        ),
        (left.inter_collectives, "collective operations on inter-communicators with overlapping groups are ignored"),
    ];
    for (count, text) in counted {
        sum.warnings.add_many(text, count);
    }
    for (&comm, instance) in &sum.collectives.first_inconsistent {
        sum.warnings.add(format!(
            "the members of {} disagree on the operation or root of instance {}; this and all later instances are \
            ignored",
            name_of(&opened.definitions, comm),
            instance + 1
        ));
    }
    warn_of_contradicted(sum);
}

/// Operations of threads that contradict the rest of the trace.
fn warn_of_contradicted(sum: &mut RankSummary) {
    if !sum.collectives.contradicted.is_empty() {
        sum.warnings.add(format!(
            "the order in which threads of a process take part in operations on communicators that they share, or in messages, is not recorded, and that of their clocks contradicts the rest of the trace: \
            the collective operations on {} are ignored",
            plural(sum.collectives.contradicted.len() as u64, "communicator")
        ));
    }
}

/// Why steps of threads, or what an accelerator does, are left out.
fn unpaired(why: &Unpaired, definitions: &Definitions) -> String {
    let name = |region: &RegionId| {
        let found = definitions.regions.iter().find(|known| known.id == *region);
        found.map_or_else(|| format!("region {region}"), |region| region.name.clone())
    };
    match why {
        Unpaired::Numbers => {
            "kernels or copies of accelerators are not compared with the calls that issue them: their numbers differ"
                .into()
        }
        Unpaired::Streams => {
            "kernels or copies of accelerators are not compared with the calls that issue them: the calls do not \
            name their streams, and there are several"
                .into()
        }
        Unpaired::Locations => {
            "kernels or copies of accelerators are not compared with the calls that issue them: several \
            threads issue them to one stream"
                .into()
        }
        Unpaired::UnknownStream(region) => {
            format!(
                "calls of {} are not compared with the work that they wait for: the trace does not name the stream",
                name(region)
            )
        }
        Unpaired::UnknownEvent(region) => format!(
            "calls of {} are not compared with the work that they wait for: the trace does not tell which call of the \
            same thread put the event into which stream",
            name(region)
        ),
        Unpaired::UnknownDevice(region) => {
            format!(
                "calls of {} are not compared with the work that they wait for: the process has several accelerators",
                name(region)
            )
        }
        Unpaired::Bound => {
            "steps of threads remain out of order: the threads share collective operations of one communicator \
            or window, the order of which cannot be determined, so they have one correction"
                .into()
        }
        Unpaired::UnknownWork(region) => format!(
            "calls of {} are not compared with the work that they wait for: the calls that issued it are not known",
            name(region)
        ),
    }
}

/// Where records of messages are missing, and what is made of it.
pub(super) fn warn_of_doubts(sum: &mut RankSummary, opened: &TraceHandle) {
    let messages = &sum.messages;
    let names = |shared: bool| -> Vec<String> {
        let name = |channel: &InDoubt| {
            let comm = opened.definitions.communicators[channel.comm.place()].id;
            format!("rank {} to {}, communicator {comm}, tag {}", channel.sender, channel.receiver, channel.tag)
        };
        messages.in_doubt.iter().filter(|channel| channel.shared == shared).map(name).collect()
    };
    let channels = |count: u64| if count == 1 { "one channel".to_owned() } else { format!("{count} channels") };
    let missing = messages.doubtful - messages.shared;
    if missing > 0 {
        sum.warnings.add(format!(
            "message records are missing: sends and receives differ in number or length, or receives end that have no \
            record of their begin, in {}; there, only messages that are unambiguous by length and order are matched: {}",
            channels(missing),
            list(&names(false), 4, missing as usize)
        ));
    }
    if messages.shared > 0 {
        sum.warnings.add(format!(
            "several threads of a process send or receive in {}, and in the order of their calls messages would be received \
            before they were sent; there, for calls that may have overtaken each other, only the order of \
            k sends before the k-th receive is used: {}",
            channels(messages.shared),
            list(&names(true), 4, messages.shared as usize)
        ));
    }
    if !messages.contradicted.is_empty() {
        let names: Vec<String> =
            messages.contradicted.keys().map(|(from, to)| format!("rank {from} to {to}")).collect();
        sum.warnings.add(format!(
            "orders that were inferred, where records are missing or between threads that share channels or have clocks of their own, contradict the rest of the trace and are not used: {}",
            list(&names, 8, names.len())
        ));
    }
}
