//! The correction of one timeline: what its replays found, and what all timelines share, as one nondecreasing function of time.

use crate::one_sided::SideCursor;
use crate::vector::widest;
use crate::{CommonCursor, CommonTime, Fraction, OneSided, Places, Position, Ticks};
use std::sync::Arc;

/// What happens to the pre-synchronised times of one timeline.
///
/// ```text
/// F(t)                         the forward replay with its amortisation
/// M(t) = ⌊(F(t) + B(t)) / 2⌋   with the mirrored replay, if there was one
/// T(t) = h(M(t))               without the common motion, if it was taken out
/// ```
///
/// and at last the [`Finish`], where minimum latencies or distances of events have become shorter than they may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    forward: OneSided,
    mirrored: Option<OneSided>,
    common: Option<Arc<CommonTime>>,
    finish: Option<Finish>,
}

impl From<OneSided> for Correction {
    fn from(forward: OneSided) -> Self {
        Correction { forward, mirrored: None, common: None, finish: None }
    }
}

impl Correction {
    /// The correction that changes nothing.
    pub fn identity() -> Self {
        OneSided::identity().into()
    }

    /// The average of a forward and a mirrored replay.
    pub fn average(forward: OneSided, mirrored: OneSided) -> Self {
        Correction { mirrored: Some(mirrored), ..forward.into() }
    }

    /// The same, without the motion that `common` takes out.
    pub fn without(self, common: Arc<CommonTime>) -> Self {
        Correction { common: Some(common).filter(|common| !common.is_identity()), ..self }
    }

    /// The same, with small advances at last.
    pub fn finished(self, finish: Finish) -> Self {
        Correction { finish: Some(finish).filter(|finish| !finish.starts.is_empty()), ..self }
    }

    /// Whether no time is changed.
    pub fn is_identity(&self) -> bool {
        self.sides().all(OneSided::is_identity) && self.common.is_none() && self.finish.is_none()
    }

    /// The replays it is made of: the forward one, and the mirrored one if there is one.
    pub fn sides(&self) -> impl Iterator<Item = &OneSided> {
        std::iter::once(&self.forward).chain(&self.mirrored)
    }

    /// What the replays do without backward amortisation.
    pub fn forward_part(&self) -> Correction {
        Correction {
            forward: self.forward.forward_part(),
            mirrored: self.mirrored.as_ref().map(OneSided::forward_part),
            common: self.common.clone(),
            finish: self.finish.clone(),
        }
    }

    /// The corrected time of any position, by binary search.
    pub fn map(&self, at: Position) -> Ticks {
        let mut time = self.forward.map(at);
        if let Some(mirrored) = &self.mirrored {
            time = middle(time, mirrored.map(at));
        }
        if let Some(common) = &self.common {
            time = common.map(time);
        }
        match &self.finish {
            Some(finish) => finish.map(time, finish.begun(at)),
            None => time,
        }
    }

    /// A cursor for positions in ascending order: amortised constant time per event.
    pub fn cursor(&self) -> CorrectionCursor<'_> {
        CorrectionCursor {
            forward: self.forward.cursor(),
            mirrored: self.mirrored.as_ref().map(OneSided::cursor),
            common: self.common.as_ref().map(|common| common.cursor()),
            finish: self.finish.as_ref().map(|finish| (finish, 0)),
        }
    }
}

/// ⌊(a + b) / 2⌋.
#[inline]
fn middle(a: Ticks, b: Ticks) -> Ticks {
    // Without a sum that might not fit.
    Ticks((a.0 & b.0) + ((a.0 ^ b.0) >> 1))
}

/// Walks through a [`Correction`] along ascending positions.
#[derive(Debug, Clone)]
pub struct CorrectionCursor<'a> {
    forward: SideCursor<'a>,
    mirrored: Option<SideCursor<'a>>,
    common: Option<CommonCursor<'a>>,
    /// And how many advances have begun.
    finish: Option<(&'a Finish, usize)>,
}

impl CorrectionCursor<'_> {
    /// The corrected time at `at`, which must not lie before the position asked for last.
    #[inline(always)]
    pub fn map(&mut self, at: Position) -> Ticks {
        let mut time = self.forward.map(at);
        if let Some(mirrored) = &mut self.mirrored {
            time = middle(time, mirrored.map(at));
        }
        if let Some(common) = &mut self.common {
            time = common.map(time);
        }
        if let Some((finish, begun)) = &mut self.finish {
            while *begun < finish.starts.len() && finish.start(*begun) <= at {
                *begun += 1;
            }
            time = finish.map(time, *begun);
        }
        time
    }

    /// As [`CorrectionCursor::map`] for the times, in ticks, of events of a location that follow each other, the first of them at the position `from`: puts the corrected ones
    /// in `corrected`, which is as long.
    pub fn map_all(&mut self, from: Position, times: &[i64], corrected: &mut [i64]) {
        widest(
            #[inline(always)]
            || {
                self.forward.map_all(from, times, corrected, |place, mapped| *place = mapped);
                if let Some(mirrored) = &mut self.mirrored {
                    let put = |place: &mut i64, mapped: i64| *place = middle(Ticks(*place), Ticks(mapped)).0;
                    mirrored.map_all(from, times, corrected, put);
                }
                if let Some(common) = &mut self.common {
                    common.map_all(corrected);
                }
            },
        );
        if let Some((finish, begun)) = &mut self.finish {
            for ((time, &recorded), number) in corrected.iter_mut().zip(times).zip(from.number.and_following()) {
                let at = Position { time: Ticks(recorded), number, ..from };
                while *begun < finish.starts.len() && finish.start(*begun) <= at {
                    *begun += 1;
                }
                *time = finish.map(Ticks(*time), *begun).0;
            }
        }
    }
}

/// Small advances that a forward replay adds to times from which the common motion has been taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// How fast they decay.
    decay: Fraction,
    places: Places,
    starts: Vec<Start>,
}

/// An advance from an event on, until the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Start {
    /// The event's pre-synchronised time.
    at: Ticks,
    /// Its time before the advance.
    anchor: Ticks,
    advance: Ticks,
}

impl Finish {
    /// Nothing so far.
    pub fn new(decay: Fraction) -> Finish {
        Finish { decay, places: Places::default(), starts: Vec::new() }
    }

    /// The largest advance.
    pub fn largest(&self) -> Ticks {
        self.starts.iter().map(|start| start.advance).max().unwrap_or(Ticks::ZERO)
    }

    /// From the event at `start` on, which would be at `anchor` without it, there is the advance `advance`. Positions ascend.
    pub fn push(&mut self, start: Position, anchor: Ticks, advance: Ticks) {
        self.places.push(start.location, start.number);
        self.starts.push(Start { at: start.time, anchor, advance });
    }

    #[inline]
    fn start(&self, index: usize) -> Position {
        let (location, number) = (self.places.location(index), self.places.number(index));
        Position { time: self.starts[index].at, location, number }
    }

    /// How many advances have begun at `at`.
    fn begun(&self, at: Position) -> usize {
        let (mut low, mut high) = (0, self.starts.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.start(middle) <= at { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// `time` with what is left of the last of the advances that have `begun`.
    #[inline]
    fn map(&self, time: Ticks, begun: usize) -> Ticks {
        let Some(Start { anchor, advance, .. }) = begun.checked_sub(1).map(|index| self.starts[index]) else {
            return time;
        };
        time + Ticks((advance.0 - self.decay.floor_of((time.0 - anchor.0).max(0))).max(0))
    }
}
