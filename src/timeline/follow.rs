//! Follows the journal of a host and converts it into a stream of lines.

use std::collections::BTreeSet;

use callboard_actors::shell::{
    Address, AskError, Clock, Detail, FeedItem, Journal, JournalLine, Machine, Recorded, Subscription,
};
use callboard_actors::vocabulary::Timestamp;
use callboard_proto::admin::v1::Said;
use tokio::sync::mpsc;

use super::line::{Line, Participant};
use super::news_lines::missing;
use super::teller::Teller;
use crate::agent::Agent;
use crate::host::Host;
use crate::tasks::Tasks;

/// How many entries of the journal may wait in the queue.
const ENTRIES_CAPACITY: usize = 4_096;
/// How many lines may wait for the reader.
const LINES_CAPACITY: usize = 1_024;

/// Begins a timeline of a host, of the agent that runs its processes and of its tasks, from now on, with or without the gates of its
/// actors. It ends with the host, or when it no longer has a reader.
///
/// # Panics
/// Outside of a tokio runtime.
#[must_use]
pub(crate) fn follow(
    host: Host,
    agent: &Address<Agent>,
    tasks: &Address<Tasks>,
    with_gates: bool,
) -> mpsc::Receiver<Said> {
    let (sender, receiver) = mpsc::channel(LINES_CAPACITY);
    let actors: Vec<Box<dyn Describe>> = vec![
        Box::new(agent.clone()),
        Box::new(host.allocations().clone()),
        Box::new(host.registry().clone()),
        Box::new(host.instances().clone()),
        Box::new(host.inventory().clone()),
        Box::new(tasks.clone()),
        Box::new(host.drivers().clone()),
        Box::new(host.volumes().clone()),
    ];
    let mut reading = Reading::begin(host.journal(), actors, with_gates);
    tokio::spawn(async move {
        let mut telling = Telling { sender, number: 0, missed: 0 };
        loop {
            let item = tokio::select! {
                biased;
                item = reading.journal.next() => item,
                () = telling.abandoned() => return,
                _ = host.ended() => None,
            };
            let goes_on = item.is_some();
            reading.take_all(item);
            telling.tell(std::mem::take(&mut reading.lines));
            if !goes_on {
                return;
            }
        }
    });
    receiver
}

/// An actor with a state that the timeline must know, so that it shows only changes.
trait Describe: Send {
    /// Its name.
    fn name(&self) -> &str;

    /// Makes it write its state into the journal.
    fn describe(&self) -> Result<(), AskError>;
}

impl<M: Machine> Describe for Address<M> {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn describe(&self) -> Result<(), AskError> {
        Self::describe(self)
    }
}

/// The reading end of the journal.
struct Reading {
    journal: Subscription<JournalLine, ()>,
    actors: Vec<Box<dyn Describe>>,
    with_gates: bool,
    /// The actors whose state is not known yet: their earlier news are older than the timeline.
    awaited: BTreeSet<String>,
    teller: Teller,
    /// The time of the last entry, by the host's clock.
    at: Timestamp,
    lines: Vec<(Timestamp, Line)>,
}

impl Reading {
    fn begin(journal: &Journal, actors: Vec<Box<dyn Describe>>, with_gates: bool) -> Self {
        let mut reading = Self {
            journal: journal.follow("timeline", ENTRIES_CAPACITY, Detail::Outcomes),
            actors,
            with_gates,
            awaited: BTreeSet::new(),
            teller: Teller::default(),
            at: Clock::system().now(),
            lines: Vec::new(),
        };
        reading.line(Line::new(Participant::Timeline, Participant::You, "messages from now on"));
        reading
    }

    /// Takes this item of the journal, and all further available items.
    fn take_all(&mut self, first: Option<FeedItem<JournalLine, ()>>) {
        let mut next = first.or_else(|| self.journal.try_next());
        while let Some(item) = next {
            self.take(item);
            next = self.journal.try_next();
        }
    }

    fn take(&mut self, item: FeedItem<JournalLine, ()>) {
        match item {
            FeedItem::Snapshot { .. } => {
                // An actor that cannot be asked does not run, and reports its state when it begins.
                let asked = self.actors.iter().filter(|actor| actor.describe().is_ok());
                self.awaited = asked.map(|actor| actor.name().to_owned()).collect();
            }
            FeedItem::Change { news, .. } => self.entry(&news),
            FeedItem::Lagged { missed } => self.line(missing(missed)),
        }
    }

