//! One replay of a timeline with its amortisation: a small, piecewise, nondecreasing function of time.

mod cursor;

pub use cursor::SideCursor;

use crate::vector::leading;
use crate::{EventNumber, Fraction, Places, Ticks};
use std::ops::RangeInclusive;

/// A place in the merged event order of a timeline: pre-synchronised time, then location, then event number.
///
/// Events of all locations of a process (they share one clock) are ordered by this key; events of one location keep
/// their own order, since their times never decrease. Where events of one time are known to be in another order than that of their locations, they are in several
/// layers ([`Position::in_layer`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Pre-synchronised time C.
    pub time: Ticks,
    /// Index of the location within its timeline; behind that of all locations ([`Position::LOCATIONS`] for each layer) in later layers.
    pub location: u32,
    /// Which event of the location.
    pub number: EventNumber,
}

impl Position {
    /// Indexes of locations that can be in layers are below this. No process has so many.
    pub const LOCATIONS: u32 = 1 << 24;
    /// The last layer: locations have 32 bits with the layer, and the largest number stands for the end.
    pub const LAYERS: u32 = u32::MAX / Position::LOCATIONS - 1;

    /// The same event in a layer of those of its time, for which a location is below [`Position::LOCATIONS`]: 0 is the first one.
    #[inline]
    #[must_use]
    pub fn in_layer(self, layer: u32) -> Position {
        Position { location: self.location + layer * Position::LOCATIONS, ..self }
    }

    /// The layer of an event, of those that begin at `starts`, in the order of locations and event numbers: it is in the last one that begins at the event
    /// or before (`begins`), if that is at an event of the same location and time (`is_beside`); otherwise in the first, 0.
    pub fn layer_among<S>(
        starts: &[S],
        begins: impl FnMut(&S) -> bool,
        is_beside: impl FnOnce(&S) -> bool,
        layer: impl FnOnce(&S) -> u32,
    ) -> u32 {
        let last = starts.partition_point(begins).checked_sub(1).map(|last| &starts[last]);
        last.filter(|start| is_beside(start)).map_or(0, layer)
    }
}

/// How far the amortisation curve A lies above the staircase S of jumps within one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// A = S: nothing is amortised here.
    Flat,
    /// A(t) = max(S, `level` - ⌊m (`end` - t)⌋): the ordinary ramp that ends at a vertex (`end`, `level`).
    Ramp {
        /// Time of the vertex at the right end.
        end: Ticks,
        /// Value of the curve there.
        level: Ticks,
    },
    /// The straight line from (`start`, `from`) to (`end`, `to`): steeper than a ramp, because an upper bound demands it.
    Line {
        /// Time of the left vertex.
        start: Ticks,
        /// Value of the curve at `start`.
        from: Ticks,
        /// Time of the right vertex.
        end: Ticks,
        /// Value of the curve at `end`.
        to: Ticks,
    },
}

/// The advance o = LC - C of the forward replay from an event on, until it starts anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advance {
    /// The event's pre-synchronised time K.
    pub anchor: Ticks,
    /// The advance there.
    pub advance: Ticks,
    /// Sum S of all jumps so far.
    pub jumps: Ticks,
}

/// Of which kind the curve is from an event on, until the next stretch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Shape {
    /// [`Curve::Flat`]: this is the last stretch.
    Flat,
    /// [`Curve::Ramp`] up to the beginning of the next stretch.
    Ramp,
    /// [`Curve::Line`] up to the beginning of the next stretch.
    Line,
}

/// A stretch of the amortisation curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurveStretch {
    /// The curve's height at its beginning; of no use in a stretch that begins with the timeline.
    pub level: Ticks,
    /// Its kind.
    pub shape: Shape,
}

/// What one replay does to the pre-synchronised times of one timeline: forward amortisation
/// `LC = C + max(0, o - ⌊(1-γ)(C - K)⌋)` and, above it, the amortisation curve: `t = (LC - S) + A`.
///
/// Both are lists of what begins anew at an event (this event included), in parallel arrays: an advance takes 28 bytes, a stretch of
/// the curve 21. Before the first advance LC = C and S = 0, before the first stretch A = S.
///
/// A *mirrored* one comes from the replay on negated times. Its times and heights are those of that replay, its positions have the
/// negated time and the location and number of the event; it is asked for the time of an event as every other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneSided {
    /// 1 - γ.
    pub decay: Fraction,
    /// Amortisation slope m.
    pub slope: Fraction,
    /// Whether it comes from the mirrored replay.
    mirrored: bool,
    advance_places: Places,
    advances: Vec<Advance>,
    stretch_places: Places,
    /// Time at which each stretch begins, and the curve's height there.
    vertices: Vec<(Ticks, Ticks)>,
    shapes: Vec<Shape>,
}

