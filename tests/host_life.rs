//! Tests allocations of one plugin that start, stop and replace each other on a whole host, with real plugin processes.

mod support;

use std::collections::BTreeMap;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard::actors::allocations::{AdoptAllocation, AllocationsNews};
use callboard::actors::instances::{CheckError, CheckNow, DispenseError, InstancesNews};
use callboard::actors::inventory::{AwaitFirst, InventoryNews, TakeInventory};
use callboard::actors::registry::{
    Departure, Deregister, Deregistered, InactiveBecause, LeaveCause, List, Register, Registered,
    RegistryNews, RegistryOptions, Standing, WaitError, WaitForPlugin,
};
use callboard::actors::vocabulary::{Health, PluginKey, Role, SocketPath};
use callboard::host::Host;
use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use rustix::process::Signal;

use support::{
    LONG, Stage, Task, Watch, controller, describe, dispense, id, node, order, until, until_active,
};

/// Starts a task and waits until it is registered.
async fn sign_in(task: &mut Task, host: &Host, plugin: &PluginKey) {
    task.start(host).await;
    registered(host, plugin, task).await;
}

async fn registered(host: &Host, plugin: &PluginKey, task: &Task) {
    until("registered", async || {
        let entries = host.registry().ask(List).await.unwrap();
        let is_it = |told: &callboard::actors::registry::Entry| {
            told.registration.plugin == *plugin
                && told.registration.allocation == task.spec.allocation
                && told.standing == Standing::Confirmed
        };
        entries.iter().any(is_it)
    })
    .await;
}

// === The active registration ===

/// All orders of starting three allocations and stopping two of them in which none is stopped before it is started.
fn orders_of_life() -> Vec<Vec<&'static str>> {
    let events = ["+a", "+b", "-a", "+c", "-c"];
    let mut orders = vec![Vec::new()];
    for _ in events {
        let longer = orders.iter().flat_map(|order: &Vec<&str>| {
            let can_follow = |event: &&str| {
                let started = format!("+{}", &event[1..]);
                !order.contains(event) && (event.starts_with('+') || order.contains(&started.as_str()))
            };
            let next: Vec<&str> = events.into_iter().filter(can_follow).collect();
            next.into_iter().map(|event| [order.clone(), vec![event]].concat()).collect::<Vec<_>>()
        });
        orders = longer.collect();
    }
    orders
}

#[actix::test]
async fn in_every_order_of_coming_and_going_the_newest_living_one_is_active_reg_01() {
    let stage = Stage::new();
    let host = stage.host().await;
    let orders = orders_of_life();
    assert_eq!(orders.len(), 30);
    let lives = orders.iter().enumerate().map(|(number, order)| live(&stage, &host, number, order));
    // A few at a time: many interleaved plugins, but few enough processes for a small machine.
    stream::iter(lives).buffer_unordered(6).collect::<()>().await;
    host.stop().await;
    assert_eq!(stage.sockets(), Vec::<std::path::PathBuf>::new());
}

async fn live(stage: &Stage, host: &Host, number: usize, events: &[&str]) {
    let name = format!("plugin-{number}");
    let plugin = node(&name);
    let mut tasks: BTreeMap<&str, Task> = BTreeMap::new();
    let mut alive: Vec<String> = Vec::new();
    for event in events {
        let (sign, who) = event.split_at(1);
        let allocation = format!("{name}-{who}");
        if sign == "+" {
            let mut task = Task::new(stage, &allocation, &name, Role::Node);
            sign_in(&mut task, host, &plugin).await;
            tasks.insert(who, task);
            alive.push(allocation);
        } else {
            let stopped = tasks.get_mut(who).unwrap().stop(host).await;
            assert!(stopped.deregistered && stopped.remarks.is_empty(), "{stopped:?}");
            alive.retain(|living| *living != allocation);
        }
        let newest_first: Vec<String> = alive.iter().rev().cloned().collect();
        if let Some(newest) = newest_first.first() {
            until_active(host, &plugin, newest).await;
        }
        let (active, standby) = order(host, &plugin).await;
        let told: Vec<String> = active.into_iter().chain(standby).collect();
        assert_eq!(told, newest_first, "after {event} of {events:?}");
        if let Some(newest) = newest_first.first() {
            let dispensed = dispense(host, &plugin, LONG).await.unwrap();
            assert_eq!(dispensed.allocation.as_str(), newest, "after {event} of {events:?}");
        }
    }
    for task in tasks.values_mut() {
        if alive.contains(&task.spec.allocation.as_str().to_owned()) {
            task.stop(host).await;
        }
    }
}

