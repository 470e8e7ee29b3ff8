//! Collective operations: contributions are combined on each host, meet at the communicator's home, and the result goes back to the hosts.

use super::flight::{MaximaExcluding, Times, later, words_of};
use super::outbox::Outbox;
use super::{DataflowReplay, PARTIAL, PREFIX_PARTIAL, PREFIX_RESULT, RESULT};
use crate::comm::MaxExcluding;
use crate::matching::collectives::instances::{
    CollectiveComm, HostedComm, HostedMember, Instance, InstanceIndex, Slot,
};
use crate::replay::program::{NO_LOWER_BOUND, contribution_latency, instance_latency};
use clc_trace::{CommRank, Result};
use controlled_logical_clock::semantics::CollectiveClass;

impl<const CLOCKS: usize> DataflowReplay<'_, CLOCKS> {
    /// A member begins a collective.
    pub(super) fn begin(&mut self, membership: usize, times: Times<CLOCKS>, out: &mut Outbox<'_>) -> Result<()> {
        let program = self.program;
        let count = self.begun[membership];
        self.begun[membership] += 1;
        let (index, comm, member) = program.collectives.linked(membership);
        let instance = member.begun(count);
        let (rank, sends) = (member.rank, member.sends[instance]);
        let members = comm.members.len() as u32;
        if sends {
            let more = contribution_latency(comm, instance, member, &program.latency);
            self.contribute(index, instance, rank, times.map(|time| time + more), out)?;
        } else if self.synchronising {
            self.contribute(index, instance, rank, [NO_LOWER_BOUND; CLOCKS], out)?;
        }
        let state = self.local[index].state(comm.slot(instance, 0));
        state.begun += 1;
        if state.begun == members {
            (0..comm.groups()).for_each(|group| self.local[index].finish(comm.slot(instance, group)));
        }
        Ok(())
    }

    /// Contributions of members that send nothing: nobody waits for their begin. Where others of this host contribute as well, they come with the first of
    /// these ([`DataflowReplay::contribute`]), so that an instance takes no memory before; here are those where nobody does, and prefix operations, in which
    /// each contributes alone.
    pub(super) fn contribute_silence(&mut self, out: &mut Outbox<'_>) -> Result<()> {
        if self.synchronising {
            return Ok(());
        }
        let program = self.program;
        for (index, comm) in program.collectives.numbered() {
            for (instance, Instance { class, .. }) in comm.numbered() {
                if *class == CollectiveClass::Prefix {
                    for member in comm.members.iter().filter(|member| !member.sends[instance]) {
                        self.contribute(index, instance, member.rank, [NO_LOWER_BOUND; CLOCKS], out)?;
                    }
                    continue;
                }
                for group in 0..comm.groups() {
                    let slot = comm.slot(instance, group);
                    let (silent, needed) = silent(comm, instance, slot);
                    if needed > 0 && silent == needed {
                        self.contributed(index, slot, [MaxExcluding::NONE; CLOCKS], needed, out)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The contribution of one member hosted here; [`NO_LOWER_BOUND`] if it sends nothing.
    fn contribute(
        &mut self,
        index: HostedComm,
        instance: InstanceIndex,
        rank: CommRank,
        values: Times<CLOCKS>,
        out: &mut Outbox<'_>,
    ) -> Result<()> {
        let comm = &self.program.collectives.comms[index];
        let class = self.class(comm, instance);
        let mut complete = None;
        let slot = slot_of(comm, instance, class, rank);
        if let Some(needed) = contributors(comm, instance, class, rank) {
            let state = self.local[index].state(slot);
            if state.count == 0 && !self.synchronising {
                (state.count, _) = silent(comm, instance, slot);
            }
            for (top, value) in state.top.iter_mut().zip(values).filter(|(_, value)| *value != NO_LOWER_BOUND) {
                *top = top.merge(MaxExcluding::one(value, comm.holder(rank)));
            }
            state.count += 1;
            complete = (state.count == needed).then_some((state.top, state.count));
        }
        if class == CollectiveClass::Prefix {
            if rank.0 + 1 == comm.size {
                return Ok(()); // nobody's predecessor
            }
            if comm.home == out.here {
                return self.prefix_at_home(index, instance, rank, values, out);
            }
            let head = [self.head(comm.comm.0, PREFIX_PARTIAL), u64::from(instance.0) << 32 | u64::from(rank.0)];
            return out.post(comm.home, &head, &values.map(i64::cast_unsigned));
        }
        match complete {
            Some((top, count)) => self.contributed(index, slot, top, count, out),
            None => Ok(()),
        }
    }

    /// The contributions of all members hosted here go to the communicator's home.
    fn contributed(
        &mut self,
        index: HostedComm,
        slot: Slot,
        top: MaximaExcluding<CLOCKS>,
        count: u32,
        out: &mut Outbox<'_>,
    ) -> Result<()> {
        let comm = &self.program.collectives.comms[index];
        if comm.home == out.here {
            return self.at_home(index, slot, top, count, out);
        }
        let head = [self.head(comm.comm.0, PARTIAL), u64::from(slot.0) << 32 | u64::from(count)];
        out.post(comm.home, &head, words_of(top).as_flattened())
    }

    fn class(&self, comm: &CollectiveComm, instance: InstanceIndex) -> CollectiveClass {
        if self.synchronising { CollectiveClass::NToN } else { comm.instances[instance].class }
    }

    /// Contributions of one host reach the communicator's home.
    pub(super) fn at_home(
        &mut self,
        index: HostedComm,
        slot: Slot,
        top: MaximaExcluding<CLOCKS>,
        count: u32,
        out: &mut Outbox<'_>,
    ) -> Result<()> {
        let comm = &self.program.collectives.comms[index];
        let (instance, group) = comm.instance_of(slot);
        let class = self.class(comm, instance);
        let state = self.home[index].state(slot);
        for (here, top) in state.top.iter_mut().zip(top) {
            *here = here.merge(top);
        }
        state.count += count;
        let root = comm.instances[instance].root;
        let needed = match class {
            CollectiveClass::OneToN => 1,
            CollectiveClass::NToOne => comm.size - 1,
            _ if comm.groups() > 1 && group == 0 => comm.first_group,
            _ => comm.size - comm.first_group,
        };
        if state.count < needed {
            return Ok(());
        }
        let top = state.top;
        self.home[index].finish(slot);
        if comm.groups() > 1 && class != CollectiveClass::NToN {
            // Nothing comes for the other group.
            self.home[index].finish(comm.slot(instance, 1));
        }
        for &(host, _) in &comm.hosts {
            if host == out.here {
                self.result(index, slot, top);
            } else if class != CollectiveClass::NToOne || comm.host_of(root) == host {
                let head = [self.head(comm.comm.0, RESULT), u64::from(slot.0)];
                out.post(host, &head, words_of(top).as_flattened())?;
            }
        }
        Ok(())
    }

    /// The result of an instance reaches this host.
    pub(super) fn result(&mut self, index: HostedComm, slot: Slot, top: MaximaExcluding<CLOCKS>) {
        let program = self.program;
        let comm = &program.collectives.comms[index];
        let (instance, group) = comm.instance_of(slot);
        let one_group = comm.groups() > 1 && self.class(comm, instance) == CollectiveClass::NToN;
        let shared = program.shared_latency[index];
        let prefix = comm.instances[instance].class == CollectiveClass::Prefix;
        for member in comm.members.iter().filter(|member| !one_group || comm.group_before(member.rank) == group) {
            let (timeline, end) = (member.ended_on, member.ends.at(instance.place()));
            if member.receives[instance] && !(self.synchronising && prefix) {
                let latency = instance_latency(comm, instance, member, &program.latency, shared);
                let bounds = top.map(|top| later(top.excluding(comm.holder(member.rank)), latency));
                self.bound(timeline, end, bounds);
            } else if self.synchronising {
                self.bound(timeline, end, [NO_LOWER_BOUND; CLOCKS]);
            }
        }
    }

    /// One member's contribution to a prefix operation reaches the home: ranks whose predecessors are complete can go on.
    pub(super) fn prefix_at_home(
        &mut self,
        index: HostedComm,
        instance: InstanceIndex,
        rank: CommRank,
        values: Times<CLOCKS>,
        out: &mut Outbox<'_>,
    ) -> Result<()> {
        let program = self.program;
        let comm = &program.collectives.comms[index];
        let slot = comm.slot(instance, 0);
        let state = self.home[index].state(slot);
        let waiting = state.values.get_or_insert_default();
        waiting.insert(rank, values);
        // `count` ranks are complete, `top.max` is the largest of their contributions.
        let mut ready = Vec::new();
        while let Some(values) = waiting.remove(&CommRank(state.count)) {
            for (top, value) in state.top.iter_mut().zip(values) {
                top.max = top.max.max(value);
            }
            state.count += 1;
            if state.count < comm.size {
                ready.push((CommRank(state.count), state.top.map(|top| top.max)));
            }
        }
        // The last rank is nobody's predecessor: the instance is complete without it.
        if state.count + 1 >= comm.size {
            self.home[index].finish(slot);
        }
        for (rank, largest) in ready {
            let host = comm.host_of(rank);
            if host == out.here {
                self.prefix_result(index, instance, rank, largest);
            } else {
                let head = [self.head(comm.comm.0, PREFIX_RESULT), u64::from(instance.0) << 32 | u64::from(rank.0)];
                out.post(host, &head, &largest.map(i64::cast_unsigned))?;
            }
        }
        Ok(())
    }

    pub(super) fn prefix_result(
        &mut self,
        index: HostedComm,
        instance: InstanceIndex,
        rank: CommRank,
        largest: Times<CLOCKS>,
    ) {
        let program = self.program;
        let comm = &program.collectives.comms[index];
        let Ok(member) = comm.members.binary_search_by_key(&rank, |member| member.rank) else { return };
        let member = &comm.members[member];
        if member.receives[instance] {
            let latency = program.shared_latency[index];
            let bounds = largest.map(|largest| later(largest, latency));
            self.bound(member.ended_on, member.ends.at(instance.place()), bounds);
        }
    }
}

/// Where contributions of member `rank` to an instance meet.
fn slot_of(comm: &CollectiveComm, instance: InstanceIndex, class: CollectiveClass, rank: CommRank) -> Slot {
    let group = if class == CollectiveClass::NToN { comm.group_of(rank) } else { 0 };
    comm.slot(instance, group)
}

/// How many of the members hosted here whose contributions to an instance that is no prefix operation meet in `slot` send nothing, and how many there are.
fn silent(comm: &CollectiveComm, instance: InstanceIndex, slot: Slot) -> (u32, u32) {
    let Instance { class, root, .. } = comm.instances[instance];
    let contributes = |member: &&HostedMember| {
        let needed = match class {
            CollectiveClass::OneToN => member.rank == root,
            CollectiveClass::NToOne => member.rank != root,
            CollectiveClass::NToN => true,
            CollectiveClass::Prefix | CollectiveClass::Unconstrained => false,
        };
        needed && slot_of(comm, instance, class, member.rank) == slot
    };
    let sends = comm.members.iter().filter(contributes).map(|member| member.sends[instance]);
    sends.fold((0, 0), |(silent, all), sends| (silent + u32::from(!sends), all + 1))
}

/// How many of the members hosted here have to begin before this host contributes to `instance`; `None` if the member `rank`
/// contributes nothing, or (prefix operations) contributes alone.
fn contributors(comm: &CollectiveComm, instance: InstanceIndex, class: CollectiveClass, rank: CommRank) -> Option<u32> {
    let root = comm.instances[instance].root;
    let members = comm.members.len() as u32;
    match class {
        CollectiveClass::OneToN => (rank == root).then_some(1),
        CollectiveClass::NToOne => {
            let hosts_root = comm.members.binary_search_by_key(&root, |member| member.rank).is_ok();
            (rank != root).then(|| members - u32::from(hosts_root))
        }
        CollectiveClass::NToN if comm.groups() > 1 => {
            let own = |member: &&HostedMember| comm.group_of(member.rank) == comm.group_of(rank);
            Some(comm.members.iter().filter(own).count() as u32)
        }
        CollectiveClass::NToN => Some(members),
        CollectiveClass::Prefix | CollectiveClass::Unconstrained => None,
    }
}
