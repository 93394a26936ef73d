//! Learning curves as SVG pictures.

use std::fmt::Write;

/// Colours that stay apart for colour-blind eyes (Observable's palette, reordered).
const COLORS: [&str; 8] =
    ["#4269d0", "#ff725c", "#3ca951", "#efb118", "#a463f2", "#6cc5b0", "#9c6b4e", "#ff8ab7"];
const INK: &str = "#1f2328";
const FAINT_INK: &str = "#656d76";
const GRID: &str = "#e6e8eb";
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";
/// Mean width of a character at font size 1; a generous guess, as no font is at hand.
const CHARACTER: f64 = 0.56;
const LABEL_SIZE: f64 = 12.0;
/// About how many ticks an axis has.
const X_TICKS: usize = 7;
const Y_TICKS: usize = 5;

/// A point of a curve, with an interval around it where there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Place on the vertical axis.
    pub y: f64,
    /// Lower and upper end of the interval.
    pub interval: Option<(f64, f64)>,
}

/// One run's pairs of `x` and `y`, by ascending `x`.
pub type CurveRun = Vec<(f64, f64)>;

/// A line of the picture, with a band where its points have intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CurveSeries {
    /// Name, written at the line's end.
    pub name: String,
    /// Points, by ascending `x`; those that are not finite are passed over.
    pub points: Vec<CurvePoint>,
}

/// A picture of one or several learning curves.
#[derive(Debug, Clone, PartialEq)]
pub struct LearningCurve {
    /// Written over the picture; empty for none.
    pub title: String,
    /// Written below the title in grey, such as what the bands mean; empty for none.
    pub subtitle: String,
    /// What the horizontal axis shows, with its unit.
    pub x_label: String,
    /// What the vertical axis shows, with its unit.
    pub y_label: String,
    /// Whether the vertical axis shows shares as percentages. Default false.
    pub is_percent: bool,
    /// Ends of the vertical axis; absent: as the data need it. Absent by default.
    pub y_range: Option<(f64, f64)>,
    /// The lines.
    pub series: Vec<CurveSeries>,
    /// Dashed level lines to compare with: name and height.
    pub references: Vec<(String, f64)>,
    /// Width in pixels. Default 760.
    pub width: f64,
    /// Height in pixels. Default 420.
    pub height: f64,
}

impl Default for LearningCurve {
    fn default() -> Self {
        Self {
            title: String::new(),
            subtitle: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            is_percent: false,
            y_range: None,
            series: Vec::new(),
            references: Vec::new(),
            width: 760.0,
            height: 420.0,
        }
    }
}

impl CurveSeries {
    /// A line without a band, from pairs of `x` and `y`.
    pub fn from_pairs(name: &str, pairs: &[(f64, f64)]) -> Self {
        let point = |(x, y): &(f64, f64)| CurvePoint { x: *x, y: *y, interval: None };
        Self { name: name.to_owned(), points: pairs.iter().map(point).collect() }
    }

    /// The mean over several runs, such as seeds of one method, with a band from the lowest to
    /// the highest.
    ///
    /// The line has a point wherever a run has
    /// one, within the stretch that all runs cover; between its points a run counts as a straight
    /// line.
    pub fn from_runs(name: &str, runs: &[CurveRun]) -> Self {
        let clean = |run: &CurveRun| {
            let is_finite = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
            run.iter().filter(is_finite).copied().collect::<Vec<_>>()
        };
        let runs: Vec<CurveRun> = runs.iter().map(clean).filter(|run| !run.is_empty()).collect();
        let start = runs.iter().map(|run| run[0].0).fold(f64::NEG_INFINITY, f64::max);
        let end = runs.iter().map(|run| run[run.len() - 1].0).fold(f64::INFINITY, f64::min);
        let mut places: Vec<f64> = runs.iter().flatten().map(|point| point.0).collect();
        places.retain(|x| (start..=end).contains(x));
        places.sort_by(f64::total_cmp);
        places.dedup();
        let points = places.into_iter().map(|x| {
            let heights: Vec<f64> = runs.iter().map(|run| height_at(run, x)).collect();
            let low = heights.iter().copied().fold(f64::INFINITY, f64::min);
            let high = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let y = heights.iter().sum::<f64>() / heights.len() as f64;
            CurvePoint { x, y, interval: (runs.len() > 1).then_some((low, high)) }
        });
        Self { name: name.to_owned(), points: points.collect() }
    }

    fn finite(&self) -> impl Iterator<Item = CurvePoint> + '_ {
        self.points.iter().copied().filter(|point| point.x.is_finite() && point.y.is_finite())
    }
}

