//! Tests one fault at a time, each at its most critical moment.

use std::time::Duration;

use callboard_actors::shell::{AskError, Ending, FeedItem, Notice, Settings, StopMode};
use callboard_actors::vocabulary::RestartBudget;

use futures_util::FutureExt;

use crate::tally::{
    All, AskedAt, Await, Disk, Fetch, Keep, KeepLater, KeepTwo, NextLoad, NextWrite, Outcome, Stage, Stumble,
    settle_down, story,
};

const WHILE: Duration = Duration::from_secs(10);

// === Panics outside of steps ===

#[test]
fn a_panic_in_the_view_is_a_crash_and_the_subscriber_gets_its_snapshot_afterwards() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        assert_eq!(stage.tally.ask(Keep(7)).await, Ok(1));
        stage.mischief.view_panics.set(2);
        let mut feed = stage.tally.subscribe("test", 4).expect("it runs");
        let snapshot = tokio::time::timeout(WHILE, feed.next()).await.expect("the actor lives");
        assert_eq!(snapshot, Some(FeedItem::Snapshot { number: 1, view: vec![7] }));
        assert_eq!(stage.tally.ask(All).await, Ok(vec![7]));
        assert_eq!(stage.tally.vitals().crashes, 2);
    });
}

#[test]
fn a_panic_in_the_view_for_a_reader_that_fell_behind_is_a_crash_too() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 64);
        let mut feed = stage.tally.subscribe("test", 2).expect("it runs");
        for number in 1..=9 {
            assert!(stage.tally.ask(Keep(number)).await.is_ok());
        }
        stage.mischief.view_panics.set(1);
        let mut last = None;
        while let Ok(Some(item)) = tokio::time::timeout(WHILE, feed.next()).await {
            last = Some(item);
        }
        assert_eq!(last, Some(FeedItem::Snapshot { number: 9, view: (1..=9).collect() }));
        assert_eq!(stage.tally.vitals().crashes, 1);
    });
}

#[test]
fn a_panic_while_rebuilding_costs_one_restart_and_loses_no_caller() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        let awaited = stage.tally.ask(Await(5));
        settle_down().await;
        stage.mischief.restore_panics.set(2);
        stage.mischief.resume_panics.set(2);
        assert!(matches!(stage.tally.ask(Stumble).await, Err(AskError::Crashed { .. })));
        assert_eq!(stage.tally.ask(Keep(5)).await, Ok(1));
        assert_eq!(awaited.await, Ok(()));
        assert_eq!(stage.tally.vitals().crashes, 5);
    });
}

#[test]
fn a_store_that_panics_over_a_write_has_failed_to_write() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        stage.disk.next_write(NextWrite::Panics);
        let lost = stage.tally.ask(Keep(1)).await;
        assert!(
            matches!(&lost, Err(AskError::NotWritten { error, .. }) if error.contains("on purpose")),
            "{lost:?}"
        );
        assert!(lost.is_err_and(|error| !error.is_transient()), "the same write fails again");
        assert_eq!(stage.tally.ask(Keep(2)).await, Ok(1));
        assert_eq!(stage.disk.numbers(), [2]);
    });
}

#[test]
fn a_store_that_panics_over_a_load_has_failed_to_load_and_is_asked_again() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        let kept = stage.tally.ask(Keep(1));
        for load in [NextLoad::Panics, NextLoad::PanicsLater, NextLoad::Fails] {
            stage.disk.next_load(load);
        }
        assert_eq!(kept.await, Ok(1));
        let notices = stage.settings.notices.recent();
        let is_failure = |notice: &&Notice| matches!(notice, Notice::LoadFailed { .. });
        assert_eq!(notices.iter().filter(is_failure).count(), 3, "{notices:?}");
    });
}

