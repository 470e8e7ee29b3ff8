//! The calls that the locations of a process are in, where these say more than their records.

use super::Extractor;
use crate::matching::extract::calls::{Inside, SynchronisingCall};
use crate::matching::sync::EventCoordinates;
use clc_trace::{RegionId, Result};

impl Extractor<'_> {
    /// The call that the location is in, if it is this one.
    #[inline]
    pub(super) fn inside_of(&mut self, at: EventCoordinates, call: SynchronisingCall) -> Option<&mut Inside> {
        self.calls?;
        self.inside.get_mut(&at.location).filter(|inside| inside.call == call)
    }

    pub(super) fn enter(&mut self, at: EventCoordinates, region: RegionId) -> Result<bool> {
        let Some(call) = self.calls.and_then(|calls| calls.get(region)) else { return Ok(false) };
        if let Some(inside) = self.inside.get_mut(&at.location) {
            inside.deeper += 1;
            return Ok(false);
        }
        let mut inside = Inside::new(call);
        if matches!(call, SynchronisingCall::Posts | SynchronisingCall::WinPost | SynchronisingCall::WinComplete) {
            inside.entered = Some(self.near(at)?);
        }
        let visited = inside.entered.is_some();
        self.inside.insert(at.location, inside);
        Ok(visited)
    }

    pub(super) fn leave(&mut self, at: EventCoordinates, region: RegionId) -> Result<bool> {
        if self.calls.and_then(|calls| calls.get(region)).is_none() {
            return Ok(false);
        }
        match self.inside.get_mut(&at.location) {
            Some(inside) if inside.deeper > 0 => {
                inside.deeper -= 1;
                return Ok(false);
            }
            _ => {}
        }
        let Some(inside) = self.inside.remove(&at.location) else { return Ok(false) };
        match inside.call {
            SynchronisingCall::SynchronousSend => {
                let Some(sent) = inside.sent else { return Ok(false) };
                let end = self.near(at)?;
                self.out.synchronous.insert(sent, end);
                Ok(true)
            }
            SynchronisingCall::WinPost => {
                self.steps(&inside.groups, inside.entered, None);
                Ok(false)
            }
            SynchronisingCall::WinComplete | SynchronisingCall::WinWait if !inside.groups.is_empty() => {
                let end = self.near(at)?;
                self.steps(&inside.groups, inside.entered, Some((end, inside.call == SynchronisingCall::WinWait)));
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