/// The straight line between a run's points at `x`, which lies within the run.
fn height_at(run: &[(f64, f64)], x: f64) -> f64 {
    let after = run.partition_point(|point| point.0 < x).min(run.len() - 1);
    let (right, left) = (run[after], run[after.saturating_sub(1)]);
    if right.0 <= x || right.0 <= left.0 {
        return right.1;
    }
    left.1 + (right.1 - left.1) * (x - left.0) / (right.0 - left.0)
}

impl LearningCurve {
    /// The picture of several methods over several seeds each: mean lines, and bands from the
    /// lowest to the highest seed.
    pub fn comparison(methods: &[(String, Vec<CurveRun>)]) -> Self {
        let series = methods.iter().map(|(name, runs)| CurveSeries::from_runs(name, runs));
        let seeds = methods.iter().map(|(_, runs)| runs.len()).collect::<Vec<_>>();
        let fewest = seeds.iter().min().copied().unwrap_or(0);
        let most = seeds.iter().max().copied().unwrap_or(0);
        let subtitle = match (fewest, most) {
            (_, 0 | 1) => String::new(),
            (fewest, most) if fewest == most => format!("mean and range of {most} seeds"),
            (fewest, most) => format!("mean and range of {fewest} to {most} seeds"),
        };
        Self { series: series.collect(), subtitle, ..Self::default() }
    }

    /// The picture as an SVG file.
    ///
    /// The same input gives the same text. Without any point there are axes and no line.
    pub fn to_svg(&self) -> String {
        let frame = Frame::new(self);
        let mut svg = String::new();
        let (width, height) = (self.width, self.height);
        // Writing to a string cannot fail, so the results are dropped here and below.
        let _ = writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="{FONT}" font-size="{LABEL_SIZE}" role="img">"#
        );
        let _ = writeln!(svg, "<title>{}</title>", escaped(&self.title));
        let _ = writeln!(svg, r##"<rect width="100%" height="100%" rx="6" fill="#ffffff"/>"##);
        self.push_titles(&mut svg, &frame);
        self.push_axes(&mut svg, &frame);
        self.push_references(&mut svg, &frame);
        for (index, series) in self.series.iter().enumerate() {
            push_band(&mut svg, &frame, series, color(index));
        }
        for (index, series) in self.series.iter().enumerate() {
            push_line(&mut svg, &frame, series, color(index));
        }
        self.push_end_labels(&mut svg, &frame);
        svg.push_str("</svg>\n");
        svg
    }