#[test]
fn hands_that_panic_while_they_pass_news_on_end_the_actor_and_everybody_learns_it() {
    story(|| async {
        let mut stage = Stage::new(Disk::manual(), 8);
        let parked = stage.tally.ask(Await(9));
        let before = stage.tally.ask(Keep(1));
        let behind = stage.tally.ask(Keep(2));
        settle_down().await;
        stage.mischief.publish_panics.set(1);
        stage.disk.settle(1, Outcome::Written);
        settle_down().await;
        stage.tally.ask(All).await.expect_err("no actor is there");
        for answer in [parked.await, before.await.map(drop), behind.await.map(drop)] {
            assert!(matches!(answer, Err(AskError::NotRunning { .. })), "{answer:?}");
        }
        assert!(matches!(stage.ending(), Some(Ending::Panicked(message)) if message.contains("publishing")));
        assert_eq!(stage.tally.vitals().mailbox_depth, 0);
        stage.start_again();
        assert_eq!(stage.tally.ask(All).await, Ok(vec![1, 2]));
    });
}

#[test]
fn a_call_whose_hands_fall_apart_when_it_is_given_up_still_comes_back() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        stage.mischief.drop_panics.set(1);
        let fetched = tokio::time::timeout(WHILE, stage.tally.ask(Fetch(1))).await;
        assert_eq!(fetched.expect("it comes back as lost"), Ok(1));
    });
}

#[test]
fn hands_that_panic_over_a_call_lose_the_call_only() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        stage.mischief.call_panics.set(1);
        assert_eq!(stage.tally.ask(Fetch(1)).await, Ok(1));
        assert_eq!(stage.tally.vitals().crashes, 0);
    });
}

#[test]
fn what_waits_for_a_rebuild_was_asked_when_it_was_handed_in() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        (0..5).for_each(|_| stage.disk.next_load(NextLoad::Fails));
        let before = stage.settings.clock.now();
        let asked_at = stage.tally.ask(AskedAt).await.expect("an answer");
        assert!(stage.settings.clock.now().since(before) > Duration::from_millis(100), "it took a while");
        assert!(asked_at.since(before) < Duration::from_millis(2), "{:?} later", asked_at.since(before));
    });
}

// === Writes that fail at once ===

#[test]
fn nothing_is_handed_to_the_store_on_top_of_a_write_that_failed_at_once() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        stage.disk.next_write(NextWrite::Fails);
        let lost = stage.tally.ask(KeepTwo(1, 2)).await.expect_err("it is refused");
        assert!(!lost.is_transient(), "{lost:?}");
        assert_eq!(
            lost.to_string(),
            format!(
                "{} could not persist this: the disk is full at once; it is never written, and the same message fails \
                 again: change it, or repair the store",
                stage.tally.name()
            )
        );
        assert_eq!(stage.tally.ask(All).await, Ok(vec![]));
        assert!(stage.disk.numbers().is_empty(), "the second write of the step was not made either");
        assert!(!stage.disk.has_written_after_failure());
    });
}

#[test]
fn a_write_that_fails_at_once_takes_nothing_along_that_was_written_before_it() {
    story(|| async {
        let stage = Stage::new(Disk::manual(), 8);
        let mut feed = stage.tally.subscribe("test", 8).expect("it runs");
        let before = stage.tally.ask(Keep(1));
        settle_down().await;
        stage.disk.next_write(NextWrite::Fails);
        let lost = stage.tally.ask(Keep(2));
        let behind = stage.tally.ask(All);
        assert!(matches!(lost.await, Err(AskError::NotWritten { .. })));
        stage.disk.settle(1, Outcome::Written);
        assert_eq!(before.await, Ok(1), "it is on disk, so it must not be told otherwise");
        assert_eq!(behind.await, Ok(vec![1]), "it was not answered yet, so the next life does");
        assert_eq!(feed.next().await, Some(FeedItem::Snapshot { number: 0, view: vec![] }));
        assert_eq!(feed.next().await, Some(FeedItem::Change { number: 1, news: 1 }));
        assert_eq!(feed.next().await, Some(FeedItem::Snapshot { number: 1, view: vec![1] }));
    });
}

#[test]
fn a_write_that_was_on_its_way_when_another_failed_at_once_may_still_fail() {
    story(|| async {
        let stage = Stage::new(Disk::manual(), 8);
        let before = stage.tally.ask(Keep(1));
        settle_down().await;
        stage.disk.next_write(NextWrite::Fails);
        let lost = stage.tally.ask(Keep(2));
        settle_down().await;
        stage.disk.settle(1, Outcome::Failed);
        assert!(matches!(before.await, Err(AskError::NotDurable { .. })));
        assert!(matches!(lost.await, Err(AskError::NotWritten { .. })));
        let all = stage.tally.ask(All);
        tokio::time::sleep(WHILE).await;
        assert!(stage.disk.settle(1, Outcome::Written), "it is handed over again");
        assert_eq!(all.await, Ok(vec![1]));
    });
}

