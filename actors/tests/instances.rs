//! Tests instances and their supervisor, with real plugins on real sockets, under virtual time.

mod fixture;

use std::time::Duration;

use callboard_actors::instances::{
    AwaitRetired, CheckError, CheckNow, DescribeInstances, DispenseError, HealthOf, InstanceState,
    InstanceStatus, InstancesNews, InstancesOptions,
};
use callboard_actors::registry::MemoryStore;
use callboard_actors::shell::{Drill, Ending};
use callboard_actors::vocabulary::{Health, SocketPath};
use futures_util::FutureExt;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::time::Instant;

use fixture::{Act, Fixture, Plugin, allocation, controller, healths, node, story};

const SECOND: Duration = Duration::from_secs(1);

/// Lets everything that is ready now run.
async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Accepts this many connections, and closes each at once.
async fn hang_up_on(socket: &SocketPath, connections: u64) {
    let listener = UnixListener::bind(socket.as_path()).expect("the path is free");
    for _ in 0..connections {
        drop(listener.accept().await.expect("a client connects"));
    }
    std::fs::remove_file(socket.as_path()).expect("it is there");
}

// === Health ===

#[test]
fn a_plugin_that_registers_becomes_healthy_and_is_handed_out() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let dispensed = fixture.dispense(&zfs, 5 * SECOND).await.expect("it is healthy");
        assert_eq!(dispensed.socket, socket);
        assert_eq!(&*dispensed.fingerprint.identity.provider, "zfs.example");
        assert_eq!(
            plugin.take_calls(),
            ["GetPluginInfo", "GetPluginCapabilities", "Probe", "NodeGetCapabilities", "NodeGetInfo"]
        );
        fixture.stop_instances().await;
    });
}

#[test]
fn healthy_is_said_only_after_everything_was_read_however_often_connecting_failed_hlt_01() {
    for failures in [0_u64, 1, 2, 5, 10] {
        story(|| async move {
            let fixture = Fixture::open();
            let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
            let mut watch = fixture.watch();
            fixture.register(&zfs, "a", &socket).await;
            hang_up_on(&socket, failures).await;
            let plugin = Plugin::new("zfs.example");
            let _serving = plugin.serve(&socket);
            let report = watch.until(&zfs, "healthy").await;
            assert!(report.fingerprint.is_some());
            assert_eq!(plugin.take_calls().last(), Some(&"NodeGetInfo"), "after {failures} failures");
            fixture.stop_instances().await;
        });
    }
}

#[test]
fn a_plugin_that_is_ready_after_ten_minutes_is_waited_for_in_peace_hlt_02_c039() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        plugin.on("Probe", Act::NotReady);
        let _serving = plugin.serve(&socket);
        let mut watch = fixture.watch();
        fixture.register(&zfs, "a", &socket).await;
        tokio::time::sleep(600 * SECOND).await;
        assert_eq!(healths(&watch.rest()), ["starting"], "nothing but that it has come");
        let calls = plugin.take_calls();
        assert!(
            calls.iter().all(|call| *call != "NodeGetCapabilities" && *call != "NodeGetInfo"),
            "{calls:?}"
        );
        assert_eq!(calls.iter().filter(|call| **call == "GetPluginInfo").count(), 1);
        let waiting = fixture.dispense(&zfs, SECOND).await.expect_err("it is not ready");
        assert!(matches!(waiting, DispenseError::NotReady { .. }), "{waiting}");
        plugin.on("Probe", Act::Answer);
        assert!(fixture.dispense(&zfs, 40 * SECOND).await.is_ok());
        fixture.stop_instances().await;
    });
}

