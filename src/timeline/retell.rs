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
