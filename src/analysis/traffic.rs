//! Messages and bytes by pair and window of time.

use crate::details::{Grouping, grouping};
use crate::pipeline::open::TraceHandle;
use crate::report::{PairTraffic, PairsOverTime, Traffic};
use clc_execution::windows::Windows;
use clc_trace::{Ticks, TimelineNumber};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Messages, bytes.
type TrafficSum = [u64; 2];

/// Sums over matched messages.
#[derive(Debug, Clone)]
pub(super) struct TrafficSums {
    fine: Grouping,
    coarse: Grouping,
    windows: Windows,
    coarse_windows: Windows,
    /// What is merged over the analysis ranks.
    pub counts: TrafficCounts,
}

/// The sums themselves.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TrafficCounts {
    total: TrafficSum,
    pairs: BTreeMap<(u32, u32), TrafficSum>,
    /// By window.
    windows: Vec<TrafficSum>,
    /// By window, sender and receiver.
    over_time: BTreeMap<(u32, u32, u32), TrafficSum>,
}

fn add(sum: &mut TrafficSum, more: TrafficSum) {
    sum[0] = sum[0].saturating_add(more[0]);
    sum[1] = sum[1].saturating_add(more[1]);
}

impl TrafficSums {
    /// No messages yet.
    pub(super) fn new(opened: &TraceHandle, windows: Windows) -> TrafficSums {
        TrafficSums {
            fine: grouping(&opened.timelines, Traffic::SIZE),
            coarse: grouping(&opened.timelines, PairsOverTime::SIZE),
            windows,
            coarse_windows: Windows::new(windows.first, windows.last, windows.count.min(PairsOverTime::WINDOWS)),
            counts: TrafficCounts { windows: vec![[0; 2]; windows.count], ..TrafficCounts::default() },
        }
    }

    /// A message from process `source` to process `destination`, sent at `time`.
    pub(super) fn add(&mut self, source: TimelineNumber, destination: TimelineNumber, bytes: u64, time: i64) {
        let message = [1, bytes];
        let counts = &mut self.counts;
        add(&mut counts.total, message);
        add(&mut counts.windows[self.windows.window(time)], message);
        let pair = |grouping: &Grouping| (grouping.of[source], grouping.of[destination]);
        add(counts.pairs.entry(pair(&self.fine)).or_default(), message);
        let (sender, receiver) = pair(&self.coarse);
        let window = self.coarse_windows.window(time) as u32;
        add(counts.over_time.entry((window, sender, receiver)).or_default(), message);
    }
}

impl TrafficCounts {
    /// Adds those of another rank.
    pub(super) fn merge(&mut self, other: TrafficCounts) {
        add(&mut self.total, other.total);
        other.pairs.into_iter().for_each(|(pair, more)| add(self.pairs.entry(pair).or_default(), more));
        self.windows.iter_mut().zip(other.windows).for_each(|(sum, more)| add(sum, more));
        other.over_time.into_iter().for_each(|(key, more)| add(self.over_time.entry(key).or_default(), more));
    }

    /// Messages of all pairs.
    pub(super) fn messages(&self) -> u64 {
        self.total[0]
    }

    /// For the report.
    pub(super) fn report(self, opened: &TraceHandle, windows: &Windows) -> Traffic {
        let fine = grouping(&opened.timelines, Traffic::SIZE);
        let coarse = grouping(&opened.timelines, PairsOverTime::SIZE);
        let coarse_windows = windows.count.min(PairsOverTime::WINDOWS);
        let seconds = Ticks(windows.length()).seconds(opened.definitions.clock.resolution);
        let mut over_time = PairsOverTime {
            unit: coarse.unit,
            size: coarse.size as u64,
            block: coarse.block as u64,
            window_seconds: seconds / coarse_windows as f64,
            windows: coarse_windows as u64,
            ..PairsOverTime::default()
        };
        for ((window, sender, receiver), [messages, bytes]) in self.over_time {
            over_time.window.push(window);
            over_time.senders.push(sender);
            over_time.receivers.push(receiver);
            over_time.messages.push(messages);
            over_time.bytes.push(bytes);
        }
        let pair = |((sender, receiver), [messages, bytes]): ((u32, u32), TrafficSum)| PairTraffic {
            sender,
            receiver,
            messages,
            bytes,
        };
        Traffic {
            messages: self.total[0],
            bytes: self.total[1],
            unit: fine.unit,
            size: fine.size as u64,
            block: fine.block as u64,
            pairs: self.pairs.into_iter().map(pair).collect(),
            window_seconds: seconds / windows.count as f64,
            messages_by_window: self.windows.iter().map(|sum| sum[0]).collect(),
            bytes_by_window: self.windows.iter().map(|sum| sum[1]).collect(),
            over_time,
        }
    }
}
