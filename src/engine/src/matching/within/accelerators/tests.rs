use super::*;
use crate::matching::within::operations::SharedOperations;
use crate::matching::within::threads::ProcessThreadSteps;
use clc_trace::{CallParameter, ClockProperties, Location, ParameterId, Region, WindowTransfer};

/// Regions by their places.
const NAMES: [&str; 9] = [
    "cuLaunchKernel",
    "cudaStreamSynchronize",
    "cuStreamSynchronize",
    "cuCtxSynchronize",
    "cuMemcpyDtoH_v2",
    "COMPUTE IDLE",
    "kernel",
    "cuEventRecord",
    "cuEventSynchronize",
];

/// So many threads, and streams of one device: three locations.
fn definitions(threads: u64) -> Definitions {
    let clock = ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None };
    let location = |id: u64| Location {
        id: LocationId(id),
        name: String::new(),
        kind: if id < threads { LocationKind::CpuThread } else { LocationKind::AcceleratorStream },
        group: LocationGroupId(u32::from(id >= threads)),
        claimed_events: 0,
    };
    let region = |(id, name): (u32, &&str)| Region { id: RegionId(id), name: (*name).into() };
    Definitions {
        locations: (0..3).map(location).collect(),
        regions: (0..).zip(&NAMES).map(region).collect(),
        callsites: vec![ParameterId(1)],
        ..Definitions::empty(clock)
    }
}

/// An event, and the stream that it names.
type Happens = (i64, Event, Option<u64>);

fn enter(time: i64, name: &str) -> Happens {
    let region = NAMES.iter().position(|known| *known == name).unwrap();
    (time, Event::Enter(RegionId(region as u32)), None)
}

fn leave(time: i64, name: &str) -> Happens {
    let (_, Event::Enter(region), _) = enter(time, name) else { unreachable!() };
    (time, Event::Leave(region), None)
}

fn site(time: i64, value: u64) -> Happens {
    (time, Event::Parameter(CallParameter { parameter: ParameterId(1), value }), None)
}

/// Of calls before work and of work before waits: pairs within a timeline, pairs between timelines, what is left out. Then the timelines of
/// locations, and why things are left out.
type Found = ([[u64; 3]; 2], Vec<u32>, Vec<(Unpaired, u64)>);

fn found(locations: [&[Happens]; 3]) -> Found {
    found_with(1, locations)
}

fn found_with(threads: u64, locations: [&[Happens]; 3]) -> Found {
    let on_stream = |&(time, event, stream): &Happens| {
        (time, event, AcceleratorReference { stream: stream.map(LocationId), event: None })
    };
    found_of(threads, locations.map(|all| all.iter().map(on_stream).collect()))
}

fn found_of(threads: u64, locations: [Vec<(i64, Event, AcceleratorReference)>; 3]) -> Found {
    let definitions = definitions(threads);
    let calls = AcceleratorCalls::of(&definitions);
    let accelerators = ProcessAccelerators::new(&calls, &definitions, &[0, 1, 2]);
    let mut steps = ProcessThreadSteps::new(&[], accelerators);
    for (location, events) in (0..).zip(locations) {
        for (number, (time, event, refers)) in (1..).zip(events) {
            let at = EventCoordinates { time, raw: time, number: EventNumber(number), location };
            if steps.takes_of_accelerators(location, &event) {
                steps.add_of_accelerators(at, &event, refers);
            }
        }
    }
    let divided = steps.divide(&[false; 3], &SharedOperations::default());
    let counts = divided.counts;
    let of = |kind| counts.0.get(&kind).map_or([0; 3], |count| [count.shared, count.apart, count.left_out]);
    ([of(Trust::Issued), of(Trust::Awaited)], divided.part_of, counts.1.into_iter().collect())
}

#[test]
fn call_sites_tell_whose_kernel_it_is() {
    let host = [
        enter(10, "cuLaunchKernel"),
        site(10, 5),
        leave(12, "cuLaunchKernel"),
        enter(20, "cuLaunchKernel"),
        site(20, 6),
        leave(22, "cuLaunchKernel"),
        enter(30, "cuCtxSynchronize"),
        leave(50, "cuCtxSynchronize"),
    ];
    let kernel = |begin, end, value| {
        [
            enter(begin - 1, "COMPUTE IDLE"),
            leave(begin, "COMPUTE IDLE"),
            enter(begin, "kernel"),
            site(begin, value),
            leave(end, "kernel"),
        ]
    };
    // The second stream is behind: its kernel begins before its own launch, though not before the other one.
    let (counts, own, why) = found([&host, &kernel(11, 40, 5), &kernel(15, 45, 6)]);
    assert_eq!((counts, own), ([[1, 1, 0], [1, 1, 0]], vec![0, 0, 1]));
    assert!(why.is_empty());
    // Only what was issued before the call is waited for.
    let (first, second) = host.split_at(6);
    let early = [second, first].concat();
    let (counts, _, _) = found([&early, &kernel(11, 40, 5), &kernel(25, 45, 6)]);
    assert_eq!(counts, [[2, 0, 0], [0, 0, 0]]);
}

