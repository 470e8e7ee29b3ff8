//! What a user tells all agents of a running job: formulas that they compute, and files that they read a number from. One agent is told; the others hear of it
//! by gossip. Of two settings of one name, the later one holds.

use crate::gossip::{MAX_DATUM, Node};
use crate::resources::Formula;
use crate::setting::{Setting, SettingKind};
use std::collections::BTreeMap;

/// Settings are data of the agent that was told, from this key on.
const FIRST: u16 = 0x200;
/// So many one agent keeps. Chosen by hand: all agents hold those of all, which gossip has to carry.
const MOST: u16 = 64;

/// The settings that this agent was told.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentSettings {
    own: Vec<Setting>,
    /// Of those, so many are known to the others.
    told: Vec<Setting>,
}

impl AgentSettings {
    /// Takes one in.
    ///
    /// # Errors
    /// It is no formula, or too long, or there are too many.
    pub(super) fn take(&mut self, setting: Setting) -> Result<(), String> {
        if setting.kind == SettingKind::Formula && !setting.text.is_empty() {
            Formula::parse(&setting.text).map_err(|error| error.to_string())?;
        }
        if setting.kind == SettingKind::Sensor && !(setting.text.is_empty() || setting.text.starts_with('/')) {
            return Err("a sensor needs the absolute path of a file, the same on all nodes".to_owned());
        }
        if setting.name.is_empty()
            || !setting.name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        {
            return Err("a name may contain only letters, digits and underscores".to_owned());
        }
        if serde_json::to_vec(&setting).is_ok_and(|bytes| bytes.len() > MAX_DATUM) {
            return Err("name and text together are too long".to_owned());
        }
        let place = self.own.iter().position(|own| (own.kind, &own.name) == (setting.kind, &setting.name));
        match place {
            Some(place) => self.own[place] = setting,
            None if self.own.len() >= usize::from(MOST) => {
                return Err(format!("an agent holds at most {MOST} formulas and sensors"));
            }
            None => self.own.push(setting),
        }
        Ok(())
    }

    /// Tells the others what is new.
    pub(super) fn tell(&mut self, node: &mut Node) {
        for (place, setting) in (0..MOST).zip(&self.own) {
            let known = self.told.get(usize::from(place)) == Some(setting);
            if !known && let Ok(bytes) = serde_json::to_vec(setting) {
                // Short enough: it was taken in.
                let _ = node.put_everywhere(FIRST + place, &bytes);
            }
        }
        self.told.clone_from(&self.own);
    }
}

/// What holds of all that agents have said.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct InForce {
    all: BTreeMap<(SettingKind, String), Setting>,
}

impl InForce {
    /// As a node knows it.
    pub(super) fn of(node: &Node) -> InForce {
        let mut in_force = InForce::default();
        for member in node.members() {
            for (_, bytes) in member.data.iter().filter(|(key, _)| (FIRST..FIRST + MOST).contains(key)) {
                if let Ok(setting) = serde_json::from_slice::<Setting>(bytes) {
                    in_force.take(setting);
                }
            }
        }
        in_force
    }

    fn take(&mut self, setting: Setting) {
        let key = (setting.kind, setting.name.clone());
        if self.all.get(&key).is_none_or(|known| known.given < setting.given) {
            self.all.insert(key, setting);
        }
    }

    fn named(&self, kind: SettingKind) -> impl Iterator<Item = (&str, &str)> {
        let there = self.all.values().filter(move |setting| setting.kind == kind && !setting.text.is_empty());
        there.map(|setting| (setting.name.as_str(), setting.text.as_str()))
    }

    /// Names and formulas. One that an agent of another version has taken and this one cannot read is left out.
    pub(super) fn formulas(&self) -> impl Iterator<Item = (&str, Formula)> {
        self.named(SettingKind::Formula).filter_map(|(name, text)| Some((name, Formula::parse(text).ok()?)))
    }

    /// Names and paths.
    pub(super) fn sensors(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named(SettingKind::Sensor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gossip::{Config, NodeId};

    fn setting(kind: SettingKind, name: &str, text: &str, given: u64) -> Setting {
        Setting { kind, name: name.to_owned(), text: text.to_owned(), given }
    }

    #[test]
    fn what_makes_no_sense_is_not_taken() {
        let mut settings = AgentSettings::default();
        for (kind, name, text) in [
            (SettingKind::Formula, "a", "load1"),
            (SettingKind::Formula, "a b", "1"),
            (SettingKind::Formula, "", "1"),
            (SettingKind::Sensor, "power", "energy"),
        ] {
            assert!(settings.take(setting(kind, name, text, 1)).is_err(), "{name} {text}");
        }
        assert!(settings.take(setting(SettingKind::Sensor, "a", &format!("/{}", "a".repeat(MAX_DATUM)), 1)).is_err());
        for number in 0..MOST {
            settings.take(setting(SettingKind::Formula, &format!("f{number}"), "nodes", 1)).unwrap();
        }
        assert!(settings.take(setting(SettingKind::Formula, "one_more", "nodes", 1)).is_err());
        settings.take(setting(SettingKind::Formula, "f3", "2 * nodes", 2)).unwrap();
    }

    #[test]
    fn the_later_one_holds_and_an_empty_one_takes_back() {
        let mut node = Node::new(Config::new(NodeId(0), "127.0.0.1:1".parse().unwrap(), [0; 32]), 0).unwrap();
        let mut settings = AgentSettings::default();
        settings.take(setting(SettingKind::Formula, "spread", "load1_max - load1_min", 1)).unwrap();
        settings.take(setting(SettingKind::Sensor, "power", "/sys/power", 1)).unwrap();
        settings.tell(&mut node);
        let mut in_force = InForce::of(&node);
        assert_eq!(in_force.sensors().collect::<Vec<_>>(), [("power", "/sys/power")]);
        in_force.take(setting(SettingKind::Formula, "spread", "1", 0));
        assert_eq!(
            in_force.formulas().map(|(_, formula)| formula.text().to_owned()).collect::<Vec<_>>(),
            ["load1_max - load1_min"]
        );
        in_force.take(setting(SettingKind::Formula, "spread", "", 2));
        assert_eq!(in_force.formulas().count(), 0);
    }
}