/// After every position.
const END: Position = Position { time: Ticks(i64::MAX), location: u32::MAX, number: EventNumber::END };

impl OneSided {
    /// The correction that changes nothing.
    pub fn identity() -> Self {
        OneSided::with_capacity(Fraction::ZERO, Fraction::ZERO, 0, 0)
    }

    /// A correction with these constants that changes nothing so far, with room for so many advances and stretches.
    pub fn with_capacity(decay: Fraction, slope: Fraction, advances: usize, stretches: usize) -> Self {
        OneSided {
            decay,
            slope,
            mirrored: false,
            advance_places: Places::with_capacity(advances),
            advances: Vec::with_capacity(advances),
            stretch_places: Places::with_capacity(stretches),
            vertices: Vec::with_capacity(stretches),
            shapes: Vec::with_capacity(stretches),
        }
    }

    /// The same for the mirrored replay.
    pub fn mirrored(self) -> Self {
        OneSided { mirrored: true, ..self }
    }

    /// From the event at `start` on there is the advance `advance`, after jumps of `jumps` in all. Positions ascend.
    pub fn push_advance(&mut self, start: Position, advance: Ticks, jumps: Ticks) {
        self.advance_places.push(start.location, start.number);
        self.advances.push(Advance { anchor: start.time, advance, jumps });
    }

    /// From the event at `start` on (`None`: from the beginning of the timeline) the curve has another shape. Positions ascend.
    pub fn push_stretch(&mut self, start: Option<Position>, stretch: CurveStretch) {
        let start = start.unwrap_or(Position { time: Ticks::MIN, location: 0, number: EventNumber::START });
        self.stretch_places.push(start.location, start.number);
        self.vertices.push((start.time, stretch.level));
        self.shapes.push(stretch.shape);
    }

    /// Whether no time is changed.
    pub fn is_identity(&self) -> bool {
        self.advances.is_empty() && self.shapes.is_empty()
    }

    /// The correction without its backward amortisation: what the forward replay does alone.
    pub fn forward_part(&self) -> OneSided {
        let nothing = OneSided { mirrored: self.mirrored, ..OneSided::with_capacity(self.decay, self.slope, 0, 0) };
        OneSided { advance_places: self.advance_places.clone(), advances: self.advances.clone(), ..nothing }
    }

    /// The corrected time of any position, by binary search.
    pub fn map(&self, at: Position) -> Ticks {
        if !self.mirrored {
            return self.own_map(at);
        }
        -self.own_map(self.key(Position { time: -at.time, ..at }))
    }

    /// A position of the replay as one that ascends with its order of events: mirrored, events of one time come the other way round.
    #[inline]
    fn key(&self, at: Position) -> Position {
        if !self.mirrored {
            return at;
        }
        Position { time: at.time, location: u32::MAX - at.location, number: EventNumber(u64::MAX - at.number.0) }
    }

    /// In the times of its replay.
    fn own_map(&self, at: Position) -> Ticks {
        let advances = partition_point(self.advances.len(), |index| self.advance_start(index) <= at);
        let stretches = partition_point(self.shapes.len(), |index| self.stretch_start(index) <= at);
        OneSidedPiece { advance: self.advance(advances), curve: self.curve_after(stretches) }.map(at.time, self)
    }

    /// The amortisation curve, stretch by stretch.
    pub fn curves(&self) -> impl Iterator<Item = Curve> + '_ {
        (0..self.shapes.len()).map(|index| self.curve(index))
    }

    /// Where an advance begins; after everything if there is none.
    #[inline]
    fn advance_start(&self, index: usize) -> Position {
        let Some(advance) = self.advances.get(index) else { return END };
        let places = &self.advance_places;
        self.key(Position { time: advance.anchor, location: places.location(index), number: places.number(index) })
    }

    /// Where a stretch begins; after everything if there is none.
    #[inline]
    fn stretch_start(&self, index: usize) -> Position {
        let Some(&(time, _)) = self.vertices.get(index) else { return END };
        let places = &self.stretch_places;
        self.key(Position { time, location: places.location(index), number: places.number(index) })
    }

    /// What applies when so many advances have begun.
    #[inline]
    fn advance(&self, begun: usize) -> Advance {
        let none = Advance { anchor: Ticks::ZERO, advance: Ticks::ZERO, jumps: Ticks::ZERO };
        begun.checked_sub(1).map_or(none, |index| self.advances[index])
    }

    /// What applies when so many stretches have begun.
    #[inline]
    fn curve_after(&self, begun: usize) -> Curve {
        begun.checked_sub(1).map_or(Curve::Flat, |index| self.curve(index))
    }

    #[inline]
    fn curve(&self, index: usize) -> Curve {
        let next = self.vertices.get(index + 1);
        match (self.shapes[index], next) {
            (Shape::Flat, _) | (_, None) => Curve::Flat,
            (Shape::Ramp, Some(&(end, level))) => Curve::Ramp { end, level },
            (Shape::Line, Some(&(end, to))) => {
                let (start, from) = self.vertices[index];
                Curve::Line { start, from, end, to }
            }
        }
    }
}

