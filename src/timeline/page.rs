//! The timeline as a page for people: columns, and one line where both halves of a plugin are told the same.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use callboard_proto::admin::v1::Said;

use crate::output::{Palette, Tone, harmless};

/// The width of a name's column; a longer name makes its own line longer.
const NAME_WIDTH: usize = 16;
/// A longer message is cut.
const MESSAGE_LENGTH_MAX: usize = 100;
/// How many lines may be held back.
const HELD_MAX: usize = 8;
/// For how long at most.
const PATIENCE: Duration = Duration::from_millis(30);
/// The halves of a plugin are told the same within this time, or apart.
const OTHER_HALF_MS: u64 = 50;

/// Sets lines into columns. A few lines are held back until it is known whether another one says the same of the plugin's
/// other half: what one message does to both halves is one line.
#[derive(Debug)]
pub(crate) struct Page {
    palette: Palette,
    began_at_unix_ms: u64,
    held: VecDeque<Held>,
}

#[derive(Debug)]
struct Held {
    first: Said,
    /// What the lines differ in: the type of the plugin, and the generation.
    halves: Vec<(String, u64)>,
}

impl Page {
    /// An empty page whose seconds count from this instant.
    #[must_use]
    pub(crate) const fn new(palette: Palette, began_at_unix_ms: u64) -> Self {
        Self { palette, began_at_unix_ms, held: VecDeque::new() }
    }

    /// Takes the next line, and gives the text of one that need not be held back any longer.
    pub(crate) fn say(&mut self, said: Said) -> Option<String> {
        let (half, name) = halved(&said.plugin);
        let half = (half.to_owned(), said.generation);
        let is_other_half = |held: &&mut Held| {
            !name.is_empty()
                && says_the_same(&held.first, &said)
                && !held.halves.iter().any(|(other, _)| *other == half.0)
        };
        if let Some(held) = self.held.iter_mut().find(is_other_half) {
            held.halves.push(half);
            return None;
        }
        self.held.push_back(Held { first: said, halves: vec![half] });
        if self.held.len() > HELD_MAX { self.release() } else { None }
    }

    /// Waits until lines have been held back for long enough; for ever if there are none. Begin anew after each line.
    pub(crate) async fn patience(&self) {
        match self.held.is_empty() {
            true => std::future::pending().await,
            false => tokio::time::sleep(PATIENCE).await,
        }
    }

    /// Gives the text of everything that is held back, without waiting for more.
    pub(crate) fn release_all(&mut self) -> Option<String> {
        let texts: Vec<_> = std::iter::from_fn(|| self.release()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    fn release(&mut self) -> Option<String> {
        let held = self.held.pop_front()?;
        Some(self.set(&held))
    }

    fn set(&self, held: &Held) -> String {
        let said = &held.first;
        let passed_ms = said.at_unix_ms.saturating_sub(self.began_at_unix_ms);
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
        && other.at_unix_ms.abs_diff(one.at_unix_ms) <= OTHER_HALF_MS
}

/// What a line is about: the plugin with its halves and generations, and the allocation if nobody in the line names it.
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
        Page::new(Palette::plain(), 10_000)
    }

    #[test]
    fn both_halves_of_a_monolith_share_a_line_also_when_another_one_stands_between() {
        let mut page = page();
        assert_eq!(page.say(said("csi-controller/zfs", 0, "Register")), None);
        assert_eq!(page.say(said("csi-controller/zfs", 3, "active: a → b")), None);
        assert_eq!(page.say(said("csi-node/zfs", 0, "Register")), None);
        assert_eq!(page.say(said("csi-node/zfs", 4, "active: a → b")), None);
        let begin = "    1.042  registry         → everyone          ";
        assert_eq!(page.release().unwrap(), format!("{begin}Register  zfs (controller, node)"));
        assert_eq!(page.release().unwrap(), format!("{begin}active: a → b  zfs (controller @3, node @4)"));
        assert_eq!(page.release_all(), None);
    }

    #[test]
    fn what_is_said_much_later_of_the_other_half_has_its_own_line() {
        let mut page = page();
        page.say(said("csi-controller/zfs", 3, "healthy"));
        page.say(Said { at_unix_ms: 11_042 + OTHER_HALF_MS + 1, ..said("csi-node/zfs", 4, "healthy") });
        assert_eq!(page.held.len(), 2);
    }

    #[test]
    fn only_a_few_lines_are_held_back_and_they_leave_in_their_order() {
        let mut page = page();
        let texts: Vec<_> =
            (0..HELD_MAX + 2).filter_map(|number| page.say(said("", 0, &number.to_string()))).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].ends_with(" 0") && texts[1].ends_with(" 1"), "{texts:?}");
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
            page.say(said(plugin, 1, message));
        }
        assert!(page.held.len() == 4 && page.held.iter().all(|held| held.halves.len() == 1), "{page:?}");
    }

    #[test]
    fn an_allocation_is_told_only_where_nobody_names_it() {
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
        page.say(said("", 0, "healthy: \u{1b}[2Jx\n"));
        let text = page.release().unwrap();
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
