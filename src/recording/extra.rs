//! Events that are in the archive and of no interest to corrections.

use clc_otf2::{ByteOrder, FieldWriter};
use clc_trace::{Event, WindowId};

/// How far a one-sided operation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completion {
    /// Complete at its origin, by a request.
    NonBlocking,
    /// Its request was looked at, and it is not complete.
    Tested,
    /// Complete at its target.
    Remote,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Extra {
    /// OTF2 `RmaWinCreate`.
    WindowCreate(WindowId),
    /// OTF2 `RmaWinDestroy`.
    WindowDestroy(WindowId),
    /// OTF2 `RmaOpCompleteNonBlocking`, `RmaOpCompleteRemote` or `RmaOpTest`: window, and by which the operation is found.
    Operation(Completion, WindowId, u64),
    /// OTF2 `Metric`: a metric of its own class, and its value.
    Metric(u32, f64),
    /// OTF2 `Metric`: an instance of the metrics of nodes, and its values.
    Sample(u32, Values),
}

/// So many values a sample has at most.
pub(super) const MOST_VALUES: usize = 8;

/// The values of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Values {
    all: [f64; MOST_VALUES],
    count: usize,
}

impl Values {
    /// The first [`MOST_VALUES`] of a list.
    pub(super) fn of(list: &[f64]) -> Values {
        let mut all = [0.0; MOST_VALUES];
        let count = list.len().min(MOST_VALUES);
        all[..count].copy_from_slice(&list[..count]);
        Values { all, count }
    }

    fn list(&self) -> &[f64] {
        &self.all[..self.count]
    }
}

/// An event of either kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum EventOrExtra {
    /// One that corrections know.
    Event(Event),
    /// Another one.
    Extra(Extra),
}

impl Extra {
    /// Its record type and its fields.
    pub(super) fn encode(self, order: ByteOrder) -> (u8, Vec<u8>) {
        let mut fields = FieldWriter::new(order);
        let kind = match self {
            Extra::WindowCreate(window) | Extra::WindowDestroy(window) => {
                fields.u32(window.0);
                if matches!(self, Extra::WindowCreate(_)) { 35 } else { 36 }
            }
            Extra::Operation(completion, window, matching) => {
                fields.u32(window.0);
                fields.u64(matching);
                match completion {
                    Completion::NonBlocking => 50,
                    Completion::Tested => 51,
                    Completion::Remote => 52,
                }
            }
            Extra::Metric(metric, value) => {
                metric_fields(&mut fields, metric, &[value]);
                METRIC
            }
            Extra::Sample(metric, values) => {
                metric_fields(&mut fields, metric, values.list());
                METRIC
            }
        };
        (kind, fields.bytes)
    }
}

/// OTF2 event record `Metric`.
const METRIC: u8 = 31;

/// The fields of a `Metric`: its reference and its values.
fn metric_fields(fields: &mut FieldWriter, metric: u32, values: &[f64]) {
    /// OTF2 `Type` of a double.
    const DOUBLE: u8 = 10;
    fields.u32(metric);
    fields.u8(values.len() as u8);
    for value in values {
        fields.u8(DOUBLE);
        fields.u64(value.to_bits());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_otf2::event_name;

    #[test]
    fn records_have_their_types() {
        let name = |extra: Extra| event_name(extra.encode(ByteOrder::Little).0);
        assert_eq!(name(Extra::WindowCreate(WindowId(1))), "RmaWinCreate");
        assert_eq!(name(Extra::WindowDestroy(WindowId(1))), "RmaWinDestroy");
        assert_eq!(name(Extra::Metric(0, 1.5)), "Metric");
        assert_eq!(name(Extra::Sample(0, Values::of(&[0.5, 1.0]))), "Metric");
        let operation = |completion| name(Extra::Operation(completion, WindowId(1), 7));
        assert_eq!(operation(Completion::NonBlocking), "RmaOpCompleteNonBlocking");
        assert_eq!(operation(Completion::Tested), "RmaOpTest");
        assert_eq!(operation(Completion::Remote), "RmaOpCompleteRemote");
    }
}