/// The first index below `count` for which `before` does not hold; it holds for all before that.
fn partition_point(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// Between two positions at which something begins anew.
#[derive(Debug, Clone, Copy)]
struct OneSidedPiece {
    advance: Advance,
    curve: Curve,
}

impl OneSidedPiece {
    #[inline]
    fn map(&self, time: Ticks, correction: &OneSided) -> Ticks {
        let Advance { anchor, advance, jumps } = self.advance;
        let mut forward = time.0;
        if advance.0 != 0 {
            forward += (advance.0 - correction.decay.floor_of(time.0 - anchor.0)).max(0);
        }
        let raised = match self.curve {
            Curve::Flat => 0,
            curve => curve.value(time, jumps, correction.slope).0 - jumps.0,
        };
        Ticks(forward + raised)
    }

    /// The same for many times, in ticks: those that `time_of` makes of `times`, which ascend or descend; the first one, and those that follow it as long as they
    /// are `within` this piece. All of them are in `span`. What each is mapped to is `put` in its place among `corrected`. Returns how many there were.
    #[inline(always)]
    fn map_while(
        &self,
        correction: &OneSided,
        (times, corrected): (&[i64], &mut [i64]),
        time_of: impl Fn(i64) -> i64,
        span: RangeInclusive<i64>,
        within: impl Fn(i64) -> bool,
        put: impl Fn(&mut i64, i64),
    ) -> usize {
        let Advance { anchor, advance, jumps } = self.advance;
        let (decay, slope) = (correction.decay, correction.slope);
        // Without an advance there is no event where it began: they may be before any time.
        let anchor = if advance.0 == 0 { *span.start() } else { anchor.0 };
        let count = leading(times, |time| within(time_of(time))).clamp(1, times.len());
        // A loop for each way, without a chain of iterators: all of it has to be inlined.
        let places = times[..count].iter().zip(&mut corrected[..count]);
        match self.curve {
            Curve::Flat if advance.0 == 0 => {
                for (&time, place) in places {
                    put(place, time_of(time));
                }
            }
            Curve::Flat if decay.is_near(span.end() - anchor) => {
                for (&time, place) in places {
                    let time = time_of(time);
                    put(place, time + (advance.0 - decay.floor_of_near(time - anchor)).max(0));
                }
            }
            Curve::Ramp { end, level } if decay.is_near(span.end() - anchor) && slope.is_near(end.0 - span.start()) => {
                let top = level.0 - jumps.0;
                for (&time, place) in places {
                    let time = time_of(time);
                    let decayed = (advance.0 - decay.floor_of_near(time - anchor)).max(0);
                    let raised = (top - slope.floor_of_near((end.0 - time).max(0))).max(0);
                    put(place, time + decayed + raised);
                }
            }
            _ => {
                for (&time, place) in places {
                    put(place, self.map(Ticks(time_of(time)), correction).0);
                }
            }
        }
        count
    }
}

impl Curve {
    /// The value A(t) of the curve at `time`, where the staircase stands at `jumps`.
    #[inline]
    pub fn value(self, time: Ticks, jumps: Ticks, slope: Fraction) -> Ticks {
        match self {
            Curve::Flat => jumps,
            Curve::Ramp { end, level } => Ticks((level.0 - slope.floor_of((end.0 - time.0).max(0))).max(jumps.0)),
            Curve::Line { start, from, end, to } => {
                let span = i128::from(end.0) - i128::from(start.0);
                if span == 0 {
                    // All at one time: down to the left vertex, but not under the jumps that happened since.
                    return from.max(jumps);
                }
                let rise = i128::from(to.0) - i128::from(from.0);
                let along = i128::from(time.0) - i128::from(start.0);
                let product = rise * along;
                // The same number, by an instruction where it fits.
                let part = match (i64::try_from(product), i64::try_from(span)) {
                    (Ok(product), Ok(span)) => product.div_euclid(span),
                    _ => product.div_euclid(span) as i64,
                };
                Ticks(from.0 + part)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at((time, location, number): (i64, u32, u64)) -> Position {
        Position { time: Ticks(time), location, number: EventNumber(number) }
    }

    /// Positions of which many have the same time.
    fn positions(most: usize) -> impl Strategy<Value = Vec<(i64, u32, u64)>> {
        prop::collection::btree_set((0i64..12, 0u32..3, 1u64..4), 0..most).prop_map(|set| set.into_iter().collect())
    }

    /// Events of a location that follow each other are mapped as each of them alone.
    fn all_at_once(correction: &OneSided, asked: &[(i64, u32, u64)]) -> Result<(), TestCaseError> {
        let mut cursor = correction.cursor();
        // In several goes, as positions of one location with ascending numbers.
        for (part, first) in asked.chunks(7).zip((1..).step_by(7)) {
            let times: Vec<i64> = part.iter().map(|&(time, ..)| time).collect();
            let mut all = vec![0; times.len()];
            cursor.map_all(at((times[0], 1, first)), &times, &mut all, |place, mapped| *place = mapped);
            for ((&(time, ..), number), &mapped) in part.iter().zip(first..).zip(&all) {
                prop_assert_eq!(mapped, correction.map(at((time, 1, number))).0);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_cursor_gives_what_a_search_gives(
            advances in positions(12), stretches in positions(12), asked in positions(40), shapes in prop::collection::vec(0u8..3, 12),
        ) {
            let fraction = Fraction::from_f64(0.25).unwrap();
            let mut correction = OneSided::with_capacity(fraction, fraction, 0, 0);
            let mut expected: Vec<(Position, Ticks)> = Vec::new();
            for (place, jumps) in advances.into_iter().zip(1..) {
                correction.push_advance(at(place), Ticks(100 * jumps), Ticks(jumps));
                expected.push((at(place), Ticks(100 * jumps)));
            }
            for ((place, shape), level) in stretches.into_iter().zip(shapes).zip(1..) {
                let shape = [Shape::Flat, Shape::Ramp, Shape::Line][usize::from(shape)];
                correction.push_stretch(Some(at(place)), CurveStretch { level: Ticks(10 * level), shape });
            }
            all_at_once(&correction, &asked)?;
            let (mut cursor, forward) = (correction.cursor(), correction.forward_part());
            for position in asked.into_iter().map(at) {
                prop_assert_eq!(cursor.map(position), correction.map(position));
                let last = expected.iter().rev().find(|(start, _)| *start <= position);
                let ahead = last.map_or(0, |(start, advance)| advance.0 - fraction.floor_of(position.time.0 - start.time.0));
                prop_assert_eq!(forward.map(position), position.time + Ticks(ahead));
            }
        }

        #[test]
        fn a_mirrored_cursor_gives_what_a_search_gives(
            advances in positions(12), stretches in positions(12), asked in positions(40), shapes in prop::collection::vec(0u8..3, 12),
        ) {
            let fraction = Fraction::from_f64(0.25).unwrap();
            let mut correction = OneSided::with_capacity(fraction, fraction, 0, 0).mirrored();
            // From the last event to the first, at negated times.
            let turned = |place: (i64, u32, u64)| Position { time: -at(place).time, ..at(place) };
            let last: Vec<Position> = advances.iter().rev().copied().map(at).collect();
            for (place, jumps) in advances.into_iter().rev().zip(1..) {
                correction.push_advance(turned(place), Ticks(100 * jumps), Ticks(jumps));
            }
            for ((place, shape), level) in stretches.into_iter().rev().zip(shapes).zip(1..) {
                let shape = [Shape::Flat, Shape::Ramp, Shape::Line][usize::from(shape)];
                correction.push_stretch(Some(turned(place)), CurveStretch { level: Ticks(10 * level), shape });
            }
            all_at_once(&correction, &asked)?;
            let (mut cursor, replay) = (correction.cursor(), correction.forward_part());
            for position in asked.into_iter().map(at) {
                prop_assert_eq!(cursor.map(position), correction.map(position));
                // The last advance of the replay that begins at this event or at a later one of the trace.
                let begun = last.iter().filter(|start| **start >= position).count();
                let ahead = begun.checked_sub(1).map_or(0, |index| {
                    100 * begun as i64 - fraction.floor_of(last[index].time.0 - position.time.0)
                });
                prop_assert_eq!(replay.map(position), position.time - Ticks(ahead));
            }
        }
    }
}
