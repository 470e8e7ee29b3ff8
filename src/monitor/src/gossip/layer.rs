//! One layer of the protocol as one node sees it: gossip list, suspect vector and matrix, consensus (GEMS: Raman, Raj,
//! George et al. 2002). Entries are the members of this node's group: nodes in layer 1, groups of the layer below above it.
//!
//! An entry whose heartbeat has not risen for the cleanup time is suspected. The row of a member in the matrix is its
//! suspect vector as of its newest heartbeat. A suspect is dead when every member that is not suspected itself suspects it.

use super::message::Section;
use super::sets::Set;
use super::shape::LayerShape;
use super::types::{Liveness, Time};

/// A layer of fewer groups has their patience. Chosen by hand: with less, small jobs call groups dead that are merely heard late; with more, deaths
/// are noticed later there.
const LEAST_GROUPS: usize = 8;
/// The part of the cleanup time after which a silent member is suspected if others suspect it. Chosen by hand: a smaller part notices deaths sooner
/// and suspects the living more often.
const JOIN: (Time, Time) = (1, 2);
/// The part of the cleanup time after which one who has been silent is not waited for to agree that another one is dead, if most do: it may stand still itself.
const OVERDUE: (Time, Time) = (1, 2);

/// A member of the group.
#[derive(Debug, Clone)]
pub(crate) struct LayerEntry {
    pub heartbeat: u64,
    /// When the heartbeat rose.
    pub heard: Time,
    pub liveness: Liveness,
    pub since: Time,
    /// Since when all agree that it is dead.
    agreed: Option<Time>,
    /// Whom it suspects.
    row: Set,
}

/// What the passing of time or a message changed, by local index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    New(usize),
    Suspected(usize),
    Cleared(usize),
    Dead(usize),
}

/// The members of a group.
#[derive(Debug)]
pub(crate) struct Layer {
    /// 1 for nodes.
    pub level: u8,
    /// Local index of this node, or of the group it is in.
    pub own: usize,
    /// Number in the job of the entry with local index 0.
    pub base: u32,
    /// How many of the layer's entries there can be.
    pub most: usize,
    pub shape: LayerShape,
    cleanup: Time,
    /// What the cleanup time is longer by for each doubling of the number of entries.
    per_doubling: Time,
    consensus: Time,
    witnesses: usize,
    entries: Vec<Option<LayerEntry>>,
    /// Nobody is called dead before: while nodes still meet, those who know each other are too few to judge. In layers of groups they meet until suspicions no longer turn
    /// out to be wrong.
    calm: Time,
}

impl Layer {
    /// The layers of a node: one per group size, and the last.
    pub(crate) fn all(config: &super::Config, now: Time, heartbeat: u64) -> Vec<Layer> {
        let mut layers = Vec::new();
        for (place, shape) in LayerShape::all(config).into_iter().enumerate() {
            let index = shape.entry(config.id.0);
            let (base, most) = shape.group(index);
            let level = place as u8 + 1;
            let mut layer = Layer {
                level,
                own: (index - base) as usize,
                base,
                most,
                shape,
                cleanup: config.cleanup,
                // Two messages of each node in this layer.
                per_doubling: 2 * config.interval * u64::from(config.upper_every) * u64::from(level - 1),
                consensus: config.consensus,
                witnesses: config.witnesses as usize,
                entries: Vec::new(),
                calm: 0,
            };
            // A job of more nodes than the layers hold: such a node stays alone in the last one.
            if layer.own < layer.most {
                layer.add(layer.own, heartbeat, now);
            }
            layers.push(layer);
        }
        layers
    }

    /// Local index of the entry that a node belongs to, if it is in this group.
    pub(crate) fn local(&self, node: u32) -> Option<usize> {
        self.local_entry(self.shape.entry(node))
    }

