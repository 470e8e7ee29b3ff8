//! Threads made by `pthread_create`: who made them, when they began and ended, and who waited for them.

use crate::recording::events::ProcessEvents;
use crate::recording::raw::records::Pthread;
use clc_trace::{Event, Result, ThreadEvent, ThreadStart};

impl ProcessEvents<'_, '_> {
    /// A step of a thread. Those of threads of which the creation or the beginning is missing are left out.
    pub(super) fn pthread(&mut self, thread: usize, time: u64, step: Pthread) -> Result<()> {
        let Some(of) = self.shared.pthreads.get(&self.header.rank) else { return Ok(()) };
        let start = |number: u64| ThreadStart { contingent: of.contingent, sequence: number };
        let known = |number: u64| of.survey.known.contains(&number).then_some(number);
        let event = match step {
            Pthread::Create(number) => known(number).map(|number| ThreadEvent::Create(start(number))),
            Pthread::Begin(number, name) => known(number).map(|number| {
                self.pthreads.named.insert(name, number);
                self.pthreads.own.insert(thread, number);
                ThreadEvent::Begin(start(number))
            }),
            Pthread::Created(number, name) => {
                // One that records nothing may have the name of one that nobody has waited for, since it was detached.
                if known(number).is_none() {
                    self.pthreads.named.remove(&name);
                }
                None
            }
            Pthread::End => self.pthreads.own.remove(&thread).map(|number| ThreadEvent::End(start(number))),
            Pthread::Waited(name) => self.pthreads.named.remove(&name).map(|number| ThreadEvent::Wait(start(number))),
        };
        match event {
            Some(event) => self.emit(thread, time, &Event::Thread(event)),
            None => Ok(()),
        }
    }
}
