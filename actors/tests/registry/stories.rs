//! Tests the guarantees of the registry, each in the story of a fault that other orchestrators had.

use std::time::Duration;

use callboard_actors::registry::{
    Deregistered, List, MemoryStore, Register, RegisterError, Registered, RegistryNews, Standing, WaitError,
    WaitForPlugin,
};
use callboard_actors::shell::{Database, FeedItem, StopMode};
use callboard_actors::vocabulary::SocketPath;
use futures_util::FutureExt;

use crate::stage::{Fixture, GRACE, Living, allocation, pass, plugin, register, settle_down, story, told};

const ZFS: &str = "csi-node/zfs";
const MONOLITH: [&str; 2] = ["csi-controller/zfs", "csi-node/zfs"];

// === Interleaved allocations ===

/// Every order in which three allocations can start and stop, each starting before it stops.
fn orders() -> Vec<Vec<(char, bool)>> {
    fn extend(order: &[(char, bool)], all: &mut Vec<Vec<(char, bool)>>) {
        if order.len() == 6 {
            all.push(order.to_vec());
            return;
        }
        for id in ['a', 'b', 'c'] {
            let seen = order.iter().filter(|(other, _)| *other == id).count();
            if seen < 2 {
                extend(&[order, &[(id, seen == 0)]].concat(), all);
            }
        }
    }
    let mut all = Vec::new();
    extend(&[], &mut all);
    all
}

/// Sends one start or stop, and records it in the plain list of living allocations, oldest first.
async fn play(fixture: &Fixture, alive: &mut Vec<String>, (id, starts): (char, bool)) {
    let id = id.to_string();
    if starts {
        assert_eq!(fixture.register(&id, &[ZFS]).await, Registered::New);
        alive.push(id);
    } else {
        assert!(matches!(fixture.deregister(&id, &[ZFS]).await, Deregistered::Removed(_)));
        alive.retain(|other| *other != id);
    }
}

#[test]
fn reg_01_the_active_one_is_the_newest_that_lives_in_every_order_of_starts_and_stops() {
    let orders = orders();
    assert_eq!(orders.len(), 90);
    story(|| async {
        for order in &orders {
            let fixture = Fixture::on(MemoryStore::default());
            let mut alive = Vec::new();
            for event in order {
                play(&fixture, &mut alive, *event).await;
                assert_eq!(fixture.active(ZFS).await.as_ref(), alive.last(), "{order:?} at {event:?}");
                assert_eq!(fixture.listed().await, alive);
            }
            fixture.running.kill();
        }
    });
}

#[test]
fn reg_01_a_restart_anywhere_in_between_keeps_the_order_whichever_comes_back_first() {
    story(|| async {
        for order in orders() {
            for restart_after in 1..order.len() {
                let store = MemoryStore::default();
                let mut fixture = Fixture::on(store.clone());
                let mut alive = Vec::new();
                for event in &order[..restart_after] {
                    play(&fixture, &mut alive, *event).await;
                }
                fixture = fixture.next_run(&store).await;
                assert_eq!(fixture.active(ZFS).await, None, "none is confirmed yet");
                // They come back in the wrong order: the newest first.
                for (place, id) in alive.iter().enumerate().rev() {
                    fixture.register(id, &[ZFS]).await;
                    let newest = alive.last().filter(|_| place < alive.len());
                    assert_eq!(fixture.active(ZFS).await.as_ref(), newest, "{order:?}, {id} comes back");
                }
                assert_eq!(fixture.listed().await, alive, "{order:?} restarted after {restart_after}");
                for event in &order[restart_after..] {
                    play(&fixture, &mut alive, *event).await;
                    assert_eq!(fixture.active(ZFS).await.as_ref(), alive.last(), "{order:?} at {event:?}");
                }
                fixture.running.kill();
            }
        }
    });
}

