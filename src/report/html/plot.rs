//! Axes and bars as SVG.

use super::element::escape;

/// About `count` round numbers between `from` and `to`.
pub(super) fn ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let span = to - from;
    if !span.is_finite() || span <= 0.0 {
        return vec![from];
    }
    let rough = span / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (from / step).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last.min(first + 1000)).map(|tick| tick as f64 * step).collect()
}

/// The frame of a diagram, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlotFrame {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// Room for the title of the vertical axis and labels of ten characters beside it.
const LEFT: f64 = 92.0;

impl PlotFrame {
    /// With room for labels.
    pub(super) fn new(width: f64, height: f64) -> PlotFrame {
        PlotFrame { width, height, left: LEFT, right: width - 16.0, top: 12.0, bottom: height - 44.0 }
    }

    /// Where the share `x` of the width lies.
    pub(super) fn x(&self, x: f64) -> f64 {
        self.left + x * (self.right - self.left)
    }

    /// Where the share `y` of the height lies, from below.
    pub(super) fn y(&self, y: f64) -> f64 {
        self.bottom - y * (self.bottom - self.top)
    }

    /// The element around everything; `label` says in words what is to be seen.
    pub(super) fn svg(&self, label: &str, contents: &str) -> String {
        format!(
            "<svg class=\"plot\" viewBox=\"0 0 {w} {h}\" style=\"min-width:{min}px\" role=\"img\" aria-label=\"{label}\">{contents}</svg>",
            w = self.width,
            h = self.height,
            min = (self.width * 0.68).min(620.0),
            label = escape(label)
        )
    }

    /// Lines and labels of the vertical axis: (share, text).
    pub(super) fn y_axis(&self, marks: &[(f64, String)], title: &str) -> String {
        let mut svg = String::new();
        for (at, text) in marks {
            let y = self.y(*at);
            svg += &format!(
                "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                self.left,
                self.right,
                self.left - 6.0,
                y + 4.0,
                escape(text)
            );
        }
        let middle = (self.top + self.bottom) / 2.0;
        svg + &format!(
            "<text class=\"axis\" x=\"14\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {middle:.1})\">{}</text>",
            escape(title)
        )
    }

    /// Labels of the horizontal axis: (share, text).
    pub(super) fn x_axis(&self, marks: &[(f64, String)], title: &str) -> String {
        let mut svg = format!(
            "<line class=\"base\" x1=\"{}\" x2=\"{}\" y1=\"{2}\" y2=\"{2}\"/>",
            self.left, self.right, self.bottom
        );
        for (at, text) in marks {
            let x = self.x(*at);
            svg += &format!(
                "<line class=\"base\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/><text class=\"label\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                self.bottom,
                self.bottom + 4.0,
                self.bottom + 17.0,
                escape(text)
            );
        }
        svg + &format!(
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (self.left + self.right) / 2.0,
            self.height - 6.0,
            escape(title)
        )
    }
}

/// A number without needless digits.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(0.0, 7.3, 4), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(ticks(3.0, 3.0, 4), [3.0]);
        assert_eq!(ticks(0.0, f64::INFINITY, 4), [0.0]);
        assert_eq!([0.5, 2.0, 0.0, 100.0].map(short), ["0.5", "2", "0", "100"]);
    }
}
