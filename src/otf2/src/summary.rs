//! What a scan of an event file finds, in any format.

/// What a scan counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanSummary {
    /// Number of events.
    pub events: u64,
    /// Raw local time of the first and the last event, if there are any.
    pub time_span: Option<(u64, u64)>,
    /// Number of records by type: the numbers of the OTF2 event records, 0 for events of unknown type (native traces only).
    pub by_type: Box<[u64; 256]>,
    /// Number of events before each chunk of the file, if it has chunks: where a later look can begin.
    pub chunks: Vec<u64>,
    /// Whether a message was sent in one of the regions that were asked for.
    pub sent_within: bool,
    /// What is odd.
    pub warnings: Vec<String>,
}

impl ScanSummary {
    /// Number of events by OTF2 record name, those that occur; "Other" for events of unknown type.
    pub fn by_kind(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let name = |kind: usize| if kind == 0 { "Other".to_owned() } else { crate::event_name(kind as u8) };
        self.by_type.iter().enumerate().filter(|(_, count)| **count > 0).map(move |(kind, &count)| (name(kind), count))
    }
}
