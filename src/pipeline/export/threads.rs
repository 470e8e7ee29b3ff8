//! Arrows within a process: between its threads, and between them and the streams of its accelerators.

use super::ExportWindow;
use super::flows::{Flow, FlowEnd};
use crate::pipeline::open::TraceHandle;
use clc_engine::matching::channels::Trust;
use clc_engine::matching::sync::EventCoordinates;
use clc_engine::matching::within::accelerators::{AcceleratorCalls, ProcessAccelerators};
use clc_engine::matching::within::threads::ProcessThreadSteps;
use clc_otf2::LocalDefinitions;
use clc_trace::{Event, EventNumber, LocationId, Result};

/// The steps of the threads and streams of one process, at the times that are exported.
pub(super) struct ProcessFlows<'a> {
    steps: ProcessThreadSteps<'a>,
    /// Process and thread number of each location.
    places: Vec<(u64, u64)>,
}

impl<'a> ProcessFlows<'a> {
    /// Of the process with these `locations` (by their places among the definitions).
    pub(super) fn new(
        opened: &'a TraceHandle,
        calls: &'a AcceleratorCalls,
        process: usize,
        locations: &[usize],
    ) -> ProcessFlows<'a> {
        let accelerators = ProcessAccelerators::new(calls, &opened.definitions, locations);
        ProcessFlows {
            steps: ProcessThreadSteps::new(&opened.definitions.thread_barriers, accelerators),
            places: locations.iter().map(|&location| (process as u64, location as u64)).collect(),
        }
    }

    /// Reads the events of location `id`, the one with this `number` in the process; `visit` gives the time of each.
    ///
    /// # Errors
    /// The events cannot be read.
    pub(super) fn read(
        &mut self,
        opened: &TraceHandle,
        (id, number): (LocationId, u32),
        local: &LocalDefinitions,
        mut visit: impl FnMut(EventNumber, u64, &Event) -> i64,
    ) -> Result<()> {
        let steps = &mut self.steps;
        let references = steps.accelerator_attributes();
        let mut read = |event_number, raw: u64, event: Event, refers| {
            let time = visit(event_number, raw, &event);
            let at = EventCoordinates { time, raw: raw as i64, number: event_number, location: number };
            if steps.takes(&event) {
                steps.add(at, &event);
            }
            if steps.takes_of_accelerators(number, &event) {
                steps.add_of_accelerators(at, &event, refers);
            }
            Ok(())
        };
        match references {
            None => {
                opened.archive.scan_with(id, local, |number, raw, event| read(number, raw, event, Default::default()))
            }
            Some(references) => opened.archive.scan_with_references(id, local, references, read),
        }
        .map(drop)
    }

    /// An arrow for each order with both ends in the window. Who leaves a barrier waits for the last of the others that entered it.
    pub(super) fn flows(&self, window: ExportWindow) -> Vec<Flow> {
        let end = |at: EventCoordinates| {
            let place = *self.places.get(at.location as usize)?;
            Some(FlowEnd { place, number: at.number, time: at.time }).filter(|_| window.holds(at.time))
        };
        let flow = |(kind, from, to): (Trust, EventCoordinates, EventCoordinates)| {
            let operation = kind.op().map(|op| op.name().to_owned());
            Some(Flow { to: end(to)?, operation, from: end(from)? })
        };
        self.steps.waits().into_iter().filter_map(flow).collect()
    }
}
