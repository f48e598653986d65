//! Formats the picture as Mermaid, for pages that render it themselves.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use callboard_actors::vocabulary::text;

use super::label::{cut, heads};
use super::layout::time;
use super::model::{Arrow, Mark, Picture, Sign};

/// Formats a picture as a Mermaid sequence diagram. A gate is an activation, which begins with the write and ends when it is on disk. The
/// time in which a registration is active is an activation, too.
#[must_use]
pub fn mermaid(picture: &Picture) -> String {
    let columns = picture.columns();
    let names: BTreeMap<&str, String> =
        columns.iter().enumerate().map(|(number, name)| (*name, format!("c{number}"))).collect();
    let text = "sequenceDiagram\n".to_owned();
    let mut lines = Lines { text, names, gates: BTreeMap::new(), active: BTreeMap::new(), at: String::new() };
    if !picture.title.is_empty() {
        let title = text::escaped(&picture.title).replace('\\', "\\\\").replace('"', "\\\"");
        lines.text = format!("---\ntitle: \"{title}\"\n---\n{}", lines.text);
    }
    for (name, head) in columns.iter().zip(heads(&columns)) {
        let line = format!("participant {} as {}", lines.name(name), plain(&head));
        lines.put(&line);
        if head != *name {
            let whole = format!("%% {} is {}", lines.name(name), plain(name));
            lines.put(&whole);
        }
    }
    for mark in &picture.marks {
        lines.mark(mark, &columns);
    }
    for active in std::mem::take(&mut lines.active).into_values() {
        let line = format!("deactivate {}", lines.name(active));
        lines.put(&line);
    }
    lines.text
}

struct Lines<'a> {
    text: String,
    names: BTreeMap<&'a str, String>,
    /// The last write that each actor waits for.
    gates: BTreeMap<&'a str, u64>,
    /// The active registration of each plugin, if known.
    active: BTreeMap<&'a str, &'a str>,
    /// The time of the next drawn element, which precedes its text.
    at: String,
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
                let at = std::mem::take(&mut self.at);
                let over = format!("Note over {},{}: {at}{}", self.name(first), self.name(last), plain(text));
                self.put(&over);
            }
            Mark::Message { from, to, text, about, arrow } => {
                let line = match arrow {
                    Arrow::Said => "->>",
                    Arrow::Answered => "-->>",
                };
                let at = std::mem::take(&mut self.at);
                let line = format!("{}{line}{}: {at}{}", self.name(from), self.name(to), with(text, about));
                self.put(&line);
            }
            Mark::Sign { actor, text, about, sign } => {
                let sign = match sign {
                    Sign::News => "📣",
                    Sign::Crash => "✖",
                    Sign::Restart => "▶",
                    Sign::Trouble => "⚠",
                };
                let at = std::mem::take(&mut self.at);
                let line = format!("Note over {}: {at}{sign} {}", self.name(actor), with(text, about));
                self.put(&line);
            }
            Mark::Time(at) => self.at = format!("{} · ", time(*at)),
            Mark::Active { plugin, now, .. } => self.activate(plugin, now.as_deref()),
            Mark::GateCloses { actor, write } => self.close(actor, *write),
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

    fn activate(&mut self, plugin: &'a str, now: Option<&'a str>) {
        // A registration that was active before the picture begins was never activated in it.
        if let Some(former) = self.active.remove(plugin) {
            let line = format!("deactivate {}", self.name(former));
            self.put(&line);
        }
        if let Some(now) = now {
            let line = format!("activate {}", self.name(now));
            self.put(&line);
            self.active.insert(plugin, now);
        }
    }

    fn close(&mut self, actor: &'a str, write: u64) {
        let line = format!("{}-){}: write {write}", self.name(actor), self.name("disk"));
        self.put(&line);
        if self.gates.insert(actor, write).is_none() {
            let line = format!("activate {}", self.name(actor));
            self.put(&line);
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

/// A text without the special characters of Mermaid.
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
