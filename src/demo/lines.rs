//! The files in the volumes of the demo: a page, which is written once, and a ledger, to which tasks append lines.

use std::collections::BTreeMap;

use callboard_actors::vocabulary::hex;
use sha2::{Digest, Sha256};

use super::check::Look;

/// The content of the page.
pub(super) const PAGE: &str = "This page was written once, by the task left, through its mount of the volume.\n\
                               The task right reads it through another mount, and you read it with both.\n\
                               It is to be here whatever happens to the plugin and to the host.\n";
/// The number of digits shown of a digest.
const DIGITS: usize = 12;

/// A file as one observer finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    /// The observer.
    pub(super) by: &'static str,
    /// Its content, or why it cannot be read.
    pub(super) content: Result<String, String>,
}

/// Checks that all observers find the page as it was written.
pub(super) fn is_page(views: &[View]) -> Look {
    let wrong = views.iter().find(|view| view.content.as_deref() != Ok(PAGE));
    let Some(View { by, content }) = wrong else {
        let all = views.iter().map(|view| view.by).collect::<Vec<_>>().join(", ");
        return Look::new(!views.is_empty(), format!("SHA-256 {} for {all}", digest(PAGE)));
    };
    match content {
        Ok(content) => Look::new(false, format!("SHA-256 {} for {by}: {content:?}", digest(content))),
        Err(error) => Look::new(false, format!("{by} cannot read it: {error}")),
    }
}

/// Checks the ledger in views taken one after the other: its earlier content is unchanged, no line is missing, and each of `writers` has
/// appended lines since.
pub(super) fn goes_on(before: &str, views: &[View], writers: &[&str]) -> Look {
    let written = |counts: &BTreeMap<String, u64>, writer: &str| counts.get(writer).copied().unwrap_or(0);
    compared(before, views, |was, now| {
        writers.iter().all(|writer| written(was, writer) < written(now, writer))
    })
}

/// The same, but the ledger has not grown.
pub(super) fn stays(before: &str, views: &[View]) -> Look {
    compared(before, views, |_, _| true)
}

type Counts = BTreeMap<String, u64>;

fn compared(before: &str, views: &[View], has_grown: impl Fn(&Counts, &Counts) -> bool) -> Look {
    let mut earlier = ("before", before);
    for View { by, content } in views {
        match content {
            Err(error) => return Look::new(false, format!("{by} cannot read it: {error}")),
            Ok(content) if !content.starts_with(earlier.1) => {
                return Look::new(false, format!("{by} lacks some of what {} had", earlier.0));
            }
            Ok(content) => earlier = (by, content),
        }
    }
    let now = earlier.1;
    match (counts(before), counts(now)) {
        (Ok(was), Ok(is)) => Look::new(has_grown(&was, &is), described(before, now, &is)),
        (Err(gap), _) | (_, Err(gap)) => Look::new(false, gap),
    }
}

fn described(before: &str, now: &str, counts: &Counts) -> String {
    let of_each = counts.iter().map(|(writer, count)| format!("{writer} 1 to {count}"));
    let of_each = of_each.collect::<Vec<_>>().join(", ");
    let told = format!("{} lines: {of_each}", now.lines().count());
    match before.lines().count() {
        0 => told,
        // The two digests are computed from the earlier and the present content.
        lines => format!(
            "{told}; SHA-256 of the first {lines} {}, before {}",
            digest(&now[..before.len()]),
            digest(before)
        ),
    }
}

/// How many lines each writer has written. Its line numbers must increase by one.
fn counts(ledger: &str) -> Result<Counts, String> {
    let mut counts = Counts::new();
    for (index, line) in ledger.lines().enumerate() {
        let (writer, number) = line.split_once(' ').unwrap_or((line, ""));
        let count = counts.entry(writer.to_owned()).or_default();
        *count += 1;
        if number != count.to_string() {
            return Err(format!("line {} is {line:?}, where {writer} {count} has to be", index + 1));
        }
    }
    Ok(counts)
}

fn digest(content: &str) -> String {
    let mut digits = hex(&Sha256::digest(content));
    digits.truncate(DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(by: &'static str, content: &str) -> View {
        View { by, content: Ok(content.to_owned()) }
    }

    fn unreadable(by: &'static str) -> View {
        View { by, content: Err("gone".to_owned()) }
    }

    #[test]
    fn the_page_is_the_same_for_all_or_it_is_told_for_whom_it_is_not() {
        let look = is_page(&[view("left", PAGE), view("right", PAGE)]);
        assert_eq!(look, Look::new(true, format!("SHA-256 {} for left, right", digest(PAGE))));
        let other = is_page(&[view("left", PAGE), view("right", "")]);
        assert_eq!(other, Look::new(false, "SHA-256 e3b0c44298fc for right: \"\""));
        assert_eq!(is_page(&[unreadable("left")]), Look::new(false, "left cannot read it: gone"));
        assert!(!is_page(&[]).holds, "it was not looked for");
    }

    #[test]
    fn a_ledger_goes_on_when_nothing_of_it_is_lost_and_each_has_written() {
        let (before, now) = ("left 1\nright 1\n", "left 1\nright 1\nright 2\nleft 2\n");
        let look = |views: &[View]| goes_on(before, views, &["left", "right"]);
        let held = look(&[view("left", before), view("right", now)]);
        let seen = format!(
            "4 lines: left 1 to 2, right 1 to 2; SHA-256 of the first 2 {0}, before {0}",
            digest(before)
        );
        assert_eq!(held, Look::new(true, seen));
        assert!(!look(&[view("left", now), view("right", before)]).holds, "the later one has less");
        assert!(!look(&[view("left", "left 1\nright 1\nleft 2\n")]).holds, "right wrote nothing");
        assert!(!look(&[view("left", "left 1\nleft 2\nright 1\nright 2\n")]).holds, "another order");
        assert_eq!(look(&[unreadable("left")]), Look::new(false, "left cannot read it: gone"));
        assert!(!look(&[]).holds, "nothing was looked at");
    }

    #[test]
    fn a_line_that_is_missing_or_there_twice_is_told() {
        let look = |now: &str| stays("left 1\n", &[view("plugin", now)]);
        assert!(look("left 1\n").holds);
        let gap = Look::new(false, "line 2 is \"left 3\", where left 2 has to be");
        assert_eq!(look("left 1\nleft 3\n"), gap);
        assert!(!look("left 1\nleft 1\n").holds);
        assert!(!look("left 1\nlost\n").holds);
        assert_eq!(look(""), Look::new(false, "plugin lacks some of what before had"));
    }
}