#[test]
fn a_healthy_plugin_is_probed_once_a_round_and_routing_stops_with_its_first_failure_hlt_03() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&socket);
        let mut watch = fixture.watch();
        fixture.register(&zfs, "a", &socket).await;
        watch.until(&zfs, "healthy").await;
        plugin.take_calls();
        tokio::time::sleep(300 * SECOND).await;
        let calls = plugin.take_calls();
        assert!(calls.iter().all(|call| *call == "Probe") && (9..=11).contains(&calls.len()), "{calls:?}");
        assert_eq!(watch.rest(), [], "a plugin that stays as it is is no news (SCL-05)");

        plugin.on("Probe", Act::Fail(tonic::Code::FailedPrecondition));
        tokio::time::sleep(34 * SECOND).await;
        assert_eq!(healths(&watch.rest()), ["unhealthy"], "one event within one round");
        let refused = fixture.dispense(&zfs, Duration::ZERO).await.expect_err("what is shown is what routes");
        assert!(
            matches!(&refused, DispenseError::Unhealthy { reason, .. } if reason.contains("Probe")),
            "{refused}"
        );

        plugin.on("Probe", Act::Answer);
        plugin.take_calls();
        watch.until(&zfs, "healthy").await;
        assert_eq!(plugin.take_calls(), ["Probe"], "it is the same process, so one look is enough");
        fixture.stop_instances().await;
    });
}

#[test]
fn the_first_failure_is_treated_as_any_later_one_hlt_04() {
    for failures in 1..=10 {
        story(|| async move {
            let fixture = Fixture::open();
            let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
            let plugin = Plugin::new("zfs.example");
            plugin.on("NodeGetCapabilities", Act::FailFirst(failures));
            let _serving = plugin.serve(&socket);
            let mut watch = fixture.watch();
            fixture.register(&zfs, "a", &socket).await;
            watch.until(&zfs, "unhealthy").await;
            watch.until(&zfs, "healthy").await;
            let calls = plugin.take_calls();
            let tries = calls.iter().filter(|call| **call == "NodeGetCapabilities").count();
            assert_eq!(tries, failures as usize + 1);
            fixture.stop_instances().await;
        });
    }
}

#[test]
fn stopping_is_clean_in_every_state_of_a_failing_start_hlt_04() {
    for failures_seen in 0..5 {
        story(|| async move {
            let fixture = Fixture::open();
            let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
            let plugin = Plugin::new("zfs.example");
            plugin.on("GetPluginInfo", Act::Fail(tonic::Code::Internal));
            let _serving = plugin.serve(&socket);
            fixture.register(&zfs, "a", &socket).await;
            let mut calls = 0;
            while calls < failures_seen {
                settle_down().await;
                calls += plugin.take_calls().len();
            }
            let began = Instant::now();
            fixture.stop_instances().await;
            assert!(began.elapsed() < SECOND);
        });
    }
}

#[test]
fn another_process_behind_the_same_socket_is_read_anew_and_its_name_must_be_the_same_c031() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let first = Plugin::new("zfs.example").serve(&socket);
        let mut watch = fixture.watch();
        fixture.register(&zfs, "a", &socket).await;
        watch.until(&zfs, "healthy").await;

        first.kill();
        let newer = Plugin::new("zfs.example");
        newer.calls_itself("zfs.example", "2.0.0");
        let second = newer.serve(&socket);
        watch.until(&zfs, "starting").await;
        let report = watch.until(&zfs, "healthy").await;
        assert_eq!(&*report.fingerprint.expect("it was read").identity.version, "2.0.0");
        assert_eq!(newer.take_calls().len(), 5, "everything was read anew");

        second.kill();
        let _third = Plugin::new("other.example").serve(&socket);
        let mut reason = String::new();
        while !reason.contains("and is now") {
            reason = watch.until(&zfs, "unhealthy").await.health.reason().expect("a reason").to_owned();
        }
        assert!(reason.contains("zfs.example") && reason.contains("other.example"), "{reason}");
        fixture.stop_instances().await;
    });
}