#[actix::test]
async fn a_monolith_comes_and_goes_with_both_its_halves_reg_02() {
    let stage = Stage::new();
    let host = stage.host().await;
    let (halves, mut task) =
        ([controller("zfs"), node("zfs")], Task::new(&stage, "a", "zfs", Role::Monolith));
    let mut registry = Watch::on(host.registry());
    sign_in(&mut task, &host, &halves[1]).await;
    for half in &halves {
        dispense(&host, half, LONG).await.unwrap();
    }
    registry.so_far();
    assert!(task.stop(&host).await.deregistered);
    let left = registry.so_far();
    assert!(
        matches!(
            &left[..],
            [
                RegistryNews::Deregistered(..),
                RegistryNews::Deregistered(..),
                RegistryNews::ActiveChanged { to: None, .. },
                RegistryNews::ActiveChanged { to: None, .. },
            ]
        ),
        "{left:#?}"
    );
    host.stop().await;
}

#[actix::test]
async fn a_plugin_that_is_killed_at_any_moment_of_its_start_harms_no_other_reg_03() {
    let stage = Stage::new();
    let host = stage.host().await;
    let mut task = Task::new(&stage, "a", "zfs", Role::Monolith);
    for milliseconds in [0, 1, 2, 5, 10, 20, 40, 60, 80, 100, 150, 200, 300] {
        task.start(&host).await;
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        task.kill(&host).await;
        // Ending a task that has ended is as harmless as ending a task that was never registered (REG-04).
        task.say_exited(&host, "signal 9").await;
    }
    sign_in(&mut task, &host, &node("zfs")).await;
    dispense(&host, &node("zfs"), LONG).await.unwrap();
    task.stop(&host).await;
    assert_eq!(host.notices().recent(), [], "nothing crashed and nothing was lost");
    let ended = host.stop().await;
    assert!(
        ended
            .children
            .iter()
            .all(|child| child.ending == callboard::actors::supervisor::StopOutcome::Stopped)
    );
}

#[actix::test]
async fn when_the_active_one_is_killed_the_older_one_takes_over_and_is_handed_out_reg_05() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let (mut a, mut b) =
        (Task::new(&stage, "a", "zfs", Role::Node), Task::new(&stage, "b", "zfs", Role::Node));
    sign_in(&mut a, &host, &plugin).await;
    dispense(&host, &plugin, LONG).await.unwrap();
    sign_in(&mut b, &host, &plugin).await;
    until_active(&host, &plugin, "b").await;
    let before = dispense(&host, &plugin, Duration::ZERO).await.unwrap();
    assert_eq!(before.allocation, id("b"));
    let mut registry = Watch::on(host.registry());
    b.kill(&host).await;
    let (from, to) = registry
        .until("the takeover", |news| match news {
            RegistryNews::ActiveChanged { from: Some(from), to: Some(to), .. }
                if from.registration.allocation != to.registration.allocation =>
            {
                Some((from.clone(), to.clone()))
            }
            _ => None,
        })
        .await;
    assert_eq!((&from.registration.allocation, &to.registration.allocation), (&id("b"), &id("a")));
    assert_ne!(to.generation, before.generation);
    let after = dispense(&host, &plugin, Duration::from_secs(10)).await.unwrap();
    assert_eq!((after.allocation, after.generation), (id("a"), to.generation));

    // The younger one returns. It failed while it was active: it stands by for its calm time, and takes over when it is needed.
    sign_in(&mut b, &host, &plugin).await;
    let waits = async || {
        let standby = describe(&host, &plugin).await.standby;
        standby.iter().any(|standby| matches!(standby.inactive_because, InactiveBecause::Calm { .. }))
    };
    until("it is healthy, and waits", waits).await;
    assert_eq!(order(&host, &plugin).await, (Some("a".to_owned()), vec!["b".to_owned()]));
    a.stop(&host).await;
    let dispensed = dispense(&host, &plugin, Duration::from_secs(10)).await;
    assert_eq!(dispensed.unwrap().allocation, id("b"), "asked right after the stop");
    b.stop(&host).await;
    host.stop().await;
}

