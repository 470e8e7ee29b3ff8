//! Global definitions: what communicators share, and names that are too long for what they name.

use super::*;
use crate::bytes::{ByteOrder, Writer};
use clc_trace::{WireDefinitions, codec};
use std::sync::Arc;

fn add(tables: &mut Tables, kind: u8, fill: impl FnOnce(&mut Writer)) {
    let mut payload = Writer::new(ByteOrder::Little);
    fill(&mut payload);
    tables.record(kind, Reader::new(&payload.bytes, ByteOrder::Little)).unwrap();
}

fn numbers(payload: &mut Writer, fields: &[u32]) {
    fields.iter().for_each(|&field| payload.u32(field));
}

fn group(tables: &mut Tables, id: u32, kind: u8, members: std::ops::Range<u64>) {
    add(tables, kind::GROUP, |payload| {
        numbers(payload, &[id, 0]);
        payload.u8(0);
        payload.u32((members.end - members.start) as u32);
        members.for_each(|member| payload.u64(member));
        payload.u8(kind);
        payload.u8(MPI);
        payload.u32(0);
    });
}

/// `processes` of them, the first `region` regions called by a name of 1,000 bytes.
fn tables(processes: u64, regions: u32) -> Tables {
    let mut tables = Tables::default();
    add(&mut tables, kind::CLOCK_PROPERTIES, |payload| [1, 0, 0].into_iter().for_each(|field| payload.u64(field)));
    add(&mut tables, kind::STRING, |payload| {
        payload.u32(7);
        payload.string(&"A".repeat(1000));
    });
    add(&mut tables, kind::LOCATION_GROUP, |payload| {
        numbers(payload, &[0, 0]);
        payload.u8(1);
        payload.u32(UNDEFINED);
    });
    for location in 0..processes {
        add(&mut tables, kind::LOCATION, |payload| {
            payload.u64(location);
            payload.u32(0);
            payload.u8(1);
            payload.u64(0);
            payload.u32(0);
        });
    }
    for region in 0..regions {
        add(&mut tables, kind::REGION, |payload| numbers(payload, &[region, 7]));
    }
    group(&mut tables, 0, COMM_LOCATIONS, 0..processes);
    tables
}

/// A list for each communicator would be 40 GB.
#[test]
fn communicators_of_a_group_share_its_list_also_on_other_ranks() {
    let (processes, duplicates) = (10_000, 1_000_000);
    let mut tables = tables(processes, 0);
    group(&mut tables, 1, COMM_GROUP, 0..processes);
    group(&mut tables, 2, COMM_GROUP, 0..3);
    for id in 0..duplicates {
        add(&mut tables, kind::COMM, |payload| numbers(payload, &[id, 0, 1]));
    }
    add(&mut tables, kind::INTER_COMM, |payload| numbers(payload, &[duplicates, 0, 2, 1]));
    let (definitions, _) = tables.resolve(0).unwrap();
    let is_shared = |definitions: &Definitions| {
        let lists: Vec<&Arc<[MpiRank]>> = definitions
            .communicators
            .iter()
            .map(|communicator| match &communicator.members {
                CommMembers::Intra(members) | CommMembers::Inter(_, members) => members,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(**lists[0], (0..processes as u32).map(MpiRank).collect::<Vec<_>>());
        lists.iter().all(|list| Arc::ptr_eq(list, lists[0]))
    };
    assert!(is_shared(&definitions));
    let bytes = codec::encode(&WireDefinitions::new(definitions.clone())).unwrap();
    assert!(bytes.len() < 20_000_000, "{}", bytes.len());
    let there = codec::decode::<WireDefinitions>(&bytes).unwrap().open();
    assert!(is_shared(&there) && there == definitions);
}

#[test]
fn a_long_name_of_many_things_is_refused() {
    let length = 1 << 20;
    let regions = (SOME_TEXT / 1000) as u32;
    tables(1, regions).check_texts(length).unwrap();
    let error = tables(1, regions + 1000).check_texts(length).unwrap_err();
    assert!(error.message.contains("bytes use names of"), "{error}");
    // As many are fine in a file that is longer.
    tables(1, regions + 1000).check_texts(2 * length).unwrap();
}