#[test]
fn a_node_plugin_without_a_controller_need_not_know_its_node_c146() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        plugin.has_controller(false);
        plugin.on("NodeGetInfo", Act::Fail(tonic::Code::Unimplemented));
        let _serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let dispensed = fixture.dispense(&zfs, 5 * SECOND).await.expect("it is usable (I7)");
        assert_eq!(dispensed.fingerprint.node_info, None);
        fixture.stop_instances().await;
    });
}

#[test]
fn a_node_plugin_whose_controller_publishes_must_know_its_node_c146() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        plugin.on("NodeGetInfo", Act::Fail(tonic::Code::Unimplemented));
        let _serving = plugin.serve(&socket);
        let mut watch = fixture.watch();
        fixture.register(&zfs, "a", &socket).await;
        let report = watch.until(&zfs, "unhealthy").await;
        assert!(
            report.health.reason().expect("a reason").contains("NodeGetInfo is not implemented"),
            "{report:?}"
        );
        fixture.stop_instances().await;
    });
}

#[test]
fn a_controller_that_does_not_say_it_is_one_is_not_called_c033() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (controller("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        plugin.has_controller(false);
        let _serving = plugin.serve(&socket);
        let mut watch = fixture.watch();
        fixture.register(&zfs, "a", &socket).await;
        let report = watch.until(&zfs, "unhealthy").await;
        assert!(
            report.health.reason().expect("a reason").contains("CONTROLLER_SERVICE is not named"),
            "{report:?}"
        );
        assert_eq!(plugin.take_calls(), ["GetPluginInfo", "GetPluginCapabilities"]);
        fixture.stop_instances().await;
    });
}

// === Succession ===

#[test]
fn when_the_newest_leaves_the_older_one_is_handed_out_right_after_reg_05() {
    story(|| async {
        let fixture = Fixture::open();
        let zfs = node("zfs");
        let (a, b) = (fixture.socket("a.sock"), fixture.socket("b.sock"));
        let _older = Plugin::new("zfs.example").serve(&a);
        let _newer = Plugin::new("zfs.example").serve(&b);
        fixture.register(&zfs, "a", &a).await;
        fixture.register(&zfs, "b", &b).await;
        let mut watch = fixture.watch();
        while watch.until(&zfs, "healthy").await.allocation != allocation("b") {}
        fixture.deregister(&zfs, "b").await;
        settle_down().await;
        let began = Instant::now();
        let dispensed = fixture.dispense(&zfs, SECOND).await.expect("the older one serves again");
        assert_eq!((dispensed.allocation, dispensed.socket), (allocation("a"), a));
        assert!(began.elapsed() < Duration::from_millis(100));
        fixture.stop_instances().await;
    });
}

#[test]
fn a_plugin_that_comes_back_at_another_socket_is_called_there_reg_06() {
    story(|| async {
        let fixture = Fixture::open();
        let zfs = node("zfs");
        let (old, new) = (fixture.socket("old.sock"), fixture.socket("new.sock"));
        let _old = Plugin::new("zfs.example").serve(&old);
        fixture.register(&zfs, "a", &old).await;
        let first = fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy");
        let plugin = Plugin::new("zfs.example");
        let _new = plugin.serve(&new);
        fixture.register(&zfs, "a", &new).await;
        settle_down().await;
        let second = fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy again");
        assert_eq!(second.socket, new);
        assert!(second.generation > first.generation);
        assert!(!plugin.take_calls().is_empty());
        fixture.stop_instances().await;
    });
}

#[test]
fn a_late_deregistration_of_the_old_one_leaves_the_new_one_alone_reg_08() {
    story(|| async {
        let fixture = Fixture::open();
        let zfs = node("zfs");
        let (a, b) = (fixture.socket("a.sock"), fixture.socket("b.sock"));
        let older = Plugin::new("zfs.example").serve(&a);
        let _newer = Plugin::new("zfs.example").serve(&b);
        fixture.register(&zfs, "a", &a).await;
        fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy");
        fixture.register(&zfs, "b", &b).await;
        let mut watch = fixture.watch();
        while watch.until(&zfs, "healthy").await.allocation != allocation("b") {}
        older.kill();
        fixture.deregister(&zfs, "a").await;
        tokio::time::sleep(300 * SECOND).await;
        assert_eq!(watch.rest(), []);
        assert!(fixture.dispense(&zfs, Duration::ZERO).await.is_ok());
        fixture.stop_instances().await;
    });
}

