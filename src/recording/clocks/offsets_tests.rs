use super::*;
use crate::recording::clocks::Counter;
use crate::recording::raw::format::measured::{KERNEL, MPI};

/// Two ticks are a nanosecond; the clock is ahead by `shift`.
fn clock(shift: i64) -> ProcessClock {
    ProcessClock::new(Counter::of(2, shift), 0, None, 0, 0)
}

/// An exchange that begins at a nanosecond, whose messages take so long there and back.
fn exchange((start, there, back): (u64, u64, u64)) -> Exchange {
    let came = 2 * (start + there);
    Exchange { asked: 2 * start, answered: came + 2 * back, came, left: came }
}

fn batch(partner: u32, method: u64, exchanges: &[(u64, u64, u64)]) -> Batch {
    Batch { partner, method, exchanges: exchanges.iter().map(|&times| exchange(times)).collect() }
}

#[test]
fn an_offset_comes_from_the_fastest_message_of_each_direction() {
    let batch = batch(0, KERNEL, &[(0, 100, 300), (5_000, 300, 100), (10_000, 250, 250)]);
    let found = Relative::new(&batch, &clock(0), &clock(1_000), 0.0).unwrap();
    assert_eq!((found.offset, found.range, found.partner), (1_000, 200, 0));
    assert!((found.variance().sqrt() - 100.0 / 3.0_f64.sqrt()).abs() < 1e-9);
    assert_eq!(Relative::new(&Batch { exchanges: Vec::new(), ..batch }, &clock(0), &clock(0), 0.0), None);
}

#[test]
fn a_message_that_no_others_follow_is_an_exception() {
    // There, one message took 3,000 ns, all others 8,000 to 8,020; back all took 8,000 or more.
    let mut exchanges: Vec<(u64, u64, u64)> = (0..10).map(|i| (i * 50_000, 8_000 + 2 * i, 8_000 + 3 * i)).collect();
    exchanges[4].1 = 3_000;
    let found = |method| Relative::new(&batch(0, method, &exchanges), &clock(0), &clock(0), 0.0).unwrap();
    assert_eq!((found(KERNEL).offset, found(KERNEL).range), (0, 16_000));
    // Messages of MPI have no such exceptions.
    assert_eq!((found(MPI).offset, found(MPI).range), (-2_500, 11_000));
    // Where nothing follows closely, the fastest one counts.
    exchanges.truncate(6);
    assert_eq!(Relative::new(&batch(0, KERNEL, &exchanges), &clock(0), &clock(0), 0.0).unwrap().range, 11_000);
}

#[test]
fn drift_within_a_batch_does_not_count_as_an_offset() {
    // The own clock stands for one that loses 1 ns in 10 us: the partner is ahead by more and more.
    let batch = batch(0, KERNEL, &[(0, 100, 400), (1_000_000, 500, 0)]);
    let plain = Relative::new(&batch, &clock(0), &clock(0), 0.0).unwrap();
    let better = Relative::new(&batch, &clock(0), &clock(0), 1e-4).unwrap();
    assert_eq!(plain.range, 100);
    // In the middle it is ahead by 50 ns; there and back the fastest ones take 150 then.
    assert_eq!((better.range, plain.offset, better.offset), (200, 50, 50));
}

#[test]
fn messages_of_mpi_count_where_they_are_much_faster() {
    let both = |fast: u64| {
        let batches = [batch(0, KERNEL, &[(0, 8_000, 8_000)]), batch(0, MPI, &[(50_000, fast, fast)])];
        relatives(1, &batches, |_| Some(clock(0))).iter().map(|relative| relative.method).collect::<Vec<_>>()
    };
    assert_eq!(both(7_000), [KERNEL]);
    assert_eq!(both(1_000), [MPI]);
}