#[test]
fn a_commit_that_fails_although_it_took_effect_is_tried_again_and_takes_effect_once() {
    story(|| async {
        let stage = Stage::new(Disk::manual(), 8);
        let mut feed = stage.tally.subscribe("test", 8).expect("it runs");
        assert_eq!(feed.next().await, Some(FeedItem::Snapshot { number: 0, view: vec![] }));
        let unsure = stage.tally.ask(Keep(1));
        settle_down().await;
        stage.disk.settle(1, Outcome::FailedButWritten);
        assert!(matches!(unsure.await, Err(AskError::NotDurable { .. })));
        tokio::time::sleep(WHILE).await;
        assert!(stage.disk.settle(1, Outcome::Written), "it is handed over again");
        assert_eq!(stage.tally.ask(All).await, Ok(vec![1]));
        assert_eq!(feed.next().await, Some(FeedItem::Change { number: 1, news: 1 }));
    });
}

// === Feeds ===

/// Reads the queued items without waiting.
fn drain(feed: &mut callboard_actors::shell::Subscription<u64, Vec<u64>>) -> Vec<FeedItem<u64, Vec<u64>>> {
    std::iter::from_fn(|| feed.try_next()).collect()
}

#[test]
fn a_dead_subscriber_costs_a_bounded_amount_however_often_the_machine_is_rebuilt_scl_01() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        let mut dead = stage.tally.subscribe("test", 4).expect("it runs");
        for number in 0..200 {
            assert!(stage.tally.ask(Stumble).await.is_err());
            assert!(stage.tally.ask(Keep(number)).await.is_ok());
        }
        let unread = drain(&mut dead);
        assert!(unread.len() <= 4, "{} items wait", unread.len());
        settle_down().await;
        let rest = drain(&mut dead);
        assert!(matches!(rest.last(), Some(FeedItem::Snapshot { number: 200, view }) if view.len() == 200));
    });
}

#[test]
fn a_subscriber_with_a_full_queue_gets_a_snapshot_after_a_rebuild_although_it_missed_no_change() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        let mut feed = stage.tally.subscribe("test", 2).expect("it runs");
        assert!(stage.tally.ask(Keep(1)).await.is_ok());
        assert!(stage.tally.ask(Stumble).await.is_err());
        assert_eq!(stage.tally.ask(All).await, Ok(vec![1]));
        assert_eq!(feed.next().await, Some(FeedItem::Snapshot { number: 0, view: vec![] }));
        assert_eq!(feed.next().await, Some(FeedItem::Change { number: 1, news: 1 }));
        assert_eq!(feed.next().await, Some(FeedItem::Snapshot { number: 1, view: vec![1] }));
    });
}

#[test]
fn a_subscriber_that_was_behind_when_the_actor_ended_is_told_how_much_it_missed() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        let mut feed = stage.tally.subscribe("test", 2).expect("it runs");
        for number in 1..=5 {
            assert!(stage.tally.ask(Keep(number)).await.is_ok());
        }
        stage.running.request_stop(StopMode::Stop);
        assert_eq!(stage.running.ended().await, Ending::Normal);
        assert_eq!(
            drain(&mut feed),
            [
                FeedItem::Snapshot { number: 0, view: vec![] },
                FeedItem::Change { number: 1, news: 1 },
                FeedItem::Lagged { missed: 4 }
            ]
        );
        assert_eq!(feed.next().await, None);
    });
}

// === The end ===