#[test]
fn who_leaves_is_gone_at_once_and_its_last_word_says_so_hlt_08() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&socket);
        let mut watch = fixture.watch();
        fixture.register(&zfs, "a", &socket).await;
        watch.until(&zfs, "healthy").await;
        fixture.deregister(&zfs, "a").await;
        watch.until(&zfs, "gone").await;
        let InstancesNews::Left(report) = watch.next().await else { panic!("it has left") };
        assert_eq!(report.health, Health::Gone);
        assert_eq!(fixture.instances.ask(HealthOf { allocation: allocation("a") }).await, Ok(vec![]));
        plugin.take_calls();
        tokio::time::sleep(300 * SECOND).await;
        assert!(plugin.take_calls().is_empty(), "no call goes to what has left (SCL-05)");
        fixture.stop_instances().await;
    });
}

#[test]
fn who_waits_for_the_end_of_an_allocation_waits_for_its_call_in_flight_shd_04() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy");
        plugin.on("Probe", Act::Hang);
        let check = fixture.instances.ask(CheckNow { plugin: zfs.clone() });
        settle_down().await;

        fixture.deregister(&zfs, "a").await;
        let began = Instant::now();
        let mut retired = fixture.instances.ask(AwaitRetired { allocation: allocation("a") });
        settle_down().await;
        assert!((&mut retired).now_or_never().is_none(), "a call is in flight");
        let refused = fixture.dispense(&zfs, Duration::ZERO).await.expect_err("it is not routed to any more");
        assert!(matches!(refused, DispenseError::NotServed { .. }), "{refused}");
        assert_eq!(check.await.expect("it runs").expect("a report").health, Health::Gone);
        assert_eq!(retired.await, Ok(Ok(())));
        assert!(began.elapsed() <= 5 * SECOND, "{:?}", began.elapsed());
        assert_eq!(fixture.instances.ask(AwaitRetired { allocation: allocation("a") }).await, Ok(Ok(())));
        fixture.stop_instances().await;
    });
}

#[test]
fn handing_out_has_three_answers_res_01() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let error = fixture.dispense(&zfs, 3 * SECOND).await.expect_err("no plugin serves it");
        assert_eq!(error, DispenseError::NotServed { plugin: zfs.clone(), waited: 3 * SECOND });

        let fixture = std::rc::Rc::new(fixture);
        let waiter = {
            let (fixture, zfs) = (std::rc::Rc::clone(&fixture), zfs.clone());
            actix_rt::spawn(async move { fixture.dispense(&zfs, 60 * SECOND).await })
        };
        tokio::time::sleep(20 * SECOND).await;
        let _serving = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let began = Instant::now();
        assert!(
            waiter.await.expect("it runs").is_ok(),
            "it came after twenty seconds, and that was waited for"
        );
        assert!(began.elapsed() < SECOND);
        fixture.stop_instances().await;
    });
}

