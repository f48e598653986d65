//! Formats the picture as SVG, readable in light and dark, complete in one file.

use std::fmt::Write as _;

use callboard_actors::vocabulary::text;

use super::label::{cut, text_width};
use super::layout::{Anchor, HEAD_HEIGHT, LINE_HEIGHT, Layout, MARGIN, Row, head_width, time};
use super::model::{Arrow, Mark, Picture, Sign};
use super::spans::{self, Span};

/// The colours: of a light page, and of a dark page if the reader prefers it.
const STYLE: &str = "
text{font:12px ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#1f2328}
.middle{text-anchor:middle}.end{text-anchor:end}.page{fill:#ffffff}.title{font-size:16px;font-weight:600}
.head{fill:#f6f8fa;stroke:#8c959f}.name{font-weight:600;text-anchor:middle}
.life{stroke:#d0d7de;stroke-width:1.5}.dead{stroke:#cf222e;stroke-width:1.5;stroke-dasharray:2 4}
.said{stroke:#0969da;stroke-width:1.5;fill:none}.saidtip{fill:#0969da}
.answer{stroke:#57606a;stroke-width:1.3;stroke-dasharray:5 4;fill:none}.answertip{fill:#57606a}
.about{fill:#8250df}.axis{stroke:#d0d7de}.time{fill:#57606a;font-size:11px}
.active{fill:#2da44e;fill-opacity:.45}.key{fill:#57606a;font-size:11px}
.chapter{fill:#ddf4ff;stroke:#54aeff}.chaptertext{font-weight:600}
.pause{stroke:#8c959f;stroke-dasharray:1 5;stroke-linecap:round;stroke-width:2}.pausetext{fill:#57606a;font-style:italic}
.gate{fill:#bf8700}.write{stroke:#bf8700;stroke-width:1.2;fill:none}.writetip{fill:#bf8700}.disk{fill:#7d4e00;font-size:11px}
.news{fill:#1a7f37}.newstext{fill:#116329}.crash{stroke:#cf222e;stroke-width:3;fill:none}.crashtext{fill:#a40e26}
.restart{fill:#1a7f37}.trouble{fill:#d4a72c}.troubletext{fill:#7d4e00}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.page{fill:#0d1117}.head{fill:#161b22;stroke:#6e7681}.life{stroke:#30363d}.dead{stroke:#ff7b72}
.said{stroke:#58a6ff}.saidtip{fill:#58a6ff}.answer{stroke:#8b949e}.answertip{fill:#8b949e}
.about{fill:#d2a8ff}.axis{stroke:#30363d}.time{fill:#9198a1}.active{fill:#3fb950;fill-opacity:.45}.key{fill:#9198a1}
.chapter{fill:#0c2d6b;stroke:#388bfd}
.pause{stroke:#6e7681}.pausetext{fill:#9198a1}.gate{fill:#d29922}.write{stroke:#d29922}.writetip{fill:#d29922}.disk{fill:#e3b341}
.news{fill:#3fb950}.newstext{fill:#56d364}.crash{stroke:#f85149}.crashtext{fill:#ff7b72}
.restart{fill:#3fb950}.trouble{fill:#d29922}.troubletext{fill:#e3b341}}
";

/// The width of the bar of a closed gate.
const GATE_WIDTH: f64 = 8.0;
/// The width of the bar of an active registration.
const ACTIVE_WIDTH: f64 = 14.0;

/// Draws a picture. Deterministic: the same picture gives the same bytes.
#[must_use]
pub fn svg(picture: &Picture) -> String {
    let layout = Layout::of(picture);
    let mut drawing = Drawing { layout: &layout, text: String::new() };
    drawing.page(&picture.title);
    drawing.key(picture);
    drawing.axis();
    drawing.active();
    drawing.lives();
    drawing.gates();
    for row in &layout.rows {
        drawing.row(row);
    }
    drawing.heads();
    drawing.text.push_str("</svg>\n");
    drawing.text
}

struct Drawing<'a> {
    layout: &'a Layout<'a>,
    text: String,
}

impl Drawing<'_> {
    /// Writes one element.
    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, "{element}");
    }

    fn page(&mut self, title: &str) {
        let (width, height) = (self.layout.width, self.layout.height);
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">"
        ));
        let title = escaped(title);
        self.put(format_args!("<title>{title}</title>\n<style>{STYLE}</style>"));
        self.put(format_args!("<rect class=\"page\" width=\"{width:.0}\" height=\"{height:.0}\"/>"));
        self.put(format_args!("<text class=\"title\" x=\"{MARGIN}\" y=\"32\">{title}</text>"));
    }

    /// The legend of the bars and lines that the picture contains.
    fn key(&mut self, picture: &Picture) {
        let has = |is_it: fn(&Mark) -> bool| picture.marks.iter().any(is_it);
        let keys = [
            ("active", "active", has(|mark| matches!(mark, Mark::Active { .. }))),
            ("gate", "waits for the disk", has(|mark| matches!(mark, Mark::GateCloses { .. }))),
        ];
        let mut x = MARGIN;
        for (class, text, _) in keys.into_iter().filter(|(_, _, is_there)| *is_there) {
            self.put(format_args!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"44\" width=\"{GATE_WIDTH}\" height=\"13\" rx=\"2\"/><text class=\"key\" x=\"{:.1}\" y=\"54\">{text}</text>",
                x + 14.0
            ));
            x += 34.0 + text_width(text);
        }
    }

    /// The times, left of everything.
    fn axis(&mut self) {
        let Some(x) = self.layout.axis else { return };
        self.pieces("axis", "", x, 0.0, spans::TOP, self.layout.bottom);
        for row in &self.layout.rows {
            let Some(at) = row.at else { continue };
            let (y, text) = (row.text_bottom(), time(at));
            self.put(format_args!(
                "<text class=\"time end\" x=\"{:.1}\" y=\"{y:.1}\">{text}</text><path class=\"axis\" d=\"M{:.1} {:.1}H{:.1}\"/>",
                x - 8.0,
                x - 4.0,
                y - 4.0,
                x + 4.0
            ));
        }
    }

    /// The heads are drawn last, above everything else. A tooltip on a head shows its whole name.
    fn heads(&mut self) {
        let layout = self.layout;
        let heads =
            layout.heads.iter().flat_map(|top| layout.columns.iter().map(move |column| (top, column)));
        for (top, column) in heads {
            let (x, width) = (column.x, head_width(&column.head));
            let (left, y) = (x - width / 2.0, top + HEAD_HEIGHT / 2.0 + 4.0);
            let whole = if column.head == column.name {
                String::new()
            } else {
                format!("<title>{}</title>", escaped(column.name))
            };
            self.put(format_args!(
                "<g>{whole}<rect class=\"head\" x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{HEAD_HEIGHT}\" rx=\"6\"/><text class=\"name\" x=\"{x:.1}\" y=\"{y}\">{}</text></g>",
                escaped(&column.head)
            ));
        }
    }

    /// The line of each column: solid while it lives, dashed and red between a crash and its end.
    fn lives(&mut self) {
        for column in &self.layout.columns {
            for Span { from, to, what: is_alive } in spans::lives(self.layout, column.name) {
                self.pieces(if is_alive { "life" } else { "dead" }, "", column.x, 0.0, from, to);
            }
        }
    }

    /// Draws a line, or a bar if it has a width, down a column; not through what covers the whole width.
    fn pieces(&mut self, class: &str, title: &str, x: f64, width: f64, from: f64, to: f64) {
        let mut from = from;
        let gaps: Vec<_> = self.layout.rows.iter().filter_map(Row::gap).collect();
        for (top, bottom) in gaps.into_iter().chain([(to, to)]) {
            let end = top.min(to);
            if end > from {
                self.piece(class, title, x, width, from, end);
            }
            from = from.max(bottom);
        }
    }

    fn piece(&mut self, class: &str, title: &str, x: f64, width: f64, from: f64, to: f64) {
        if width == 0.0 {
            self.put(format_args!(
                "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{from:.1}\" x2=\"{x:.1}\" y2=\"{to:.1}\"/>"
            ));
            return;
        }
        let (left, height) = (x - width / 2.0, to - from);
        let title =
            if title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(title)) };
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{from:.1}\" width=\"{width}\" height=\"{height:.1}\" rx=\"2\">{title}</rect>"
        ));
    }

    /// A bar for each time in which a registration is the active one of a plugin, or of several.
    fn active(&mut self) {
        for column in &self.layout.columns {
            for Span { from, to, what: plugins } in spans::active(self.layout, column.name) {
                let plugins: Vec<_> = plugins.into_iter().collect();
                let title = format!("active: {}", plugins.join(", "));
                self.pieces("active", &title, column.x, ACTIVE_WIDTH, from, to);
            }
        }
    }

    /// A bar for each time in which output of an actor waits for the disk.
    fn gates(&mut self) {
        for column in &self.layout.columns {
            for Span { from, to, what: () } in spans::gates(self.layout, column.name) {
                self.pieces("gate", "", column.x, GATE_WIDTH, from, to);
            }
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        let y = row.y;
        match row.mark {
            Mark::Chapter(text) => self.chapter(text, y),
            Mark::Pause(text) => self.pause(text, y),
            Mark::Message { from, to, arrow, .. } => {
                let classes = match arrow {
                    Arrow::Said => ("said", "saidtip"),
                    Arrow::Answered => ("answer", "answertip"),
                };
                self.words("", row);
                self.arrow(classes, self.layout.x(from), self.layout.x(to), y - 3.0);
            }
            Mark::Sign { actor, sign, .. } => {
                let class = self.sign(*sign, self.layout.x(actor), row.text_top() - 4.0);
                self.words(class, row);
            }
            Mark::GateCloses { actor, .. } => self.disk(actor, "disk", row),
            Mark::GateOpens { actor, .. } => self.disk("disk", actor, row),
            Mark::GatesFall { .. } | Mark::Time(_) | Mark::Active { .. } => {}
        }
    }

    fn chapter(&mut self, text: &str, y: f64) {
        let (width, top) = (self.layout.width - 2.0 * MARGIN + 16.0, y - 28.0);
        let left = MARGIN - 8.0;
        self.put(format_args!(
            "<rect class=\"chapter\" x=\"{left}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"22\" rx=\"4\"/><text class=\"chaptertext\" x=\"{MARGIN}\" y=\"{:.1}\">{}</text>",
            top + 15.0,
            escaped(&cut(text))
        ));
    }

    fn pause(&mut self, text: &str, y: f64) {
        let (right, at) = (self.layout.width - MARGIN, y - 12.0);
        self.put(format_args!(
            "<line class=\"pause\" x1=\"{MARGIN}\" y1=\"{at:.1}\" x2=\"{right:.1}\" y2=\"{at:.1}\"/>"
        ));
        let (middle, shown) = (self.layout.width / 2.0, cut(text));
        let half = text_width(&shown) / 2.0 + 6.0;
        self.put(format_args!(
            "<rect class=\"page\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"15\"/><text class=\"pausetext middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            middle - half,
            at - 7.0,
            2.0 * half,
            at + 4.0,
            escaped(&shown)
        ));
    }

    /// The text of a row, line by line.
    fn words(&mut self, class: &str, row: &Row<'_>) {
        let Some(anchor) = row.anchor else { return };
        let (x, binding) = match anchor {
            Anchor::Begin(x) => (x, ""),
            Anchor::Middle(x) => (x, " middle"),
            Anchor::End(x) => (x, " end"),
        };
        let tip = row.label.whole.as_ref().map(|whole| format!("<title>{}</title>", escaped(whole)));
        let tip = tip.unwrap_or_default();
        let mut y = row.text_top();
        for (text, about) in &row.label.lines {
            let space = if text.is_empty() || about.is_empty() { "" } else { " dx=\"7\"" };
            let about = if about.is_empty() {
                String::new()
            } else {
                format!("<tspan class=\"about\"{space}>{}</tspan>", escaped(about))
            };
            self.put(format_args!(
                "<text class=\"{class}{binding}\" x=\"{x:.1}\" y=\"{y:.1}\">{tip}{}{about}</text>",
                escaped(text)
            ));
            y += LINE_HEIGHT;
        }
    }

    fn arrow(&mut self, (class, tip): (&str, &str), from: f64, to: f64, y: f64) {
        if (from - to).abs() < 1.0 {
            let (out, below) = (from + 26.0, y + 8.0);
            self.put(format_args!(
                "<path class=\"{class}\" d=\"M{from:.1} {y:.1}H{out:.1}V{below:.1}H{from:.1}\"/>"
            ));
            return;
        }
        let way = (to - from).signum();
        let (end, back) = (to - way * 2.0, to - way * 10.0);
        self.put(format_args!(
            "<path class=\"{class}\" d=\"M{from:.1} {y:.1}H{back:.1}\"/><path class=\"{tip}\" d=\"M{end:.1} {y:.1}L{back:.1} {:.1}V{:.1}Z\"/>",
            y - 4.0,
            y + 4.0
        ));
    }

    fn disk(&mut self, from: &str, to: &str, row: &Row<'_>) {
        let (from, to) = (self.layout.x(from), self.layout.x(to));
        self.words("disk", row);
        self.arrow(("write", "writetip"), from, to, row.y);
    }

    /// Draws a sign, and returns the class of its text.
    fn sign(&mut self, sign: Sign, x: f64, y: f64) -> &'static str {
        match sign {
            Sign::News => {
                self.put(format_args!("<circle class=\"news\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>"));
                "newstext"
            }
            Sign::Crash => {
                self.put(format_args!(
                    "<path class=\"crash\" d=\"M{0:.1} {2:.1}L{1:.1} {3:.1}M{0:.1} {3:.1}L{1:.1} {2:.1}\"/>",
                    x - 6.0,
                    x + 6.0,
                    y - 6.0,
                    y + 6.0
                ));
                "crashtext"
            }
            Sign::Restart => {
                self.put(format_args!(
                    "<path class=\"restart\" d=\"M{:.1} {:.1}V{:.1}L{:.1} {y:.1}Z\"/>",
                    x - 5.0,
                    y - 6.0,
                    y + 6.0,
                    x + 6.0
                ));
                "newstext"
            }
            Sign::Trouble => {
                self.put(format_args!(
                    "<path class=\"trouble\" d=\"M{x:.1} {:.1}L{:.1} {:.1}H{:.1}Z\"/>",
                    y - 6.0,
                    x + 7.0,
                    y + 5.0,
                    x - 7.0
                ));
                "troubletext"
            }
        }
    }
}

/// A text escaped for XML. Characters that XML does not allow become dots.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text::escaped(text).chars() {
        match sign {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('·'),
            sign => escaped.push(sign),
        }
    }
    escaped
}
