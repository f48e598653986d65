//! Compares the stand-in with the shell: the same histories are played through both, and the same effects leave.
//!
//! Writes settle late, fail, or fail but take effect; the disk refuses at once; steps crash. After each event both
//! have two seconds for everything that happens by itself.

#[allow(dead_code, reason = "the tests of the registry need more of it")]
#[path = "../../../tests/registry/faulty.rs"]
mod faulty;
#[path = "../../../tests/registry/fragile.rs"]
mod fragile;
#[allow(dead_code, reason = "the tests of the registry need more of it")]
#[path = "../../../tests/registry/stage.rs"]
mod stage;
#[allow(dead_code, reason = "other tests of actors need more of it")]
#[path = "../../../tests/story/mod.rs"]
mod story;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::registry::{
    List, Registry, RegistryAnswer, RegistryNews, RegistryOptions, RegistryView,
};
use callboard_actors::shell::{Address, AskError, FeedItem, Message, Settings, start};
use callboard_actors::vocabulary::{Moment, RestartBudget, SocketPath, Timestamp};
use callboard_simulation::{Left, Outcome, Refusal, RegistryDisk, RegistryLaws, Rules, StandIn};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use proptest::prelude::*;

use faulty::Disk;
use fragile::{Birth, Fragile, Handler};
use stage::{Living, deregister, register, story};

const PLUGIN: &str = "csi-node/zfs";

/// One event of a history.
#[derive(Debug, Clone, Copy)]
enum Event {
    Register(usize, bool),
    Deregister(usize),
    List,
    Settle(usize, Outcome),
    RefuseNext,
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        5 => Just(Outcome::Written),
        1 => Just(Outcome::Failed),
        1 => Just(Outcome::FailedButWritten),
    ];
    prop_oneof![
        6 => (0..3_usize, any::<bool>()).prop_map(|(who, is_new)| Event::Register(who, is_new)),
        4 => (0..3_usize).prop_map(Event::Deregister),
        1 => Just(Event::List),
        7 => (1..4_usize, outcome).prop_map(|(count, outcome)| Event::Settle(count, outcome)),
        1 => Just(Event::RefuseNext),
        2 => Just(Event::Crash),
    ]
}

fn message(who: usize, is_new: bool) -> callboard_actors::registry::Register {
    let mut message = register(["a", "b", "c"][who], &[PLUGIN]);
    if is_new {
        message.socket = SocketPath::new("/run/elsewhere.sock").expect("a path");
    }
    message
}

/// The effects that left after one event: answers in the order of their questions, then the feed.
type Heard = Vec<String>;

fn answer_text(number: u64, answer: &str) -> String {
    format!("{number:03} {answer}")
}

