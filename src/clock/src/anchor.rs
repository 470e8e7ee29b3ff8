//! Recorded offsets as observations.

/// A recorded offset: the correction of a clock, known from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    /// Clock.
    pub clock: u32,
    /// Window.
    pub window: u32,
    /// Its correction, in ticks.
    pub value: f64,
    /// Standard deviation.
    pub sigma: f64,
    /// By how much it is wrong at most, as recorded with it ([`clc_trace::ClockOffset::bound`]), in ticks; 0 if nothing was.
    pub bound: f64,
}

/// Recorded offsets beside messages, which tell by how much clocks are apart on the mean but for half of how long they take there and back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedLevels {
    /// Recorded offsets.
    pub anchors: Vec<Anchor>,
    /// The clock that they refer to, which needs none.
    pub reference: u32,
    /// What they are off by at most, in ticks.
    pub long: f64,
}

/// By how much a clock with some corrections is off its recorded offsets, in ticks: in the mean, and the most by which one of them differs from that.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LevelError {
    /// Mean of all offsets.
    pub mean: f64,
    /// How far from it the farthest one is.
    pub spread: f64,
}

impl RecordedLevels {
    /// By how much each clock is off, if these are the corrections; None for clocks of which nothing was recorded.
    pub fn errors(&self, offsets: &[f64], windows: usize) -> Vec<Option<LevelError>> {
        if self.anchors.is_empty() || windows == 0 {
            return Vec::new();
        }
        let mut found: Vec<Vec<f64>> = vec![Vec::new(); offsets.len() / windows];
        for anchor in &self.anchors {
            let at = offsets.get(anchor.clock as usize * windows + anchor.window as usize);
            if let Some((all, at)) = found.get_mut(anchor.clock as usize).zip(at) {
                all.push(anchor.value - at);
            }
        }
        let error = |(clock, all): (usize, &Vec<f64>)| {
            if clock == self.reference as usize && all.is_empty() {
                return Some(LevelError::default());
            }
            let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
            let spread = all.iter().map(|one| (one - mean).abs()).reduce(f64::max)?;
            Some(LevelError { mean, spread })
        };
        found.iter().enumerate().map(error).collect()
    }
}