#[test]
fn a_stop_is_not_lost_while_the_machine_is_being_rebuilt_and_nothing_from_before_it_is() {
    for (waits, fails) in [(false, true), (true, false), (true, true)] {
        story(|| async move {
            let stage = Stage::new(Disk::manual(), 8);
            let kept = stage.tally.ask(Keep(1));
            settle_down().await;
            let crashed = stage.tally.ask(Stumble);
            let between = stage.tally.ask(All);
            stage.running.request_stop(StopMode::Detach);
            let after = stage.tally.ask(All);
            if waits {
                settle_down().await;
            }
            stage.disk.settle(1, if fails { Outcome::Failed } else { Outcome::Written });
            if fails {
                tokio::time::sleep(WHILE).await;
                assert!(stage.disk.settle(1, Outcome::Written), "it is handed over again");
            }
            assert_eq!(kept.await.is_ok(), !fails);
            assert!(crashed.await.is_err());
            assert_eq!(between.await, Ok(stage.disk.numbers()));
            assert!(matches!(after.await, Err(AskError::NotRunning { .. })));
            assert_eq!(stage.running.ended().await, Ending::Normal);
            assert_eq!(*stage.mischief.stops_seen.borrow(), [StopMode::Detach]);
        });
    }
}

#[test]
fn a_stop_that_crashes_is_asked_again_in_its_place_once_for_each_life() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        let parked: Vec<_> = [1, 2, 3].map(|number| stage.tally.ask(Await(number))).into();
        settle_down().await;
        stage.mischief.stop_panics.set(3);
        stage.running.request_stop(StopMode::Stop);
        assert_eq!(stage.running.ended().await, Ending::Normal);
        for question in parked {
            assert!(matches!(question.await, Err(AskError::NotRunning { .. })));
        }
        let seen = stage.mischief.inputs_seen.borrow();
        let life = ["resumed", "Await(Await(1))", "Await(Await(2))", "Await(Await(3))", "Stop"];
        assert_eq!(*seen, life.repeat(4));
    });
}

#[test]
fn what_is_asked_again_is_asked_in_order_before_the_stop_even_if_resuming_crashes() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        let parked: Vec<_> = [1, 2].map(|number| stage.tally.ask(Await(number))).into();
        settle_down().await;
        stage.mischief.inputs_seen.borrow_mut().clear();
        stage.mischief.stop_panics.set(1);
        stage.mischief.resume_panics.set(2);
        stage.running.request_stop(StopMode::Stop);
        assert_eq!(stage.running.ended().await, Ending::Normal);
        drop(parked);
        assert_eq!(
            *stage.mischief.inputs_seen.borrow(),
            ["Stop", "resumed", "resumed", "resumed", "Await(Await(1))", "Await(Await(2))", "Stop"]
        );
    });
}

#[test]
fn what_was_told_and_not_asked_is_finished_too_although_the_machine_crashed_meanwhile() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        assert!(stage.tally.tell(Fetch(1)).is_ok());
        assert!(stage.tally.notify(KeepLater(2, Duration::from_secs(1))).is_ok());
        assert!(stage.tally.ask(Stumble).await.is_err());
        assert_eq!(stage.tally.ask(Await(1)).await, Ok(()));
        assert_eq!(stage.tally.ask(Await(2)).await, Ok(()));
        assert_eq!(stage.tally.vitals().mailbox_depth, 0);
    });
}

#[test]
fn a_stop_during_the_pause_after_a_failed_load_is_heard() {
    story(|| async {
        let stage = Stage::new(Disk::default(), 8);
        (0..4).for_each(|_| stage.disk.next_load(NextLoad::Fails));
        let kept = stage.tally.ask(Keep(1));
        settle_down().await;
        stage.running.request_stop(StopMode::Stop);
        assert_eq!(kept.await, Ok(1), "it was there before the stop");
        assert_eq!(stage.running.ended().await, Ending::Normal);
        assert_eq!(stage.tally.vitals().mailbox_depth, 0);
    });
}

#[test]
fn a_store_that_never_answers_again_ends_the_actor_when_the_budget_is_spent() {
    story(|| async {
        let budget = RestartBudget { limit: 3, window: Duration::from_secs(60) };
        let stage = Stage::with(Disk::default(), 8, Settings { budget, ..Settings::default() });
        (0..9).for_each(|_| stage.disk.next_load(NextLoad::Fails));
        let kept = stage.tally.ask(Keep(1));
        assert!(matches!(stage.running.ended().await, Ending::BudgetSpent(_)));
        assert!(matches!(kept.await, Err(AskError::NotRunning { .. })));
        assert_eq!(stage.tally.vitals().mailbox_depth, 0);
    });
}

