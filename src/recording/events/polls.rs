//! Polls in vain that the recorder has joined.

use crate::recording::events::ProcessEvents;
use crate::recording::raw::records::JoinedPolls;
use clc_trace::{CallParameter, Event, ParameterId, Result};

impl ProcessEvents<'_, '_> {
    /// They begin.
    pub(super) fn polls(&mut self, thread: usize, time: u64, polls: &JoinedPolls) -> Result<()> {
        let names = self.shared.polls;
        let Some(region) = names.region else { return Ok(()) };
        self.enter_region(thread, time, region)?;
        let within = self.counter.map_or(0.0, |counter| counter.length(polls.within));
        for (parameter, value) in names.values(polls, within) {
            self.emit(thread, time, &Event::Parameter(CallParameter { parameter: ParameterId(parameter), value }))?;
        }
        Ok(())
    }

    /// They end.
    pub(super) fn polls_end(&mut self, thread: usize, time: u64) -> Result<()> {
        match self.shared.polls.region {
            Some(region) => self.leave_this(thread, time, region),
            None => Ok(()),
        }
    }
}
