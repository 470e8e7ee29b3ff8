//! How other nodes are reached, and which of their packets were let in.

use super::message::Contact;
use super::seal::AntiReplayWindow;
use super::types::{NodeId, Time};
use crate::random::Random;
use std::collections::HashMap;

/// Contacts kept of each group that this node is not in.
const CONTACTS: usize = 4;

/// Contacts and windows against replays.
#[derive(Debug, Default)]
pub(crate) struct PeerContacts {
    contacts: HashMap<NodeId, Contact>,
    windows: HashMap<NodeId, AntiReplayWindow>,
    /// Nodes of other groups by layer and local index of their group.
    groups: Vec<Vec<Vec<NodeId>>>,
    /// When the last probe went to whom.
    probes: HashMap<NodeId, Time>,
}

impl PeerContacts {
    pub(crate) fn get(&self, id: NodeId) -> Option<Contact> {
        self.contacts.get(&id).copied()
    }

    pub(crate) fn admit(&mut self, id: NodeId, incarnation: u64, sequence: u64) -> bool {
        self.windows.entry(id).or_default().admit(incarnation, sequence)
    }

    /// Remembers how a node is reached; `group` is layer and index of the group it stands for, unless it is in the same. Whether this is a later
    /// start of a node that was known.
    pub(crate) fn learn(
        &mut self,
        contact: Contact,
        group: Option<(u8, usize)>,
        keep: bool,
        random: &mut Random,
    ) -> bool {
        if let Some(known) = self.contacts.get_mut(&contact.id) {
            let later = contact.incarnation > known.incarnation;
            if later {
                *known = contact;
            }
            return later;
        }
        if let Some(group) = group {
            let list = self.group_mut(group);
            if list.len() >= CONTACTS && !keep {
                let place = random.below(CONTACTS as u64) as usize;
                let old = std::mem::replace(&mut list[place], contact.id);
                self.contacts.remove(&old);
            } else {
                list.push(contact.id);
            }
        }
        self.contacts.insert(contact.id, contact);
        false
    }

    /// One node of another group at random.
    pub(crate) fn of_group(&self, layer: u8, index: usize, random: &mut Random) -> Option<NodeId> {
        random.choose(self.group(layer, index)?).copied()
    }

    /// Whether anybody of another group is known.
    pub(crate) fn knows_group(&self, layer: u8, index: usize) -> bool {
        self.group(layer, index).is_some_and(|known| !known.is_empty())
    }

    fn group(&self, layer: u8, index: usize) -> Option<&Vec<NodeId>> {
        self.groups.get(usize::from(layer))?.get(index)
    }

    fn group_mut(&mut self, (layer, index): (u8, usize)) -> &mut Vec<NodeId> {
        let layer = usize::from(layer);
        if self.groups.len() <= layer {
            self.groups.resize(layer + 1, Vec::new());
        }
        let groups = &mut self.groups[layer];
        if groups.len() <= index {
            groups.resize(index + 1, Vec::new());
        }
        &mut groups[index]
    }

    /// One contact of any other group at random.
    pub(crate) fn any(&self, groups: &[(u8, usize)], random: &mut Random) -> Option<Contact> {
        let &(layer, index) = random.choose(groups)?;
        self.get(self.of_group(layer, index, random)?)
    }

    pub(crate) fn contacts(&self) -> impl Iterator<Item = &Contact> {
        self.contacts.values()
    }

    pub(crate) fn probed(&mut self, id: NodeId, at: Time) {
        self.probes.insert(id, at);
    }

    /// Whether the last probe to this node is the one sent then. It is answered once.
    pub(crate) fn answered(&mut self, id: NodeId, at: Time) -> bool {
        let matches = self.probes.get(&id) == Some(&at);
        if matches {
            self.probes.remove(&id);
        }
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact(id: u32, incarnation: u64) -> Contact {
        Contact { id: NodeId(id), address: ([10, 0, 0, id as u8], 1).into(), incarnation }
    }

    #[test]
    fn a_few_contacts_of_each_other_group_are_kept_and_later_starts_replace_earlier() {
        let (mut peers, mut random) = (PeerContacts::default(), Random::new(1));
        (0..20).for_each(|id| assert!(!peers.learn(contact(id, 5), Some((2, 7)), false, &mut random)));
        assert_eq!(peers.contacts().count(), CONTACTS);
        let someone = peers.of_group(2, 7, &mut random).expect("somebody");
        assert!(peers.learn(contact(someone.0, 6), Some((2, 7)), false, &mut random));
        assert!(!peers.learn(contact(someone.0, 5), Some((2, 7)), false, &mut random));
        assert_eq!(peers.get(someone).map(|contact| contact.incarnation), Some(6));
        assert_eq!(peers.of_group(2, 8, &mut random), None);
    }

    #[test]
    fn a_probe_is_answered_once() {
        let mut peers = PeerContacts::default();
        peers.probed(NodeId(1), 40);
        assert!(!peers.answered(NodeId(1), 39) && peers.answered(NodeId(1), 40) && !peers.answered(NodeId(1), 40));
    }
}
