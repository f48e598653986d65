//! The picture for eyes: SVG, readable in light and dark, complete in one file.

use std::fmt::Write as _;

use callboard_actors::vocabulary::text;

use super::layout::{
    BESIDE, HEAD_HEIGHT, HEAD_TOP, Layout, MARGIN, Row, cut, head_width, text_of, text_width,
};
use super::model::{Arrow, Mark, Picture, Sign};

/// The colours: those of a light page, and those of a dark one where the reader prefers it.
const STYLE: &str = "
text{font:12px ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#1f2328}
.ending{text-anchor:end}.page{fill:#ffffff}.title{font-size:16px;font-weight:600}
.head{fill:#f6f8fa;stroke:#8c959f}.name{font-weight:600;text-anchor:middle}
.life{stroke:#d0d7de;stroke-width:1.5}.dead{stroke:#cf222e;stroke-width:1.5;stroke-dasharray:2 4}
.said{stroke:#0969da;stroke-width:1.5;fill:none}.saidtip{fill:#0969da}
.answer{stroke:#57606a;stroke-width:1.3;stroke-dasharray:5 4;fill:none}.answertip{fill:#57606a}
.behind{fill:#ffffff;fill-opacity:.9}.about{fill:#8250df}
.chapter{fill:#ddf4ff;stroke:#54aeff}.chaptertext{font-weight:600}
.pause{stroke:#8c959f;stroke-dasharray:1 5;stroke-linecap:round;stroke-width:2}.pausetext{fill:#57606a;font-style:italic}
.gate{fill:#bf8700}.write{stroke:#bf8700;stroke-width:1.2;fill:none}.writetip{fill:#bf8700}.disk{fill:#7d4e00;font-size:11px}
.news{fill:#1a7f37}.newstext{fill:#116329}.crash{stroke:#cf222e;stroke-width:3;fill:none}.crashtext{fill:#a40e26;font-weight:600}
.restart{fill:#1a7f37}.trouble{fill:#d4a72c}.troubletext{fill:#7d4e00}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.page{fill:#0d1117}.head{fill:#161b22;stroke:#6e7681}.life{stroke:#30363d}.dead{stroke:#ff7b72}
.said{stroke:#58a6ff}.saidtip{fill:#58a6ff}.answer{stroke:#8b949e}.answertip{fill:#8b949e}
.behind{fill:#0d1117}.about{fill:#d2a8ff}.chapter{fill:#0c2d6b;stroke:#388bfd}
.pause{stroke:#6e7681}.pausetext{fill:#9198a1}.gate{fill:#d29922}.write{stroke:#d29922}.writetip{fill:#d29922}.disk{fill:#e3b341}
.news{fill:#3fb950}.newstext{fill:#56d364}.crash{stroke:#f85149}.crashtext{fill:#ff7b72}
.restart{fill:#3fb950}.trouble{fill:#d29922}.troubletext{fill:#e3b341}}
";

/// How wide the bar of a closed gate is.
const GATE_WIDTH: f64 = 8.0;

/// Draws a picture. The same picture gives the same text, to the byte.
#[must_use]
pub fn svg(picture: &Picture) -> String {
    let layout = Layout::of(picture);
    let mut drawing = Drawing { layout: &layout, text: String::new() };
    drawing.page(&picture.title);
    drawing.lives();
    drawing.gates();
    for row in &layout.rows {
        drawing.row(*row);
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

    /// The heads come last, and stand on everything else.
    fn heads(&mut self) {
        let layout = self.layout;
        let heads = layout.heads.iter().flat_map(|top| layout.columns.iter().map(move |head| (top, head)));
        for (top, (name, x)) in heads {
            let width = head_width(name);
            let (left, y) = (x - width / 2.0, top + HEAD_HEIGHT / 2.0 + 4.0);
            self.put(format_args!(
                "<rect class=\"head\" x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{HEAD_HEIGHT}\" rx=\"6\"/><text class=\"name\" x=\"{x:.1}\" y=\"{y}\">{}</text>",
                escaped(name)
            ));
        }
    }

    /// The line of each column: whole while it lives, broken and red between a crash and its end.
    fn lives(&mut self) {
        let bottom = self.layout.bottom;
        for (name, x) in &self.layout.columns {
            let (mut from, mut class) = (HEAD_TOP + HEAD_HEIGHT, "life");
            for Row { mark, y } in &self.layout.rows {
                let Mark::Sign { actor, sign, .. } = mark else { continue };
                let next = match sign {
                    Sign::Crash => "dead",
                    Sign::Restart => "life",
                    Sign::News | Sign::Trouble => continue,
                };
                if actor == name {
                    self.line(class, *x, from, *y);
                    (from, class) = (*y, next);
                }
            }
            self.line(class, *x, from, bottom);
        }
    }

    fn line(&mut self, class: &str, x: f64, from: f64, to: f64) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{from:.1}\" x2=\"{x:.1}\" y2=\"{to:.1}\"/>"
        ));
    }

    /// A bar for each time in which something of an actor waits for the disk.
    fn gates(&mut self) {
        for (name, x) in &self.layout.columns {
            let mut closed: Option<(f64, u64)> = None;
            for Row { mark, y } in &self.layout.rows {
                closed = match (mark, closed) {
                    (Mark::GateCloses { actor, write }, closed) if actor == name => {
                        Some((closed.map_or(*y, |(from, _)| from), *write))
                    }
                    (Mark::GateOpens { actor, through }, Some((from, last)))
                        if actor == name && *through >= last =>
                    {
                        self.bar(*x, from, *y);
                        None
                    }
                    (Mark::GatesFall { actor }, Some((from, _))) if actor == name => {
                        self.bar(*x, from, *y);
                        None
                    }
                    (_, closed) => closed,
                };
            }
            if let Some((from, _)) = closed {
                self.bar(*x, from, self.layout.bottom);
            }
        }
    }

    fn bar(&mut self, x: f64, from: f64, to: f64) {
        let (left, height) = (x - GATE_WIDTH / 2.0, to - from);
        self.put(format_args!(
            "<rect class=\"gate\" x=\"{left:.1}\" y=\"{from:.1}\" width=\"{GATE_WIDTH}\" height=\"{height:.1}\" rx=\"2\"/>"
        ));
    }

    fn row(&mut self, Row { mark, y }: Row<'_>) {
        match mark {
            Mark::Chapter(text) => self.chapter(text, y),
            Mark::Pause(text) => self.pause(text, y),
            Mark::Message { from, to, text, about, arrow } => {
                let (class, tip) = match arrow {
                    Arrow::Said => ("said", "saidtip"),
                    Arrow::Answered => ("answer", "answertip"),
                };
                let (from, to) = (self.layout.x(from), self.layout.x(to));
                let begin = self.layout.begin_around(f64::midpoint(from, to), &text_of(mark));
                self.words("", begin, y - 9.0, text, about);
                self.arrow((class, tip), from, to, y - 3.0);
            }
            Mark::Sign { actor, text, about, sign } => self.sign(*sign, actor, text, about, y - 8.0),
            Mark::GateCloses { actor, .. } => self.disk(actor, "disk", mark, y),
            Mark::GateOpens { actor, .. } => self.disk("disk", actor, mark, y),
            Mark::GatesFall { .. } => {}
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
        let begin = self.layout.begin_around(self.layout.width / 2.0, &cut(text));
        self.words("pausetext", begin, at + 4.0, text, "");
    }

    /// A text with what it is about, in front of whatever lies behind it.
    fn words(&mut self, class: &str, x: f64, y: f64, text: &str, about: &str) {
        let shown = cut(text);
        let space = if about.is_empty() { "" } else { "  " };
        let (width, top) = (text_width(&format!("{shown}{space}{about}")) + 4.0, y - 11.0);
        let left = if class.ends_with("ending") { x - width + 2.0 } else { x - 2.0 };
        let tip = if shown == text { String::new() } else { format!("<title>{}</title>", escaped(text)) };
        let (shown, about) = (escaped(&shown), escaped(about));
        let about = if about.is_empty() {
            String::new()
        } else {
            format!("<tspan class=\"about\" dx=\"7\">{about}</tspan>")
        };
        self.put(format_args!(
            "<rect class=\"behind\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"15\"/><text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{tip}{shown}{about}</text>"
        ));
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

    fn disk(&mut self, from: &str, to: &str, mark: &Mark, y: f64) {
        let (from, to) = (self.layout.x(from), self.layout.x(to));
        let text = text_of(mark);
        let begin = self.layout.begin_around(f64::midpoint(from, to), &text);
        self.words("disk", begin, y - 5.0, &text, "");
        self.arrow(("write", "writetip"), from, to, y);
    }

    fn sign(&mut self, sign: Sign, actor: &str, text: &str, about: &str, y: f64) {
        let x = self.layout.x(actor);
        let class = match sign {
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
        };
        let space = if about.is_empty() { "" } else { "  " };
        let whole = format!("{}{space}{about}", cut(text));
        if self.layout.has_room_beside(x, &whole) {
            self.words(class, x + BESIDE, y + 4.0, text, about);
        } else {
            // A text that ends at its place begins where it begins.
            self.words(&format!("{class} ending"), x - BESIDE, y + 4.0, text, about);
        }
    }
}

/// A text as it may stand in XML. Signs that are no signs become dots.
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