fn register(plugin: &PluginKey, allocation: &str, socket: &SocketPath) -> Register {
    Register {
        policy: None,
        plugins: vec![plugin.clone()],
        allocation: id(allocation),
        socket: socket.clone(),
        provider: None,
        version: None,
        options: Arc::default(),
    }
}

#[actix::test]
async fn who_registers_again_with_another_socket_is_called_there_reg_06() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let mut processes = Vec::new();
    for version in ["1.0.0", "2.0.0"] {
        let task = Task::new(&stage, version, "zfs", Role::Node);
        let mut task = task.with(&[&format!("--plugin-version={version}")]);
        let context = task.prepare(&host).await.unwrap();
        task.spawn(&context);
        processes.push((task, context.socket, version));
    }
    let mut last = None;
    for (task, socket, version) in &processes {
        let registered = host.registry().ask(register(&plugin, "x", socket)).await.unwrap().unwrap();
        assert_eq!(registered, if last.is_none() { Registered::New } else { Registered::Updated });
        let dispensed = dispense(&host, &plugin, LONG).await.unwrap();
        let told = (&dispensed.socket, &*dispensed.fingerprint.identity.version);
        assert_eq!(told, (socket, *version));
        assert!(last < Some(dispensed.generation));
        assert!(task.calls("NodeGetInfo") > 0);
        last = Some(dispensed.generation);
    }
    let mut registry = Watch::on(host.registry());
    let again = host.registry().ask(register(&plugin, "x", &processes[1].1)).await.unwrap();
    assert_eq!(again, Ok(Registered::Unchanged));
    assert!(registry.so_far().is_empty(), "the same again is no news");
    host.stop().await;
}

#[actix::test]
async fn a_plugin_that_was_restarted_fifty_times_is_probed_once_a_round_and_leaves_once_reg_07() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let mut task = Task::new(&stage, "a", "zfs", Role::Node);
    sign_in(&mut task, &host, &plugin).await;
    for _ in 0..50 {
        task.kill(&host).await;
        sign_in(&mut task, &host, &plugin).await;
    }
    dispense(&host, &plugin, LONG).await.unwrap();
    // One prober probes every 450 to 550 ms, plus the time that each call takes on a busy machine.
    let before = task.calls("Probe");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let probes = task.calls("Probe") - before;
    assert!((4..=12).contains(&probes), "{probes} probes in 5 s");
    let mut registry = Watch::on(host.registry());
    task.stop(&host).await;
    let left = registry.so_far();
    let removals = left.iter().filter(|news| matches!(news, RegistryNews::Deregistered(..))).count();
    assert_eq!(removals, 1, "{left:?}");
    host.stop().await;
}

#[actix::test]
async fn a_late_deregistration_of_the_old_one_leaves_the_new_one_as_it_is_reg_08() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let (mut old, mut new) =
        (Task::new(&stage, "old", "zfs", Role::Node), Task::new(&stage, "new", "zfs", Role::Node));
    sign_in(&mut old, &host, &plugin).await;
    old.signal(Signal::KILL);
    old.end().await;
    sign_in(&mut new, &host, &plugin).await;
    let before = dispense(&host, &plugin, LONG).await.unwrap();
    let mut registry = Watch::on(host.registry());
    let mut instances = Watch::on(host.instances());
    old.say_exited(&host, "signal 9").await;
    let cause = LeaveCause::Stopped;
    let deregistration = Deregister { plugins: vec![plugin.clone()], allocation: id("old"), cause };
    until("the deregistration has arrived", async || {
        host.registry().ask(deregistration.clone()).await.unwrap() == Deregistered::NotRegistered
    })
    .await;
    let told = registry.so_far();
    assert!(
        matches!(&told[..], [RegistryNews::Deregistered(entry, Departure::Failed)]
            if entry.registration.allocation == id("old")),
        "{told:?}"
    );
    let after = dispense(&host, &plugin, Duration::ZERO).await.unwrap();
    assert_eq!((after.allocation, after.generation), (id("new"), before.generation));
    let ended = |news: &InstancesNews| matches!(news, InstancesNews::Left(_));
    assert!(!instances.so_far().iter().any(ended));
    new.stop(&host).await;
    host.stop().await;
}