#[test]
fn a_plugin_that_is_never_ready_keeps_no_other_waiting_scl_02() {
    story(|| async {
        let fixture = Fixture::open();
        let (stuck, quick) = (node("stuck"), node("quick"));
        let (x, y) = (fixture.socket("x.sock"), fixture.socket("y.sock"));
        let hanging = Plugin::new("stuck.example");
        hanging.on("Probe", Act::Hang);
        let _x = hanging.serve(&x);
        let _y = Plugin::new("quick.example").serve(&y);
        fixture.register(&stuck, "x", &x).await;
        let waiters: Vec<_> = (0..100)
            .map(|_| {
                let dispense =
                    callboard_actors::instances::Dispense { plugin: stuck.clone(), within: 600 * SECOND };
                fixture.instances.ask(dispense)
            })
            .collect();
        let checks: Vec<_> =
            (0..100).map(|_| fixture.instances.ask(CheckNow { plugin: stuck.clone() })).collect();
        settle_down().await;
        let began = Instant::now();
        fixture.register(&quick, "y", &y).await;
        fixture.dispense(&quick, 5 * SECOND).await.expect("it is healthy");
        assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());

        let began = Instant::now();
        fixture.stop_instances().await;
        assert!(began.elapsed() <= 5 * SECOND, "stopping took {:?}", began.elapsed());
        for waiter in waiters {
            let error = waiter.await.expect("it is answered").expect_err("it never came");
            assert_eq!(error, DispenseError::Stopping { plugin: stuck.clone() });
        }
        for check in checks {
            assert!(check.await.expect("it is answered").is_ok());
        }
    });
}

// === The supervisor ===

#[test]
fn a_look_on_demand_sees_what_is_there_now() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let unknown = fixture.instances.ask(CheckNow { plugin: zfs.clone() }).await.expect("it runs");
        assert_eq!(unknown, Err(CheckError::NotServed { plugin: zfs.clone() }));
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy");
        plugin.on("Probe", Act::Fail(tonic::Code::Internal));
        let began = Instant::now();
        let seen = fixture
            .instances
            .ask(CheckNow { plugin: zfs.clone() })
            .await
            .expect("it runs")
            .expect("it is there");
        assert_eq!(seen.health.as_str(), "unhealthy");
        assert!(began.elapsed() < SECOND);
        fixture.stop_instances().await;
    });
}

#[test]
fn the_tree_shows_every_instance_with_its_actor() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let _serving = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy");
        let tree = fixture.instances.ask(DescribeInstances).await.expect("it runs");
        assert_eq!(tree.len(), 1);
        assert_eq!(
            (tree[0].state, tree[0].report.health.as_str(), tree[0].restarts),
            (InstanceState::Running, "healthy", 0)
        );
        let vitals = tree[0].vitals.expect("there is an actor");
        assert!(vitals.steps > 5 && vitals.crashes == 0 && vitals.mailbox_depth == 0, "{vitals:?}");
        fixture.stop_instances().await;
    });
}

#[test]
fn what_was_registered_at_the_start_is_awaited_and_then_settled() {
    story(|| async {
        let store = MemoryStore::default();
        let (zfs, nfs) = (node("zfs"), node("nfs"));
        let former = Fixture::open_with(InstancesOptions::default(), &store);
        let socket = former.socket("a.sock");
        former.register(&zfs, "a", &socket).await;
        former.register(&nfs, "n", &former.socket("n.sock")).await;
        former.stop_instances().await;
        former.registry_running.kill();
        former.registry_running.ended().await;

        let fixture = Fixture::open_with(InstancesOptions::default(), &store);
        let mut watch = fixture.watch();
        assert_eq!(watch.next().await, InstancesNews::Expected(vec![nfs, zfs.clone()]));
        let _serving = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        watch.until(&zfs, "healthy").await;
        let began = Instant::now();
        assert_eq!(watch.next().await, InstancesNews::Settled, "the other was not confirmed (R8)");
        assert!(began.elapsed() > 30 * SECOND);
        fixture.stop_instances().await;
    });
}

#[test]
fn a_plugin_whose_socket_is_deleted_is_left_within_a_round_and_found_again_at_its_new_one_reg_10() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let first = fixture.dispense(&zfs, 5 * SECOND).await.expect("it is healthy");
        std::fs::remove_file(socket.as_path()).expect("it is there");
        let mut watch = fixture.watch();
        let lost = watch.until(&zfs, "unhealthy").await;
        assert!(
            matches!(&lost.health, Health::Unhealthy { reason } if reason.contains("no socket is there"))
        );
        let _serving = Plugin::new("zfs.example").serve(&socket);
        let second = fixture.dispense(&zfs, 40 * SECOND).await.expect("it is healthy again");
        assert_ne!(first.generation, second.generation, "another connection is another generation");
        drop(serving);
        fixture.stop_instances().await;
    });
}

