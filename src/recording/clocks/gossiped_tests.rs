use super::*;

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// Packets of two nodes for 20 s, every 25 ms from either, of which the clock of node 1 is set forward by `by` at `jump`.
fn packets(jump: i64, by: i64) -> Vec<ClockMessage> {
    let start = 1_000 * SECOND;
    let shown = |node: u32, time: i64| start + time + if node == 1 && time >= jump { by } else { 0 };
    let message = |packet: i64| {
        let (from, sent) = ((packet % 2) as u32, packet * 25 * MILLISECOND);
        let took = 20_000 + packet * 7_919 % 13_000;
        ClockMessage { from, to: 1 - from, sent: shown(from, sent), received: shown(1 - from, sent + took) }
    };
    (1..800).map(message).collect()
}

/// Where the events of a node tell the pause in which its clock jumped, its offset changes there and nowhere else: the estimate has it anywhere between two packets.
#[test]
fn a_jump_whose_pause_is_known_is_in_that_pause() {
    let (by, options) =
        (500_000, Options { reference: Reference::Process(0), jumps: JumpLimits::PACKETS, ..Options::default() });
    for place in 0..24 {
        let messages = packets(10 * SECOND + 40 * MILLISECOND * place + 17 * MILLISECOND, by);
        let found = estimate(&messages, &options).expect("estimated");
        for part in [0.1, 0.4, 0.8] {
            let told = std::cell::Cell::new(None);
            let pause = |_, jumps: &[ClockJump]| {
                let place = |jump: &ClockJump| {
                    let (from, until) = jump.between;
                    let begin = from + ((until - from + jump.rise) as f64 * part) as i64;
                    told.set(Some((begin, begin - jump.rise + 10_000)));
                    told.get()
                };
                jumps.iter().map(place).collect()
            };
            let offsets = offsets_of(1, &messages, &found, &options, pause);
            let changes = offsets.windows(2).filter(|pair| (pair[1].offset - pair[0].offset).abs() > by / 10);
            let changes: Vec<_> = changes.map(|pair| (pair[0].time as i64, pair[1].time as i64)).collect();
            assert_eq!(changes, told.get().into_iter().collect::<Vec<_>>(), "{place}, {part}");
        }
    }
}

fn offsets(of: &[(u64, i64)]) -> Vec<ClockOffset> {
    of.iter().map(|&(time, offset)| ClockOffset { time, offset, standard_deviation: 1.0 }).collect()
}

#[test]
fn an_offset_that_contradicts_others_is_left_out_alone() {
    let kept = |measured: &[(u64, i64)], made: &[(u64, i64)]| -> Vec<(u64, i64)> {
        rising(&offsets(measured), offsets(made)).iter().map(|offset| (offset.time, offset.offset)).collect()
    };
    // With the third one no time would pass from the second.
    let measured = [(0, 0), (9_000, -500)];
    assert_eq!(
        kept(&measured, &[(1_000, 0), (2_000, 0), (2_060, -60), (2_600, -500)]),
        [(0, 0), (1_000, 0), (2_000, 0), (2_600, -500), (9_000, -500)]
    );
    // What was measured stays.
    assert_eq!(kept(&measured, &[(1_000, 0), (8_800, 0), (9_000, 7)]), [(0, 0), (1_000, 0), (9_000, -500)]);
}

#[test]
fn packets_within_the_time_that_a_jump_leaves_out_do_not_divide_it() {
    let offset = |time: i64| -(time - 10_000_000).clamp(0, 500_000);
    let found = jumps(&[9_000_000, 10_060_000, 10_066_000, 10_200_000, 30_000_000, 60_000_000], offset, 50_000_000);
    assert_eq!(found, [ClockJump { between: (9_000_000, 30_000_000), rise: -500_000 }]);
    // One that is smeared over a long time is no jump at a moment.
    let smeared = |time: i64| -(time / 100).clamp(0, 2_000_000);
    assert_eq!(jumps(&[0, 20_000_000, 40_000_000, 60_000_000], smeared, 50_000_000).len(), 2);
}