    fn entry(&mut self, entry: &JournalLine) {
        self.at = entry.at;
        if matches!(entry.entry, Recorded::Holds { .. } | Recorded::Ended { .. }) {
            self.awaited.remove(&*entry.actor);
        }
        if self.awaited.contains(&*entry.actor) {
            return;
        }
        for line in self.teller.tell(entry) {
            if self.with_gates || line.gate.is_none() {
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: Line) {
        self.lines.push((self.at, line));
    }
}

/// The writing end of the timeline.
struct Telling {
    sender: mpsc::Sender<Said>,
    number: u64,
    missed: u64,
}

impl Telling {
    async fn abandoned(&self) {
        self.sender.closed().await;
    }

    /// Sends lines, and counts the lines that find no room.
    fn tell(&mut self, lines: Vec<(Timestamp, Line)>) {
        let mut lines = lines.into_iter().peekable();
        while let Some((at, line)) = lines.next() {
            if self.missed > 0 && self.hand_over(at, missing(self.missed), false) {
                self.missed = 0;
            }
            let goes_on = line.step.is_some() && lines.peek().is_some_and(|(_, next)| next.step == line.step);
            if self.missed > 0 || !self.hand_over(at, line, goes_on) {
                self.missed += 1;
            }
        }
    }

    fn hand_over(&mut self, at: Timestamp, line: Line, goes_on: bool) -> bool {
        let said = Said { goes_on, ..line.said(self.number + 1, at) };
        let is_taken = self.sender.try_send(said).is_ok();
        self.number += u64::from(is_taken);
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::inventory::{FirstSummary, InventoryNews, InventoryView};

    use super::*;

    fn lines(count: usize) -> Vec<(Timestamp, Line)> {
        let line = |number| Line::new(Participant::Agent, Participant::Everyone, format!("line {number}"));
        (0..count).map(|number| (Timestamp::default(), line(number))).collect()
    }

    #[test]
    fn a_reader_that_is_too_slow_learns_how_much_it_missed_and_delays_nothing_scl_01() {
        let (sender, mut receiver) = mpsc::channel(3);
        let mut telling = Telling { sender, number: 0, missed: 0 };
        telling.tell(lines(5));
        let mut read = || receiver.try_recv().map(|said| (said.number, said.message)).ok();
        assert_eq!(read(), Some((1, "line 0".to_owned())));
        assert_eq!((read(), read()).1, Some((3, "line 2".to_owned())));
        assert_eq!(read(), None);
        telling.tell(lines(1));
        let missed = "2 lines are missing here: too many at once".to_owned();
        assert_eq!(read(), Some((4, missed)));
        assert_eq!(read(), Some((5, "line 0".to_owned())));
    }

    #[test]
    fn a_line_tells_whether_the_next_one_follows_from_the_same_step() {
        let (sender, mut receiver) = mpsc::channel(8);
        let mut telling = Telling { sender, number: 0, missed: 0 };
        let steps = [("registry", 1), ("registry", 1), ("registry", 2), ("instances", 2)];
        let of = |(actor, step)| {
            (
                Timestamp::default(),
                Line::new(Participant::Agent, Participant::Everyone, "").of_step(actor, step),
            )
        };
        telling.tell(steps.map(of).into_iter().chain(lines(2)).collect());
        let told: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).map(|said| said.goes_on).collect();
        assert_eq!(told, [true, false, false, false, false, false]);
    }

    /// An actor that can be asked, or not.
    struct Asked(&'static str, bool);

    impl Describe for Asked {
        fn name(&self) -> &str {
            self.0
        }

        fn describe(&self) -> Result<(), AskError> {
            let error = AskError::NotRunning { actor: self.0.to_owned() };
            if self.1 { Ok(()) } else { Err(error) }
        }
    }

    fn entry(actor: &str, entry: Recorded) -> FeedItem<JournalLine, ()> {
        let news = JournalLine { number: 1, at: Timestamp::default(), kind: "", actor: actor.into(), entry };
        FeedItem::Change { number: 1, news }
    }

    fn news(actor: &str) -> FeedItem<JournalLine, ()> {
        let news = Arc::new(InventoryNews::First(vec![], FirstSummary::default()));
        entry(actor, Recorded::Published { step: 1, number: 1, news })
    }

    #[test]
    fn what_an_actor_tells_before_it_has_described_itself_is_older_than_the_timeline_r6() {
        let actors: Vec<Box<dyn Describe>> =
            vec![Box::new(Asked("inventory", true)), Box::new(Asked("drivers", false))];
        let mut reading = Reading::begin(&Journal::default(), actors, false);
        let mut told = |item| {
            reading.take(item);
            std::mem::take(&mut reading.lines).into_iter().map(|(_, line)| line.message).collect::<Vec<_>>()
        };
        let begin = || FeedItem::Snapshot { number: 0, view: () };
        assert_eq!(told(begin()), ["messages from now on"]);
        assert_eq!(told(news("inventory")), [""; 0]);
        let first = ["first inventory: nothing"];
        assert_eq!(told(news("drivers")), first, "it does not run, so it begins after this");
        let view = Arc::new(InventoryView::default());
        assert_eq!(told(entry("inventory", Recorded::Holds { number: 1, view })), [""; 0]);
        assert_eq!(told(news("inventory")), first);
        assert_eq!(told(FeedItem::Lagged { missed: 2 })[0][..9], *"2 lines a");
        told(begin());
        assert_eq!(told(news("inventory")), [""; 0], "it is asked again");
    }
}
