//! Tests the rules of the shell, each in a story about a small machine that keeps a list of words.
//!
//! The store fails, waits and keeps words as the test requires, and time is virtual, so every interleaving here is exact.

mod story;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use callboard_actors::conversation;
use callboard_actors::persister::{Settled, WriteError};
use callboard_actors::shell::{
    Address, AskError, AskId, CallKey, CallLost, DeadLetterCause, Detail, EffectHandler, Ending, FeedItem,
    Follower, Input, Journal, JournalLine, Machine, Notice, Notices, Recorded, Running, Settings, Started,
    StepContext, StopMode, Store, Subscription, Ticket, Written, start,
};
use callboard_actors::vocabulary::{Attempt, Generation, Moment, RestartBudget, Timestamp};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use story::story;

// === The machine under test ===

/// Adds a word, durably.
#[derive(Debug, Clone)]
struct Add(&'static str);
/// Asks for all words.
#[derive(Debug, Clone)]
struct Words;
/// Waits until a word is there.
#[derive(Debug, Clone)]
struct Await(&'static str);
/// Makes the step panic.
#[derive(Debug, Clone)]
struct Stumble;
/// Makes a call, and answers with its result.
#[derive(Debug, Clone)]
struct CallOut(Outside);
/// Answers after a while.
#[derive(Debug, Clone)]
struct Wake(Duration);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outside {
    Quick,
    Hanging,
    Crashing,
    AtOnce,
    CrashingAtOnce,
}

conversation! {
    enum Ask -> Answer {
        Add => usize,
        Words => Vec<&'static str>,
        Await => (),
        Stumble => (),
        CallOut => String,
        Wake => Timestamp,
    }
}

#[derive(Debug)]
struct WordList {
    words: Vec<&'static str>,
    waiting: Vec<(AskId, &'static str)>,
    calling: Vec<AskId>,
    sleeping: Vec<AskId>,
    attempt: Attempt,
}

impl Machine for WordList {
    const KIND: &'static str = "word list";
    type Config = ();
    type Image = Vec<&'static str>;
    type Ask = Ask;
    type Answer = Answer;
    type Call = Outside;
    type Outcome = &'static str;
    type Timer = u64;
    type Change = &'static str;
    type News = &'static str;
    type View = Vec<&'static str>;

    fn restore((): &(), words: Vec<&'static str>, _: Moment) -> Self {
        Self { words, waiting: vec![], calling: vec![], sleeping: vec![], attempt: Attempt::default() }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {}
            Input::Asked { id, ask, .. } => self.asked(*id, ask, cx),
            Input::Returned { outcome, .. } => {
                let text = match outcome {
                    Ok(text) => (*text).to_owned(),
                    Err(lost) => lost.to_string(),
                };
                cx.reply(self.calling.remove(0), Answer::CallOut(text));
            }
            Input::Elapsed(_) => cx.reply(self.sleeping.remove(0), Answer::Wake(cx.now())),
            Input::StopRequested(StopMode::Stop | StopMode::Detach) => cx.stop(),
        }
    }

    fn view(&self) -> Vec<&'static str> {
        self.words.clone()
    }
}

impl WordList {
    fn asked(&mut self, id: AskId, ask: &Ask, cx: &mut StepContext<Self>) {
        match ask {
            Ask::Add(Add(word)) => {
                self.words.push(word);
                cx.persist(word);
                cx.reply(id, Answer::Add(self.words.len()));
                cx.publish(word);
                let ready = self.waiting.extract_if(.., |(_, awaited)| awaited == word);
                ready.for_each(|(waiter, _)| cx.reply(waiter, Answer::Await(())));
            }
            Ask::Words(Words) => cx.reply(id, Answer::Words(self.words.clone())),
            Ask::Await(Await(word)) if self.words.contains(word) => cx.reply(id, Answer::Await(())),
            Ask::Await(Await(word)) => self.waiting.push((id, word)),
            Ask::Stumble(Stumble) => {
                self.words.push("half-done");
                cx.publish("half-done");
                panic!("stumbled on purpose");
            }
            Ask::CallOut(CallOut(outside)) => {
                self.attempt = self.attempt.next();
                self.calling.push(id);
                let key = CallKey { generation: Generation::new(1), attempt: self.attempt };
                cx.call(key, Duration::from_secs(5), *outside);
            }
            Ask::Wake(Wake(pause)) => {
                self.sleeping.push(id);
                cx.start_timer(0, cx.now() + *pause);
            }
        }
    }
}

// === Its surroundings ===

struct Handler;

impl EffectHandler<WordList> for Handler {
    fn call(&mut self, call: Outside) -> Started<&'static str> {
        match call {
            Outside::Quick => Started::running(async { "done" }),
            Outside::Hanging => Started::running(std::future::pending()),
            Outside::Crashing => Started::running(async { panic!("the call fell over") }),
            Outside::AtOnce => Started::Done("done at once"),
            Outside::CrashingAtOnce => panic!("the call fell over at once"),
        }
    }
}