#[test]
fn an_inner_call_says_what_was_waited_for() {
    let named = |(time, event, _): Happens| (time, event, Some(2));
    let host = [
        named(enter(10, "cuLaunchKernel")),
        leave(12, "cuLaunchKernel"),
        enter(13, "cudaStreamSynchronize"),
        enter(14, "cuStreamSynchronize"),
        named(leave(30, "cuStreamSynchronize")),
        leave(31, "cudaStreamSynchronize"),
    ];
    let kernel = [enter(15, "kernel"), leave(29, "kernel")];
    assert_eq!(found([&host, &[], &kernel]), ([[1, 0, 0], [1, 0, 0]], vec![0; 3], vec![]));
    // Without the attribute nobody knows; and the kernel is of another stream than the call says.
    let unnamed = host.map(|(time, event, _)| (time, event, None));
    let unknown = Unpaired::UnknownStream(RegionId(2));
    assert_eq!(found([&unnamed, &[], &kernel]), ([[1, 0, 0], [0, 0, 1]], vec![0; 3], vec![(unknown, 1)]));
    let (counts, _, why) = found([&host, &kernel, &[]]);
    assert_eq!((counts, why), ([[0, 0, 1], [0, 0, 0]], vec![(Unpaired::Numbers, 1)]));
}

#[test]
fn copies_to_the_host_are_complete_when_a_blocking_call_ends() {
    let transfer = |matching| WindowTransfer { window: WindowId(0), remote: 0, bytes: 1, matching };
    let host = [enter(10, "cuMemcpyDtoH_v2"), leave(20, "cuMemcpyDtoH_v2")];
    let done = |time| (time, Event::RmaOpCompleteBlocking(WindowId(0), 42), None);
    let put = [(12, Event::RmaPut(transfer(42)), None), done(25)];
    assert_eq!(found([&host, &put, &[]]), ([[0, 1, 0], [0, 1, 0]], vec![0, 1, 0], vec![]));
    let get = [(12, Event::RmaGet(transfer(42)), None), done(25)];
    assert_eq!(found([&host, &get, &[]]), ([[1, 0, 0], [0, 0, 0]], vec![0; 3], vec![]));
    // What is never complete is not waited for.
    let open = [(12, Event::RmaPut(transfer(41)), None), done(25)];
    assert_eq!(found([&host, &open, &[]]), ([[1, 0, 0], [0, 0, 0]], vec![0; 3], vec![]));
}

#[test]
fn it_is_the_stream_that_is_wrong() {
    // Of a thread that is not the main one, too.
    let host = [enter(10, "cuLaunchKernel"), leave(12, "cuLaunchKernel")];
    let kernel = [enter(5, "kernel"), leave(8, "kernel")];
    assert_eq!(found_with(2, [&[], &host, &kernel]), ([[0, 1, 0], [0; 3]], vec![0, 0, 1], vec![]));
}

#[test]
fn records_out_of_place_are_no_reason_to_fail() {
    let host = [
        leave(5, "cuCtxSynchronize"),
        site(6, 1),
        enter(7, "cuLaunchKernel"),
        leave(8, "cuCtxSynchronize"),
        site(9, 1),
    ];
    let stream = [leave(1, "kernel"), site(2, 1), enter(3, "kernel"), enter(4, "kernel"), site(5, 1)];
    let (counts, own, why) = found([&host, &stream, &[]]);
    assert_eq!((counts, own), ([[0, 0, 1], [0; 3]], vec![0; 3]));
    assert_eq!(why, [(Unpaired::Numbers, 1)]);
}

/// Two kernels of a stream with an event behind the first of them; the wait for the event is for that one only.
#[test]
fn an_event_stands_behind_the_work_that_was_issued_before_it() {
    let nothing = AcceleratorReference::default();
    let stream = AcceleratorReference { stream: Some(LocationId(2)), event: None };
    let event = |address| AcceleratorReference { stream: None, event: Some(address) };
    let placed = |address| AcceleratorReference { stream: stream.stream, event: Some(address) };
    let call = |(entered, left), name: &str, refers| {
        let at = |(time, event, _): Happens, refers| (time, event, refers);
        [at(enter(entered, name), nothing), at(leave(left, name), refers)]
    };
    let host = |waits: [[(i64, Event, AcceleratorReference); 2]; 1]| -> Vec<(i64, Event, AcceleratorReference)> {
        let launches = [
            call((10, 11), "cuLaunchKernel", stream),
            call((12, 13), "cuEventRecord", placed(77)),
            call((14, 15), "cuLaunchKernel", stream),
        ];
        launches.into_iter().chain(waits).flatten().collect()
    };
    let kernels = |first, second| -> Vec<(i64, Event, AcceleratorReference)> {
        let all = [enter(16, "kernel"), leave(first, "kernel"), enter(first + 1, "kernel"), leave(second, "kernel")];
        all.map(|(time, event, _)| (time, event, nothing)).into()
    };
    let waits = |address| host([call((17, 40), "cuEventSynchronize", event(address))]);
    // The second kernel may go on.
    let in_order = found_of(1, [waits(77), Vec::new(), kernels(30, 90)]);
    assert_eq!(in_order, ([[2, 0, 0], [1, 0, 0]], vec![0; 3], vec![]));
    let late = found_of(1, [waits(77), Vec::new(), kernels(41, 90)]);
    assert_eq!(late, ([[0, 2, 0], [0, 1, 0]], vec![0, 0, 1], vec![]));
    // Another event was put into a stream by nobody, or by another thread.
    let unknown = Unpaired::UnknownEvent(RegionId(8));
    let (counts, _, why) = found_of(1, [waits(78), Vec::new(), kernels(41, 90)]);
    assert_eq!((counts, why), ([[2, 0, 0], [0, 0, 1]], vec![(unknown.clone(), 1)]));
    let other = call((5, 6), "cuEventRecord", placed(77)).to_vec();
    let (counts, _, why) = found_of(2, [waits(77), other, kernels(41, 90)]);
    assert_eq!((counts, why), ([[2, 0, 0], [0, 0, 1]], vec![(unknown, 1)]));
}
