//! How other nodes are reached, and which of their packets were let in.

use super::message::Contact;
use super::seal::AntiReplayWindow;
use super::table::NodeTable;
use super::types::{NodeId, Time};
use crate::random::Random;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Nodes of other groups that are remembered as the last ones heard. Chosen by hand: with fewer, there is little choice whom to turn to; more have
/// not been heard for longer.
const SENDERS: usize = 8;
/// Contacts kept of each group that this node is not in. Chosen by hand: with one, a group is out of reach when that node dies; more take memory per
/// group.
const CONTACTS: usize = 4;

/// An address in half the room of a [`SocketAddr`].
#[derive(Debug, Clone)]
enum StoredAddress {
    V4(Ipv4Addr, u16),
    V6(Box<SocketAddrV6>),
}

/// A contact without its number.
#[derive(Debug, Clone)]
struct StoredContact {
    address: StoredAddress,
    incarnation: u64,
}

impl StoredContact {
    fn new(contact: &Contact) -> Self {
        let address = match contact.address {
            SocketAddr::V4(v4) => StoredAddress::V4(*v4.ip(), v4.port()),
            SocketAddr::V6(v6) => StoredAddress::V6(Box::new(v6)),
        };
        StoredContact { address, incarnation: contact.incarnation }
    }

    fn contact(&self, id: NodeId) -> Contact {
        let address = match &self.address {
            StoredAddress::V4(ip, port) => SocketAddr::V4(SocketAddrV4::new(*ip, *port)),
            StoredAddress::V6(v6) => SocketAddr::V6(**v6),
        };
        Contact { id, address, incarnation: self.incarnation }
    }
}

/// Contacts and windows against replays.
#[derive(Debug, Default)]
pub(crate) struct PeerContacts {
    contacts: NodeTable<StoredContact>,
    windows: NodeTable<AntiReplayWindow>,
    /// Nodes of other groups by layer and local index of their group.
    groups: Vec<Vec<Vec<NodeId>>>,
    /// Nodes of other groups that have sent something themselves, the last ones, and how many of these there were in all.
    senders: Vec<NodeId>,
    sent: usize,
    /// When the last probe went to whom.
    probes: NodeTable<Time>,
}

impl PeerContacts {
    pub(crate) fn get(&self, id: NodeId) -> Option<Contact> {
        self.contacts.get(id).map(|stored| stored.contact(id))
    }

    /// Whether it is known how a node is reached.
    pub(crate) fn knows(&self, id: NodeId) -> bool {
        self.contacts.get(id).is_some()
    }

    pub(crate) fn admit(&mut self, id: NodeId, incarnation: u64, sequence: u64) -> bool {
        if let Some(window) = self.windows.get_mut(id) {
            return window.admit(incarnation, sequence);
        }
        let mut window = AntiReplayWindow::default();
        let admitted = window.admit(incarnation, sequence);
        self.windows.insert(id, window);
        admitted
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
        if let Some(known) = self.contacts.get_mut(contact.id) {
            let later = contact.incarnation > known.incarnation;
            if later {
                *known = StoredContact::new(&contact);
            }
            return later;
        }
        if let Some(group) = group {
            let list = self.group_mut(group);
            if list.len() >= CONTACTS && !keep {
                let place = random.below(CONTACTS as u64) as usize;
                let old = std::mem::replace(&mut list[place], contact.id);
                self.contacts.remove(old);
            } else {
                list.push(contact.id);
            }
        }
        self.contacts.insert(contact.id, StoredContact::new(&contact));
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

    /// Notes that a node of another group has sent something itself.
    pub(crate) fn heard(&mut self, id: NodeId) {
        if self.senders.len() < SENDERS {
            self.senders.push(id);
        } else if let Some(place) = self.senders.get_mut(self.sent % SENDERS) {
            *place = id;
        }
        self.sent = self.sent.wrapping_add(1);
    }

    /// One of the nodes of other groups that were heard last.
    pub(crate) fn sender(&self, random: &mut Random) -> Option<Contact> {
        self.get(*random.choose(&self.senders)?)
    }

    pub(crate) fn contacts(&self) -> impl Iterator<Item = Contact> {
        self.contacts.iter().map(|(id, stored)| stored.contact(id))
    }

    pub(crate) fn probed(&mut self, id: NodeId, at: Time) {
        self.probes.insert(id, at);
    }

    /// Whether the last probe to this node is the one sent then. It is answered once.
    pub(crate) fn answered(&mut self, id: NodeId, at: Time) -> bool {
        let matches = self.probes.get(id) == Some(&at);
        if matches {
            self.probes.remove(id);
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