#[actix::test]
async fn a_plugin_that_listens_where_a_dead_socket_lay_for_long_is_registered_soon_reg_10() {
    let stage = Stage::new();
    let host = stage.host().await;
    let mut task = Task::new(&stage, "a", "zfs", Role::Node).with(&["--listen-after=5s"]);
    let context = task.prepare(&host).await.unwrap();
    drop(UnixListener::bind(context.socket.as_path()).unwrap());
    task.spawn(&context);
    task.say_started(&host).await;
    until("a fresh socket", async || UnixStream::connect(context.socket.as_path()).is_ok()).await;
    let born = Instant::now();
    let wait = WaitForPlugin { plugin: node("zfs"), within: LONG };
    host.registry().ask(wait).await.unwrap().unwrap();
    assert!(born.elapsed() < Duration::from_secs(1), "{:?}", born.elapsed());
    task.stop(&host).await;
    host.stop().await;
}

// === Across a restart of the host ===

#[actix::test]
async fn a_plugin_that_comes_late_after_a_restart_is_not_yet_and_never_gone_res_01() {
    let stage = Stage::new();
    let plugin = node("zfs");
    let mut task = Task::new(&stage, "a", "zfs", Role::Node);
    let host = stage.host().await;
    sign_in(&mut task, &host, &plugin).await;
    let number = host.registry().ask(List).await.unwrap()[0].number;
    host.detach().await;
    task.signal(Signal::KILL);
    task.end().await;

    let grace = RegistryOptions { restore_grace: LONG, ..RegistryOptions::default() };
    let host = stage.builder().registry(grace).start().await.unwrap();
    let mut registry = Watch::on(host.registry());
    let mut inventory = Watch::on(host.inventory());
    task = task.with(&["--listen-after=4s"]);
    task.start(&host).await;
    let not_yet = dispense(&host, &plugin, Duration::from_millis(200)).await.unwrap_err();
    assert!(matches!(not_yet, DispenseError::NotServed { .. }), "{not_yet}");
    let wait = |within| host.registry().ask(WaitForPlugin { plugin: plugin.clone(), within });
    let not_yet = wait(Duration::from_millis(200)).await.unwrap().unwrap_err();
    assert!(
        matches!(&not_yet, WaitError::NotConfirmed { allocations, .. } if *allocations == [id("a")]),
        "{not_yet}"
    );
    // A waiting caller receives its answer when the plugin arrives.
    let (waited, dispensed) = tokio::join!(wait(LONG), dispense(&host, &plugin, LONG));
    assert_eq!(waited.unwrap().unwrap().registration.allocation, id("a"));
    assert_eq!(dispensed.unwrap().allocation, id("a"));
    let entries = host.registry().ask(List).await.unwrap();
    assert_eq!((entries.len(), entries[0].number), (1, number), "it is the same registration");
    let told = registry.so_far();
    assert!(!told.iter().any(|news| matches!(news, RegistryNews::Deregistered(..))), "{told:?}");
    host.inventory().ask(AwaitFirst).await.unwrap();
    let told = inventory.so_far();
    assert!(!told.iter().any(|news| matches!(news, InventoryNews::Removed(_))), "{told:?}");
    task.stop(&host).await;
    host.stop().await;
}

#[actix::test]
async fn what_is_restored_serves_if_it_answers_and_leaves_if_no_owner_comes_back_res_06() {
    let stage = Stage::new();
    let plugin = node("zfs");
    let (mut alive, mut dead) =
        (Task::new(&stage, "alive", "zfs", Role::Node), Task::new(&stage, "dead", "zfs", Role::Node));
    let host = stage.host().await;
    sign_in(&mut alive, &host, &plugin).await;
    sign_in(&mut dead, &host, &plugin).await;
    let generation = describe(&host, &plugin).await.active.unwrap().generation;
    host.detach().await;
    dead.signal(Signal::KILL);
    dead.end().await;

    let host = stage.host().await;
    let mut registry = Watch::on(host.registry());
    let dispensed = dispense(&host, &plugin, LONG).await.unwrap();
    assert_eq!(dispensed.allocation, id("alive"), "the living one, though the dead one was newer");
    assert!(dispensed.generation > generation, "generations go on growing");
    let described = describe(&host, &plugin).await;
    let provisional: Vec<_> =
        described.provisional.iter().map(|entry| &entry.registration.allocation).collect();
    assert_eq!(provisional, [&id("dead")], "within its grace it is known, and not routed to");
    let left = registry
        .until("the end of the grace", |news| match news {
            RegistryNews::Deregistered(entry, Departure::NotConfirmed) => Some(entry.clone()),
            RegistryNews::ActiveChanged { to: Some(to), .. } => {
                assert_eq!(to.registration.allocation, id("alive"));
                None
            }
            _ => None,
        })
        .await;
    assert_eq!(left.registration.allocation, id("dead"));
    assert_eq!(host.registry().ask(List).await.unwrap().len(), 1, "nothing is left of it");
    host.stop().await;
}

