//! Which events of a location are visited: those that synchronise, those in calls that matter, and pairs that are close together in time.

use clc_archive::SynchronisationVisitor;
use clc_clock::{Clock, ClockCursor, RANGE};
use clc_engine::matching::extract::Extractor;
use clc_engine::matching::extract::calls::Calls;
use clc_engine::matching::sync::EventCoordinates;
use clc_trace::vector::widest;
use clc_trace::{Error, Event, EventNumber, RegionId, Result, Ticks};

/// An event to visit, where the events of several locations have to be merged first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    pub(super) at: EventCoordinates,
    pub(super) what: VisitKind,
    /// Whether it has a neighbour that is close.
    pub(super) near: bool,
}

/// Why an event is visited.
#[derive(Debug, Clone, Copy)]
pub(super) enum VisitKind {
    /// It matters.
    Event(Event),
    /// It enters the region in which the next blocking receive of the location is recorded. The same event may be visited as a neighbour, too.
    EnterReceive,
    /// It is this step of a thread that is tied to others with other clocks. The same event may be visited for other reasons, too.
    Step(usize),
    /// It is only close to one that is visited.
    Neighbour,
}

impl VisitKind {
    /// In which order the reasons of one event come.
    pub(super) fn order(&self) -> u8 {
        match self {
            VisitKind::EnterReceive => 0,
            VisitKind::Event(_) => 1,
            VisitKind::Step(_) => 2,
            VisitKind::Neighbour => 3,
        }
    }
}

/// Finds out whether a location sends in one of some regions, where enters and leaves are read.
pub(super) struct SendsWithin<'a> {
    /// Ascending.
    pub(super) regions: &'a [RegionId],
    /// The last event that entered or left a region entered this one.
    pub(super) last: Option<RegionId>,
    /// Whether it has.
    pub(super) sent: bool,
}

impl SendsWithin<'_> {
    #[inline]
    pub(super) fn look(&mut self, event: &Event) {
        match event {
            Event::Enter(region) => self.last = Some(*region),
            Event::Leave(_) => self.last = None,
            Event::MpiSend(_) | Event::MpiIsend(..) => {
                self.sent |= self.last.is_some_and(|region| self.regions.binary_search(&region).is_ok());
            }
            _ => {}
        }
    }
}

/// Decides which events of a location are visited.
pub(super) struct Visits<'a> {
    location: u32,
    cursor: ClockCursor<'a>,
    /// Neighbours that differ by less than this (and not by zero) are visited both.
    close: i64,
    /// Neighbours recorded so far apart, or at the same time, are not close: nearly all are, and need not be mapped for that.
    far: u64,
    /// Recorded time of the event before.
    before: u64,
    /// Whether that one has been visited.
    visited: bool,
    /// No event up to this one is close to the one before it, and `before` is its time already.
    apart: EventNumber,
    /// Regions that are open, outermost first: number and recorded time of the event that entered each. Of several locations only.
    open: Vec<(EventNumber, u64)>,
    /// Number of the last event after which a receive can have been posted: a posted or completed one, or a collective operation.
    busy: EventNumber,
    /// The regions that are visited.
    calls: Option<&'a Calls>,
}

impl<'a> Visits<'a> {
    pub(super) fn new(location: u32, clock: &'a Clock, close: i64, calls: Option<&'a Calls>) -> Self {
        let far = clock.reach(close.max(0) as u64);
        Visits {
            location,
            cursor: clock.cursor(),
            close,
            far,
            before: 0,
            visited: false,
            apart: EventNumber::START,
            open: Vec::new(),
            busy: EventNumber::START,
            calls,
        }
    }

    #[inline]
    pub(super) fn place(&mut self, number: EventNumber, raw: u64) -> Result<EventCoordinates> {
        let local = i64::try_from(raw).ok().filter(|&raw| raw < RANGE).ok_or_else(|| {
            Error::new(format!("timestamp {raw} exceeds 2^62 ticks, the largest that can be corrected"))
                .at_event(number)
        })?;
        Ok(EventCoordinates { time: self.cursor.map(Ticks(local)).0, raw: local, number, location: self.location })
    }

    /// Whether an event has to be looked at.
    #[inline]
    fn is_relevant(&self, event: &Event) -> bool {
        Extractor::is_relevant(event) || self.calls.is_some_and(|calls| is_call(calls, event))
    }