fn told(answer: &RegistryAnswer) -> String {
    match answer {
        RegistryAnswer::Register(answer) => format!("{answer:?}"),
        RegistryAnswer::Deregister(answer) => format!("{answer:?}"),
        RegistryAnswer::List(entries) => {
            format!("{:?}", entries.iter().map(|entry| (entry.number, entry.standing)).collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

fn item_text(item: &FeedItem<RegistryNews, RegistryView>) -> String {
    let news = |news: &RegistryNews| match news {
        RegistryNews::Registered(entry) => format!("registered {}", entry.number),
        RegistryNews::Renewed(entry) => format!("renewed {}", entry.number),
        RegistryNews::Updated(entry) => format!("updated {} {}", entry.number, entry.registration.socket),
        RegistryNews::Deregistered(entry, why) => format!("left {} {why:?}", entry.number),
        RegistryNews::ActiveChanged { from, to, .. } => {
            format!(
                "active {:?} {:?}",
                from.as_ref().map(|a| a.generation),
                to.as_ref().map(|a| a.generation)
            )
        }
    };
    match item {
        FeedItem::Snapshot { number, view } => {
            let numbers: Vec<_> = view.entries.iter().map(|entry| (entry.number, entry.standing)).collect();
            let active: Vec<_> = view.active.iter().map(|active| active.generation).collect();
            format!("snapshot {number} {numbers:?} {active:?}")
        }
        FeedItem::Change { number, news: change } => format!("news {number} {}", news(change)),
        FeedItem::Lagged { missed } => format!("lagged {missed}"),
    }
}

// === The real shell ===

type Pending = LocalBoxFuture<'static, String>;

fn pending<Q: Message<Fragile>>(
    registry: &Address<Fragile>,
    message: Q,
    tell: fn(Q::Reply) -> String,
) -> Pending {
    let asking = registry.ask(message);
    let text = |answer: Result<Q::Reply, AskError>, tell: fn(Q::Reply) -> String| match answer {
        Ok(answer) => tell(answer),
        Err(AskError::Crashed { .. }) => "crashed".to_owned(),
        Err(AskError::NotDurable { .. }) => "not durable".to_owned(),
        Err(AskError::NotWritten { .. }) => "never written".to_owned(),
        Err(other) => other.to_string(),
    };
    async move { text(asking.await, tell) }.boxed_local()
}

async fn through_the_shell(events: &[Event]) -> Vec<Heard> {
    let birth = Birth { options: options(), fuse: Rc::new(Cell::new(0)) };
    let budget = RestartBudget { limit: 10_000, window: Duration::from_secs(60) };
    let settings = Settings { seed: Some(7), budget, ..Settings::default() };
    let registry = Address::vacant("registry", 1_000);
    let disk = Disk::new();
    let running = start(&registry, birth.clone(), Handler(Living::default()), disk.clone(), settings);
    let mut feed = registry.subscribe("test", usize::MAX).expect("it runs");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut pendings: Vec<(u64, Pending)> = Vec::new();
    let (mut asked, mut all) = (0, Vec::new());
    for event in events {
        let mut ask = |pending| {
            asked += 1;
            pendings.push((asked, pending));
        };
        match *event {
            Event::Register(who, is_new) => {
                ask(pending(&registry, message(who, is_new), |a| told(&RegistryAnswer::Register(a))));
            }
            Event::Deregister(who) => {
                let message = deregister(["a", "b", "c"][who], &[PLUGIN]);
                ask(pending(&registry, message, |a| told(&RegistryAnswer::Deregister(a))));
            }
            Event::List => ask(pending(&registry, List, |a| told(&RegistryAnswer::List(a)))),
            Event::Settle(count, outcome) => {
                disk.settle(
                    count,
                    match outcome {
                        Outcome::Written => faulty::Outcome::Written,
                        Outcome::Failed => faulty::Outcome::Failed,
                        Outcome::FailedButWritten => faulty::Outcome::FailedButWritten,
                    },
                );
            }
            Event::RefuseNext => disk.fail_next_at_once(),
            Event::Crash => birth.fuse.set(1),
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut heard = Heard::new();
        pendings.retain_mut(|(number, pending)| match pending.now_or_never() {
            Some(answer) => {
                heard.push(answer_text(*number, &answer));
                false
            }
            None => true,
        });
        heard.extend(std::iter::from_fn(|| feed.try_next()).map(|item| item_text(&item)));
        all.push(heard);
    }
    running.kill();
    running.ended().await;
    all
}

// === The stand-in ===

type Stand = StandIn<Registry, RegistryDisk, RegistryLaws>;

fn options() -> RegistryOptions {
    RegistryOptions { restore_grace: Duration::from_secs(100_000), ..RegistryOptions::default() }
}

fn load(stand: &mut Stand, moment: Moment) {
    let image = stand.store.read(moment.now);
    stand.checker.expect(stand.store.rows().clone(), stand.store.run(), stand.store.begun());
    stand.loaded(moment, image);
}

fn through_the_stand_in(events: &[Event]) -> Vec<Heard> {
    let mut now = Timestamp::from_epoch(Duration::from_secs(1_000));
    let laws = RegistryLaws::new(options(), true);
    let mut stand: Stand = StandIn::begin(options(), RegistryDisk::new(now), laws, Rules::default());
    load(&mut stand, Moment { now, random: 0 });
    let mut left = Vec::new();
    stand.take_left(&mut left);
    // The subscriber of the shell reads its first snapshot together with the effects of the first event.
    let mut first: Heard = feed_of(&left);
    let (mut asked, mut all) = (0, Vec::new());
    for event in events {
        let moment = Moment { now, random: 0 };
        let mut ask = |stand: &mut Stand, ask| {
            asked += 1;
            stand.ask(moment, asked, ask);
        };
        match *event {
            Event::Register(who, is_new) => {
                ask(&mut stand, Message::<Registry>::into_ask(message(who, is_new)));
            }
            Event::Deregister(who) => {
                let message = deregister(["a", "b", "c"][who], &[PLUGIN]);
                ask(&mut stand, Message::<Registry>::into_ask(message));
            }
            Event::List => ask(&mut stand, Message::<Registry>::into_ask(List)),
            Event::Settle(count, outcome) => {
                if let Some(settled) = stand.store.settle(count, outcome) {
                    stand.settled(moment, settled);
                }
            }
            Event::RefuseNext => stand.store.refuse_next(),
            Event::Crash => stand.crash_next_step(),
        }
        // Pauses end one after another, if they end within the two seconds.
        let mut later = now;
        while stand.pauses_until().is_some() || stand.is_loading() && stand.store.waiting() == 0 {
            later = stand.pauses_until().unwrap_or(later);
            stand.wake();
            if stand.store.waiting() > 0 {
                break;
            }
            load(&mut stand, Moment { now: later, random: 0 });
        }
        now = now + Duration::from_secs(2);
        let mut left = Vec::new();
        stand.take_left(&mut left);
        let mut heard: Heard = left.iter().filter_map(answer_of).collect();
        heard.sort();
        heard.append(&mut first);
        heard.extend(feed_of(&left));
        all.push(heard);
        assert_eq!(stand.checker.verdict.broken(), None);
    }
    all
}

fn answer_of(left: &Left<Registry>) -> Option<String> {
    match left {
        Left::Answer(Some(asker), answer) => Some(answer_text(*asker, &told(answer))),
        Left::Refused(asker, Refusal::Crashed) => Some(answer_text(*asker, "crashed")),
        Left::Refused(asker, Refusal::NotDurable | Refusal::NotBegun) => {
            Some(answer_text(*asker, "not durable"))
        }
        Left::Refused(asker, Refusal::NotWritten) => Some(answer_text(*asker, "never written")),
        Left::Answer(None, _) | Left::News(..) | Left::Snapshot(..) | Left::Call { .. } | Left::Ended(_) => {
            None
        }
    }
}

fn feed_of(left: &[Left<Registry>]) -> Heard {
    let items = left.iter().filter_map(|left| match left {
        Left::News(number, news) => Some(FeedItem::Change { number: *number, news: news.clone() }),
        Left::Snapshot(number, view) => Some(FeedItem::Snapshot { number: *number, view: (**view).clone() }),
        Left::Answer(..) | Left::Refused(..) | Left::Call { .. } | Left::Ended(_) => None,
    });
    let mut heard = Heard::new();
    let mut last_is_snapshot = false;
    for item in items {
        // A snapshot right after another replaces it in the subscriber's queue.
        let is_snapshot = matches!(item, FeedItem::Snapshot { .. });
        if is_snapshot && last_is_snapshot {
            heard.pop();
        }
        last_is_snapshot = is_snapshot;
        heard.push(item_text(&item));
    }
    heard
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_stand_in_lets_out_what_the_shell_lets_out(events in proptest::collection::vec(event(), 1..30)) {
        let stood_in = through_the_stand_in(&events);
        story(|| async {
            let shell = through_the_shell(&events).await;
            for (place, (shell, stood_in)) in shell.iter().zip(&stood_in).enumerate() {
                assert_eq!(shell, stood_in, "after event {place}, {:?}, of {events:?}", events[place]);
            }
        });
    }
}