#[test]
fn at_the_end_of_a_short_run_the_beginning_is_no_substitute() {
    let kernel = |start| batch(0, KERNEL, &[(start, 8_000, 8_000)]);
    // At the end, there was no time for messages of MPI.
    let batches = [kernel(0), batch(0, MPI, &[(50_000, 1_000, 1_000)]), kernel(5_000_000)];
    let found = relatives(1, &batches, |_| Some(clock(0)));
    assert_eq!(found.iter().map(|relative| relative.method).collect::<Vec<_>>(), [MPI, KERNEL]);
}

#[test]
fn one_measurement_by_mpi_replaces_one_by_the_kernel() {
    // At the start the kernel was fast enough, and MPI was not tried.
    let batches = [
        batch(0, KERNEL, &[(0, 9_000, 9_000)]),
        batch(0, KERNEL, &[(200_000_000, 30_000, 30_000)]),
        batch(0, MPI, &[(205_000_000, 1_000, 1_000)]),
    ];
    let found = relatives(1, &batches, |_| Some(clock(0)));
    assert_eq!(found.iter().map(|relative| relative.method).collect::<Vec<_>>(), [KERNEL, MPI]);
}

#[test]
fn a_clock_that_drifts_far_during_a_measurement_is_measured_all_the_same() {
    // The own clock gains 1 us per ms. A batch of 20 ms, at the start and after a second: the offset changes by 20 us, and both messages take 16.
    let drifting = |start: u64| {
        let own = |time: u64| 2 * (time + time / 1_000);
        let one = |at: u64| Exchange {
            asked: own(at),
            came: 2 * (at + 8_000),
            left: 2 * (at + 8_000),
            answered: own(at + 16_000),
        };
        Batch { partner: 0, method: KERNEL, exchanges: vec![one(start), one(start + 20_000_000)] }
    };
    let batches = [drifting(0), drifting(1_000_000_000)];
    assert_eq!(Relative::new(&batches[0], &clock(0), &clock(0), 0.0), None, "the difficulty");
    let found = relatives(1, &batches, |_| Some(clock(0)));
    let offsets: Vec<i64> = found.iter().map(|relative| relative.offset / 1_000).collect();
    assert_eq!(offsets, [-10, -1_010]);
    assert!(found.iter().all(|relative| (15_900..16_100).contains(&relative.range)), "{found:?}");
    // A single one has no slope, and is one exchange.
    let found = relatives(1, &batches[..1], |_| Some(clock(0)));
    assert!(found.len() == 1 && (15_900..16_100).contains(&found[0].range), "{found:?}");
}

#[test]
fn a_measurement_in_between_that_is_worse_than_no_measurement_is_left_out() {
    let times = [(0, 9_000), (1_000_000, 8_000), (2_000_000, 17_000), (3_000_000, 15_000), (4_000_000, 90_000)];
    let batches = times.map(|(start, fast)| batch(0, KERNEL, &[(start, fast, fast)]));
    let found = relatives(1, &batches, |_| Some(clock(0)));
    assert_eq!(found.iter().map(|relative| relative.range / 2_000).collect::<Vec<_>>(), [9, 8, 15, 90]);
}

#[test]
fn a_bad_measurement_counts_where_the_clock_bends_by_more() {
    // The partner gains 10 us in 200 ms and loses them again.
    let bent = |start: u64, ahead: u64, takes: u64| {
        let came = 2 * (start + takes + ahead);
        let one = Exchange { asked: 2 * start, came, left: came, answered: 2 * (start + 2 * takes) };
        Batch { partner: 0, method: KERNEL, exchanges: vec![one] }
    };
    let ms = |count: u64| count * 1_000_000;
    let ranges = |bend: u64| {
        let batches = [
            bent(0, 0, 2_000),
            bent(ms(100), bend / 2, 6_000),
            bent(ms(200), bend, 5_000),
            bent(ms(300), bend / 2, 6_000),
            bent(ms(400), 0, 2_000),
        ];
        let found = relatives(1, &batches, |_| Some(clock(0)));
        found.iter().map(|relative| (relative.offset, relative.range)).collect::<Vec<_>>()
    };
    // Each may be wrong by half of what it took; those to the left and right of it are then no news.
    assert_eq!(ranges(10_000), [(0, 4_000), (10_000, 10_000), (0, 4_000)]);
    assert_eq!(ranges(6_000), [(0, 4_000), (0, 4_000)]);
}

