//! How the news of an actor become lines.

use callboard_actors::shell::FeedItem;

use super::line::{Line, Voice};
use super::merge::Rank;

/// Turns the news of one actor into lines. It remembers what it needs to tell a change from a repetition.
pub(super) trait Retell {
    /// What the actor says.
    type News;
    /// What it gives those who begin to listen.
    type View;

    /// Takes in how things stand, and tells what of it is worth a line.
    fn begin(&mut self, view: &Self::View) -> Vec<(Rank, Line)>;

    /// Tells one piece of news.
    fn retell(&mut self, news: &Self::News) -> Vec<(Rank, Line)>;
}

/// Turns an item of a feed into lines.
pub(super) fn retell<R: Retell>(teller: &mut R, item: &FeedItem<R::News, R::View>) -> Vec<(Rank, Line)> {
    match item {
        FeedItem::Snapshot { view, .. } => teller.begin(view),
        FeedItem::Change { news, .. } => teller.retell(news),
        FeedItem::Lagged { missed } => vec![(Rank::First, missing(*missed))],
    }
}

/// The line for lines that are not there.
pub(super) fn missing(missed: u64) -> Line {
    Line::new(
        Voice::Timeline,
        Voice::You,
        format!("{missed} lines are missing here: too much was said at once"),
    )
}

#[cfg(test)]
mod tests {
    use callboard_actors::shell::Notice;

    use super::super::notices::NoticesTeller;
    use super::*;

    #[test]
    fn a_snapshot_a_change_and_a_gap_are_each_told_in_their_own_way_r6() {
        let mut teller = NoticesTeller;
        let failed = Notice::WriteFailed { actor: "registry".to_owned(), error: "no space".to_owned() };
        let items = [
            FeedItem::Snapshot { number: 0, view: vec![failed.clone()] },
            FeedItem::Change { number: 1, news: failed },
            FeedItem::Lagged { missed: 7 },
        ];
        let told = items.iter().flat_map(|item| retell(&mut teller, item));
        let told: Vec<_> = told
            .map(|(rank, line)| (rank, format!("{} → {}: {}", line.from, line.to, line.message)))
            .collect();
        let expected = [
            (Rank::First, "registry → everyone: could not write: no space"),
            (Rank::First, "timeline → you: 7 lines are missing here: too much was said at once"),
        ];
        assert_eq!(told, expected.map(|(rank, line)| (rank, line.to_owned())));
    }
}
