//! The owner of one driver, `exec`: its knowledge of the driver, and its reports.

use std::collections::VecDeque;
use std::time::Duration;

use callboard_actors::driver::{DriverHealth, DriverReport};
use callboard_actors::drivers::{DriverSummary, DriversNews, DriversView};
use callboard_actors::inventory::{DriversItem, DriversKnown, InventoryOutcome, Offer};
use callboard_actors::shell::{AskError, FeedItem};
use callboard_actors::vocabulary::{DriverName, Generation, Health, Timestamp};

use super::event::DriverWord;

/// The knowledge and the reports of the owner of the drivers, and the questions to it.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct DriversModel {
    /// `exec`, while it exists.
    exec: Option<DriverReport>,
    inbox: VecDeque<DriversItem>,
    /// The call that follows it.
    follow: Option<u64>,
    /// The question that waits until each driver is known, and its deadline.
    asked: Option<(u64, Timestamp)>,
}

impl DriversModel {
    pub(super) fn may_say(&self, word: DriverWord) -> bool {
        match (word, self.exec.as_ref().map(|report| report.health)) {
            (DriverWord::Comes, None) => true,
            (DriverWord::Comes, Some(_)) | (_, None) => false,
            (DriverWord::Serves, Some(health)) => health != DriverHealth::Healthy,
            (DriverWord::Fails, Some(health)) => health != DriverHealth::Unhealthy,
            (DriverWord::FindsNothing, Some(health)) => health != DriverHealth::Undetected,
            (DriverWord::Restarts, Some(health)) => health != DriverHealth::NoAnswerYet,
            (DriverWord::Leaves, Some(_)) => true,
        }
    }

    pub(super) fn say(&mut self, word: DriverWord) {
        let name = DriverName::new("exec").expect("it is a name");
        let known = self.exec.take();
        let mut report = known
            .unwrap_or_else(|| DriverReport::of_nothing_yet(name, Timestamp::from_epoch(Duration::ZERO)));
        report.health = match word {
            DriverWord::Comes | DriverWord::Restarts => DriverHealth::NoAnswerYet,
            DriverWord::Serves => DriverHealth::Healthy,
            DriverWord::Fails => DriverHealth::Unhealthy,
            DriverWord::FindsNothing => DriverHealth::Undetected,
            DriverWord::Leaves => DriverHealth::Gone,
        };
        if word == DriverWord::Restarts {
            report.generation = Generation::new(report.generation.get() + 1);
        }
        let news = if word == DriverWord::Leaves {
            DriversNews::Left(report)
        } else {
            self.exec = Some(report.clone());
            DriversNews::Reported(report)
        };
        self.inbox.push_back(FeedItem::Change { number: 1, news });
    }

    // === Its requests ===

    pub(super) fn ask(&mut self, call: u64, until: Timestamp) {
        self.asked = Some((call, until));
    }

    pub(super) const fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// The deadline of the question.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.asked.map(|(_, until)| until)
    }

    /// Whether it may answer: each driver is known, or the deadline has passed.
    pub(super) fn may_answer(&self, now: Timestamp) -> bool {
        let is_known = self.exec.as_ref().is_none_or(|report| report.health != DriverHealth::NoAnswerYet);
        self.asked.is_some_and(|(_, until)| is_known || until <= now)
    }

    /// The answer, or the error that it is not running.
    pub(super) fn answer(&mut self, is_there: bool) -> Option<(u64, InventoryOutcome)> {
        let (call, _) = self.asked.take()?;
        let reports = Vec::from_iter(self.exec.clone());
        let known: DriversKnown = (DriverSummary::of(reports.iter()), reports);
        Some((call, InventoryOutcome::DriversKnown(is_there.then_some(known).ok_or_else(not_running))))
    }

    pub(super) fn follow(&mut self, call: u64, afresh: bool) {
        self.follow = Some(call);
        if afresh {
            let view = DriversView { reports: Vec::from_iter(self.exec.clone()) };
            self.inbox = VecDeque::from([FeedItem::Snapshot { number: 0, view }]);
        }
    }

    pub(super) fn has_news(&self) -> bool {
        self.follow.is_some() && !self.inbox.is_empty()
    }

    pub(super) const fn is_followed(&self) -> bool {
        self.follow.is_some()
    }

    /// Its waiting notifications arrive; or the error that it is not running.
    pub(super) fn deliver(&mut self, is_there: bool) -> Option<(u64, InventoryOutcome)> {
        let call = self.follow.take()?;
        let heard = if is_there { Ok(self.inbox.drain(..).collect()) } else { Err(not_running()) };
        Some((call, InventoryOutcome::Drivers(heard)))
    }

    /// Calls to it are no longer awaited.
    pub(super) fn forget(&mut self) {
        (self.asked, self.follow) = (None, None);
    }

    /// The offer that is due for it when no further event happens.
    pub(super) fn due_offer(&self) -> Option<Offer> {
        self.exec.as_ref().map(Offer::of_driver).filter(|offer| offer.health != Health::Gone)
    }
}

fn not_running() -> AskError {
    AskError::NotRunning { actor: "drivers".to_owned() }
}