    fn push_titles(&self, svg: &mut String, frame: &Frame) {
        let mut y = 26.0;
        if !self.title.is_empty() {
            let text = escaped(&self.title);
            let _ = writeln!(
                svg,
                r#"<text x="20" y="{y}" font-size="16" font-weight="600" fill="{INK}">{text}</text>"#
            );
            y += 19.0;
        }
        if !self.subtitle.is_empty() {
            let text = escaped(&self.subtitle);
            let _ = writeln!(svg, r#"<text x="20" y="{y}" fill="{FAINT_INK}">{text}</text>"#);
        }
        let (x_label, y_label) = (escaped(&self.x_label), escaped(&self.y_label));
        let (middle, below) = ((frame.left + frame.right) / 2.0, frame.bottom + 40.0);
        let _ = writeln!(
            svg,
            r#"<text x="{middle:.1}" y="{below:.1}" text-anchor="middle" fill="{FAINT_INK}">{x_label}</text>"#
        );
        let middle = (frame.top + frame.bottom) / 2.0;
        let _ = writeln!(
            svg,
            r#"<text transform="translate(22 {middle:.1}) rotate(-90)" text-anchor="middle" fill="{FAINT_INK}">{y_label}</text>"#
        );
    }

    fn push_axes(&self, svg: &mut String, frame: &Frame) {
        let (left, right, bottom) = (frame.left, frame.right, frame.bottom);
        for tick in ticks(frame.y_range, Y_TICKS) {
            let y = frame.y(tick);
            let text = self.height_text(tick, frame);
            let _ = writeln!(
                svg,
                r#"<line x1="{left:.1}" x2="{right:.1}" y1="{y:.1}" y2="{y:.1}" stroke="{GRID}"/>"#
            );
            let _ = writeln!(
                svg,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end" fill="{FAINT_INK}">{text}</text>"#,
                left - 8.0,
                y + 4.0
            );
        }
        for tick in ticks(frame.x_range, X_TICKS) {
            let x = frame.x(tick);
            let text = number_text(tick, frame.x_range, X_TICKS);
            let _ = writeln!(
                svg,
                r#"<line x1="{x:.1}" x2="{x:.1}" y1="{bottom:.1}" y2="{:.1}" stroke="{FAINT_INK}"/>"#,
                bottom + 5.0
            );
            let _ = writeln!(
                svg,
                r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle" fill="{FAINT_INK}">{text}</text>"#,
                bottom + 19.0
            );
        }
        let _ = writeln!(
            svg,
            r#"<line x1="{left:.1}" x2="{right:.1}" y1="{bottom:.1}" y2="{bottom:.1}" stroke="{FAINT_INK}"/>"#
        );
    }

    fn push_references(&self, svg: &mut String, frame: &Frame) {
        for (name, height) in self.references.iter().filter(|(_, height)| height.is_finite()) {
            let (y, left, right) = (frame.y(*height), frame.left, frame.right);
            let _ = writeln!(
                svg,
                r#"<line x1="{left:.1}" x2="{right:.1}" y1="{y:.1}" y2="{y:.1}" stroke="{FAINT_INK}" stroke-dasharray="5 4"/>"#
            );
            let _ = writeln!(
                svg,
                r#"<text x="{:.1}" y="{:.1}" fill="{FAINT_INK}" stroke="white" stroke-width="3" paint-order="stroke">{}</text>"#,
                left + 6.0,
                y - 6.0,
                escaped(name)
            );
        }
    }

    /// Names at the lines' ends, moved apart where they would overlap.
    fn push_end_labels(&self, svg: &mut String, frame: &Frame) {
        let mut labels: Vec<(f64, usize)> = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            if let Some(end) = series.finite().last() {
                labels.push((frame.y(end.y), index));
            }
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let gap = LABEL_SIZE + 4.0;
        for index in 1..labels.len() {
            labels[index].0 = labels[index].0.max(labels[index - 1].0 + gap);
        }
        // What was pushed past the bottom goes back up, and pushes what is above it.
        let mut limit = frame.bottom;
        for label in labels.iter_mut().rev() {
            label.0 = label.0.min(limit);
            limit = label.0 - gap;
        }
        for (y, index) in labels {
            let _ = writeln!(
                svg,
                r#"<text x="{:.1}" y="{:.1}" font-weight="600" fill="{}">{}</text>"#,
                frame.right + 8.0,
                y + 4.0,
                color(index),
                escaped(&self.series[index].name)
            );
        }
    }

    fn height_text(&self, height: f64, frame: &Frame) -> String {
        if self.is_percent {
            let (low, high) = frame.y_range;
            format!("{} %", number_text(100.0 * height, (100.0 * low, 100.0 * high), Y_TICKS))
        } else {
            number_text(height, frame.y_range, Y_TICKS)
        }
    }
}

/// Where the data lie in the picture.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x_range: (f64, f64),
    y_range: (f64, f64),
}

impl Frame {
    fn new(curve: &LearningCurve) -> Self {
        let points = || curve.series.iter().flat_map(CurveSeries::finite);
        let x_range = range(points().map(|point| point.x)).unwrap_or((0.0, 1.0));
        let heights = points().flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let references = curve.references.iter().map(|(_, height)| *height);
        let y_range = curve.y_range.filter(|(low, high)| low < high).unwrap_or_else(|| {
            let (low, high) = range(heights.chain(references)).unwrap_or((0.0, 1.0));
            // Out to the next ticks, so that no line touches the frame's edge by accident.
            let step = tick_step((low, high), Y_TICKS);
            ((low / step).floor() * step, (high / step).ceil() * step)
        });
        let longest = curve.series.iter().map(|series| series.name.chars().count()).max();
        let names = longest.unwrap_or(0) as f64 * LABEL_SIZE * (CHARACTER + 0.04);
        let title = if curve.title.is_empty() { 0.0 } else { 22.0 };
        let subtitle = if curve.subtitle.is_empty() { 0.0 } else { 18.0 };
        Self {
            left: 76.0,
            right: (curve.width - 20.0 - names).max(curve.width / 2.0),
            top: 22.0 + title + subtitle,
            bottom: curve.height - 58.0,
            x_range,
            y_range,
        }
    }

    fn x(&self, x: f64) -> f64 {
        let (low, high) = self.x_range;
        self.left + (x - low) / (high - low) * (self.right - self.left)
    }

    fn y(&self, y: f64) -> f64 {
        let (low, high) = self.y_range;
        let share = ((y - low) / (high - low)).clamp(0.0, 1.0);
        self.bottom - share * (self.bottom - self.top)
    }
}