#[test]
fn reg_02_a_monolith_leaves_as_a_whole() {
    story(|| async {
        let fixture = Fixture::on(MemoryStore::default());
        let mut feed = fixture.subscribe().await;
        fixture.register("m", &MONOLITH).await;
        assert_eq!(
            told(&mut feed),
            ["m came", "m came", "csi-controller/zfs: none -> m", "csi-node/zfs: none -> m"],
            "registrations first, then who is active"
        );
        let gone = fixture.deregister("m", &MONOLITH).await;
        assert_eq!(gone, Deregistered::Removed(MONOLITH.map(plugin).into()));
        assert!(fixture.listed().await.is_empty());
        assert_eq!(told(&mut feed).len(), 4);
    });
}

#[test]
fn reg_03_a_deregistration_at_any_moment_of_a_life_that_was_cut_short_is_harmless() {
    story(|| async {
        for registered in [false, true] {
            for times in 1..4 {
                let fixture = Fixture::on(MemoryStore::default());
                let mut feed = fixture.subscribe().await;
                if registered {
                    fixture.register("a", &MONOLITH).await;
                }
                for number in 0..times {
                    let removed = fixture.deregister("a", &MONOLITH).await;
                    let is_first = registered && number == 0;
                    assert_eq!(matches!(removed, Deregistered::Removed(_)), is_first, "{removed:?}");
                }
                assert_eq!(told(&mut feed).len(), if registered { 8 } else { 0 });
                assert_eq!(fixture.registry.vitals().crashes, 0);
            }
        }
    });
}

#[test]
fn reg_04_removing_the_old_one_twice_is_told_once_and_names_the_old_one() {
    story(|| async {
        let fixture = Fixture::on(MemoryStore::default());
        fixture.register("old", &[ZFS]).await;
        fixture.register("new", &[ZFS]).await;
        let mut feed = fixture.subscribe().await;
        fixture.deregister("old", &[ZFS]).await;
        assert_eq!(fixture.deregister("old", &[ZFS]).await, Deregistered::NotRegistered);
        assert_eq!(told(&mut feed), ["old left: Deregistered"]);
    });
}

#[test]
fn reg_05_a_takeover_is_told_in_the_turn_in_which_the_active_one_leaves() {
    story(|| async {
        let fixture = Fixture::on(MemoryStore::default());
        fixture.register("a", &[ZFS]).await;
        fixture.register("b", &[ZFS]).await;
        let mut feed = fixture.subscribe().await;
        let before = fixture.settings.clock.now();
        fixture.deregister("b", &[ZFS]).await;
        // It was never fit, so it was not given out and keeps its generation (R1d).
        assert_eq!(told(&mut feed), ["b left: Deregistered", "csi-node/zfs: b -> a"]);
        assert_eq!(fixture.settings.clock.now(), before, "no time has passed");
        let awaited = fixture.registry.ask(WaitForPlugin { plugin: plugin(ZFS), within: Duration::ZERO });
        assert_eq!(awaited.await.unwrap().unwrap().registration.allocation, allocation("a"));
    });
}

#[test]
fn reg_06_new_contents_are_told_with_a_new_generation_and_equal_ones_are_not() {
    story(|| async {
        let fixture = Fixture::on(MemoryStore::default());
        fixture.register("a", &[ZFS]).await;
        let before = fixture.describe(ZFS).await.active.expect("a serves it");
        let mut feed = fixture.subscribe().await;
        assert_eq!(fixture.register("a", &[ZFS]).await, Registered::Unchanged);
        assert_eq!(told(&mut feed), [""; 0]);

        let moved = Register { socket: SocketPath::new("/run/a/2.sock").unwrap(), ..register("a", &[ZFS]) };
        assert_eq!(fixture.registry.ask(moved.clone()).await.unwrap(), Ok(Registered::Updated));
        assert_eq!(told(&mut feed), ["a changed", "csi-node/zfs: a -> a"]);
        let after = fixture.describe(ZFS).await.active.expect("a serves it");
        assert_eq!(after.registration.socket, moved.socket, "the next call reaches the new socket");
        assert!(after.generation > before.generation);
    });
}

