//! The parts of a clock error: each produces its straight pieces one after the other.

use crate::random::{Random, sine_of_turns};

/// Errors are kept in units of 2^-48 ps and slopes in units of 2^-48, so that rounding never adds up to a picosecond.
pub(super) const FRACTION: u32 = 48;
/// Chords per period of a sine: they stay within 2e-5 of the amplitude.
const CHORDS: i64 = 512;

/// A frequency deviation as a fixed-point slope.
pub(super) fn slope_of(frequency: f64) -> i64 {
    (frequency.clamp(-2.0, 2.0) * (1u64 << FRACTION) as f64) as i64
}

/// Picoseconds as a fixed-point error.
pub(super) fn error_of(picoseconds: i64) -> i128 {
    i128::from(picoseconds) << FRACTION
}

/// One straight piece of an error function, from true time `start` up to but without `end`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErrorPiece {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) error: i128,
    pub(super) slope: i64,
}

impl ErrorPiece {
    /// The error at `time`, extended beyond the piece if need be.
    pub(super) fn at(&self, time: i64) -> i128 {
        self.error + i128::from(time.saturating_sub(self.start)) * i128::from(self.slope)
    }

    /// The piece that goes on from this one without a step, for `length` picoseconds at `slope`.
    fn then(&self, length: i64, slope: i64) -> ErrorPiece {
        ErrorPiece { start: self.end, end: self.end.saturating_add(length.max(1)), error: self.at(self.end), slope }
    }
}

/// A part of a clock error, standing on one of its pieces.
#[derive(Debug, Clone)]
pub(super) struct ErrorPart {
    piece: ErrorPiece,
    kind: PieceSource,
}

/// How the next piece comes about.
#[derive(Debug, Clone)]
enum PieceSource {
    /// A list of pieces known in advance, the last one first.
    Script(Vec<ErrorPiece>),
    /// amplitude (ps) * sin(2 pi (t / period + phase)), as chords; `chord` is the number of the current one.
    Sine { amplitude: f64, period: i64, phase: f64, chord: i64 },
    /// The frequency makes a Gaussian step of `sigma` every `step`.
    Walk { sigma: f64, step: i64, frequency: f64, random: Random },
    /// The frequency is drawn anew every `step`, Gaussian with `sigma`, cut at `most` times sigma.
    Noise { sigma: f64, most: f64, step: i64, random: Random },
    /// Every `interval` the clock is given a new target error, Gaussian with `sigma` (ps), and approaches it at `rate`.
    Ntp { sigma: f64, interval: i64, rate: f64, next_poll: i64, random: Random },
}

impl ErrorPart {
    fn script(mut pieces: Vec<ErrorPiece>) -> Self {
        pieces.reverse();
        let piece = pieces.pop().unwrap_or(ErrorPiece { start: 0, end: i64::MAX, error: 0, slope: 0 });
        ErrorPart { piece, kind: PieceSource::Script(pieces) }
    }

    /// A constant error in picoseconds.
    pub(super) fn offset(error: i64) -> Self {
        Self::script(vec![ErrorPiece { start: 0, end: i64::MAX, error: error_of(error), slope: 0 }])
    }

    /// A constant frequency deviation from true time `from` on.
    pub(super) fn drift(frequency: f64, from: i64) -> Self {
        let late = ErrorPiece { start: from, end: i64::MAX, error: 0, slope: slope_of(frequency) };
        if from <= 0 {
            return Self::script(vec![late]);
        }
        Self::script(vec![ErrorPiece { start: 0, end: from, error: 0, slope: 0 }, late])
    }

    /// A step of `size` picoseconds at true time `at`.
    pub(super) fn jump(size: i64, at: i64) -> Self {
        let at = at.max(1);
        Self::script(vec![
            ErrorPiece { start: 0, end: at, error: 0, slope: 0 },
            ErrorPiece { start: at, end: i64::MAX, error: error_of(size), slope: 0 },
        ])
    }

    /// Stands still for `length` from true time `at` on, then goes at double speed until it has caught up.
    pub(super) fn stuck(length: i64, at: i64) -> Self {
        let before = ErrorPiece { start: 0, end: at.max(1), error: 0, slope: 0 };
        let stopped = before.then(length, slope_of(-1.0));
        let catching_up = stopped.then(length, slope_of(1.0));
        let after = catching_up.then(i64::MAX, 0);
        Self::script(vec![before, stopped, catching_up, after])
    }