    /// Local index of an entry by its number in the job.
    pub(crate) fn local_entry(&self, number: u32) -> Option<usize> {
        number.checked_sub(self.base).map(|local| local as usize).filter(|&local| local < self.most)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&LayerEntry> {
        self.entries.get(index)?.as_ref()
    }

    fn get_mut(&mut self, index: usize) -> Option<&mut LayerEntry> {
        self.entries.get_mut(index)?.as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &LayerEntry)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| Some((index, entry.as_ref()?)))
    }

    /// Local indices in a state, without the own one.
    pub(crate) fn others(&self, wanted: impl Fn(Liveness) -> bool) -> Vec<usize> {
        let wanted = |(index, entry): &(usize, &LayerEntry)| *index != self.own && wanted(entry.liveness);
        self.iter().filter(wanted).map(|(index, _)| index).collect()
    }

    pub(crate) fn heartbeat(&self) -> u64 {
        self.get(self.own).map_or(0, |entry| entry.heartbeat)
    }

    /// Adds an entry that was not there. Whether it was not.
    pub(crate) fn add(&mut self, index: usize, heartbeat: u64, now: Time) -> bool {
        if index >= self.most || self.get(index).is_some() {
            return false;
        }
        if self.entries.len() <= index {
            self.entries.resize(index + 1, None);
        }
        self.calm = self.calm.max(now + 2 * self.patience());
        let (liveness, row) = (Liveness::Alive, Set::default());
        self.entries[index] = Some(LayerEntry { heartbeat, heard: now, liveness, since: now, agreed: None, row });
        true
    }

    /// One heartbeat more of this node, and its suspect vector as of now.
    pub(crate) fn beat(&mut self, now: Time, least: u64) {
        let row = self.others(|state| matches!(state, Liveness::Suspect | Liveness::Dead)).into_iter().collect();
        let own = self.own;
        if let Some(entry) = self.get_mut(own) {
            entry.heartbeat = (entry.heartbeat + 1).max(least);
            entry.heard = now;
            entry.row = row;
        }
    }

    /// The time that this node stood still itself does not count as silence of others.
    pub(crate) fn forgive(&mut self, pause: Time) {
        for entry in self.entries.iter_mut().flatten() {
            entry.heard += pause;
            entry.agreed = None;
        }
    }

    /// What to tell others: all entries but the dead and those that have left.
    pub(crate) fn section(&self) -> Section {
        let mut section = Section { level: self.level, ..Section::default() };
        let mut rows: Vec<(Set, &Set)> = Vec::new();
        for (index, entry) in self.iter().filter(|(_, entry)| entry.liveness.is_there()) {
            section.heartbeats.push((index as u32, entry.heartbeat));
            if entry.row.is_empty() {
                continue;
            }
            match rows.iter_mut().find(|(_, row)| **row == entry.row) {
                Some((givers, _)) => givers.insert(index),
                None => rows.push(([index].into_iter().collect(), &entry.row)),
            }
        }
        section.rows = rows.into_iter().map(|(givers, row)| (givers, row.clone())).collect();
        section
    }

    /// Takes in what another node told in a packet that came at `came`: newer heartbeats with the rows that belong to them.
    pub(crate) fn merge(&mut self, section: &Section, now: Time, came: Time, changes: &mut Vec<Change>) {
        let mut newer = Set::default();
        for &(index, heartbeat) in &section.heartbeats {
            let index = index as usize;
            if self.add(index, heartbeat, now) {
                changes.push(Change::New(index));
                newer.insert(index);
                continue;
            }
            let own = index == self.own;
            let Some(entry) = self.get_mut(index).filter(|entry| heartbeat > entry.heartbeat) else { continue };
            entry.heartbeat = heartbeat;
            if own && self.level == 1 {
                continue;
            }
            let Some(entry) = self.get_mut(index) else { continue };
            entry.row = Set::default();
            if entry.liveness.is_there() {
                // Not before what was forgiven.
                entry.heard = entry.heard.max(came);
                newer.insert(index);
            }
            if entry.liveness == Liveness::Suspect {
                (entry.liveness, entry.since, entry.agreed) = (Liveness::Alive, now, None);
                changes.push(Change::Cleared(index));
                if self.level > 1 && self.meets(now) {
                    // Word of groups still takes longer than the patience.
                    self.calm = now + 2 * self.patience();
                }
            }
        }
        for (givers, suspects) in &section.rows {
            for giver in givers.iter().filter(|&giver| newer.contains(giver)) {
                if let Some(entry) = self.get_mut(giver) {
                    entry.row = suspects.clone();
                }
            }
        }
    }

    /// Takes part in suspicions of others, if no newer heartbeat is known here than there: the times of silence differ only by the way that the last one took.
    /// Whether there are any of members that have been silent here for half of the cleanup time or longer.
    pub(crate) fn join_suspicions(&mut self, section: &Section, now: Time, changes: &mut Vec<Change>) -> bool {
        let (own, patience) = (self.own, self.patience());
        let mut doubted = false;
        for (_, suspects) in &section.rows {
            for index in suspects.iter().filter(|&index| index != own) {
                let told = section.heartbeats.binary_search_by_key(&(index as u32), |&(told, _)| told);
                let told = told.ok().and_then(|place| Some(section.heartbeats.get(place)?.1));
                let Some(entry) = self.get_mut(index).filter(|entry| entry.liveness == Liveness::Alive) else {
                    continue;
                };
                let silent = now.saturating_sub(entry.heard);
                doubted |= silent > patience / 2;
                if silent > patience / JOIN.1 * JOIN.0 && told == Some(entry.heartbeat) {
                    (entry.liveness, entry.since) = (Liveness::Suspect, now);
                    changes.push(Change::Suspected(index));
                }
            }
        }
        doubted
    }

    /// Whether nodes of this layer have met so recently that nobody is called dead.
    pub(crate) fn meets(&self, now: Time) -> bool {
        now < self.calm
    }

    /// Silence after which an entry is suspected.
    fn patience(&self) -> Time {
        // Of few groups one may be of a single node, of which the many of another one hear as late as of many groups.
        let entries = self.entries.len().max(LEAST_GROUPS);
        let doublings = entries.next_power_of_two().trailing_zeros();
        self.cleanup + self.per_doubling * u64::from(doublings)
    }

    /// Groups that have been silent for so long that no word of them seems to be on its way any more. Whoever asks one of their nodes itself gives it the same time to answer that a node of the own group has.
    pub(crate) fn to_ask(&self, now: Time) -> Vec<usize> {
        let usual = self.patience() - self.cleanup;
        let silent = |entry: &LayerEntry| entry.liveness.is_there() && now.saturating_sub(entry.heard) > usual;
        let groups = self.iter().filter(|&(index, entry)| self.level > 1 && index != self.own && silent(entry));
        groups.map(|(index, _)| index).collect()
    }

    /// Finds who has been silent for too long, and who is dead by consensus.
    pub(crate) fn tick(&mut self, now: Time, changes: &mut Vec<Change>) {
        let (own, cleanup) = (self.own, self.patience());
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let Some(entry) = entry else { continue };
            let silent = now.saturating_sub(entry.heard) > cleanup;
            if index != own && entry.liveness == Liveness::Alive && silent {
                (entry.liveness, entry.since) = (Liveness::Suspect, now);
                changes.push(Change::Suspected(index));
            }
        }
        for suspect in self.others(|state| state == Liveness::Suspect) {
            let agreed = self.consensus(suspect, now);
            let (wait, calm) = (self.consensus, now >= self.calm);
            let Some(entry) = self.get_mut(suspect) else { continue };
            entry.agreed = if agreed { entry.agreed.or(Some(now)) } else { None };
            if calm && entry.agreed.is_some_and(|since| now - since.min(now) >= wait) {
                self.set(suspect, Liveness::Dead, now);
                changes.push(Change::Dead(suspect));
            }
        }
    }

    /// Whether all members that this node does not suspect suspect `suspect`, as this node does, and enough of them; of those that are overdue, whoever has not said so is left out if most
    /// of the others have.
    fn consensus(&self, suspect: usize, now: Time) -> bool {
        let (mut agreeing, mut living, mut overdue) = (1usize, 1usize, 0usize);
        let late = self.patience() / OVERDUE.1 * OVERDUE.0;
        for (index, entry) in self.iter() {
            if index == self.own || !entry.liveness.is_there() {
                continue;
            }
            living += 1;
            if entry.liveness == Liveness::Alive {
                if entry.row.contains(suspect) {
                    agreeing += 1;
                } else if now.saturating_sub(entry.heard) > late {
                    overdue += 1;
                } else {
                    return false;
                }
            }
        }
        agreeing >= self.witnesses.min(living.div_ceil(2)) && (overdue == 0 || agreeing > living / 2)
    }

    /// Sets what is known from elsewhere: a consensus found by others, a farewell, a return. Whether it is a change.
    pub(crate) fn set(&mut self, index: usize, liveness: Liveness, now: Time) -> bool {
        let Some(entry) = self.get_mut(index).filter(|entry| entry.liveness != liveness) else { return false };
        (entry.liveness, entry.since, entry.agreed) = (liveness, now, None);
        if liveness == Liveness::Alive {
            entry.heard = now;
            entry.row = Set::default();
        }
        true
    }

    /// Raises a heartbeat to at least that.
    pub(crate) fn raise(&mut self, index: usize, heartbeat: u64) {
        if let Some(entry) = self.get_mut(index) {
            entry.heartbeat = entry.heartbeat.max(heartbeat);
        }
    }
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