fn push_band(svg: &mut String, frame: &Frame, series: &CurveSeries, color: &str) {
    let with_interval = |point: CurvePoint| {
        let (low, high) = point.interval?;
        (low.is_finite() && high.is_finite()).then_some((point.x, low, high))
    };
    let edges: Vec<(f64, f64, f64)> = series.finite().filter_map(with_interval).collect();
    if edges.len() < 2 {
        return;
    }
    let upper = edges.iter().map(|(x, _, high)| (*x, *high));
    let lower = edges.iter().rev().map(|(x, low, _)| (*x, *low));
    let path = path_text(frame, upper.chain(lower));
    let _ = writeln!(svg, r#"<path d="{path}Z" fill="{color}" fill-opacity="0.15"/>"#);
}

fn push_line(svg: &mut String, frame: &Frame, series: &CurveSeries, color: &str) {
    let path = path_text(frame, series.finite().map(|point| (point.x, point.y)));
    let _ = writeln!(
        svg,
        r#"<path d="{path}" fill="none" stroke="{color}" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>"#
    );
    if let Some(end) = series.finite().last() {
        let (x, y) = (frame.x(end.x), frame.y(end.y));
        let _ = writeln!(svg, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{color}"/>"#);
    }
}

fn path_text(frame: &Frame, points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", frame.x(x), frame.y(y));
    }
    path
}

fn color(index: usize) -> &'static str {
    COLORS[index % COLORS.len()]
}

/// The least and the greatest finite value, made apart where they are equal.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if low > high {
        return None;
    }
    let apart = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
    Some(if low == high { (low - apart, high + apart) } else { (low, high) })
}

/// A step of 1, 2 or 5 times a power of ten that divides the range into about `number` parts.
fn tick_step((low, high): (f64, f64), number: usize) -> f64 {
    let rough = (high - low) / number as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = match rough / power {
        share if share < 1.5 => 1.0,
        share if share < 3.5 => 2.0,
        share if share < 7.5 => 5.0,
        _ => 10.0,
    };
    factor * power
}

fn ticks(range: (f64, f64), number: usize) -> Vec<f64> {
    let step = tick_step(range, number);
    let (first, last) = ((range.0 / step - 1e-6).ceil(), (range.1 / step + 1e-6).floor());
    if !(step.is_finite() && step > 0.0 && last - first < 1000.0) {
        return Vec::new();
    }
    // Adding 0 turns -0 into 0.
    (0..=(last - first) as usize).map(|index| (first + index as f64) * step + 0.0).collect()
}

/// A tick's number with the digits its axis needs, thousands as `k` and millions as `M`.
fn number_text(value: f64, (low, high): (f64, f64), number: usize) -> String {
    let (divisor, unit) = match low.abs().max(high.abs()) {
        largest if largest >= 2e6 => (1e6, "M"),
        largest if largest >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let step = tick_step((low / divisor, high / divisor), number);
    let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{:.digits$}", value / divisor);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "0" || text == "-0" { "0".to_owned() } else { format!("{text}{unit}") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_runs_between_the_lowest_and_highest_seed() {
        let runs = [vec![(0.0, 0.0), (2.0, 2.0)], vec![(0.0, 1.0), (1.0, 1.0), (3.0, 1.0)]];
        let series = CurveSeries::from_runs("a", &runs);
        let point = |x, y, low, high| CurvePoint { x, y, interval: Some((low, high)) };
        assert_eq!(
            series.points,
            [point(0.0, 0.5, 0.0, 1.0), point(1.0, 1.0, 1.0, 1.0), point(2.0, 1.5, 1.0, 2.0)]
        );
        assert!(CurveSeries::from_runs("none", &[]).points.is_empty());
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(ticks((0.0, 1.0), 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks((0.0, 700.0), 7).len(), 8);
        assert_eq!(number_text(0.2 * 3.0, (0.0, 1.0), 5), "0.6");
        assert_eq!(number_text(20_000.0, (0.0, 50_000.0), 5), "20k");
        assert_eq!(number_text(1.5e6, (0.0, 4e6), 7), "1.5M");
    }

    #[test]
    fn a_picture_names_every_series_and_escapes_text() {
        let methods = [
            ("a < b".to_owned(), vec![vec![(0.0, 0.1), (1.0, 0.5)], vec![(0.0, 0.2), (1.0, 0.4)]]),
            ("other".to_owned(), vec![vec![(0.0, f64::NAN), (1.0, 0.3)]]),
        ];
        let curve = LearningCurve {
            title: "A & B".to_owned(),
            is_percent: true,
            references: vec![("oracle".to_owned(), 0.9)],
            ..LearningCurve::comparison(&methods)
        };
        let svg = curve.to_svg();
        for part in ["A &amp; B", "a &lt; b", ">other<", "oracle", "20 %", "1 to 2 seeds"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg, curve.to_svg());
    }

    #[test]
    fn a_picture_of_nothing_or_one_point_is_still_a_picture() {
        let one = CurveSeries::from_pairs("one", &[(3.0, 0.0)]);
        for series in [vec![], vec![one]] {
            let svg = LearningCurve { series, ..LearningCurve::default() }.to_svg();
            assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}