/// A disk that the test controls.
#[derive(Default)]
struct Disk {
    words: Vec<&'static str>,
    waiting: VecDeque<(Ticket, &'static str)>,
    settled: Option<Recipient<Settled>>,
    loads: usize,
    is_manual: bool,
}

#[derive(Clone, Default)]
struct SharedDisk(Rc<RefCell<Disk>>);

impl SharedDisk {
    /// Writes settle only when the test requests it.
    fn manual() -> Self {
        let disk = Self::default();
        disk.0.borrow_mut().is_manual = true;
        disk
    }

    fn settle(&self, outcome: Result<(), WriteError>) {
        let mut disk = self.0.borrow_mut();
        let (ticket, word) = disk.waiting.pop_front().expect("a write waits");
        match &outcome {
            Ok(()) => disk.words.push(word),
            Err(_) => disk.waiting.clear(),
        }
        let settled = Settled { epoch: ticket.epoch, through: ticket.sequence, outcome };
        disk.settled.as_ref().expect("it is open").do_send(settled);
    }

    /// Waits until a write is handed over.
    async fn waits(&self) {
        while self.0.borrow().waiting.is_empty() {
            settle_down().await;
        }
    }
}

impl Store<WordList> for SharedDisk {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.0.borrow_mut().settled = Some(settled);
    }

    fn write(&mut self, ticket: Ticket, word: &'static str) -> Written {
        let mut disk = self.0.borrow_mut();
        if disk.is_manual {
            disk.waiting.push_back((ticket, word));
            Written::Later
        } else {
            disk.words.push(word);
            Written::Now
        }
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<Vec<&'static str>, String>> {
        let mut disk = self.0.borrow_mut();
        disk.loads += 1;
        let words = disk.words.clone();
        Box::pin(async move { Ok(words) })
    }
}

fn disk_full() -> WriteError {
    let source = Arc::new(std::io::Error::from(std::io::ErrorKind::StorageFull));
    WriteError::NoSpace { path: "/data/callboard.redb".into(), source }
}

fn word_list(disk: &SharedDisk) -> (Address<WordList>, Running, Settings) {
    let journal = Some(Journal::default());
    word_list_with(disk, 64, Settings { seed: Some(7), journal, ..Settings::default() })
}

fn word_list_with(
    disk: &SharedDisk,
    limit: usize,
    settings: Settings,
) -> (Address<WordList>, Running, Settings) {
    let address = Address::vacant("words", limit);
    let running = start(&address, (), Handler, disk.clone(), settings.clone());
    (address, running, settings)
}

/// Lets everything that is ready now run.
async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

// === Rule 1: effects leave in order, and a write is a gate ===

#[test]
fn nothing_leaves_before_the_write_in_front_of_it_is_on_disk() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, _) = word_list(&disk);
        let mut feed = words.subscribe("test", 8).expect("it runs");
        assert_eq!(feed.next().await, Some(FeedItem::Snapshot { number: 0, view: vec![] }));

        let mut added = words.ask(Add("one"));
        let mut asked = words.ask(Words);
        settle_down().await;
        assert!((&mut added).now_or_never().is_none(), "the answer waits for the disk");
        assert!((&mut asked).now_or_never().is_none(), "so does a question that was asked later");
        assert_eq!(feed.try_next(), None, "and so do the news");

        disk.settle(Ok(()));
        assert_eq!(added.await, Ok(1));
        assert_eq!(asked.await, Ok(vec!["one"]));
        assert_eq!(feed.next().await, Some(FeedItem::Change { number: 1, news: "one" }));
    });
}