    /// amplitude * sin(2 pi (t / period + phase)), amplitude and period in picoseconds, phase in turns.
    pub(super) fn sine(amplitude: i64, period: i64, phase: f64) -> Self {
        let (amplitude, period) = (amplitude as f64, period.max(CHORDS));
        ErrorPart {
            piece: chord(amplitude, period, phase, 0),
            kind: PieceSource::Sine { amplitude, period, phase, chord: 0 },
        }
    }

    /// Random walk of the frequency: `sigma` per square root of a second, in steps of `step` picoseconds.
    pub(super) fn walk(sigma: f64, step: i64, random: Random) -> Self {
        let step = step.max(1);
        let sigma = sigma * (step as f64 / 1e12).sqrt();
        Self::begin(PieceSource::Walk { sigma, step, frequency: 0.0, random })
    }

    /// White noise of the frequency: Gaussian with `sigma`, constant over `step` picoseconds.
    pub(super) fn noise(sigma: f64, step: i64, random: Random) -> Self {
        Self::begin(PieceSource::Noise { sigma, most: f64::INFINITY, step: step.max(1), random })
    }

    /// A generator whose steps should take `step` picoseconds and take `deviation` more or less, Gaussian and at most twice that.
    pub(super) fn generator(step: i64, deviation: i64, random: Random) -> Self {
        let step = step.max(1);
        Self::begin(PieceSource::Noise { sigma: deviation as f64 / step as f64, most: 2.0, step, random })
    }

    /// A daemon that corrects the clock every `interval` by slewing at `rate`, with a Gaussian residual of `sigma`
    /// picoseconds. The first poll comes at a random moment within the first interval.
    pub(super) fn ntp(sigma: i64, interval: i64, rate: f64, mut random: Random) -> Self {
        let interval = interval.max(1);
        let next_poll = random.below(interval as u64) as i64 + 1;
        ErrorPart {
            piece: ErrorPiece { start: 0, end: next_poll, error: 0, slope: 0 },
            kind: PieceSource::Ntp { sigma: sigma as f64, interval, rate, next_poll, random },
        }
    }

    /// A part whose first piece is computed like all others.
    fn begin(kind: PieceSource) -> Self {
        let mut part = ErrorPart { piece: ErrorPiece { start: 0, end: 0, error: 0, slope: 0 }, kind };
        part.next();
        part
    }

    /// The piece that holds at `time`; times must not decrease.
    pub(super) fn piece_at(&mut self, time: i64) -> ErrorPiece {
        while time >= self.piece.end && self.piece.end < i64::MAX {
            self.next();
        }
        self.piece
    }

    fn next(&mut self) {
        let last = self.piece;
        self.piece = match &mut self.kind {
            PieceSource::Script(rest) => rest.pop().unwrap_or_else(|| last.then(i64::MAX, 0)),
            PieceSource::Sine { amplitude, period, phase, chord: number } => {
                *number += 1;
                chord(*amplitude, *period, *phase, *number)
            }
            PieceSource::Walk { sigma, step, frequency, random } => {
                *frequency = (*frequency + *sigma * random.normal()).clamp(-0.1, 0.1);
                last.then(*step, slope_of(*frequency))
            }
            PieceSource::Noise { sigma, most, step, random } => {
                let normal = random.normal().clamp(-*most, *most);
                last.then(*step, slope_of((*sigma * normal).clamp(-0.5, 0.5)))
            }
            PieceSource::Ntp { sigma, interval, rate, next_poll, random } => {
                let now = last.end;
                if now < *next_poll {
                    // The target is reached: rest until the next poll.
                    last.then(*next_poll - now, 0)
                } else {
                    *next_poll = now.saturating_add(*interval);
                    let target = *sigma * random.normal();
                    let distance = target - (last.at(now) >> FRACTION) as f64;
                    let length = ((distance.abs() / *rate) as i64).min(*interval);
                    last.then(length, slope_of(rate.copysign(distance)))
                }
            }
        };
    }
}

/// Chord number `number` of a sine. Its ends are computed from its number, so nothing adds up.
fn chord(amplitude: f64, period: i64, phase: f64, number: i64) -> ErrorPiece {
    let time = |n: i64| (i128::from(n) * i128::from(period) / i128::from(CHORDS)) as i64;
    let value = |n: i64| amplitude * sine_of_turns(n.rem_euclid(CHORDS) as f64 / CHORDS as f64 + phase);
    let (start, end) = (time(number), time(number + 1));
    let (from, to) = (value(number), value(number + 1));
    ErrorPiece {
        start,
        end,
        error: (from * (1u64 << FRACTION) as f64) as i128,
        slope: slope_of((to - from) / (end - start) as f64),
    }
}
