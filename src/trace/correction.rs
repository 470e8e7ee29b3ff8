//! The correction of one timeline: a small, piecewise, nondecreasing function of time.

use crate::trace::{Fraction, Ticks};

/// A place in the merged event order of a timeline: pre-synchronised time, then location, then event number.
///
/// Events of all locations of a process (they share one clock) are ordered by this key; events of one location keep
/// their own order, since their times never decrease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Pre-synchronised time C.
    pub time: Ticks,
    /// Index of the location within its timeline.
    pub location: u32,
    /// 1-based event number within the location.
    pub number: u64,
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
    /// The straight line from (`start`, `from`) to (`end`, `to`): steeper than a ramp, because a cap demands it.
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

/// One piece of a correction; it applies from its position on, until the next piece begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where the piece begins (this event included).
    pub start: Position,
    /// Time K of the last jump of the forward replay.
    pub anchor: Ticks,
    /// Advance o = LC - C at that jump.
    pub advance: Ticks,
    /// Sum S of all jumps so far.
    pub jumps: Ticks,
    /// The amortisation curve in this piece.
    pub curve: Curve,
}

/// What happens to the pre-synchronised times of one timeline: forward amortisation
/// `LC = C + max(0, o - ⌊(1-γ)(C - K)⌋)` and, above it, the amortisation curve: `t = (LC - S) + A`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// 1 - γ.
    pub decay: Fraction,
    /// Amortisation slope m.
    pub slope: Fraction,
    /// Pieces in ascending order; before the first one nothing moves.
    pub pieces: Vec<Piece>,
}

impl Correction {
    /// The correction that changes nothing.
    pub fn identity() -> Self {
        Correction { decay: Fraction::ZERO, slope: Fraction::ZERO, pieces: Vec::new() }
    }

    /// Whether no time is changed.
    pub fn is_identity(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The correction without its backward amortisation: what the forward replay does alone.
    pub fn forward_part(&self) -> Correction {
        let flat = |piece: &Piece| Piece { curve: Curve::Flat, ..*piece };
        Correction { pieces: self.pieces.iter().map(flat).collect(), ..*self }
    }

    /// The corrected time of any position, by binary search.
    pub fn map(&self, at: Position) -> Ticks {
        match self.pieces.partition_point(|piece| piece.start <= at) {
            0 => at.time,
            next => self.evaluate(&self.pieces[next - 1], at.time),
        }
    }

    /// A cursor for positions in ascending order: amortised constant time per event.
    pub fn cursor(&self) -> Cursor<'_> {
        let mut cursor = Cursor {
            correction: self,
            piece: None,
            next: 0,
            until: Position { time: Ticks::MIN, location: 0, number: 0 },
        };
        cursor.look_ahead();
        cursor
    }

    /// The advance LC - C that the forward replay gives to `time` in `piece`.
    #[inline]
    fn advance(&self, piece: &Piece, time: Ticks) -> i64 {
        if piece.advance.0 == 0 {
            return 0;
        }
        (piece.advance.0 - self.decay.floor_of(time.0 - piece.anchor.0)).max(0)
    }

    #[inline]
    fn evaluate(&self, piece: &Piece, time: Ticks) -> Ticks {
        let forward = time.0 + self.advance(piece, time);
        let raised = match piece.curve {
            Curve::Flat => 0,
            curve => curve.value(time, piece.jumps, self.slope).0 - piece.jumps.0,
        };
        Ticks(forward + raised)
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
                Ticks(from.0 + (rise * along).div_euclid(span) as i64)
            }
        }
    }
}

/// Walks through a [`Correction`] along ascending positions.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    correction: &'a Correction,
    /// The present piece; `None` before the first one.
    piece: Option<&'a Piece>,
    /// The piece after it.
    next: usize,
    /// Where that one begins; beyond all times after the last one.
    until: Position,
}

impl<'a> Cursor<'a> {
    /// The corrected time at `at`, which must not lie before the position asked for last.
    #[inline(always)]
    pub fn map(&mut self, at: Position) -> Ticks {
        if at.time >= self.until.time && at >= self.until {
            self.go_on(at);
        }
        match self.piece {
            None => at.time,
            Some(piece) => self.correction.evaluate(piece, at.time),
        }
    }

    /// Moves to the piece of `at`.
    #[inline(never)]
    fn go_on(&mut self, at: Position) {
        while self.next < self.correction.pieces.len() && self.until <= at {
            self.piece = self.correction.pieces.get(self.next);
            self.next += 1;
            self.look_ahead();
        }
    }

    fn look_ahead(&mut self) {
        let end = Position { time: Ticks(i64::MAX), location: u32::MAX, number: u64::MAX };
        self.until = self.correction.pieces.get(self.next).map_or(end, |piece| piece.start);
    }
}
