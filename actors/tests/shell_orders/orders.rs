//! Tests every fault in every order: random stories, and after each step everything that is visible from outside is checked against
//! the rules.
//!
//! The reference is the disk itself: it holds numbers in the order in which they were kept. Every answer, every piece
//! of news and every view must match a prefix of that list.

use std::time::Duration;

use callboard_actors::shell::{AskError, Asking, Ending, FeedItem, Message, StopMode, Subscription};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use proptest::prelude::*;

use crate::tally::{
    All, Await, Disk, Fetch, Keep, KeepLater, KeepTwo, NextLoad, NextWrite, Outcome, Stage, Stumble, Tally,
    settle_down, story,
};

/// One step of a story.
#[derive(Debug, Clone)]
enum Step {
    Keep,
    KeepTwo,
    All,
    /// Waits for a number that is kept after this many other numbers.
    Await(u64),
    Stumble,
    Fetch,
    KeepLater(u64),
    /// Sends a number without waiting for an answer.
    Tell,
    NextWrite(NextWrite),
    NextLoad(NextLoad),
    Settle(usize, Outcome),
    RestorePanics,
    ResumePanics,
    ViewPanics,
    StopPanics,
    CallPanics,
    Subscribe(usize),
    Read(usize, usize),
    /// The oldest subscriber leaves.
    Leave,
    Pass(u64),
    Stop,
    Kill,
    StartAgain,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Written),
        1 => Just(Outcome::Failed),
        1 => Just(Outcome::FailedButWritten)
    ];
    let next_write = prop_oneof![Just(NextWrite::Now), Just(NextWrite::Fails), Just(NextWrite::Panics)];
    let next_load = prop_oneof![Just(NextLoad::Fails), Just(NextLoad::Panics), Just(NextLoad::PanicsLater)];
    prop_oneof![
        8 => Just(Step::Keep),
        3 => Just(Step::KeepTwo),
        4 => Just(Step::All),
        2 => (0..4_u64).prop_map(Step::Await),
        3 => Just(Step::Stumble),
        2 => Just(Step::Fetch),
        2 => (0..4_u64).prop_map(Step::KeepLater),
        1 => Just(Step::Tell),
        3 => next_write.prop_map(Step::NextWrite),
        1 => next_load.prop_map(Step::NextLoad),
        8 => (1..4_usize, outcome).prop_map(|(count, outcome)| Step::Settle(count, outcome)),
        1 => Just(Step::RestorePanics),
        1 => Just(Step::ResumePanics),
        1 => Just(Step::ViewPanics),
        1 => Just(Step::StopPanics),
        1 => Just(Step::CallPanics),
        2 => (2..6_usize).prop_map(Step::Subscribe),
        4 => (0..3_usize, 1..5_usize).prop_map(|(who, count)| Step::Read(who, count)),
        1 => Just(Step::Leave),
        6 => (0..20_u64).prop_map(Step::Pass),
        1 => Just(Step::Stop),
        1 => Just(Step::Kill),
        1 => Just(Step::StartAgain),
    ]
}

/// The claim of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Claim {
    /// This number has this place.
    Place(u64, usize),
    /// These are all numbers.
    All(Vec<u64>),
    /// This number is there.
    There(u64),
}

/// A question in flight, and its outcome.
struct Question {
    life: usize,
    /// It is answered by the step that takes it, so no other such question may overtake it.
    is_immediate: bool,
    asking: Option<LocalBoxFuture<'static, Result<Claim, AskError>>>,
    answer: Option<Result<Claim, AskError>>,
}

fn claiming<Q: Message<Tally>>(
    asking: Asking<Tally, Q>,
    claim: impl FnOnce(Q::Reply) -> Claim + 'static,
) -> LocalBoxFuture<'static, Result<Claim, AskError>> {
    async move { asking.await.map(claim) }.boxed_local()
}

/// A subscriber, and the state that it has derived from its items.
struct Reader {
    feed: Subscription<u64, Vec<u64>>,
    view: Option<Vec<u64>>,
    number: u64,
    missed: Option<u64>,
}

impl Reader {
    fn read(&mut self, item: FeedItem<u64, Vec<u64>>, disk: &[u64]) {
        match item {
            FeedItem::Snapshot { number, view } => {
                let expected = self.number + self.missed.take().unwrap_or(0);
                assert!(self.view.is_none() || number == expected, "snapshot {number} after {expected}");
                self.number = number;
                self.view = Some(view);
            }
            FeedItem::Change { number, news } => {
                assert_eq!(self.missed, None, "a change before the snapshot that mends a gap");
                self.number += 1;
                assert_eq!(number, self.number, "numbered without a hole");
                self.view.as_mut().expect("a snapshot comes first").push(news);
            }
            FeedItem::Lagged { missed } => {
                assert!(missed > 0 && self.missed.is_none(), "{missed} missed, {:?} before", self.missed);
                self.missed = Some(missed);
            }
        }
        let view = self.view.as_deref().expect("a snapshot comes first");
        assert!(disk.starts_with(view), "told {view:?} and on disk is {disk:?}");
    }
}

