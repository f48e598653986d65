//! Formats the timeline as a page for people: columns, and a single line for messages that are equal for both halves of a plugin.

use std::fmt::Write;

use callboard_proto::admin::v1::Said;

use crate::output::{Palette, Tone, harmless};

/// The width of a name's column; a longer name makes its own line longer.
const NAME_WIDTH: usize = 16;
/// The length above which a message is truncated.
const MESSAGE_LENGTH_MAX: usize = 100;
/// Formats lines in columns. Equal messages of one step about both halves of a plugin become one line.
#[derive(Debug)]
pub(crate) struct Page {
    palette: Palette,
    /// The time of the first line; seconds count from there.
    began_at_unix_ms: Option<u64>,
    /// The lines of the present step.
    step: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    first: Said,
    /// The values in which the lines differ: the type of the plugin, and the generation.
    halves: Vec<(String, u64)>,
}

impl Page {
    /// An empty page.
    #[must_use]
    pub(crate) const fn new(palette: Palette) -> Self {
        Self { palette, began_at_unix_ms: None, step: Vec::new() }
    }

    /// Takes the next line, and returns the text of its step after the last line of the step. Before missing lines, any may be the last.
    pub(crate) fn say(&mut self, said: Said) -> Option<String> {
        self.began_at_unix_ms.get_or_insert(said.at_unix_ms);
        let is_of = |held: &Held| (&held.first.actor, held.first.step) == (&said.actor, said.step);
        let former = if self.step.first().is_some_and(|held| !is_of(held)) { self.release() } else { None };
        let goes_on = said.goes_on;
        self.hold(said);
        let texts = [former, if goes_on { None } else { self.release() }];
        texts.into_iter().flatten().reduce(|former, latter| format!("{former}\n{latter}"))
    }

    fn hold(&mut self, said: Said) {
        let (half, name) = halved(&said.plugin);
        let half = (half.to_owned(), said.generation);
        let is_other_half = |held: &&mut Held| {
            !name.is_empty()
                && says_the_same(&held.first, &said)
                && !held.halves.iter().any(|(other, _)| *other == half.0)
        };
        match self.step.iter_mut().find(is_other_half) {
            Some(held) => held.halves.push(half),
            None => self.step.push(Held { first: said, halves: vec![half] }),
        }
    }

