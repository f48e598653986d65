//! Charts with logarithmic axes, as SVG: a title, and panels in rows of two, each with a legend.

use std::fmt::Write as _;

/// The colours for light pages, and for dark pages if the reader prefers them.
const STYLE: &str = "
text{font:12px ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#57606a}
.page{fill:#ffffff}.title{font-size:16px;font-weight:600;fill:#1f2328}.panel{font-size:13px;font-weight:600;fill:#1f2328}
.legend{fill:#1f2328}.middle{text-anchor:middle}.end{text-anchor:end}
.grid{stroke:#d0d7de;stroke-width:1}.fine{stroke:#eaeef2;stroke-width:1}.frame{stroke:#8c959f;stroke-width:1;fill:none}
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.first{stroke:#0969da}.second{stroke:#8250df}.third{stroke:#cf222e}
.bare{stroke:#6e7781;stroke-dasharray:6 4}.bareworst{stroke:#6e7781;stroke-dasharray:1 5}
.first.dot{fill:#0969da}.second.dot{fill:#8250df}.third.dot{fill:#cf222e}.bare.dot,.bareworst.dot{fill:#6e7781}.dot{stroke:none}
@media (prefers-color-scheme:dark){
text{fill:#9198a1}.page{fill:#0d1117}.title,.panel,.legend{fill:#e6edf3}
.grid{stroke:#30363d}.fine{stroke:#1c2128}.frame{stroke:#6e7681}
.first{stroke:#58a6ff}.second{stroke:#d2a8ff}.third{stroke:#ff7b72}.bare,.bareworst{stroke:#8b949e}
.first.dot{fill:#58a6ff}.second.dot{fill:#d2a8ff}.third.dot{fill:#ff7b72}.bare.dot,.bareworst.dot{fill:#8b949e}}
";

const WIDTH: f64 = 860.0;
const MARGIN: f64 = 20.0;
/// The top of the first row of panels.
const HEAD: f64 = 48.0;
const PANEL_WIDTH: f64 = 400.0;
/// The margins of a plot: left for the labels of the y axis, right, and below.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const BELOW: f64 = 46.0;
const PLOT_HEIGHT: f64 = 190.0;
/// The heights of a panel's title and of a line of its legend.
const PANEL_TITLE: f64 = 24.0;
const LEGEND_LINE: f64 = 17.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    PerSecond,
    Micros,
}

/// The style of a line: Callboard in colours, baselines grey and dashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    First,
    Second,
    Third,
    Bare,
    BareWorst,
}

impl Look {
    const fn class(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Third => "third",
            Self::Bare => "bare",
            Self::BareWorst => "bareworst",
        }
    }
}

/// A line through points, with its label.
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) look: Look,
    pub(crate) points: Vec<(f64, f64)>,
}

pub(crate) struct Panel {
    title: String,
    x_label: String,
    unit: Unit,
    lines: Vec<Line>,
}

impl Panel {
    /// A panel of those lines that have points.
    pub(crate) fn new(title: &str, x_label: &str, unit: Unit, mut lines: Vec<Line>) -> Self {
        lines.retain(|line| !line.points.is_empty());
        Self { title: title.to_owned(), x_label: x_label.to_owned(), unit, lines }
    }

    fn legend_height(&self) -> f64 {
        self.lines.len() as f64 * LEGEND_LINE + 4.0
    }
}

pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) panels: Vec<Panel>,
}

impl Chart {
    pub(crate) fn has_points(&self) -> bool {
        self.panels.iter().any(|panel| !panel.lines.is_empty())
    }

    /// Renders the chart. The output is deterministic to the byte.
    pub(crate) fn svg(&self) -> String {
        let panels: Vec<_> = self.panels.iter().filter(|panel| !panel.lines.is_empty()).collect();
        let legend = panels.iter().map(|panel| panel.legend_height()).fold(0.0, f64::max);
        let row_height = PANEL_TITLE + legend + PLOT_HEIGHT + BELOW;
        let height = HEAD + panels.len().div_ceil(2) as f64 * row_height + MARGIN / 2.0;
        let mut drawing = Drawing(String::new());
        drawing.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">"
        ));
        drawing.put(format_args!("<title>{}</title>\n<style>{STYLE}</style>", self.title));
        drawing.put(format_args!("<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>"));
        drawing.text("title", MARGIN, 30.0, &self.title);
        for (place, panel) in panels.into_iter().enumerate() {
            let left = MARGIN + (place % 2) as f64 * (PANEL_WIDTH + MARGIN);
            let top = HEAD + (place / 2) as f64 * row_height;
            drawing.panel(panel, left, top, top + PANEL_TITLE + legend);
        }
        drawing.put(format_args!("</svg>"));
        drawing.0
    }
}

/// The range of one axis, as powers of ten.
struct Axis {
    from: f64,
    to: f64,
    /// The pixel coordinates of both ends.
    ends: (f64, f64),
}

impl Axis {
    /// An axis that contains all values. Its ends have first digits from `steps`.
    fn around(values: impl Iterator<Item = f64> + Clone, steps: &[f64], ends: (f64, f64)) -> Self {
        let least = values.clone().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        let below = marks(steps).filter(|mark| *mark <= least * 1.001).fold(1e-3, f64::max);
        let above = marks(steps).filter(|mark| *mark >= most * 0.999).fold(1e9, f64::min);
        Self { from: below.log10(), to: above.log10(), ends }
    }

    fn place(&self, value: f64) -> f64 {
        let (begin, end) = self.ends;
        let share =
            if self.to > self.from { (value.log10() - self.from) / (self.to - self.from) } else { 0.5 };
        begin + share * (end - begin)
    }

    fn marks<'a>(&'a self, steps: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        marks(steps).filter(|mark| (self.from - 1e-6..=self.to + 1e-6).contains(&mark.log10()))
    }
}

/// The numbers with these first digits, from 10^-3 to 10^9.
fn marks(steps: &[f64]) -> impl Iterator<Item = f64> + '_ {
    (-3..=9).flat_map(move |power| steps.iter().map(move |step| step * 10_f64.powi(power)))
}

struct Drawing(String);

impl Drawing {
    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.0, "{element}");
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.put(format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"));
    }

    fn stroke(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// Draws a panel with this left edge and this title position; its plot begins at `top`.
    fn panel(&mut self, panel: &Panel, left: f64, title: f64, top: f64) {
        let (begin, end) = (left + LEFT, left + PANEL_WIDTH - RIGHT);
        let bottom = top + PLOT_HEIGHT;
        self.text("panel", begin, title + 12.0, &panel.title);
        for (place, line) in panel.lines.iter().enumerate() {
            let y = title + PANEL_TITLE + 4.0 + place as f64 * LEGEND_LINE;
            let class = format!("line {}", line.look.class());
            self.stroke(&class, (begin, y), (begin + 26.0, y));
            self.text("legend", begin + 34.0, y + 4.0, &line.label);
        }
        let points = panel.lines.iter().flat_map(|line| line.points.iter());
        let x = Axis::around(points.clone().map(|point| point.0), &[1.0], (begin, end));
        let y = Axis::around(points.map(|point| point.1), &[1.0, 2.0, 5.0], (bottom, top));
        self.grid(panel, &x, &y);
        for line in &panel.lines {
            self.line(line, &x, &y);
        }
    }

    fn grid(&mut self, panel: &Panel, x: &Axis, y: &Axis) {
        let ((left, right), (bottom, top)) = (x.ends, y.ends);
        // If there is room, the numbers between the powers of ten get labels, too.
        let is_narrow = y.to - y.from < 1.8;
        for mark in y.marks(&[1.0, 2.0, 5.0]) {
            let is_power = (mark.log10() - mark.log10().round()).abs() < 1e-6;
            let place = y.place(mark);
            self.stroke(if is_power { "grid" } else { "fine" }, (left, place), (right, place));
            if is_power || is_narrow {
                self.text("end", left - 7.0, place + 4.0, &named(mark, panel.unit));
            }
        }
        for mark in x.marks(&[1.0]) {
            let place = x.place(mark);
            self.stroke("grid", (place, top), (place, bottom));
            self.text("middle", place, bottom + 17.0, &counted(mark));
        }
        let (width, height) = (right - left, bottom - top);
        self.put(format_args!(
            "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
        self.text("middle", (left + right) / 2.0, bottom + 34.0, &panel.x_label);
    }

    fn line(&mut self, line: &Line, x: &Axis, y: &Axis) {
        let class = line.look.class();
        let places: Vec<_> = line.points.iter().map(|(at, value)| (x.place(*at), y.place(*value))).collect();
        let path: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.put(format_args!("<polyline class=\"line {class}\" points=\"{}\"/>", path.join(" ")));
        for (x, y) in places {
            self.put(format_args!("<circle class=\"{class} dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"));
        }
    }
}

fn named(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond => counted(value),
        Unit::Micros if value > 999_999.0 => format!("{} s", plain(value / 1e6)),
        Unit::Micros if value > 999.0 => format!("{} ms", plain(value / 1e3)),
        Unit::Micros => format!("{} µs", plain(value)),
    }
}

fn counted(value: f64) -> String {
    if value > 999_999.0 {
        format!("{}M", plain(value / 1e6))
    } else if value > 999.0 {
        format!("{}k", plain(value / 1e3))
    } else {
        plain(value)
    }
}

/// Formats a number without trailing zeros.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