#[test]
fn the_mailbox_goes_on_while_writes_are_on_their_way() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, _) = word_list(&disk);
        let answers: Vec<_> = ["a", "b", "c"].map(|word| words.ask(Add(word))).into();
        settle_down().await;
        assert_eq!(disk.0.borrow().waiting.len(), 3, "all three writes could share one commit");
        (0..3).for_each(|_| disk.settle(Ok(())));
        for (place, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer.await, Ok(place + 1));
        }
    });
}

// === Rule 2: a failed write ===

#[test]
fn a_write_that_is_lost_is_refused_to_its_callers_and_handed_over_again_in_its_order() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, settings) = word_list(&disk);
        let kept = words.ask(Add("kept"));
        let lost = words.ask(Add("lost"));
        let on_top = words.ask(Add("on top of it"));
        let asked = words.ask(Words);
        settle_down().await;
        disk.settle(Ok(()));
        disk.settle(Err(disk_full()));
        assert_eq!(kept.await, Ok(1));
        for error in [lost.await.err(), on_top.await.err(), asked.await.err()] {
            let error = error.expect("it is refused");
            assert!(matches!(error, AskError::NotDurable { .. }) && error.is_transient(), "{error}");
        }
        assert!(matches!(&settings.notices.recent()[..], [Notice::WriteFailed { .. }]));
        let later = words.ask(Add("later"));
        for _ in 0..3 {
            disk.waits().await;
            disk.settle(Ok(()));
        }
        assert_eq!(later.await, Ok(4));
        assert_eq!(words.ask(Words).await, Ok(vec!["kept", "lost", "on top of it", "later"]));
        assert_eq!(disk.0.borrow().words, ["kept", "lost", "on top of it", "later"]);
        assert_eq!(words.vitals().rebuilds, 0);
    });
}

#[test]
fn a_question_that_still_waits_is_asked_again_of_the_rebuilt_machine() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, _) = word_list(&disk);
        let awaited = words.ask(Await("late"));
        let lost = words.ask(Add("lost"));
        settle_down().await;
        disk.settle(Err(disk_full()));
        assert!(lost.await.is_err());
        assert!(words.ask(Stumble).await.is_err());
        disk.waits().await;
        disk.settle(Ok(()));
        let added = words.ask(Add("late"));
        disk.waits().await;
        disk.settle(Ok(()));
        assert_eq!(added.await, Ok(2));
        assert_eq!(awaited.await, Ok(()));
    });
}

#[test]
fn subscribers_hear_of_a_write_that_was_lost_when_it_is_on_disk_at_last() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, _) = word_list(&disk);
        let mut feed = words.subscribe("test", 8).expect("it runs");
        feed.next().await;
        let lost = words.ask(Add("lost"));
        settle_down().await;
        disk.settle(Err(disk_full()));
        assert!(lost.await.is_err());
        assert_eq!(feed.try_next(), None);
        disk.waits().await;
        disk.settle(Ok(()));
        assert_eq!(feed.next().await, Some(FeedItem::Change { number: 1, news: "lost" }));
    });
}

// === Rule 3: calls never hold the mailbox ===

#[test]
fn a_hanging_call_delays_no_other_and_ends_at_its_deadline() {
    story(|| async {
        let disk = SharedDisk::default();
        let (words, _running, _) = word_list(&disk);
        let hanging = words.ask(CallOut(Outside::Hanging));
        assert_eq!(words.ask(Add("meanwhile")).await, Ok(1));
        assert_eq!(hanging.await, Ok(CallLost::DeadlineExceeded(Duration::from_secs(5)).to_string()));
    });
}