#[test]
fn reg_08_a_late_deregistration_of_the_old_one_leaves_the_new_one_alone_however_late() {
    story(|| async {
        for delay in [0, 1, 59, 61, 3_600] {
            let fixture = Fixture::on(MemoryStore::default());
            fixture.register("old", &[ZFS]).await;
            fixture.register("new", &[ZFS]).await;
            let mut feed = fixture.subscribe().await;
            pass(delay).await;
            fixture.deregister("old", &[ZFS]).await;
            assert_eq!(fixture.active(ZFS).await.as_deref(), Some("new"));
            assert_eq!(told(&mut feed), ["old left: Deregistered"]);
        }
    });
}

// === After a restart ===

#[test]
fn reg_10_who_has_no_owner_any_more_is_gone_after_the_grace_and_not_before() {
    story(|| async {
        let store = MemoryStore::default();
        let fixture = Fixture::on(store.clone());
        fixture.register("renamed", &["csi-node/old-name"]).await;
        fixture.register("alive", &[ZFS]).await;
        let fixture = fixture.next_run(&store).await;
        let mut feed = fixture.subscribe().await;
        fixture.register("alive", &[ZFS]).await;
        told(&mut feed);
        tokio::time::sleep(GRACE - Duration::from_secs(1)).await;
        assert_eq!(fixture.listed().await, ["renamed", "alive"]);
        pass(2).await;
        assert_eq!(fixture.listed().await, ["alive"]);
        assert_eq!(told(&mut feed), ["renamed left: NotConfirmed"]);
        let fixture = fixture.next_run(&store).await;
        assert_eq!(fixture.listed().await, ["alive"], "it is gone from the store too");
    });
}

#[test]
fn reg_10_crashes_and_failed_writes_do_not_prolong_the_grace() {
    use callboard_actors::persister::Persister;
    use callboard_actors::registry::DurableStore;
    story(|| async {
        let disk = crate::disk::Disk::default();
        let directory = tempfile::tempdir().unwrap();
        let open = async || {
            let persister: Persister = disk.open(directory.path()).await.unwrap();
            let notices = callboard_actors::shell::Notices::default();
            (Fixture::on(DurableStore::new(&Database::opened(persister.clone(), notices))), persister)
        };
        let (fixture, persister) = open().await;
        fixture.register("gone", &[ZFS]).await;
        fixture.running.kill();
        persister.close().await.unwrap();
        drop(persister);

        let (fixture, _persister) = open().await;
        for number in 0..9 {
            pass(7).await;
            if number < 8 {
                disk.fail(crate::disk::Fault::Writes(rustix::io::Errno::NOSPC));
            }
            let who = format!("b{number}");
            let refused = fixture.registry.ask(register(&who, &["csi-node/nfs"])).await;
            assert_eq!(refused.is_err(), number < 8, "{refused:?}");
            disk.mend();
        }
        let listed = fixture.listed().await;
        assert_eq!(listed.len(), 9, "the grace counts from the start of the host: {listed:?}");
        assert!(!listed.contains(&"gone".to_owned()), "{listed:?}");
    });
}

#[test]
fn res_01_not_yet_is_said_with_its_reason_and_who_waits_gets_the_plugin_that_comes_late() {
    story(|| async {
        let store = MemoryStore::default();
        let fixture = Fixture::on(store.clone());
        fixture.register("a", &[ZFS]).await;
        let fixture = fixture.next_run(&store).await;
        let wait = |key, seconds| {
            let within = Duration::from_secs(seconds);
            fixture.registry.ask(WaitForPlugin { plugin: plugin(key), within })
        };
        let patient = wait(ZFS, 30);
        let hasty = wait(ZFS, 10);
        let stranger = wait("csi-node/nfs", 10);
        pass(20).await;
        assert!(matches!(
            hasty.await.unwrap(),
            Err(WaitError::NotConfirmed { allocations, .. }) if allocations == [allocation("a")]
        ));
        assert!(matches!(stranger.await.unwrap(), Err(WaitError::NotRegistered { .. })));
        fixture.register("a", &[ZFS]).await;
        let active = patient.now_or_never().expect("at once").unwrap().expect("it is there");
        assert_eq!(active.registration.allocation, allocation("a"));
    });
}

