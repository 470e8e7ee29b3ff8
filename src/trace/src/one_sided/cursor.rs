//! Walking along a [`OneSided`], event by event: amortised constant time for each.

use super::{END, OneSided, OneSidedPiece, Position};
use crate::{EventNumber, Ticks};

impl OneSided {
    /// A cursor for the events in the order of the trace: amortised constant time per event.
    pub fn cursor(&self) -> SideCursor<'_> {
        if self.mirrored { SideCursor::Mirrored(self.descending()) } else { SideCursor::Forward(self.replay_cursor()) }
    }

    /// A cursor for the events in the order of their replay, at its positions and in its times.
    pub fn replay_cursor(&self) -> OneSidedCursor<'_> {
        let (next_advance, next_stretch) = (self.advance_start(0), self.stretch_start(0));
        OneSidedCursor {
            correction: self,
            piece: OneSidedPiece { advance: self.advance(0), curve: self.curve_after(0) },
            advances: 0,
            stretches: 0,
            next_advance,
            next_stretch,
            until: next_advance.time.min(next_stretch.time),
        }
    }

    /// For positions of the replay in descending order.
    fn descending(&self) -> Descending<'_> {
        let (advances, stretches) = (self.advances.len(), self.shapes.len());
        let mut cursor = Descending {
            correction: self,
            piece: OneSidedPiece { advance: self.advance(advances), curve: self.curve_after(stretches) },
            advances,
            stretches,
            begin: END,
        };
        cursor.begin = cursor.beginning();
        cursor
    }
}

/// Walks through a [`OneSided`] along the events of its timeline.
#[derive(Debug, Clone)]
pub enum SideCursor<'a> {
    /// Of a forward replay.
    Forward(OneSidedCursor<'a>),
    /// Of a mirrored replay, whose positions descend meanwhile.
    Mirrored(Descending<'a>),
}

impl SideCursor<'_> {
    /// The corrected time at `at`, which must not lie before the position asked for last.
    #[inline(always)]
    pub fn map(&mut self, at: Position) -> Ticks {
        match self {
            SideCursor::Forward(cursor) => cursor.map(at),
            SideCursor::Mirrored(cursor) => cursor.map(at),
        }
    }

    /// As [`SideCursor::map`] for the times, in ticks, of events of a location that follow each other, the first of them at the position `from`: what each
    /// is mapped to is `put` in its place among `corrected`, which is as long.
    #[inline(always)]
    pub fn map_all(&mut self, from: Position, times: &[i64], corrected: &mut [i64], put: impl Fn(&mut i64, i64)) {
        match self {
            SideCursor::Forward(cursor) => cursor.map_all(from, times, corrected, put),
            SideCursor::Mirrored(cursor) => cursor.map_all(from, times, corrected, put),
        }
    }
}

/// Walks through a mirrored [`OneSided`] along the events of its timeline: from its end to its beginning.
#[derive(Debug, Clone)]
pub struct Descending<'a> {
    correction: &'a OneSided,
    /// What applies now.
    piece: OneSidedPiece,
    /// Advances and stretches that have begun.
    advances: usize,
    stretches: usize,
    /// The later of the places where what applies now has begun: it does so down to there.
    begin: Position,
}