#[test]
fn a_call_that_panics_comes_back_as_lost_and_harms_no_other() {
    story(|| async {
        let disk = SharedDisk::default();
        let (words, _running, _) = word_list(&disk);
        let crashed = words.ask(CallOut(Outside::Crashing)).await.expect("an answer");
        assert!(crashed.contains("the call fell over"), "{crashed}");
        assert_eq!(words.ask(CallOut(Outside::Quick)).await, Ok("done".to_owned()));
        assert_eq!(words.vitals().crashes, 0);
    });
}

#[test]
fn a_call_whose_outcome_is_there_at_once_comes_back_before_anything_else_is_heard() {
    story(|| async {
        let (words, _running, settings) = word_list(&SharedDisk::default());
        let mut steps = journal(&settings).follow("steps", 64, Detail::Steps);
        // While the actor is loaded, and while it runs.
        for first in [2, 5] {
            let (called, added) = (words.ask(CallOut(Outside::AtOnce)), words.ask(Add("meanwhile")));
            assert_eq!(called.await, Ok("done at once".to_owned()));
            assert!(added.await.is_ok());
            let expected = [
                format!("step {first}: Asked(\"CallOut\"), 1 effects"),
                format!("call {} of step {first}: AtOnce", first / 2),
                format!("step {}: Returned(\"AtOnce\"), 1 effects", first + 1),
                format!("step {}: Asked(\"Add\"), 3 effects", first + 2),
            ];
            let steps = written(&mut steps).into_iter();
            let steps: Vec<_> =
                steps.filter(|line| line.starts_with("step") || line.starts_with("call")).collect();
            assert!(steps.ends_with(&expected), "{steps:?}");
        }
    });
}

#[test]
fn a_call_that_panics_at_once_comes_back_as_lost_and_is_no_crash_of_its_actor() {
    story(|| async {
        let disk = SharedDisk::default();
        let (words, _running, _) = word_list(&disk);
        let crashed = words.ask(CallOut(Outside::CrashingAtOnce)).await.expect("an answer");
        assert!(crashed.contains("the call fell over at once"), "{crashed}");
        assert_eq!(words.ask(CallOut(Outside::AtOnce)).await, Ok("done at once".to_owned()));
        assert_eq!(words.vitals().crashes, 0);
    });
}

#[test]
fn a_call_of_a_former_life_does_not_come_back() {
    story(|| async {
        let disk = SharedDisk::default();
        let (words, _running, _) = word_list(&disk);
        let mut hanging = words.ask(CallOut(Outside::Hanging));
        assert!(words.ask(Stumble).await.is_err());
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!((&mut hanging).now_or_never().is_none(), "it was asked again, with a new deadline");
        assert!(hanging.await.is_ok());
    });
}

// === Rule 4: a crash is a step too ===

#[test]
fn a_panic_in_a_step_costs_one_message_and_nothing_else() {
    story(|| async {
        let disk = SharedDisk::default();
        let (words, _running, settings) = word_list(&disk);
        let mut feed = words.subscribe("test", 8).expect("it runs");
        feed.next().await;
        let before = words.ask(Add("before"));
        let crashed = words.ask(Stumble);
        let behind = words.ask(Words);
        assert_eq!(before.await, Ok(1));
        assert!(
            matches!(crashed.await, Err(AskError::Crashed { message, .. }) if message.contains("on purpose"))
        );
        assert_eq!(behind.await, Ok(vec!["before"]), "what waited behind it is handled, on state from disk");
        assert_eq!(words.vitals().crashes, 1);
        assert_eq!(feed.next().await, Some(FeedItem::Change { number: 1, news: "before" }));
        assert!(matches!(feed.next().await, Some(FeedItem::Snapshot { number: 1, .. })), "no half-done news");
        let notices = settings.notices.recent();
        assert!(matches!(&notices[0], Notice::Crashed { crashes: 1, .. }), "{notices:?}");
        assert!(
            matches!(&notices[1], Notice::DeadLetter { input, cause: DeadLetterCause::Crashed(_), .. } if input.contains("Stumble")),
            "{notices:?}"
        );
    });
}