/// Accepts one connection, and sends PING frames until it is closed.
async fn flood(listener: UnixListener) {
    let (mut stream, _) = listener.accept().await.expect("a client connects");
    let (mut reading, mut writing) = stream.split();
    let ping: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    writing.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.expect("it is connected");
    let mut nowhere = tokio::io::sink();
    tokio::select! {
        () = async { while writing.write_all(ping).await.is_ok() {} } => {}
        _ = tokio::io::copy(&mut reading, &mut nowhere) => {}
    }
}

#[test]
fn a_plugin_that_floods_its_connection_is_unhealthy_with_the_reason_f17() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let mut watch = fixture.watch();
        let listener = UnixListener::bind(socket.as_path()).expect("the path is free");
        let flooding = tokio::spawn(flood(listener));
        fixture.register(&zfs, "a", &socket).await;
        let report = watch.until(&zfs, "unhealthy").await;
        let Health::Unhealthy { reason } = &report.health else { panic!("{report:?}") };
        assert!(reason.contains("floods the connection with unsolicited HTTP/2 frames"), "{reason}");
        flooding.await.expect("it ends");
        fixture.stop_instances().await;
    });
}

#[test]
fn many_lives_leave_nothing_behind_scl_06() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let _serving = Plugin::new("zfs.example").serve(&socket);
        let mut base = None;
        for _ in 0..200 {
            fixture.register(&zfs, "a", &socket).await;
            settle_down().await;
            fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy");
            fixture.deregister(&zfs, "a").await;
            settle_down().await;
            let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            assert!(alive <= *base.get_or_insert(alive), "{alive} tasks, {base:?} at first");
        }
        fixture.stop_instances().await;
    });
}

#[test]
fn an_owner_that_crashes_while_no_instance_lives_gives_its_plugin_another_generation_i2() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let mut watch = fixture.watch();
        fixture.register(&zfs, "a", &socket).await;
        let mut used = None;
        // After two connections in a row that ended there is a pause before the third.
        for _ in 0..2 {
            let serving = Plugin::new("zfs.example").serve(&socket);
            used = Some(watch.until(&zfs, "healthy").await.generation);
            serving.kill();
        }
        let is_pausing = |described: Vec<InstanceStatus>| described[0].state == InstanceState::Pausing;
        while !is_pausing(fixture.instances.ask(DescribeInstances).await.expect("it runs")) {
            tokio::task::yield_now().await;
        }
        fixture.instances.drill(Drill::Crash).expect("it runs");
        let _serving = Plugin::new("zfs.example").serve(&socket);
        let next = fixture.dispense(&zfs, 60 * SECOND).await.expect("it is healthy").generation;
        assert!(Some(next) > used, "generation {next} after {used:?}");
        fixture.stop_instances().await;
    });
}

#[test]
fn a_new_owner_of_the_instances_gives_each_plugin_another_generation_i2() {
    story(|| async {
        let mut fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let _serving = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let used = fixture.dispense(&zfs, 5 * SECOND).await.expect("it is healthy").generation;
        fixture.replace_owner().await;
        let next = fixture.dispense(&zfs, 60 * SECOND).await.expect("it is healthy").generation;
        assert!(next > used, "generation {next} after {used}");
        fixture.stop_instances().await;
    });
}

#[test]
fn instances_do_not_outlive_a_supervisor_that_is_ended_by_force_s4() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        fixture.dispense(&zfs, 5 * SECOND).await.expect("healthy");
        fixture.instances_running.kill();
        assert_eq!(fixture.instances_running.ended().await, Ending::Killed);
        settle_down().await;
        plugin.take_calls();
        tokio::time::sleep(300 * SECOND).await;
        assert!(plugin.take_calls().is_empty());
    });
}