impl Descending<'_> {
    #[inline(always)]
    fn map(&mut self, at: Position) -> Ticks {
        let time = -at.time;
        if time <= self.begin.time {
            self.go_on(Position { time, ..at });
        }
        -self.piece.map(time, self.correction)
    }

    #[inline(always)]
    fn map_all(&mut self, from: Position, times: &[i64], corrected: &mut [i64], put: impl Fn(&mut i64, i64)) {
        let (mut at, mut done) = (from, 0);
        while let (Some(&first), Some(&last)) = (times.get(done), times.last()) {
            at.time = -Ticks(first);
            if at.time <= self.begin.time {
                self.go_on(at);
            }
            let begin = self.begin.time.0;
            let span = (-last).max(begin).min(-first)..=-first;
            let length = self.piece.map_while(
                self.correction,
                (&times[done..], &mut corrected[done..]),
                |time| -time,
                span,
                |time| time > begin,
                |place, mapped| put(place, -mapped),
            );
            (done, at.number) = (done + length, at.number + length as u64);
        }
    }

    /// Moves to what applies at `at`.
    #[inline(never)]
    fn go_on(&mut self, at: Position) {
        let correction = self.correction;
        let at = correction.key(at);
        while self.advances > 0 && correction.advance_start(self.advances - 1) > at {
            self.advances -= 1;
        }
        while self.stretches > 0 && correction.stretch_start(self.stretches - 1) > at {
            self.stretches -= 1;
        }
        self.piece =
            OneSidedPiece { advance: correction.advance(self.advances), curve: correction.curve_after(self.stretches) };
        self.begin = self.beginning();
    }

    fn beginning(&self) -> Position {
        let none = Position { time: Ticks::MIN, location: 0, number: EventNumber::START };
        let start = |begun: usize, start: &dyn Fn(usize) -> Position| begun.checked_sub(1).map_or(none, start);
        let advance = start(self.advances, &|index| self.correction.advance_start(index));
        advance.max(start(self.stretches, &|index| self.correction.stretch_start(index)))
    }
}

/// Walks through a forward [`OneSided`] along ascending positions.
#[derive(Debug, Clone)]
pub struct OneSidedCursor<'a> {
    correction: &'a OneSided,
    /// What applies now.
    piece: OneSidedPiece,
    /// Advances and stretches that have begun.
    advances: usize,
    stretches: usize,
    /// Where the next of each begins; beyond all times after the last one.
    next_advance: Position,
    next_stretch: Position,
    /// The earlier of these.
    until: Ticks,
}

impl OneSidedCursor<'_> {
    /// The corrected time at `at`, which must not lie before the position asked for last.
    #[inline(always)]
    pub fn map(&mut self, at: Position) -> Ticks {
        self.map_at(at.time, || at)
    }

    /// As [`OneSidedCursor::map`] at a `time`, of which the `position` is asked for only where something begins anew.
    #[inline(always)]
    pub fn map_at(&mut self, time: Ticks, position: impl FnOnce() -> Position) -> Ticks {
        if time >= self.until {
            self.go_on(position());
        }
        self.piece.map(time, self.correction)
    }

    #[inline(always)]
    fn map_all(&mut self, from: Position, times: &[i64], corrected: &mut [i64], put: impl Fn(&mut i64, i64)) {
        let (mut at, mut done) = (from, 0);
        while let (Some(&first), Some(&last)) = (times.get(done), times.last()) {
            at.time = Ticks(first);
            if at.time >= self.until {
                self.go_on(at);
            }
            let until = self.until.0;
            let span = first..=last.min(until).max(first);
            let both = (&times[done..], &mut corrected[done..]);
            let length = self.piece.map_while(self.correction, both, |time| time, span, |time| time < until, &put);
            (done, at.number) = (done + length, at.number + length as u64);
        }
    }

    /// Moves to what applies at `at`.
    #[inline(never)]
    fn go_on(&mut self, at: Position) {
        let correction = self.correction;
        let at = correction.key(at);
        if self.next_advance <= at {
            while self.next_advance <= at && self.advances < correction.advances.len() {
                self.advances += 1;
                self.next_advance = correction.advance_start(self.advances);
            }
            self.piece.advance = correction.advance(self.advances);
        }
        if self.next_stretch <= at {
            while self.next_stretch <= at && self.stretches < correction.shapes.len() {
                self.stretches += 1;
                self.next_stretch = correction.stretch_start(self.stretches);
            }
            self.piece.curve = correction.curve_after(self.stretches);
        }
        self.until = self.next_advance.time.min(self.next_stretch.time);
    }
}