    /// Whether nothing is to be done for this event.
    #[inline]
    fn passes(&mut self, number: EventNumber, raw: u64, event: &Event) -> bool {
        let distance = raw.wrapping_sub(self.before);
        let passes = (distance == 0 || distance >= self.far || number == EventNumber::FIRST)
            && !self.is_relevant(event)
            && raw < RANGE as u64;
        if passes {
            (self.before, self.visited) = (raw, false);
        }
        passes
    }

    /// The event before `at` if the two are close.
    #[inline]
    fn neighbour(&mut self, at: &EventCoordinates) -> Result<Option<EventCoordinates>> {
        let distance = (at.raw as u64).wrapping_sub(self.before);
        if at.number == EventNumber::FIRST || distance == 0 || distance >= self.far {
            return Ok(None);
        }
        let before = self.place(EventNumber(at.number.preceding()), self.before)?;
        let distance = at.time - before.time;
        Ok((distance > 0 && distance < self.close).then_some(before))
    }

    /// Reads an event of the only location of a timeline.
    #[inline]
    pub(super) fn feed(
        &mut self,
        number: EventNumber,
        raw: u64,
        event: &Event,
        extractor: &mut Extractor<'_>,
    ) -> Result<()> {
        if self.passes(number, raw, event) { Ok(()) } else { self.look_at(number, raw, event, extractor) }
    }

    /// Whether no event of those that follow is close to the one before it: their times, the first of them with number `first`.
    #[inline]
    fn are_apart(&mut self, first: EventNumber, times: &[u64]) -> bool {
        let Some((&begin, &end)) = times.first().zip(times.last()) else { return true };
        // At the same time, or far apart; all are looked at, which is faster than to stop.
        let (before, far) = (self.before, self.far.saturating_sub(1));
        let apart = |before: u64, time: u64| time.wrapping_sub(before).wrapping_sub(1) >= far;
        let all = widest(
            #[inline(always)]
            || times.iter().zip(&times[1..]).fold(true, |all, (&before, &time)| all & apart(before, time)),
        );
        if !all || !apart(before, begin) || first == EventNumber::FIRST || end >= RANGE as u64 {
            return false;
        }
        (self.apart, self.before, self.visited) = (first + (times.len() as u64 - 1), end, false);
        true
    }

    /// As [`Visits::feed`] for events that synchronise nobody and follow each other, the first of them with number `first`.
    #[inline]
    fn others(&mut self, first: EventNumber, times: &[u64], extractor: &mut Extractor<'_>) -> Result<()> {
        let far = self.far;
        for (number, &raw) in first.and_following().zip(times) {
            let distance = raw.wrapping_sub(self.before);
            if (distance == 0 || distance >= far) && raw < RANGE as u64 && number > EventNumber::FIRST {
                (self.before, self.visited) = (raw, false);
            } else {
                self.feed(number, raw, &Event::Other, extractor)?;
            }
        }
        Ok(())
    }

    /// Reads an event that is close to no other one.
    #[inline]
    fn take(&mut self, number: EventNumber, raw: u64, event: &Event, extractor: &mut Extractor<'_>) -> Result<()> {
        let at = self.place(number, raw)?;
        let visited = extractor.event(at, event).map_err(|error| error.at_event(number))?;
        if number == self.apart {
            self.visited = visited;
        }
        Ok(())
    }

    #[inline(never)]
    fn look_at(&mut self, number: EventNumber, raw: u64, event: &Event, extractor: &mut Extractor<'_>) -> Result<()> {
        let at = self.place(number, raw)?;
        let near = self.neighbour(&at)?;
        if let Some(before) = near.filter(|_| !self.visited) {
            extractor.near(before)?;
        }
        let mut visited = false;
        if self.is_relevant(event) {
            visited = extractor.event(at, event).map_err(|error| error.at_event(number))?;
        }
        if near.is_some() && !visited {
            extractor.near(at)?;
            visited = true;
        }
        (self.before, self.visited) = (raw, visited);
        Ok(())
    }