#[test]
fn what_was_written_before_a_crash_is_waited_for_and_kept() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, _) = word_list(&disk);
        let written = words.ask(Add("written"));
        let crashed = words.ask(Stumble);
        let asked = words.ask(Words);
        assert!(matches!(crashed.await, Err(AskError::Crashed { .. })));
        assert_eq!(disk.0.borrow().loads, 1, "the store is not read again before the write has settled");
        disk.settle(Ok(()));
        assert_eq!(written.await, Ok(1));
        assert_eq!(asked.await, Ok(vec!["written"]));
        assert_eq!(disk.0.borrow().loads, 2);
    });
}

#[test]
fn a_write_that_fails_behind_a_crash_is_refused_like_any_other() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, _) = word_list(&disk);
        let written = words.ask(Add("written"));
        let crashed = words.ask(Stumble);
        assert!(crashed.await.is_err());
        disk.settle(Err(disk_full()));
        assert!(matches!(written.await, Err(AskError::NotDurable { .. })));
        disk.waits().await;
        disk.settle(Ok(()));
        assert_eq!(words.ask(Words).await, Ok(vec!["written"]));
    });
}

#[test]
fn the_end_of_the_budget_ends_the_actor_and_its_parent_is_told() {
    story(|| async {
        let budget = RestartBudget { limit: 2, window: Duration::from_secs(60) };
        let settings = Settings { budget, ..Settings::default() };
        let disk = SharedDisk::default();
        let (words, running, _) = word_list_with(&disk, 64, settings.clone());
        let waiting = words.ask(Await("never"));
        for _ in 0..3 {
            assert!(matches!(words.ask(Stumble).await, Err(AskError::Crashed { .. })));
        }
        assert!(
            matches!(running.ended().await, Ending::BudgetSpent(message) if message.contains("on purpose"))
        );
        assert!(matches!(waiting.await, Err(AskError::NotRunning { .. })));
        assert!(matches!(words.ask(Words).await, Err(AskError::NotRunning { .. })));

        let _running = start(&words, (), Handler, disk, settings);
        assert_eq!(
            words.ask(Words).await,
            Ok(vec![]),
            "the address is the same after its supervisor starts it again"
        );
    });
}

#[test]
fn crashes_that_lie_far_apart_do_not_spend_the_budget() {
    story(|| async {
        let budget = RestartBudget { limit: 1, window: Duration::from_secs(60) };
        let (words, _running, _) =
            word_list_with(&SharedDisk::default(), 64, Settings { budget, ..Settings::default() });
        for _ in 0..5 {
            assert!(words.ask(Stumble).await.is_err());
            tokio::time::sleep(Duration::from_secs(61)).await;
        }
        assert_eq!(words.ask(Words).await, Ok(vec![]));
    });
}

// === Rule 5: order under overload ===

#[test]
fn one_message_too_many_is_refused_and_overtakes_no_other() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, _) = word_list_with(&disk, 3, Settings::default());
        let taken: Vec<_> = ["a", "b", "c"].map(|word| words.ask(Add(word))).into();
        let refused = words.ask(Add("d")).await;
        assert!(matches!(refused, Err(AskError::Busy { limit: 3, .. })), "{refused:?}");
        settle_down().await;
        (0..3).for_each(|_| disk.settle(Ok(())));
        for answer in taken {
            assert!(answer.await.is_ok());
        }
        assert_eq!(words.ask(Words).await, Ok(vec!["a", "b", "c"]));
        assert_eq!(words.vitals().mailbox_depth, 0);
    });
}

#[test]
fn callers_that_wait_for_something_do_not_fill_the_mailbox() {
    story(|| async {
        let (words, _running, _) = word_list_with(&SharedDisk::default(), 2, Settings::default());
        let mut waiting = Vec::new();
        for _ in 0..100 {
            waiting.push(words.ask(Await("news")));
            settle_down().await;
        }
        assert_eq!(words.ask(Add("news")).await, Ok(1));
        for waiter in waiting {
            assert_eq!(waiter.await, Ok(()));
        }
    });
}

