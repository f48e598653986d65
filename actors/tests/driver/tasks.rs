//! Tests task events: each reaches the right handler, once and in order, after any interruption of the stream.

use std::time::Duration;

use callboard_actors::driver::{DriverHealth, EventPosition, GapReason, TaskEventItem, TaskKey};
use callboard_actors::drivers::*;
use callboard_actors::eventor::TaskEvents;
use callboard_actors::shell::{Drill, StopMode};
use callboard_actors::vocabulary::{AllocationId, TaskName};
use tokio::time::Instant;
use tonic::Status;

use super::fixture::{Fixture, Stage, name, spec, story};

fn task(name: &str) -> TaskKey {
    TaskKey::new(AllocationId::new("alloc").unwrap(), TaskName::new(name).unwrap())
}

async fn handler(stage: &Stage, of: &str, after: Option<EventPosition>) -> TaskEvents {
    let (sink, events) = stage.journals.open(1_000, after);
    let register = RegisterTaskHandler { driver: name(), task: task(of), sink };
    stage.drivers.ask(register).await.unwrap().unwrap();
    events
}

async fn reading(stage: &mut Stage) {
    stage.drivers.ask(AddDriver { spec: spec() }).await.unwrap().unwrap();
    came(stage).await;
}

async fn came(stage: &mut Stage) {
    stage
        .until(|news| matches!(news, DriversNews::Reported(report) if report.health == DriverHealth::Healthy))
        .await;
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn next(events: &mut TaskEvents) -> String {
    match tokio::time::timeout(Duration::from_secs(600), events.next()).await.expect("in time") {
        Some(TaskEventItem::Event { event, .. }) => event.message.clone(),
        Some(TaskEventItem::Gap { missed, reason }) => format!("gap {missed:?}: {reason}"),
        None => "end".to_owned(),
    }
}

#[test]
fn a_slow_handler_delays_no_other_and_learns_exactly_what_it_missed_evt_01() {
    story(|| async {
        let mut stage = Stage::new();
        let (mut fast, mut slow) = (handler(&stage, "fast", None).await, handler(&stage, "slow", None).await);
        reading(&mut stage).await;
        let began = Instant::now();
        for number in 0..1_500 {
            stage.fixture.plugin.event("slow", &number.to_string());
            stage.fixture.plugin.event("fast", &number.to_string());
            assert_eq!(next(&mut fast).await, number.to_string());
        }
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(next(&mut slow).await, "gap Some(500): the handler was too slow");
        for number in 500..1_500 {
            assert_eq!(next(&mut slow).await, number.to_string());
        }
    });
}

#[test]
fn ten_thousand_events_over_a_stream_that_breaks_again_and_again_are_each_had_once_evt_02() {
    story(|| async {
        let mut stage = Stage::new();
        let mut handlers = Vec::new();
        for of in ["a", "b", "c", "d"] {
            let (sink, events) = stage.journals.open(20_000, None);
            let register = RegisterTaskHandler { driver: name(), task: task(of), sink };
            stage.drivers.ask(register).await.unwrap().unwrap();
            handlers.push((of, events, Vec::new()));
        }
        reading(&mut stage).await;
        let mut random = fastrand::Rng::with_seed(11);
        for number in 0..10_000u32 {
            let (of, _, said) = &mut handlers[random.usize(..4)];
            said.push(number.to_string());
            stage.fixture.plugin.event(of, &number.to_string());
            match random.u32(..2_000) {
                0 | 1 => stage.fixture.plugin.end_events(None),
                2 | 3 => stage.fixture.plugin.end_events(Some(Status::internal("cut"))),
                4 => stage.fixture.kill("signal 9"),
                5..100 => tokio::time::sleep(Duration::from_millis(1)).await,
                _ => {}
            }
            if random.u32(..1_000) == 0 {
                // In this time the stream may be restored, or not yet.
                tokio::time::sleep(Duration::from_secs(random.u64(..40))).await;
            }
        }
        for (of, mut events, said) in handlers {
            for message in said {
                assert_eq!(next(&mut events).await, message, "of {of}");
            }
            assert_eq!(events.try_next(), None);
        }
        assert!(stage.fixture.plugin.book().events_after.len() > 3, "the stream broke");
    });
}

#[test]
fn events_of_a_task_that_was_announced_wait_for_its_handler_evt_02() {
    story(|| async {
        let mut stage = Stage::new();
        stage.drivers.ask(AnnounceTask { driver: name(), task: task("a") }).await.unwrap().unwrap();
        reading(&mut stage).await;
        stage.fixture.plugin.event("a", "started");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let mut events = handler(&stage, "a", None).await;
        stage.fixture.plugin.event("a", "stopped");
        assert_eq!(next(&mut events).await, "started");
        assert_eq!(next(&mut events).await, "stopped");
    });
}

#[test]
fn events_of_tasks_without_a_handler_are_dead_letters_with_news_and_can_be_had_all_the_same_evt_02() {
    story(|| async {
        let mut stage = Stage::new();
        reading(&mut stage).await;
        stage.fixture.plugin.event("a", "one");
        stage.fixture.plugin.event("a", "two");
        let news = stage.until(|news| matches!(news, DriversNews::DeadLetters { .. })).await;
        let dead = DriversNews::DeadLetters { driver: name(), task: Some(task("a")), count: 2, error: None };
        assert_eq!(news, dead);
        // The plugin can repeat them.
        let mut events = handler(&stage, "a", None).await;
        assert_eq!(next(&mut events).await, "one");
        assert_eq!(next(&mut events).await, "two");
    });
}

#[test]
fn a_handler_goes_on_where_it_was_after_a_restart_of_the_host_evt_02() {
    story(|| async {
        let fixture = Fixture::new();
        let mut stage = Stage::with(fixture.clone(), DriversOptions::default());
        let mut events = handler(&stage, "a", None).await;
        reading(&mut stage).await;
        fixture.plugin.event("a", "one");
        fixture.plugin.event("a", "two");
        let Some(TaskEventItem::Event { position, .. }) = events.next().await else { panic!("an event") };
        stage.running.request_stop(StopMode::Detach);
        stage.running.ended().await;
        assert_eq!(next(&mut events).await, "two");
        assert_eq!(next(&mut events).await, "end", "nothing comes any more");
        fixture.plugin.event("a", "three");

        let mut stage = Stage::with(fixture.clone(), DriversOptions::default());
        let mut events = handler(&stage, "a", position).await;
        reading(&mut stage).await;
        assert_eq!(next(&mut events).await, "two");
        assert_eq!(next(&mut events).await, "three");
        assert_eq!(fixture.plugin.book().events_after, ["-:0", "s:1"]);
    });
}

#[test]
fn of_a_plugin_without_positions_every_interruption_is_told_as_a_gap_evt_02() {
    story(|| async {
        let mut stage = Stage::new();
        stage.fixture.plugin.book().stream = None;
        let mut events = handler(&stage, "a", None).await;
        reading(&mut stage).await;
        stage.fixture.plugin.event("a", "one");
        assert_eq!(next(&mut events).await, "one");
        stage.fixture.kill("signal 9");
        assert_eq!(next(&mut events).await, format!("gap None: {}", GapReason::Interrupted));
        came(&mut stage).await;
        stage.fixture.plugin.event("a", "two");
        assert_eq!(next(&mut events).await, "two");
    });
}

#[test]
fn an_error_of_the_stream_is_told_with_its_text_and_is_no_event() {
    story(|| async {
        let mut stage = Stage::new();
        let mut events = handler(&stage, "a", None).await;
        reading(&mut stage).await;
        stage.fixture.plugin.end_events(Some(Status::data_loss("lost the log")));
        let news = stage.until(|news| matches!(news, DriversNews::EventsInterrupted { .. })).await;
        assert!(
            matches!(news, DriversNews::EventsInterrupted { error, .. } if error.contains("lost the log"))
        );
        // An event that names no task is malformed as well.
        tokio::time::sleep(Duration::from_secs(5)).await;
        stage.fixture.plugin.book().events.as_ref().unwrap().send(Ok(Default::default())).unwrap();
        let news = stage.until(|news| matches!(news, DriversNews::DeadLetters { .. })).await;
        assert!(matches!(news, DriversNews::DeadLetters { task: None, error: Some(_), .. }));
        stage.fixture.plugin.event("a", "one");
        assert_eq!(next(&mut events).await, "one");
    });
}

#[test]
fn repeats_are_folded_where_recent_events_are_shown_evt_04() {
    story(|| async {
        let mut stage = Stage::new();
        let mut events = handler(&stage, "a", None).await;
        reading(&mut stage).await;
        stage.fixture.plugin.event("a", "no disk");
        for _ in 0..10_000 {
            stage.fixture.plugin.event("a", "cannot unmount");
        }
        stage.fixture.plugin.event("a", "last");
        while next(&mut events).await != "last" {}
        let recent = stage.drivers.ask(RecentTaskEvents { driver: name(), task: task("a") }).await.unwrap();
        let told: Vec<String> = recent.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["no disk", "cannot unmount (10000 times)", "last"]);
    });
}

