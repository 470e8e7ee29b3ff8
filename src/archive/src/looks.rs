//! Looks at a part of the events of a location.

use crate::any::Archive;
use clc_otf2::LocalDefinitions;
use clc_trace::{Error, Event, EventNumber, LocationId, RegionId, Result};

impl Archive {
    /// The innermost region around event `number` of a location: the one that is left first without having been entered after
    /// the event. An enter or leave belongs to its own region. `None` if no region is left there, or the file is damaged. `chunks` are those
    /// of a scan of the location ([`ScanSummary::chunks`](crate::ScanSummary::chunks)).
    pub fn region_around(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        chunks: &[u64],
        number: EventNumber,
    ) -> Option<RegionId> {
        let (mut found, mut entered) = (None, 0u64);
        let mut look = |at: EventNumber, event: Event| {
            match event {
                _ if at < number => {}
                Event::Enter(region) if at == number => found = Some(region),
                Event::Enter(_) => entered += 1,
                Event::Leave(region) if entered == 0 => found = Some(region),
                Event::Leave(_) => entered -= 1,
                _ => {}
            }
            found.is_none()
        };
        let _ = match self {
            Archive::Otf2(archive) => {
                let chunk = chunks.partition_point(|&before| before < number.0).saturating_sub(1);
                let start = (chunk, chunks.get(chunk).copied().unwrap_or(0));
                archive.scan_from(location, local, start, look)
            }
            // Once it is found, a failure ends the scan early.
            Archive::Native(trace) => trace
                .scan_with(location, |at, _, event| if look(at, event) { Ok(()) } else { Err(Error::new("found")) })
                .map(|_| ()),
        };
        found
    }

    /// Calls `visit` with at most so many events of a location, in their order: those from the chunk in the middle of its file on, of which there are `chunks`
    /// ([`ScanSummary::chunks`](crate::ScanSummary::chunks)); from the first one on in a format without chunks.
    ///
    /// # Errors
    /// The file is missing or damaged.
    pub fn sample(
        &self,
        location: LocationId,
        local: &LocalDefinitions,
        chunks: &[u64],
        most: u64,
        mut visit: impl FnMut(Event),
    ) -> Result<()> {
        let mut rest = most;
        let mut look = |event: Event| {
            if rest > 0 {
                visit(event);
            }
            rest = rest.saturating_sub(1);
            rest > 0
        };
        match self {
            Archive::Otf2(archive) => {
                let chunk = chunks.len() / 2;
                let start = (chunk, chunks.get(chunk).copied().unwrap_or(0));
                archive.scan_from(location, local, start, |_, event| look(event))
            }
            Archive::Native(trace) => {
                let mut enough = false;
                let looked = trace.scan_with(location, |_, _, event| {
                    enough = !look(event);
                    // A failure ends the scan early.
                    if enough { Err(Error::new("enough")) } else { Ok(()) }
                });
                if enough { Ok(()) } else { looked.map(drop) }
            }
        }
    }
}