#[test]
fn res_06_of_two_restored_plugins_the_dead_one_is_never_routed_to_and_the_living_one_is_at_once() {
    for dead in ["a", "b"] {
        let alive = if dead == "a" { "b" } else { "a" };
        story(|| async move {
            let store = MemoryStore::default();
            let fixture = Fixture::on(store.clone());
            fixture.register("a", &[ZFS]).await;
            fixture.register("b", &[ZFS]).await;
            fixture.living.answers(alive);
            let fixture = fixture.next_run(&store).await;
            let mut feed = fixture.subscribe().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(fixture.active(ZFS).await.as_deref(), Some(alive), "proven at once");
            for _ in 0..GRACE.as_secs() + 1 {
                pass(1).await;
                assert_eq!(fixture.active(ZFS).await.as_deref(), Some(alive));
            }
            assert_eq!(fixture.listed().await, [alive]);
            assert_eq!(
                told(&mut feed),
                [
                    format!("{alive} changed"),
                    format!("csi-node/zfs: none -> {alive}"),
                    format!("{dead} left: NotConfirmed")
                ]
            );
        });
    }
}

// === Scale ===

#[test]
fn scl_01_a_dead_subscriber_and_a_hundred_thousand_updates_cost_bounded_memory_and_no_other_misses_any() {
    const UPDATES: usize = 100_000;
    const CAPACITY: usize = 16;
    story(|| async {
        let fixture = Fixture::on(MemoryStore::default());
        let mut dead = fixture.registry.subscribe("test", CAPACITY).expect("it runs");
        let mut alive = fixture.subscribe().await;
        let mut read = 0;
        for number in 0..UPDATES {
            let version = Some(number.to_string().into());
            let asked = fixture.registry.ask(Register { version, ..register("a", &[ZFS]) });
            assert!(asked.await.unwrap().is_ok());
            while let Some(item) = alive.try_next() {
                read += 1;
                assert!(matches!(item, FeedItem::Change { number, .. } if number == read));
            }
        }
        assert_eq!(read, 2 * UPDATES as u64, "each update and each change of generation");
        assert_eq!(fixture.registry.vitals().mailbox_depth, 0);
        let unread: Vec<_> = std::iter::from_fn(|| dead.try_next()).collect();
        assert_eq!(unread.len(), CAPACITY, "all that the dead one cost");
        settle_down().await;
        let rest: Vec<_> = std::iter::from_fn(|| dead.try_next()).collect();
        let missed = read + 1 - CAPACITY as u64;
        assert!(
            matches!(&rest[..], [FeedItem::Lagged { missed: told }, FeedItem::Snapshot { number, view }]
                if *told == missed && *number == read && view.entries.len() == 1),
            "{rest:?}"
        );
    });
}

#[test]
fn scl_07_a_registry_with_room_for_one_message_answers_everyone_whose_deadline_passes_at_once() {
    story(|| async {
        let fixture = Fixture::with(MemoryStore::default(), 1, Living::default());
        let mut waiting = Vec::new();
        for _ in 0..200 {
            let within = Duration::from_secs(9);
            waiting.push(fixture.registry.ask(WaitForPlugin { plugin: plugin(ZFS), within }));
            while fixture.registry.vitals().mailbox_depth > 0 {
                tokio::task::yield_now().await;
            }
        }
        pass(10).await;
        let after = fixture.settings.clock.now();
        for waiter in waiting {
            let answer = waiter.await.unwrap();
            assert!(matches!(answer, Err(WaitError::NotRegistered { .. })), "{answer:?}");
        }
        assert_eq!(fixture.settings.clock.now(), after, "all were answered already");
    });
}