#[test]
fn a_callback_is_called_for_each_event_and_a_forgotten_task_ends() {
    story(|| async {
        let mut stage = Stage::new();
        let heard = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let told = heard.clone();
        let (sink, task_of_it) = stage.journals.call_back(10, None, move |item| told.borrow_mut().push(item));
        let register = RegisterTaskHandler { driver: name(), task: task("a"), sink };
        stage.drivers.ask(register).await.unwrap().unwrap();
        reading(&mut stage).await;
        stage.fixture.plugin.event("a", "one");
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(heard.borrow().len(), 1);
        stage.drivers.ask(ForgetTaskHandler { driver: name(), task: task("a") }).await.unwrap();
        task_of_it.await.expect("it ends by itself");
    });
}

#[test]
fn a_removed_driver_leaves_no_caller_waiting_and_one_that_comes_again_is_watched_anew_s4_evt_03() {
    story(|| async {
        let mut stage = Stage::new();
        let mut before = handler(&stage, "a", None).await;
        reading(&mut stage).await;
        stage.fixture.plugin.event("a", "one");
        assert_eq!(next(&mut before).await, "one");
        stage.drivers.ask(RemoveDriver { name: name() }).await.unwrap().unwrap();
        assert_eq!(next(&mut before).await, "end");
        reading(&mut stage).await;
        let mut again = handler(&stage, "a", None).await;
        // No event arrives in this time.
        tokio::time::sleep(Duration::from_secs(10)).await;
        stage.fixture.plugin.event("a", "two");
        let heard = [next(&mut again).await, next(&mut again).await];
        assert_eq!(heard, ["one", "two"], "the plugin keeps what it told");
        let status = stage.drivers.ask(DescribeDriver { name: name() }).await.unwrap().unwrap();
        assert_eq!(status.tasks_watched, 1);
    });
}

#[test]
fn a_driver_whose_actor_falls_while_it_is_removed_leaves_no_process_s4_shd_06() {
    story(|| async {
        let mut stage = Stage::new();
        reading(&mut stage).await;
        stage.fixture.plugin.book().is_polite = false;
        let removed = stage.drivers.ask(RemoveDriver { name: name() });
        tokio::time::sleep(Duration::from_millis(1)).await;
        stage.drills.drill(&format!("driver {}", name()), Drill::GiveUp).unwrap();
        let Removed::Ended { .. } = removed.await.unwrap().unwrap() else { panic!("it ran") };
        assert!(!stage.fixture.is_running());
    });
}
