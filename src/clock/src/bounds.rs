//! The tightest bounds that messages set, by window ([`super::windows`]).

use super::grid::Grid;
use super::kind::BoundKind;
use serde::{Deserialize, Serialize};

/// The tightest bound of one direction in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Bound {
    /// Smallest receive minus send, in ticks.
    pub distance: i64,
    /// When it was received.
    pub at: i64,
    /// What it is.
    pub kind: BoundKind,
}

/// One direction of a pair.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectedBounds {
    /// Number of messages seen.
    pub messages: u64,
    /// The tightest by window, in order of windows.
    windows: Vec<(u32, Bound)>,
}

impl DirectedBounds {
    /// Adds `messages` of which `bound` is the tightest. Quick if no later window has been seen.
    pub fn add(&mut self, window: usize, bound: Bound, messages: u64) {
        self.messages += messages;
        let window = window as u32;
        if self.windows.last().is_none_or(|(last, _)| *last < window) {
            self.windows.push((window, bound));
            return;
        }
        match self.windows.binary_search_by_key(&window, |(window, _)| *window) {
            Ok(at) => self.windows[at].1 = self.windows[at].1.min(bound),
            Err(at) => self.windows.insert(at, (window, bound)),
        }
    }

    /// Adds other messages.
    pub fn merge(&mut self, other: DirectedBounds) {
        if self.windows.is_empty() {
            self.windows = other.windows;
        } else {
            let mut own = std::mem::take(&mut self.windows).into_iter().peekable();
            let mut others = other.windows.into_iter().peekable();
            while let (Some((a, one)), Some((b, two))) = (own.peek().copied(), others.peek().copied()) {
                self.windows.push((
                    a.min(b),
                    if a == b {
                        one.min(two)
                    } else if a < b {
                        one
                    } else {
                        two
                    },
                ));
                own.next_if(|_| a <= b);
                others.next_if(|_| b <= a);
            }
            self.windows.extend(own.chain(others));
        }
        self.messages += other.messages;
    }

    /// The same bounds from one clock to another, as other clocks see them, in windows of these; [`super::windows::BoundTable::through`].
    pub(super) fn through(&self, (from, to): (u32, u32), grid: &Grid, map: impl Fn(u32, i64) -> i64) -> DirectedBounds {
        let seen = |bound: &Bound| {
            let at = map(to, bound.at);
            Bound { distance: at.saturating_sub(map(from, bound.at.saturating_sub(bound.distance))), at, ..*bound }
        };
        let windows = Vec::with_capacity(self.windows.len().min(grid.count));
        let mut other = DirectedBounds { messages: self.messages, windows };
        let (mut window, mut span) = (0, 0..0);
        for bound in self.windows.iter().map(|(_, bound)| seen(bound)) {
            if !span.contains(&bound.at) {
                window = grid.window(bound.at);
                span = grid.span(window);
            }
            match other.windows.last_mut() {
                Some((last, tightest)) if *last as usize == window => *tightest = (*tightest).min(bound),
                _ => other.add(window, bound, 0),
            }
        }
        other
    }

    /// Makes distances shorter by what `by` says.
    pub fn shorten(&mut self, by: impl Fn(&Bound) -> i64) {
        self.windows.iter_mut().for_each(|(_, bound)| bound.distance = bound.distance.saturating_sub(by(bound)));
    }

    /// The tightest by window, in order of windows.
    pub fn windows(&self) -> &[(u32, Bound)] {
        &self.windows
    }

    /// Those of windows in which `back` has one as well, and these.
    pub(crate) fn beside<'a>(&'a self, back: &'a DirectedBounds) -> impl Iterator<Item = (&'a Bound, &'a Bound)> {
        let mut others = back.windows.iter().peekable();
        self.windows.iter().filter_map(move |(window, bound)| {
            while others.next_if(|other| other.0 < *window).is_some() {}
            others.peek().filter(|other| other.0 == *window).map(|other| (bound, &other.1))
        })
    }

    /// The tightest of a window.
    pub fn get(&self, window: u32) -> Option<&Bound> {
        let at = self.windows.binary_search_by_key(&window, |(window, _)| *window).ok()?;
        self.windows.get(at).map(|(_, bound)| bound)
    }
}