    /// Returns the text of all lines that are held back.
    pub(crate) fn release(&mut self) -> Option<String> {
        let texts: Vec<_> = std::mem::take(&mut self.step).iter().map(|held| self.set(held)).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    fn set(&self, held: &Held) -> String {
        let said = &held.first;
        let began_at_unix_ms = self.began_at_unix_ms.unwrap_or(said.at_unix_ms);
        let passed_ms = said.at_unix_ms.saturating_sub(began_at_unix_ms);
        let seconds = format!("{:>5}.{:03}", passed_ms / 1000, passed_ms % 1000);
        let subject = subject(said, &held.halves);
        let mut text = format!(
            "{}  {} → {}  {}",
            self.palette.paint(Tone::Faint, &seconds),
            painted(self.palette, &said.from),
            painted(self.palette, &said.to),
            shortened(harmless(&said.message)),
        );
        if !subject.is_empty() {
            // Writing to a text cannot fail.
            let _ = write!(text, "  {}", self.palette.paint(Tone::Faint, &harmless(&subject)));
        }
        text
    }
}

/// The type and the name in `type/name`.
fn halved(plugin: &str) -> (&str, &str) {
    plugin.split_once('/').unwrap_or((plugin, ""))
}

fn says_the_same(one: &Said, other: &Said) -> bool {
    let subject = |said: &Said| (halved(&said.plugin).1.to_owned(), said.allocation.clone());
    (&one.from, &one.to, &one.message) == (&other.from, &other.to, &other.message)
        && subject(one) == subject(other)
}

/// The subject of a line: the plugin with its halves and generations, and the allocation if the line does not name it.
fn subject(said: &Said, halves: &[(String, u64)]) -> String {
    let (_, name) = halved(&said.plugin);
    let half = |(half, generation): &(String, u64)| {
        let half = half.strip_prefix("csi-").unwrap_or(half);
        if *generation == 0 { half.to_owned() } else { format!("{half} @{generation}") }
    };
    let is_named = |text: &str| text.split(' ').any(|word| word == said.allocation);
    let is_shown = said.allocation.is_empty()
        || [&said.from, &said.to, &said.message].into_iter().any(|text| is_named(text));
    let allocation = if is_shown { String::new() } else { format!(" of {}", said.allocation) };
    if name.is_empty() {
        return allocation.trim_start().to_owned();
    }
    let halves: Vec<_> = halves.iter().map(half).collect();
    format!("{name} ({}){allocation}", halves.join(", "))
}

/// A name in the colour of its kind, which is its first word.
fn painted(palette: Palette, name: &str) -> String {
    let padded = format!("{:<NAME_WIDTH$}", harmless(name));
    let code = match name.split(' ').next().unwrap_or_default() {
        "you" => "1",
        "agent" | "process" | "tasks" | "task" => "33",
        "allocation" => "36",
        "registry" => "35",
        "instances" | "drivers" | "driver" => "34",
        "inventory" => "32",
        _ => return padded,
    };
    palette.paint_as(code, &padded)
}

fn shortened(text: String) -> String {
    if text.chars().count() <= MESSAGE_LENGTH_MAX {
        return text;
    }
    text.chars().take(MESSAGE_LENGTH_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(plugin: &str, generation: u64, message: &str) -> Said {
        Said {
            number: 1,
            at_unix_ms: 11_042,
            from: "registry".to_owned(),
            to: "everyone".to_owned(),
            message: message.to_owned(),
            plugin: plugin.to_owned(),
            generation,
            ..Said::default()
        }
    }

    fn page() -> Page {
        Page { began_at_unix_ms: Some(10_000), ..Page::new(Palette::plain()) }
    }

    /// One of several lines of a step.
    fn one_of(step: u64, goes_on: bool, said: Said) -> Said {
        Said { actor: "registry".to_owned(), step, goes_on, ..said }
    }

    #[test]
    fn both_halves_of_a_monolith_share_a_line_also_when_another_one_stands_between() {
        let mut page = page();
        assert_eq!(page.say(one_of(7, true, said("csi-controller/zfs", 0, "Register"))), None);
        assert_eq!(page.say(one_of(7, true, said("csi-controller/zfs", 3, "active: a → b"))), None);
        assert_eq!(page.say(one_of(7, true, said("csi-node/zfs", 0, "Register"))), None);
        let text = page.say(one_of(7, false, said("csi-node/zfs", 4, "active: a → b"))).unwrap();
        let begin = "    1.042  registry         → everyone          ";
        let expected = format!(
            "{begin}Register  zfs (controller, node)\n{begin}active: a → b  zfs (controller @3, node @4)"
        );
        assert_eq!(text, expected);
        assert_eq!(page.release(), None);
    }

    #[test]
    fn what_another_step_says_of_the_other_half_has_its_own_line_and_nothing_waits_for_it() {
        let mut page = page();
        assert!(page.say(one_of(7, false, said("csi-controller/zfs", 3, "healthy"))).is_some());
        assert!(page.say(one_of(8, false, said("csi-node/zfs", 4, "healthy"))).is_some());
    }

    #[test]
    fn where_lines_are_missing_a_step_ends_with_the_next_one() {
        let mut page = page();
        assert_eq!(page.say(one_of(7, true, said("", 0, "one"))), None);
        let texts = page.say(one_of(8, true, said("", 0, "two"))).unwrap();
        assert!(texts.ends_with(" one") && page.release().unwrap().ends_with(" two"));
        assert_eq!(page.say(one_of(9, true, said("", 0, "three"))), None);
        let texts = page.say(said("", 0, "4 lines are missing")).unwrap();
        let ends: Vec<_> = texts.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
        assert_eq!(ends, ["three", "4 lines are missing"]);
    }

    #[test]
    fn seconds_count_from_the_first_line() {
        let mut page = Page::new(Palette::plain());
        assert!(page.say(said("", 0, "one")).unwrap().starts_with("    0.000 "));
        let later = Said { at_unix_ms: 12_345, ..said("", 0, "two") };
        assert!(page.say(later).unwrap().starts_with("    1.303 "));
    }

    #[test]
    fn a_long_message_is_cut() {
        assert_eq!(shortened("ö".repeat(100)), "ö".repeat(100));
        assert_eq!(shortened("ö".repeat(101)), format!("{}…", "ö".repeat(99)));
    }

    #[test]
    fn lines_that_say_something_else_stay_apart() {
        let mut page = page();
        for (plugin, message) in [
            ("csi-controller/zfs", "active: a → b"),
            ("csi-node/nfs", "active: a → b"),
            ("csi-node/nfs", "active: b → c"),
            ("csi-node/nfs", "active: b → c"),
        ] {
            page.say(one_of(7, true, said(plugin, 1, message)));
        }
        assert!(page.step.len() == 4 && page.step.iter().all(|held| held.halves.len() == 1), "{page:?}");
    }

    #[test]
    fn an_allocation_is_shown_only_where_the_line_does_not_name_it() {
        let mut line = said("csi-node/zfs", 0, "offers it");
        line.allocation = "blue".to_owned();
        assert_eq!(subject(&line, &[("csi-node".to_owned(), 0)]), "zfs (node) of blue");
        line.from = "allocation blue".to_owned();
        assert_eq!(subject(&line, &[("csi-node".to_owned(), 0)]), "zfs (node)");
        line.plugin = String::new();
        assert_eq!(subject(&line, &[(String::new(), 0)]), "");
    }

    #[test]
    fn what_a_plugin_says_plays_no_tricks_on_the_terminal() {
        let mut page = page();
        let text = page.say(said("", 0, "healthy: \u{1b}[2Jx\n")).unwrap();
        assert!(text.ends_with("healthy: \\u{1b}[2Jx\\n"), "{text}");
    }

    #[test]
    fn a_name_has_the_colour_of_its_kind_and_the_width_of_its_column() {
        let coloured = painted(Palette::coloured(), "allocation blue");
        assert_eq!(coloured, "\u{1b}[36mallocation blue \u{1b}[0m");
        assert_eq!(painted(Palette::plain(), "you"), "you             ");
        assert_eq!(painted(Palette::coloured(), "everyone"), "everyone        ");
    }
}