#[test]
fn scl_08_many_threads_that_register_and_deregister_at_once_leave_one_consistent_order() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 50;
    let (hand_out, handed_out) = std::sync::mpsc::channel();
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let home = std::thread::spawn(move || {
        actix::System::new().block_on(async move {
            let fixture = Fixture::on(MemoryStore::default());
            let mut feed = fixture.registry.subscribe("test", usize::MAX).expect("it runs");
            hand_out.send(fixture.registry.clone()).unwrap();
            finished.await.unwrap();
            let entries = fixture.registry.ask(List).await.unwrap();
            fixture.running.request_stop(StopMode::Stop);
            let mut folded = Vec::new();
            let mut number = 0;
            while let Some(item) = feed.next().await {
                let FeedItem::Change { number: next, news } = item else { continue };
                number += 1;
                assert_eq!(next, number);
                match news {
                    RegistryNews::Registered(entry) => folded.push(entry),
                    RegistryNews::Deregistered(entry, _) => {
                        folded.retain(|other| other.number != entry.number);
                    }
                    RegistryNews::Updated(entry) | RegistryNews::Renewed(entry) => {
                        let known = folded.iter_mut().find(|other| other.number == entry.number);
                        *known.expect("it was registered") = entry;
                    }
                    RegistryNews::ActiveChanged { .. } => {}
                }
            }
            assert_eq!(folded, entries, "the news tell the same as the list");
            entries
        })
    });
    let registry: callboard_actors::shell::Address<_> = handed_out.recv().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let registry = registry.clone();
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    for round in 0..ROUNDS {
                        let id = format!("{thread}-{round}");
                        let answer = registry.ask(register(&id, &MONOLITH)).await.unwrap();
                        assert_eq!(answer, Ok(Registered::New));
                        if round + 1 < ROUNDS {
                            let gone = registry.ask(crate::stage::deregister(&id, &MONOLITH)).await.unwrap();
                            assert!(matches!(gone, Deregistered::Removed(both) if both.len() == 2));
                        }
                    }
                });
            });
        }
    });
    finish.send(()).unwrap();
    let entries = home.join().unwrap();
    assert_eq!(entries.len(), 2 * THREADS, "the last monolith of each thread stays");
    assert!(entries.iter().all(|entry| entry.standing == Standing::Confirmed));
}

// === Bad input ===

#[test]
fn r9_options_are_taken_up_to_the_last_byte_that_they_may_have() {
    story(|| async {
        let fixture = Fixture::on(MemoryStore::default());
        let with_bytes = |bytes: usize| {
            let options = [("key".to_owned(), "v".repeat(bytes - "key".len()))].into();
            Register { options: std::sync::Arc::new(options), ..register("a", &[ZFS]) }
        };
        assert!(fixture.registry.ask(with_bytes(4_096)).await.unwrap().is_ok());
        assert!(fixture.registry.ask(with_bytes(4_097)).await.unwrap().is_err());
    });
}

#[test]
fn r9_what_is_malformed_is_refused_and_nothing_changes() {
    story(|| async {
        let fixture = Fixture::on(MemoryStore::default());
        let mut feed = fixture.subscribe().await;
        let nothing = register("a", &[]);
        let twice = register("a", &[ZFS, "csi-controller/zfs", ZFS]);
        let options = (0..65).map(|number| (number.to_string(), String::new())).collect();
        let too_many = Register { options: std::sync::Arc::new(options), ..register("a", &[ZFS]) };
        let long = [("key".to_owned(), "v".repeat(4_096))].into();
        let too_long = Register { options: std::sync::Arc::new(long), ..register("a", &[ZFS]) };
        for (message, said) in [
            (nothing, "registers no plugin"),
            (twice, "twice"),
            (too_many, "65 options"),
            (too_long, "4099 bytes"),
        ] {
            let refused: RegisterError = fixture.registry.ask(message).await.unwrap().unwrap_err();
            assert!(refused.to_string().contains(said), "{refused}");
        }
        assert_eq!(told(&mut feed), [""; 0]);
        assert!(fixture.listed().await.is_empty());
    });
}
