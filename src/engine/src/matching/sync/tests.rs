use super::*;

/// A clock per location.
struct ByLocation<F>(F);

impl<F: Fn(u32, i64) -> i64> EventClock for ByLocation<F> {
    fn map(&mut self, places: &Places, first: usize, recorded: &[i64], times: &mut [i64]) {
        for (event, (time, recorded)) in (first..).zip(times.iter_mut().zip(recorded)) {
            *time = (self.0)(places.location(event), *recorded);
        }
    }
}

#[test]
fn an_event_that_has_lost_all_its_parts_waits_for_nobody() {
    let mut timeline = SyncTimeline::default();
    let event = timeline.push(0, 0, EventNumber(1), 0).unwrap();
    let mut several = Vec::new();
    let begun = [5, 6, 7].map(|channel| timeline.link_to(event, SyncKind::Receive, channel, &mut several));
    assert_eq!(begun, [false, true, false]);
    assert_eq!((timeline.kind(0), &several[..]), (SyncKind::Join, &[vec![5, 6, 7]][..]));
    for (channel, left) in [(6, SyncKind::Join), (5, SyncKind::Join), (7, SyncKind::Local)] {
        timeline.unlink(event, channel, &mut several);
        assert_eq!(timeline.kind(0), left);
    }
}

#[test]
fn recorded_times_come_back_whatever_the_clocks_are() {
    let far = 1 << 61;
    // Offsets that hardly change; one that does in the end; two that are far apart from the beginning.
    for raws in [vec![5, 12, 20], vec![far, far + 1, 7], vec![0, far]] {
        let mut timeline = SyncTimeline::default();
        for (event, &raw) in raws.iter().enumerate() {
            timeline.push(10 * event as i64, raw, EventNumber::after(event as u64), event as u32).unwrap();
        }
        let all = |timeline: &SyncTimeline| timeline.recorded_times().collect::<Vec<i64>>();
        assert_eq!((all(&timeline), timeline.times().len()), (raws.clone(), raws.len()));
        timeline.shift(3);
        assert_eq!((all(&timeline), timeline.time(1)), (raws.clone(), 13));
        let presynchronised = |timeline: &SyncTimeline| timeline.times().iter().collect::<Vec<i64>>();
        for rate in [1, 2, 1 << 20] {
            timeline.retime(ByLocation(|location, raw| raw / rate + i64::from(location)));
            let times: Vec<i64> = raws.iter().zip(0..).map(|(raw, event)| raw / rate + event).collect();
            assert_eq!((all(&timeline), presynchronised(&timeline)), (raws.clone(), times));
        }
        let times = presynchronised(&timeline);
        timeline.exchange_times();
        assert_eq!((all(&timeline), presynchronised(&timeline)), (times, raws.clone()));
        timeline.exchange_times();
        assert_eq!(all(&timeline), raws);
        timeline.forget_recorded_times();
        assert_eq!((all(&timeline), timeline.recorded_time(0)), (vec![], None));
    }
}

#[test]
fn events_of_one_time_come_in_the_order_of_their_layers() {
    let mut timeline = SyncTimeline::default();
    // In the order that the layers tell.
    for (time, location, number) in [(4, 0, 1), (5, 1, 1), (5, 0, 2), (5, 1, 2), (6, 0, 3)] {
        timeline.push(time, time + 100, EventNumber(number), location).unwrap();
    }
    timeline.set_layers(vec![LayerStart { event: 3, layer: 2 }, LayerStart { event: 2, layer: 1 }]);
    let position = |time, location, number| Position { time: Ticks(time), location, number: EventNumber(number) };
    let expected = [
        position(4, 0, 1),
        position(5, 1, 1),
        position(5, 0, 2).in_layer(1),
        position(5, 1, 2).in_layer(2),
        position(6, 0, 3),
    ];
    let positions: Vec<Position> = (0..5).map(|event| timeline.position(event)).collect();
    assert_eq!(positions, expected);
    assert!(positions.is_sorted());
    let links = MirroredLinks::default();
    let mirrored = ReplayTimeline::new(&timeline, Some(&links));
    assert_eq!((mirrored.position(1), mirrored.location(1)), (position(-5, 1, 2).in_layer(2), 1));
    // With other clocks, times may be equal no more.
    timeline.retime(ByLocation(|location, raw| raw + i64::from(location)));
    assert_eq!(timeline.position(2), position(105, 0, 2).in_layer(1));
    assert_eq!(timeline.position(1), position(106, 1, 1));
}

#[test]
fn events_come_back_as_they_were_pushed() {
    let mut timeline = SyncTimeline::default();
    let events = [(1, 0), (2, 0), (7, 2), (u64::from(u32::MAX) + 5, 0), (8, 1)]
        .map(|(number, location)| (EventNumber(number), location));
    for (at, &(number, location)) in events.iter().enumerate() {
        assert_eq!(timeline.push(at as i64, 0, number, location).unwrap() as usize, at);
    }
    timeline.activate(3, SyncKind::End, SyncTimeline::LINKS as u32 - 1);
    for (at, &(number, location)) in events.iter().enumerate() {
        assert_eq!((timeline.number(at), timeline.location(at)), (number, location));
    }
    let parts: Vec<_> = timeline.parts().collect();
    assert_eq!(parts[3], (SyncKind::End, SyncTimeline::LINKS - 1));
    assert_eq!(parts[4], (SyncKind::Local, 0));
}
