//! The picture as Mermaid, for pages that draw it themselves.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use callboard_actors::vocabulary::text;

use super::layout::cut;
use super::model::{Arrow, Mark, Picture, Sign};

/// Writes a picture down as a Mermaid sequence diagram. A gate is an activation: it begins with the write and ends on disk.
#[must_use]
pub fn mermaid(picture: &Picture) -> String {
    let columns = picture.columns();
    let names: BTreeMap<&str, String> =
        columns.iter().enumerate().map(|(number, name)| (*name, format!("c{number}"))).collect();
    let mut lines = Lines { text: "sequenceDiagram\n".to_owned(), names, gates: BTreeMap::new() };
    if !picture.title.is_empty() {
        lines.text = format!("---\ntitle: {:?}\n---\n{}", picture.title, lines.text);
    }
    for name in &columns {
        let line = format!("participant {} as {}", lines.name(name), plain(name));
        lines.put(&line);
    }
    for mark in &picture.marks {
        lines.mark(mark, &columns);
    }
    lines.text
}

struct Lines<'a> {
    text: String,
    names: BTreeMap<&'a str, String>,
    /// The last write that each actor waits for.
    gates: BTreeMap<&'a str, u64>,
}

impl<'a> Lines<'a> {
    fn put(&mut self, line: &str) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, "    {line}");
    }

    fn name(&self, actor: &str) -> String {
        self.names.get(actor).cloned().unwrap_or_default()
    }

    fn mark(&mut self, mark: &'a Mark, columns: &[&str]) {
        match mark {
            Mark::Chapter(text) | Mark::Pause(text) => {
                let (Some(first), Some(last)) = (columns.first(), columns.last()) else { return };
                let over = format!("Note over {},{}: {}", self.name(first), self.name(last), plain(text));
                self.put(&over);
            }
            Mark::Message { from, to, text, about, arrow } => {
                let line = match arrow {
                    Arrow::Said => "->>",
                    Arrow::Answered => "-->>",
                };
                let line = format!("{}{line}{}: {}", self.name(from), self.name(to), with(text, about));
                self.put(&line);
            }
            Mark::Sign { actor, text, about, sign } => {
                let sign = match sign {
                    Sign::News => "📣",
                    Sign::Crash => "✖",
                    Sign::Restart => "▶",
                    Sign::Trouble => "⚠",
                };
                let line = format!("Note over {}: {sign} {}", self.name(actor), with(text, about));
                self.put(&line);
            }
            Mark::GateCloses { actor, write } => {
                let line = format!("{}-){}: write {write}", self.name(actor), self.name("disk"));
                self.put(&line);
                if self.gates.insert(actor, *write).is_none() {
                    let line = format!("activate {}", self.name(actor));
                    self.put(&line);
                }
            }
            Mark::GateOpens { actor, through } => {
                let line = format!("{}--){}: on disk", self.name("disk"), self.name(actor));
                self.put(&line);
                if self.gates.get(actor.as_str()).is_some_and(|last| through >= last) {
                    self.open(actor);
                }
            }
            Mark::GatesFall { actor } => {
                if self.gates.contains_key(actor.as_str()) {
                    self.open(actor);
                }
            }
        }
    }

    fn open(&mut self, actor: &str) {
        self.gates.remove(actor);
        let line = format!("deactivate {}", self.name(actor));
        self.put(&line);
    }
}

fn with(text: &str, about: &str) -> String {
    let about = if about.is_empty() { String::new() } else { format!(" ({})", plain(about)) };
    format!("{}{about}", plain(text))
}

/// A text without the signs that mean something to Mermaid.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for sign in cut(&text::escaped(text)).chars() {
        match sign {
            '#' => plain.push_str("#35;"),
            ';' => plain.push_str("#59;"),
            '<' => plain.push_str("#lt;"),
            '>' => plain.push_str("#gt;"),
            sign => plain.push(sign),
        }
    }
    plain
}