    /// Reads an event of one of several locations.
    pub(super) fn collect(
        &mut self,
        number: EventNumber,
        raw: u64,
        event: &Event,
        list: &mut Vec<Visit>,
    ) -> Result<()> {
        match event {
            Event::Enter(_) => self.open.push((number, raw)),
            Event::Leave(_) => drop(self.open.pop()),
            _ => {}
        }
        if self.passes(number, raw, event) {
            return Ok(());
        }
        let at = self.place(number, raw)?;
        let near = self.neighbour(&at)?;
        if let Some(before) = near.filter(|_| !self.visited) {
            // It may be in the list already, for an event that is read but not visited.
            match list.last_mut() {
                Some(last) if last.at.number == before.number && last.at.location == before.location => {
                    last.near = true
                }
                _ => list.push(Visit { at: before, what: VisitKind::Neighbour, near: true }),
            }
        }
        if let Some(at) = self.entered(number, event)? {
            list.push(Visit { at, what: VisitKind::EnterReceive, near: false });
        }
        let what = if self.is_relevant(event) { VisitKind::Event(*event) } else { VisitKind::Neighbour };
        if matches!(what, VisitKind::Event(_)) || near.is_some() {
            list.push(Visit { at, what, near: near.is_some() });
        }
        (self.before, self.visited) = (raw, near.is_some());
        Ok(())
    }

    /// Where a blocking receive was posted: the event that entered the innermost region, unless the location has received something since
    /// (then the region is one of the application, since the trace has none of MPI).
    fn entered(&mut self, number: EventNumber, event: &Event) -> Result<Option<EventCoordinates>> {
        let entered = self.open.last().copied().filter(|&(entered, _)| entered > self.busy);
        match event {
            Event::MpiSend(_) | Event::MpiIsend(..) | Event::MpiIsendComplete(_) => return Ok(None),
            event if Extractor::is_relevant(event) => self.busy = number,
            _ => return Ok(None),
        }
        match (event, entered) {
            (Event::MpiRecv(_), Some((number, raw))) => self.place(number, raw).map(Some),
            _ => Ok(None),
        }
    }
}

/// The only location of a timeline, of which regions need not be known.
pub(super) struct Only<'a, 'clock, 'table, F> {
    pub(super) visits: &'a mut Visits<'clock>,
    pub(super) extractor: &'a mut Extractor<'table>,
    pub(super) within: &'a mut SendsWithin<'table>,
    /// Reports so many events more.
    pub(super) count: F,
}

impl<F: FnMut(usize)> SynchronisationVisitor for Only<'_, '_, '_, F> {
    #[inline]
    fn passes(&mut self, first: EventNumber, times: &[u64]) -> bool {
        let apart = self.visits.are_apart(first, times);
        (self.count)(if apart { times.len() } else { 0 });
        apart
    }

    #[inline]
    fn others(&mut self, first: EventNumber, times: &[u64]) -> Result<()> {
        (self.count)(times.len());
        self.visits.others(first, times, self.extractor)
    }

    #[inline(always)]
    fn event(&mut self, number: EventNumber, raw: u64, event: Event) -> Result<()> {
        if number <= self.visits.apart {
            self.visits.take(number, raw, &event, self.extractor)
        } else {
            self.one_by_one(number, raw, &event)
        }
    }

    #[inline(always)]
    fn sent(&mut self, number: EventNumber, raw: u64, request: u64) -> Result<()> {
        if number > self.visits.apart || !self.extractor.takes_requests() {
            return self.request(number, raw, &Event::MpiIsendComplete(request));
        }
        self.extractor.sent(request);
        Ok(())
    }

    #[inline(always)]
    fn posted(&mut self, number: EventNumber, raw: u64, request: u64) -> Result<()> {
        if number > self.visits.apart || !self.extractor.takes_requests() {
            return self.request(number, raw, &Event::MpiIrecvRequest(request));
        }
        self.extractor.posted(request, number).map_err(|error| error.at_event(number))
    }
}

impl<F: FnMut(usize)> Only<'_, '_, '_, F> {
    /// Reads an event that begins or ends a request, and is not one that needs no look at its time.
    #[inline(never)]
    fn request(&mut self, number: EventNumber, raw: u64, event: &Event) -> Result<()> {
        if number <= self.visits.apart {
            self.visits.take(number, raw, event, self.extractor)
        } else {
            self.one_by_one(number, raw, event)
        }
    }

    /// Reads an event of which it is not known whether it is close to another one.
    #[inline(never)]
    fn one_by_one(&mut self, number: EventNumber, raw: u64, event: &Event) -> Result<()> {
        (self.count)(1);
        self.within.look(event);
        self.visits.feed(number, raw, event, self.extractor)
    }
}

/// Whether an event enters or leaves a call that matters.
fn is_call(calls: &Calls, event: &Event) -> bool {
    match event {
        Event::Enter(region) | Event::Leave(region) => calls.get(*region).is_some(),
        _ => false,
    }
}