/// A story in progress.
struct Told {
    stage: Stage,
    life: usize,
    next: u64,
    questions: Vec<Question>,
    readers: Vec<Reader>,
    is_stopping: bool,
}

impl Told {
    fn begin() -> Self {
        let stage = Stage::new(Disk::manual(), 6);
        Self { stage, life: 0, next: 0, questions: vec![], readers: vec![], is_stopping: false }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn asked(&mut self, is_immediate: bool, asking: LocalBoxFuture<'static, Result<Claim, AskError>>) {
        let life = self.life;
        self.questions.push(Question { life, is_immediate, asking: Some(asking), answer: None });
    }

    async fn take(&mut self, step: &Step) {
        let (disk, mischief) = (self.stage.disk.clone(), std::rc::Rc::clone(&self.stage.mischief));
        let strike = |count: &std::cell::Cell<u32>| count.set(count.get() + 1);
        match step {
            Step::NextWrite(next) => disk.next_write(*next),
            Step::NextLoad(next) => disk.next_load(*next),
            Step::Settle(count, outcome) => {
                disk.settle(*count, *outcome);
            }
            Step::RestorePanics => strike(&mischief.restore_panics),
            Step::ResumePanics => strike(&mischief.resume_panics),
            Step::ViewPanics => strike(&mischief.view_panics),
            Step::StopPanics => strike(&mischief.stop_panics),
            Step::CallPanics => strike(&mischief.call_panics),
            Step::Pass(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
            Step::Stop => {
                self.is_stopping = true;
                self.stage.running.request_stop(StopMode::Stop);
            }
            Step::Kill => self.stage.running.kill(),
            Step::StartAgain => self.start_again(),
            Step::Subscribe(_) | Step::Read(..) | Step::Leave => self.listen(step),
            Step::Keep
            | Step::KeepTwo
            | Step::All
            | Step::Await(_)
            | Step::Stumble
            | Step::Fetch
            | Step::KeepLater(_)
            | Step::Tell => self.say(step),
        }
    }

    fn say(&mut self, step: &Step) {
        let tally = self.stage.tally.clone();
        match step {
            Step::Keep => {
                let number = self.number();
                self.asked(true, claiming(tally.ask(Keep(number)), move |place| Claim::Place(number, place)));
            }
            Step::KeepTwo => {
                let (first, second) = (self.number(), self.number());
                let asking = tally.ask(KeepTwo(first, second));
                self.asked(true, claiming(asking, move |place| Claim::Place(first, place)));
            }
            Step::All => self.asked(true, claiming(tally.ask(All), Claim::All)),
            Step::Await(ahead) => {
                let number = self.next + ahead;
                self.asked(false, claiming(tally.ask(Await(number)), move |()| Claim::There(number)));
            }
            Step::Stumble => self.asked(true, claiming(tally.ask(Stumble), |()| Claim::There(u64::MAX))),
            Step::Fetch => {
                let number = self.number();
                let asking = tally.ask(Fetch(number));
                self.asked(false, claiming(asking, move |place| Claim::Place(number, place)));
            }
            Step::KeepLater(millis) => {
                let number = self.number();
                let asking = tally.ask(KeepLater(number, Duration::from_millis(*millis)));
                self.asked(false, claiming(asking, move |place| Claim::Place(number, place)));
            }
            // Refused by a full mailbox or a vacant address: nothing was taken, and nothing is claimed.
            _ => drop(tally.tell(Keep(self.number()))),
        }
    }

    fn listen(&mut self, step: &Step) {
        match step {
            Step::Subscribe(capacity) => {
                if let Ok(feed) = self.stage.tally.subscribe("test", *capacity) {
                    self.readers.push(Reader { feed, view: None, number: 0, missed: None });
                }
            }
            Step::Read(who, count) => {
                let disk = self.stage.disk.numbers();
                if let Some(reader) = self.readers.get_mut(*who) {
                    for item in std::iter::from_fn(|| reader.feed.try_next()).take(*count).collect::<Vec<_>>()
                    {
                        reader.read(item, &disk);
                    }
                }
            }
            _ => {
                if !self.readers.is_empty() {
                    self.readers.remove(0);
                }
            }
        }
    }

    fn start_again(&mut self) {
        if self.stage.ending().is_some() {
            self.life += 1;
            self.is_stopping = false;
            self.readers.clear();
            self.stage.start_again();
        }
    }

    /// Collects the answers, and checks them against the disk.
    fn check(&mut self) {
        let disk = self.stage.disk.numbers();
        for question in &mut self.questions {
            let Some(answer) = question.asking.as_mut().and_then(|asking| asking.now_or_never()) else {
                continue;
            };
            question.asking = None;
            match &answer {
                Ok(Claim::Place(number, place)) => assert_eq!(disk.get(place - 1), Some(number), "{disk:?}"),
                Ok(Claim::All(all)) => assert!(disk.starts_with(all), "{all:?} of {disk:?}"),
                Ok(Claim::There(number)) => assert!(disk.contains(number), "{number} in {disk:?}"),
                Err(_) => {}
            }
            question.answer = Some(answer);
        }
        self.check_order();
        assert!(!self.stage.disk.has_written_after_failure(), "a write on top of one that failed");
        assert!(!disk.contains(&u64::MAX), "half of a crashed step is on disk");
    }

    /// Checks that no question that is answered by its own step has overtaken an earlier one of the same life.
    fn check_order(&self) {
        for life in 0..=self.life {
            let mut waiting = None;
            let mut last = 0;
            let of_life = self.questions.iter().filter(|question| question.life == life);
            for (place, question) in of_life.enumerate().filter(|(_, question)| question.is_immediate) {
                match &question.answer {
                    None => waiting = waiting.or(Some(place)),
                    Some(Ok(claim)) => {
                        assert_eq!(waiting, None, "{claim:?} (question {place}) has overtaken");
                        let seen = match claim {
                            Claim::Place(_, place) => *place,
                            Claim::All(all) => all.len(),
                            Claim::There(_) => last,
                        };
                        assert!(seen >= last, "{claim:?} sees less than the answer before it");
                        last = seen;
                    }
                    // Crashes and refusals are answered at once.
                    Some(Err(_)) => {}
                }
            }
        }
    }

    /// Ends all faults: every question must be answered and every stop completed.
    async fn calm_down(&mut self) {
        self.stage.mischief.calm();
        for _ in 0..30 {
            self.stage.disk.calm();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.check();
        match self.stage.ending() {
            Some(ending) => assert!(matches!(ending, Ending::Normal | Ending::Killed), "{ending:?}"),
            None => {
                assert!(!self.is_stopping, "a stop was lost");
                self.everyone_agrees().await;
                self.stage.running.request_stop(StopMode::Stop);
                assert_eq!(self.stage.running.ended().await, Ending::Normal);
            }
        }
        self.check();
        for (place, question) in self.questions.iter().enumerate() {
            assert!(question.answer.is_some(), "question {place} was never answered");
        }
        assert_eq!(self.stage.tally.vitals().mailbox_depth, 0, "a place in the mailbox is lost");
    }

    async fn everyone_agrees(&mut self) {
        let disk = self.stage.disk.numbers();
        assert_eq!(self.stage.tally.ask(All).await, Ok(disk.clone()), "memory is what is on disk");
        for question in self.questions.iter().filter(|question| question.answer.is_none()) {
            assert!(!question.is_immediate && question.life == self.life, "it waits for nothing");
        }
        for reader in &mut self.readers {
            while let Ok(item) = tokio::time::timeout(Duration::from_secs(1), reader.feed.next()).await {
                reader.read(item.expect("the actor lives"), &disk);
            }
            assert_eq!(reader.view.as_ref(), Some(&disk), "a reader knows what is on disk");
            assert_eq!(reader.missed, None, "a gap was never mended");
        }
    }
}

/// Runs one story to its end.
async fn tell(steps: &[Step], is_settled_between: bool) {
    let mut told = Told::begin();
    for step in steps {
        told.take(step).await;
        if is_settled_between {
            settle_down().await;
        }
        told.check();
    }
    told.calm_down().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_in_whatever_order_no_caller_gets_what_does_not_hold(
        steps in proptest::collection::vec(step(), 1..40),
        is_settled_between in any::<bool>(),
    ) {
        story(|| async { tell(&steps, is_settled_between).await });
    }
}

/// The steps whose every order is tried: writes and their ends, a crash, a write that fails at once, a stop.
const SHORT: [Step; 7] = [
    Step::Keep,
    Step::All,
    Step::Stumble,
    Step::NextWrite(NextWrite::Fails),
    Step::Settle(1, Outcome::Written),
    Step::Settle(1, Outcome::Failed),
    Step::Stop,
];

#[test]
fn every_short_story_of_gates_crashes_failed_writes_and_stops_ends_well() {
    const LENGTH: u32 = 4;
    story(|| async {
        for code in 0..SHORT.len().pow(LENGTH) {
            let place = |digit: u32| code / SHORT.len().pow(digit) % SHORT.len();
            let steps = (0..LENGTH).map(|digit| SHORT[place(digit)].clone());
            // A subscriber exists, and one write is in flight already.
            let steps: Vec<Step> = [Step::Subscribe(3), Step::Keep].into_iter().chain(steps).collect();
            for is_settled_between in [true, false] {
                println!("{steps:?}, settled between: {is_settled_between}");
                tell(&steps, is_settled_between).await;
            }
        }
    });
}
