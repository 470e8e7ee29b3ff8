//! The chapter on traffic: messages and bytes from whom to whom, and when.

use super::{long_table, time_axis};
use crate::report::html::element::{escape, figure, fold};
use crate::report::html::matrix::{names, picture, swatches};
use crate::report::html::plot::PlotFrame;
use crate::report::{PairsOverTime, Traffic};
use clc_trace::format::{bytes, count};
use std::collections::BTreeMap;

/// Pairs in the picture over time. Chosen by hand: a lane has to be high enough to be read; the pairs with most come first.
const LANES: usize = 16;

pub(super) fn body(traffic: &Traffic) -> String {
    if traffic.messages == 0 {
        return String::new();
    }
    let (one, many) = names(traffic.unit, traffic.block);
    let mut html =
        format!("<p>{} messages with {} in all.</p>\n", count(traffic.messages), escape(&bytes(traffic.bytes)));
    html += &format!("<div class=\"pair\">{}</div>\n", matrix(traffic, &many));
    html += &over_time(traffic);
    html += &lanes(&traffic.over_time);
    let mut pairs: Vec<_> = traffic.pairs.iter().collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse((pair.bytes, pair.messages)));
    let rows = pairs.into_iter().take(100).map(|pair| {
        vec![
            format!("{one} {}", pair.sender),
            format!("{one} {}", pair.receiver),
            count(pair.messages),
            escape(&bytes(pair.bytes)),
        ]
    });
    html + &fold(
        "The numbers",
        &long_table("Pairs that exchange the most bytes", &["from", "to", "messages", "bytes"], rows.collect()),
    )
}

/// Class of colour, 1 to 4, of `value` beside the largest: each begins at four times the one before.
fn class(value: u64, most: u64) -> usize {
    match most / value.max(1) {
        0..=3 => 4,
        4..=15 => 3,
        16..=63 => 2,
        _ => 1,
    }
}

fn matrix(traffic: &Traffic, many: &str) -> String {
    let most = traffic.pairs.iter().map(|pair| pair.bytes).max().unwrap_or(0).max(1);
    let fields = traffic.pairs.iter().map(|pair| {
        let class = if pair.bytes == 0 { 0 } else { class(pair.bytes, most) };
        (pair.sender, pair.receiver, class)
    });
    let label = "Matrix of bytes by sender (rows) and receiver (columns).";
    let classes = ["no bytes", "least", "from 1/64", "from 1/16", "from 1/4 of the most"];
    figure(&format!("Bytes by sending and receiving {many}"), &picture(traffic.size, "", label, fields))
        + &format!("<p class=\"legend-line\">At most {}: {}</p>\n", escape(&bytes(most)), swatches(classes))
}

/// Bytes per window.
fn over_time(traffic: &Traffic) -> String {
    let windows = traffic.bytes_by_window.len();
    let most = traffic.bytes_by_window.iter().copied().max().unwrap_or(0);
    if most == 0 || traffic.window_seconds <= 0.0 {
        return String::new();
    }
    let frame = PlotFrame { left: 100.0, ..PlotFrame::new(900.0, 200.0) };
    let per_second = |share: f64| format!("{}/s", bytes((share * most as f64 / traffic.window_seconds) as u64));
    let marks: Vec<_> = [0.0, 0.5, 1.0].into_iter().map(|at| (at, per_second(at))).collect();
    let mut path = String::new();
    for (window, &sum) in traffic.bytes_by_window.iter().enumerate() {
        let (from, to) = (frame.x(window as f64 / windows as f64), frame.x((window + 1) as f64 / windows as f64));
        let start = if window == 0 { "M" } else { "L" };
        path += &format!("{start}{from:.1} {:.1}H{to:.1}", frame.y(sum as f64 / most as f64));
    }
    let svg = frame.y_axis(&marks, "sent")
        + &format!("<path class=\"line fine corrected\" d=\"{path}\"/>")
        + &time_axis(&frame, traffic.window_seconds * windows as f64);
    figure("Bytes sent over time", &frame.svg("Bytes sent over time.", &svg))
}

/// The pairs with the most bytes, each as a lane over time; the darker, the more bytes in that window.
fn lanes(pairs: &PairsOverTime) -> String {
    const HEIGHT: f64 = 16.0;
    const LEFT: f64 = 130.0;
    const WIDTH: f64 = 754.0;
    // By pair: the sum of its bytes, and (window, bytes).
    type Lane = (u64, Vec<(u32, u64)>);
    let mut sums: BTreeMap<(u32, u32), Lane> = BTreeMap::new();
    let entries = pairs.senders.iter().zip(&pairs.receivers).zip(pairs.window.iter().zip(&pairs.bytes));
    for ((&sender, &receiver), (&window, &sum)) in entries.filter(|(_, (_, sum))| **sum > 0) {
        let (all, list) = sums.entry((sender, receiver)).or_default();
        *all += sum;
        list.push((window, sum));
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(pair, (all, _))| (std::cmp::Reverse(*all), *pair));
    let further = sums.len().saturating_sub(LANES);
    sums.truncate(LANES);
    if sums.is_empty() || pairs.windows == 0 {
        return String::new();
    }
    let most = sums.iter().flat_map(|(_, (_, list))| list).map(|(_, sum)| *sum).max().unwrap_or(1);
    let (one, _) = names(pairs.unit, pairs.block);
    let width = WIDTH / pairs.windows as f64;
    let mut svg = String::new();
    for (lane, ((sender, receiver), (_, list))) in sums.iter().enumerate() {
        let y = lane as f64 * (HEIGHT + 3.0);
        svg += &format!(
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{one} {sender} → {receiver}</text>\
             <rect class=\"lane\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>",
            LEFT - 8.0,
            y + HEIGHT - 4.0
        );
        for (window, sum) in list {
            let x = LEFT + f64::from(*window) * width;
            let class = class(*sum, most);
            svg += &format!(
                "<rect class=\"c{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{HEIGHT}\"/>",
                width.max(0.5)
            );
        }
    }
    let height = sums.len() as f64 * (HEIGHT + 3.0);
    let seconds = pairs.window_seconds * pairs.windows as f64;
    svg += &format!(
        "<text class=\"label\" x=\"{LEFT}\" y=\"{0:.1}\">0 s</text><text class=\"label\" x=\"{1:.1}\" y=\"{0:.1}\" text-anchor=\"end\">{2}</text>",
        height + 12.0,
        LEFT + WIDTH,
        crate::report::html::element::duration(seconds)
    );
    let picture = format!(
        "<svg class=\"plot\" viewBox=\"0 0 900 {:.0}\" style=\"min-width:560px\" role=\"img\" \
         aria-label=\"Bytes over time for the pairs that exchange the most.\">{svg}</svg>",
        height + 20.0
    );
    let rest =
        if further > 0 { format!("; {} more pairs are not shown", count(further as u64)) } else { String::new() };
    figure(
        &format!(
            "Bytes over time, for the pairs that exchange the most: the darker, the more in that \
        window{rest}"
        ),
        &picture,
    )
}
