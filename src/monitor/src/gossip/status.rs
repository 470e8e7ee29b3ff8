//! Records that tell of a node or a group that it is dead, has left, or lives after all: the broadcast of the livelist,
//! as differences.

use super::message::RecordKey;
use super::types::Liveness;

/// Version of such a record: of two about the same heartbeat, bad news wins.
pub(crate) fn version(heartbeat: u64, liveness: Liveness) -> u64 {
    heartbeat.saturating_mul(2) + u64::from(liveness != Liveness::Alive)
}

/// The heartbeat that a version speaks of.
pub(crate) fn heartbeat(version: u64) -> u64 {
    version / 2
}

pub(crate) fn key(layer: u8, id: u32) -> RecordKey {
    RecordKey { layer, id, key: 0 }
}

pub(crate) fn encode(liveness: Liveness) -> [u8; 1] {
    match liveness {
        Liveness::Dead => *b"D",
        Liveness::Left => *b"L",
        Liveness::Alive | Liveness::Suspect => *b"A",
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Liveness> {
    match bytes {
        b"A" => Some(Liveness::Alive),
        b"D" => Some(Liveness::Dead),
        b"L" => Some(Liveness::Left),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_news_of_the_same_heartbeat_wins_and_a_newer_heartbeat_over_it() {
        let [alive, dead] = [Liveness::Alive, Liveness::Dead].map(|liveness| version(7, liveness));
        assert!(alive < dead && dead < version(8, Liveness::Alive));
        assert_eq!((heartbeat(alive), heartbeat(dead)), (7, 7));
        for liveness in [Liveness::Alive, Liveness::Dead, Liveness::Left] {
            assert_eq!(decode(&encode(liveness)), Some(liveness));
        }
        assert_eq!(decode(b"?"), None);
    }
}
