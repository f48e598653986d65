//! Computes the spans on the line of a column: the life of an actor, the times in which it is active, and the times in which it waits for
//! the disk.

use std::collections::BTreeSet;

use super::layout::{HEAD_HEIGHT, HEAD_TOP, Layout, Row};
use super::model::{Mark, Sign};

/// The top of the lines of the columns.
pub(super) const TOP: f64 = HEAD_TOP + HEAD_HEIGHT;

/// A part of the line of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span<T> {
    pub(super) from: f64,
    pub(super) to: f64,
    /// The state in this part.
    pub(super) what: T,
}

/// The parts in which an actor lives (true), and the parts between a crash and a restart.
pub(super) fn lives(layout: &Layout<'_>, name: &str) -> Vec<Span<bool>> {
    let mut spans = Vec::new();
    let (mut from, mut what) = (TOP, true);
    for Row { mark, y, .. } in &layout.rows {
        let Mark::Sign { actor, sign, .. } = mark else { continue };
        let next = match sign {
            Sign::Crash => false,
            Sign::Restart => true,
            Sign::News | Sign::Trouble => continue,
        };
        if actor == name {
            spans.push(Span { from, to: *y, what });
            (from, what) = (*y, next);
        }
    }
    spans.push(Span { from, to: layout.bottom, what });
    spans
}

/// The parts in which a registration is active, each with its plugins.
pub(super) fn active<'a>(layout: &Layout<'a>, name: &str) -> Vec<Span<BTreeSet<&'a str>>> {
    let changes = || {
        layout.rows.iter().filter_map(|row| {
            let Mark::Active { plugin, before, now } = row.mark else { return None };
            Some((row.y, plugin.as_str(), before.as_deref(), now.as_deref()))
        })
    };
    let mut seen = BTreeSet::new();
    // A registration that was active before the first change is active from the top.
    let first = changes().filter(|(_, plugin, before, _)| seen.insert(*plugin) && *before == Some(name));
    let mut active: BTreeSet<&str> = first.map(|(_, plugin, ..)| plugin).collect();
    let (mut spans, mut from, mut what) = (Vec::new(), TOP, active.clone());
    for (y, plugin, _, now) in changes() {
        if now == Some(name) {
            if active.is_empty() {
                from = y;
            }
            active.insert(plugin);
            what.insert(plugin);
        } else if active.remove(plugin) && active.is_empty() {
            spans.push(Span { from, to: y, what: std::mem::take(&mut what) });
        }
    }
    if !active.is_empty() {
        spans.push(Span { from, to: layout.bottom, what });
    }
    spans
}

/// The parts in which output of an actor waits for the disk.
pub(super) fn gates(layout: &Layout<'_>, name: &str) -> Vec<Span<()>> {
    let mut spans = Vec::new();
    let mut closed: Option<(f64, u64)> = None;
    for Row { mark, y, .. } in &layout.rows {
        closed = match (mark, closed) {
            (Mark::GateCloses { actor, write }, closed) if actor == name => {
                Some((closed.map_or(*y, |(from, _)| from), *write))
            }
            (Mark::GateOpens { actor, through }, Some((from, last))) if actor == name && *through >= last => {
                spans.push(Span { from, to: *y, what: () });
                None
            }
            (Mark::GatesFall { actor }, Some((from, _))) if actor == name => {
                spans.push(Span { from, to: *y, what: () });
                None
            }
            (_, closed) => closed,
        };
    }
    spans.extend(closed.map(|(from, _)| Span { from, to: layout.bottom, what: () }));
    spans
}

#[cfg(test)]
mod tests {
    use super::super::model::Picture;
    use super::*;

    /// The spans, counted in rows of 24 below the heads; a mark without a row of its own ends where the last row ended.
    fn rows<T>(spans: Vec<Span<T>>) -> Vec<(f64, f64, T)> {
        let row = |y: f64| ((y - TOP) / 24.0).floor();
        spans.into_iter().map(|Span { from, to, what }| (row(from), row(to), what)).collect()
    }

    /// A mark with the height of one row.
    fn row() -> Mark {
        Mark::GateOpens { actor: "another".to_owned(), through: 0 }
    }

    fn picture(marks: Vec<Mark>) -> Picture {
        Picture { title: String::new(), marks }
    }

    fn change(plugin: &str, before: Option<&str>, now: Option<&str>) -> Mark {
        let name = |name: &str| name.to_owned();
        Mark::Active { plugin: plugin.to_owned(), before: before.map(name), now: now.map(name) }
    }

    #[test]
    fn one_is_active_from_its_takeover_to_the_next_and_from_the_top_if_it_was_so_before() {
        let marks = vec![
            row(),
            change("one", Some("a"), Some("b")),
            row(),
            change("two", Some("a"), None),
            row(),
            change("two", None, Some("b")),
            row(),
            change("one", Some("b"), Some("a")),
            row(),
            change("two", Some("b"), None),
        ];
        let picture = picture(marks);
        let layout = Layout::of(&picture);
        let (one, both) = (BTreeSet::from(["one"]), BTreeSet::from(["one", "two"]));
        assert_eq!(rows(active(&layout, "a")), [(0.0, 2.0, both.clone()), (4.0, 5.0, one)]);
        assert_eq!(rows(active(&layout, "b")), [(1.0, 5.0, both)]);
        assert_eq!(rows(active(&layout, "another")), []);
    }

    #[test]
    fn a_line_is_broken_between_a_crash_and_a_restart_of_its_own() {
        let sign = |actor: &str, sign| {
            let (actor, text, about) = (actor.to_owned(), String::new(), String::new());
            [row(), Mark::Sign { actor, text, about, sign }]
        };
        let signs = [("b", Sign::Crash), ("a", Sign::Crash), ("a", Sign::Trouble), ("a", Sign::Restart)];
        let picture = picture(signs.into_iter().flat_map(|(actor, kind)| sign(actor, kind)).collect());
        let layout = Layout::of(&picture);
        let places = |name: &str| {
            let spans = lives(&layout, name).into_iter();
            let row = |y: f64| layout.rows.iter().position(|row| row.y >= y);
            spans.map(|span| (row(span.from), row(span.to), span.what)).collect::<Vec<_>>()
        };
        let expected = [(Some(0), Some(3), true), (Some(3), Some(7), false), (Some(7), None, true)];
        assert_eq!(places("a"), expected);
        assert_eq!(places("b"), [(Some(0), Some(1), true), (Some(1), None, false)]);
    }

    #[test]
    fn a_gate_is_closed_until_its_last_write_is_on_disk_or_all_fall() {
        let actor = |name: &str| name.to_owned();
        let closes = |name: &str, write| Mark::GateCloses { actor: actor(name), write };
        let opens = |name: &str, through| Mark::GateOpens { actor: actor(name), through };
        let marks = vec![
            closes("a", 1),
            closes("b", 1),
            closes("a", 2),
            opens("a", 1),
            opens("b", 2),
            opens("a", 2),
            opens("a", 3),
            closes("a", 3),
            row(),
            Mark::GatesFall { actor: actor("b") },
            Mark::GatesFall { actor: actor("a") },
            closes("a", 4),
        ];
        let picture = picture(marks);
        let layout = Layout::of(&picture);
        assert_eq!(rows(gates(&layout, "a")), [(1.0, 6.0, ()), (8.0, 9.0, ()), (10.0, 11.0, ())]);
        assert_eq!(rows(gates(&layout, "b")), [(2.0, 5.0, ())]);
    }
}