// === Slots and places in the mailbox ===

#[test]
fn killing_an_actor_gives_back_every_place_in_the_mailbox_wherever_its_messages_were() {
    story(|| async {
        let mut stage = Stage::new(Disk::manual(), 64);
        let behind_a_gate = stage.tally.ask(Keep(1));
        let parked = stage.tally.ask(Await(9));
        let calling = stage.tally.ask(Fetch(2));
        let sleeping = stage.tally.ask(KeepLater(3, Duration::from_secs(9)));
        settle_down().await;
        let in_the_mailbox = stage.tally.ask(All);
        assert!(stage.tally.tell(Keep(4)).is_ok());
        stage.running.kill();
        assert_eq!(stage.running.ended().await, Ending::Killed);
        for error in [
            behind_a_gate.await.map(drop),
            parked.await,
            calling.await.map(drop),
            sleeping.await.map(drop),
            in_the_mailbox.await.map(drop),
        ] {
            assert!(matches!(error, Err(AskError::NotRunning { .. })), "{error:?}");
        }
        assert_eq!(stage.tally.vitals().mailbox_depth, 0);
        stage.start_again();
        assert_eq!(stage.tally.ask(All).await, Ok(vec![1]), "what was handed over is on disk");
    });
}

#[test]
fn an_actor_that_is_killed_before_its_first_poll_leaves_its_slot_too() {
    story(|| async {
        let mut stage = Stage::new(Disk::default(), 8);
        let asked = stage.tally.ask(All);
        stage.running.kill();
        assert_eq!(stage.running.ended().await, Ending::Killed);
        assert!(asked.await.is_err());
        assert!(stage.tally.subscribe("test", 4).is_err());
        assert_eq!(stage.tally.vitals().mailbox_depth, 0);
        stage.start_again();
        assert_eq!(stage.tally.ask(Keep(1)).await, Ok(1));
    });
}

#[test]
fn the_slot_of_the_next_incarnation_is_not_taken_away_by_the_end_of_the_last_one() {
    story(|| async {
        let mut stage = Stage::new(Disk::default(), 8);
        assert_eq!(stage.tally.ask(Keep(1)).await, Ok(1));
        stage.running.kill();
        // The parent does not wait for the end before it starts the next life.
        stage.start_again();
        settle_down().await;
        assert_eq!(stage.tally.ask(All).await, Ok(vec![1]));
    });
}

#[test]
fn a_write_of_the_last_life_opens_no_gate_of_the_next_one() {
    story(|| async {
        let mut stage = Stage::new(Disk::manual(), 8);
        let later = stage.tally.ask(KeepLater(1, Duration::from_millis(5)));
        settle_down().await;
        // The parent starts the next life without requesting the last one to end, which then writes once more.
        let last = stage.another_life();
        let last = std::mem::replace(&mut stage.running, last);
        tokio::time::sleep(Duration::from_millis(9)).await;
        assert_eq!(stage.disk.waiting(), 1, "the last life wrote");
        let mut kept = stage.tally.ask(Keep(2));
        settle_down().await;
        stage.disk.settle(1, Outcome::Written);
        settle_down().await;
        assert!((&mut kept).now_or_never().is_none(), "its own write is still on its way");
        stage.disk.settle(1, Outcome::Written);
        assert!(kept.await.is_ok());
        last.kill();
        last.ended().await;
        assert!(later.await.is_err());
    });
}

#[test]
fn a_holder_of_the_last_life_cannot_stop_the_next_one() {
    story(|| async {
        let mut stage = Stage::new(Disk::default(), 8);
        stage.running.kill();
        stage.running.ended().await;
        let next = stage.another_life();
        let last = std::mem::replace(&mut stage.running, next);
        last.request_stop(StopMode::Stop);
        settle_down().await;
        assert_eq!(stage.tally.ask(All).await, Ok(vec![]));
        stage.running.request_stop(StopMode::Stop);
        assert_eq!(stage.running.ended().await, Ending::Normal);
    });
}