#[test]
fn a_spoilt_measurement_does_not_spoil_its_neighbours() {
    let late =
        [(0, 8_000, 8_000), (20_000_000, 8_000, 12_000_000), (40_000_000, 8_000, 8_000), (60_000_000, 8_000, 8_000)];
    let batches =
        late.map(|(start, there, back)| batch(0, KERNEL, &[(start, there, back), (start + 15_000_000, there, back)]));
    let found = relatives(1, &batches, |_| Some(clock(0)));
    assert!(
        found.len() == 3 && found.iter().all(|relative| (relative.offset, relative.range) == (0, 16_000)),
        "{found:?}"
    );
}

fn relative(partner: u32, time: i64, offset: i64) -> Relative {
    Relative { partner, time, offset, range: 120, method: KERNEL, during: [time; 2] }
}

#[test]
fn offsets_along_a_tree_add_up() {
    let list = BTreeMap::from([
        (4, vec![relative(0, 1_000_000, 50), relative(0, 11_000_000, 60)]),
        (6, vec![relative(4, 1_000_000, 7), relative(4, 6_000_000, 7)]),
        (7, vec![relative(5, 1_000_000, 7)]),
    ]);
    let found = composed(&list);
    assert_eq!(found[&4].iter().map(|offset| offset.offset).collect::<Vec<_>>(), [50, 60]);
    assert_eq!(found[&6].iter().map(|offset| offset.offset).collect::<Vec<_>>(), [57, 62]);
    assert!(found[&6][0].standard_deviation > found[&4][0].standard_deviation);
    // Its partner has not measured anything.
    assert!(found[&7].is_empty());
}

#[test]
fn a_run_too_short_for_a_drift_has_none() {
    let offsets = |passed: i64, change: i64| {
        let list = BTreeMap::from([(1, vec![relative(0, 1_000, 50), relative(0, 1_000 + passed, 50 + change)])]);
        composed(&list)[&1].iter().map(|offset| offset.offset).collect::<Vec<_>>()
    };
    // Each is wrong by up to 60 ns.
    assert_eq!(offsets(400_000, 40), [70, 70]);
    assert_eq!(offsets(600_000, 40), [50, 90], "long enough");
    assert_eq!(offsets(400_000, 140), [50, 190], "more than they can be wrong by");
}

#[test]
fn what_a_ring_is_off_is_distributed() {
    let list = BTreeMap::from([
        (0, vec![relative(3, 1_000, -270)]),
        (1, vec![relative(0, 1_000, 110)]),
        (2, vec![relative(1, 1_000, 110)]),
        (3, vec![relative(2, 1_000, 110)]),
    ]);
    // 60 ns too many after four steps.
    let found = composed(&list);
    assert_eq!([1, 2, 3].map(|rank| found[&rank][0].offset), [95, 190, 285]);
    // The sum of the variances is 4,800, the square of what they are off 3,600: they do not contradict each other. The middle is farthest from rank 0.
    let deviation = |rank: u32| found[&rank][0].standard_deviation;
    assert!(deviation(2) > deviation(1) && (deviation(1) - deviation(3)).abs() < 1e-9);
    assert!((deviation(1) - (1_200.0_f64 * 0.75).sqrt()).abs() < 1e-9);
}

#[test]
fn offsets_are_interpolated() {
    let at = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
    let offsets = [at(100, 10), at(200, 20), at(300, 20)];
    assert_eq!(globally(150, &offsets), 165);
    assert_eq!(globally(50, &offsets), 55);
    assert_eq!(globally(400, &offsets), 420);
    assert_eq!(globally(150, &offsets[..1]), 160);
    assert_eq!(globally(150, &[]), 150);
}