#[actix::test]
async fn tasks_that_outlived_their_host_are_adopted_in_any_order_and_keep_theirs_r2_s3() {
    let stage = Stage::new();
    let plugin = node("zfs");
    let mut tasks = ["a", "b", "c"].map(|name| Task::new(&stage, name, "zfs", Role::Node));
    let host = stage.host().await;
    for task in &mut tasks {
        sign_in(task, &host, &plugin).await;
    }
    until_active(&host, &plugin, "c").await;
    let before = order(&host, &plugin).await;
    host.detach().await;

    let host = stage.host().await;
    for task in [&tasks[2], &tasks[0], &tasks[1]] {
        host.allocations().ask(AdoptAllocation { spec: task.spec.clone() }).await.unwrap().unwrap();
        task.say_started(&host).await;
        registered(&host, &plugin, task).await;
    }
    until_active(&host, &plugin, "c").await;
    assert_eq!(order(&host, &plugin).await, before);
    for task in &mut tasks {
        let stopped = task.stop(&host).await;
        assert!(stopped.deregistered && stopped.remarks.is_empty(), "{stopped:?}");
    }
    host.stop().await;
    assert!(stage.sockets().is_empty());
}

// === Stopping ===

#[actix::test]
async fn a_caller_in_a_tight_loop_during_a_stop_never_meets_a_missing_file_shd_04() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..10 {
        let mut task = Task::new(&stage, "a", "zfs", Role::Node);
        sign_in(&mut task, &host, &plugin).await;
        let socket = dispense(&host, &plugin, LONG).await.unwrap().socket;
        let mut stopping = Box::pin(task.stop(&host));
        loop {
            // A plugin that is dispensed after its socket is gone was dispensed too late, whichever side was slow.
            let is_there = socket.as_path().exists();
            match dispense(&host, &plugin, Duration::ZERO).await {
                Ok(dispensed) => assert!(is_there, "handed out without its socket: {dispensed:?}"),
                Err(DispenseError::NotServed { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            match host.instances().ask(CheckNow { plugin: plugin.clone() }).await.unwrap() {
                Ok(report) => {
                    assert_eq!(report.health.reason(), None);
                    answered += 1;
                }
                Err(CheckError::NotServed { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
            if let Some(stopped) = (&mut stopping).now_or_never() {
                assert!(stopped.deregistered && stopped.remarks.is_empty(), "{stopped:?}");
                break;
            }
        }
    }
    assert!(answered + refused > 10);
    host.stop().await;
}

#[actix::test]
async fn a_host_that_stops_deregisters_everyone_and_leaves_nothing_s4() {
    let stage = Stage::new();
    let host = stage.host().await;
    let mut tasks: Vec<Task> =
        (0..5).map(|number| Task::new(&stage, &format!("a{number}"), "zfs", Role::Monolith)).collect();
    for task in &mut tasks {
        sign_in(task, &host, &node("zfs")).await;
    }
    let mut registry = Watch::on(host.registry());
    let mut allocations = Watch::on(host.allocations());
    let mut inventory = Watch::on(host.inventory());
    host.inventory().ask(AwaitFirst).await.unwrap();
    assert_eq!(host.inventory().ask(TakeInventory).await.unwrap().offers.len(), 2);
    let report = host.stop().await;
    assert!(report.took < Duration::from_secs(30), "{report:?}");
    let left = registry.so_far();
    let removals = left.iter().filter(|news| matches!(news, RegistryNews::Deregistered(..))).count();
    assert_eq!(removals, 10, "{left:?}");
    let gone = allocations.so_far();
    assert_eq!(gone.iter().filter(|news| matches!(news, AllocationsNews::Gone(_))).count(), 5, "{gone:?}");
    assert!(!inventory.so_far().iter().any(|news| matches!(
        news,
        InventoryNews::Changed(offer) if offer.health == Health::Healthy && offer.restarting
    )));
    assert_eq!(stage.sockets(), Vec::<std::path::PathBuf>::new());
    for task in &mut tasks {
        task.signal(Signal::TERM);
        task.end().await;
    }
}