#[test]
fn an_actor_with_room_for_one_message_handles_many_timers_at_once_scl_07() {
    story(|| async {
        let (words, _running, _) = word_list_with(&SharedDisk::default(), 1, Settings::default());
        let mut sleeping = Vec::new();
        for _ in 0..10 {
            sleeping.push(words.ask(Wake(Duration::from_secs(9))));
            settle_down().await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(
            sleeping.remove(0).await.is_ok(),
            "the timer ran although no other caller could have been admitted"
        );
        assert_eq!(words.ask(Add("still here")).await, Ok(1));
    });
}

// === Rule 6 and feeds ===

#[test]
fn a_slow_subscriber_delays_no_other_and_learns_exactly_what_it_missed_scl_01() {
    story(|| async {
        let (words, _running, settings) = word_list(&SharedDisk::default());
        let mut slow = words.subscribe("slow", 4).expect("it runs");
        for _ in 0..100 {
            assert!(words.ask(Add("word")).await.is_ok());
        }
        let report = words.subscribers().pop().expect("it subscribes");
        assert_eq!((report.name.as_str(), report.unread, report.lags), ("slow", 4, 1));
        let lagged = Notice::Lagged { actor: "words".to_owned(), subscriber: "slow".to_owned(), lags: 1 };
        assert_eq!(settings.notices.recent(), [lagged], "it is told once, by name");
        let mut seen = 0;
        let missed = loop {
            match slow.next().await.expect("the list lives") {
                FeedItem::Change { number, .. } => {
                    seen += 1;
                    assert_eq!(number, seen, "in order and without a hole");
                }
                FeedItem::Lagged { missed } => break missed,
                FeedItem::Snapshot { .. } => {}
            }
        };
        assert_eq!(seen + missed, 100);
        assert_eq!(report.missed, missed);
        let Some(FeedItem::Snapshot { number: 100, view }) = slow.next().await else { panic!("a snapshot") };
        assert_eq!(view.len(), 100);
        drop(slow);
        assert_eq!(words.subscribers(), []);
    });
}

// === Rule 7: a caller that gives up ===

#[test]
fn what_was_taken_is_done_once_although_its_caller_left() {
    story(|| async {
        let (words, _running, _) = word_list(&SharedDisk::default());
        drop(words.ask(Add("left behind")));
        assert_eq!(words.ask(Words).await, Ok(vec!["left behind"]));
    });
}

// === Time and the end ===

#[test]
fn virtual_time_moves_timers_to_the_instant() {
    story(|| async {
        let (words, _running, settings) = word_list(&SharedDisk::default());
        let before = settings.clock.now();
        let woken = words.ask(Wake(Duration::from_secs(3_600))).await.expect("an answer");
        let slept = woken.since(before);
        assert!(slept >= Duration::from_secs(3_600) && slept < Duration::from_secs(3_601), "{slept:?}");
    });
}

#[test]
fn a_stopped_actor_handles_what_came_before_and_refuses_what_comes_after() {
    story(|| async {
        let (words, running, _) = word_list(&SharedDisk::default());
        let before = words.ask(Add("before"));
        running.request_stop(StopMode::Stop);
        assert_eq!(before.await, Ok(1));
        assert_eq!(running.ended().await, Ending::Normal);
        assert!(matches!(words.ask(Words).await, Err(AskError::NotRunning { .. })));
    });
}

#[test]
fn an_actor_that_is_killed_tells_its_parent_and_leaves_its_slot() {
    story(|| async {
        let (words, running, _) = word_list(&SharedDisk::default());
        let hanging = words.ask(CallOut(Outside::Hanging));
        settle_down().await;
        running.kill();
        assert_eq!(running.ended().await, Ending::Killed);
        assert!(hanging.await.is_err());
        assert!(words.subscribe("test", 4).is_err());
    });
}

#[test]
fn an_early_subscriber_has_all_that_the_next_actor_changes_and_an_abandoned_one_costs_nothing() {
    story(|| async {
        let words: Address<WordList> = Address::vacant("words", 64);
        assert!(words.subscribe("test", 8).is_err());
        let mut early = words.subscribe_early("early", 8);
        drop(words.subscribe_early("abandoned", 8));
        let names = |words: &Address<WordList>| -> Vec<_> {
            words.subscribers().into_iter().map(|report| report.name).collect()
        };
        assert_eq!(names(&words), ["early"]);
        let running = start(&words, (), Handler, SharedDisk::default(), Settings::default());
        assert!(words.ask(Add("a")).await.is_ok());
        assert_eq!(early.next().await, Some(FeedItem::Snapshot { number: 0, view: vec![] }));
        assert_eq!(early.next().await, Some(FeedItem::Change { number: 1, news: "a" }));

        // While an incarnation runs, the subscription is like any other, and ends with that incarnation.
        let mut late = words.subscribe_early("late", 8);
        assert_eq!(late.next().await, Some(FeedItem::Snapshot { number: 1, view: vec!["a"] }));
        running.request_stop(StopMode::Stop);
        running.ended().await;
        assert_eq!((early.next().await, late.next().await), (None, None));
        let mut next = words.subscribe_early("next", 8);
        let _running = start(&words, (), Handler, SharedDisk::default(), Settings::default());
        assert_eq!(next.next().await, Some(FeedItem::Snapshot { number: 0, view: vec![] }));
    });
}

#[test]
fn a_follower_loses_nothing_when_its_wait_is_given_up_and_learns_when_the_other_ends() {
    story(|| async {
        let (words, running, _) = word_list(&SharedDisk::default());
        let mut follower = Follower::new("test", words.clone());
        let first = follower.follow(true).await;
        assert_eq!(first, Ok(vec![FeedItem::Snapshot { number: 0, view: vec![] }]));
        let given_up = tokio::time::timeout(Duration::from_secs(1), follower.follow(false)).await;
        assert!(given_up.is_err(), "nothing came");
        for word in ["a", "b"] {
            assert!(words.ask(Add(word)).await.is_ok());
        }
        let next = follower.follow(false).await.expect("the list lives");
        assert_eq!(next.len(), 2, "all that waits comes at once: {next:?}");
        running.request_stop(StopMode::Stop);
        assert!(matches!(follower.follow(false).await, Err(AskError::NotRunning { .. })));
    });
}

#[test]
fn a_reader_that_never_reads_costs_a_bounded_amount_and_learns_what_it_missed_scl_01() {
    let notices = Notices::default();
    let mut reader = notices.subscribe();
    for crashes in 1..=1_000 {
        notices.post(Notice::Crashed { actor: "registry".into(), message: "boom".into(), crashes });
    }
    assert!(matches!(reader.try_next(), Some(FeedItem::Snapshot { number: 0, .. })));
    let mut changes = 0;
    let missed = loop {
        match reader.try_next() {
            Some(FeedItem::Change { .. }) => changes += 1,
            Some(FeedItem::Lagged { missed }) => break missed,
            Some(FeedItem::Snapshot { .. }) => panic!("a snapshot before the gap was named"),
            None => {}
        }
    };
    assert_eq!(changes + missed, 1_000);
    assert!(
        matches!(reader.try_next(), Some(FeedItem::Snapshot { number: 1_000, view }) if view.len() == 256)
    );
}

// === The journal ===

fn journal(settings: &Settings) -> &Journal {
    settings.journal.as_ref().expect("the word list has one")
}

/// The present entries of a journal, one text each.
fn written(journal: &mut Subscription<JournalLine, ()>) -> Vec<String> {
    let one = |item| match item {
        FeedItem::Change { news: line, .. } => told(&line),
        FeedItem::Snapshot { .. } => "begins".to_owned(),
        FeedItem::Lagged { missed } => format!("missed {missed}"),
    };
    std::iter::from_fn(|| journal.try_next()).map(one).collect()
}

fn told(JournalLine { kind, actor, entry, .. }: &JournalLine) -> String {
    assert_eq!((*kind, &**actor), ("word list", "words"));
    match entry {
        Recorded::Built { is_rebuilt } => format!("built, rebuilt: {is_rebuilt}"),
        Recorded::Holds { number, view } => {
            let view = view.downcast_ref::<Vec<&str>>().expect("the view of a word list");
            format!("holds {view:?} after news {number}")
        }
        Recorded::LoadFailed { error } => format!("cannot load: {error}"),
        Recorded::Stepped { step, heard, effects } => format!("step {step}: {heard:?}, {effects} effects"),
        Recorded::Called { step, number, call } => format!("call {number} of step {step}: {call}"),
        Recorded::Writing { step, write } => format!("write {write} of step {step}"),
        Recorded::OnDisk { through } => format!("on disk {through}"),
        Recorded::WriteFailed { .. } => "write failed".to_owned(),
        Recorded::Published { step, number, news } => {
            let news = news.downcast_ref::<&str>().expect("news of a word list");
            format!("news {number} of step {step}: {news}")
        }
        Recorded::Lagged { subscriber } => format!("{subscriber} lags"),
        Recorded::Crashed { message } => format!("crashed: {message}"),
        Recorded::Stale => "stale".to_owned(),
        Recorded::Ended { ending, is_waiting } => format!("ended: {ending:?}, waiting: {is_waiting}"),
    }
}

#[test]
fn the_journal_has_what_happened_in_its_order_and_what_left_with_the_step_that_it_follows_from_shell_1() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, _running, settings) = word_list(&disk);
        settle_down().await;
        let mut steps = journal(&settings).follow("steps", 64, Detail::Steps);
        let mut outcomes = journal(&settings).follow("outcomes", 64, Detail::Outcomes);
        words.tell(Add("secret")).expect("there is room");
        words.tell(CallOut(Outside::Quick)).expect("there is room");
        settle_down().await;
        disk.settle(Ok(()));
        settle_down().await;
        let expected = [
            "begins",
            "step 2: Asked(\"Add\"), 3 effects",
            "write 1 of step 2",
            "step 3: Asked(\"CallOut\"), 1 effects",
            "on disk 1",
            "news 1 of step 2: secret",
            "call 1 of step 3: Quick",
            "step 4: Returned(\"Quick\"), 1 effects",
        ];
        assert_eq!(written(&mut steps), expected);
        let expected = ["begins", "write 1 of step 2", "on disk 1", "news 1 of step 2: secret"];
        assert_eq!(written(&mut outcomes), expected);
    });
}

#[test]
fn an_actor_describes_itself_in_its_place_among_its_news_when_it_is_asked_and_when_it_is_built() {
    story(|| async {
        let disk = SharedDisk::manual();
        let (words, running, settings) = word_list(&disk);
        settle_down().await;
        let mut journal = journal(&settings).follow("test", 64, Detail::Outcomes);
        words.tell(Add("a")).expect("there is room");
        words.describe().expect("it runs");
        settle_down().await;
        disk.settle(Ok(()));
        words.tell(Stumble).expect("there is room");
        settle_down().await;
        let expected = [
            "begins",
            "write 1 of step 2",
            "on disk 1",
            "news 1 of step 2: a",
            "holds [\"a\"] after news 1",
            "crashed: stumbled on purpose",
            "built, rebuilt: true",
            "holds [\"a\"] after news 1",
        ];
        assert_eq!(written(&mut journal), expected);
        running.request_stop(StopMode::Stop);
        running.ended().await;
        assert_eq!(written(&mut journal), ["ended: Normal, waiting: false"]);
        assert!(words.describe().is_err());
    });
}

#[test]
fn a_reader_of_the_journal_that_is_too_slow_delays_nothing_misses_entries_and_begins_anew_r6() {
    story(|| async {
        let (words, _running, settings) = word_list(&SharedDisk::default());
        settle_down().await;
        let mut slow = journal(&settings).follow("slow", 2, Detail::Outcomes);
        let mut quick = journal(&settings).follow("quick", 64, Detail::Outcomes);
        let mut feed = words.subscribe("feed", 2).expect("it runs");
        feed.next().await;
        assert_eq!(written(&mut slow), ["begins"]);
        for word in ["a", "b", "c", "d"] {
            assert!(words.ask(Add(word)).await.is_ok());
        }
        let all =
            ["begins", "news 1 of step 2: a", "news 2 of step 3: b", "news 3 of step 4: c", "feed lags"];
        assert_eq!(written(&mut quick)[..5], all);
        assert_eq!(written(&mut slow), all[1..3]);
        assert_eq!(written(&mut slow), ["missed 3", "begins"]);
        drop(quick);
        drop(slow);
        assert!(words.ask(Add("e")).await.is_ok());
        assert_eq!(format!("{:?}", journal(&settings)), "Journal { readers: 0 }");
    });
}
