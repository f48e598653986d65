//! From the start of a task to its registration (A2, A3, REG-10, C011).

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocations::{AllocationPhase, AllocationsNews, TaskEventKind};
use tokio::time::Instant;

use crate::fixture::{Act, Plugin, story};
use crate::stage::{Minutes, Stage, default_call_deadline, leave_corpse, listen, spec};

#[test]
fn a_fresh_socket_after_a_long_dead_one_is_registered_within_a_second_reg_10() {
    for dead_for in [Duration::from_secs(5), Duration::from_secs(600)] {
        story(|| async move {
            let mut stage = Stage::open(Rc::new(Minutes::default()));
            let mut spec = spec("a", "zfs");
            spec.health_timeout = Duration::from_secs(3_600);
            let context = stage.prepare(&spec).await.expect("it can be prepared");
            leave_corpse(&context.socket);
            stage.started(&spec).await;
            tokio::time::sleep(dead_for).await;

            std::fs::remove_file(context.socket.as_path()).expect("it is there");
            let created = Instant::now();
            let _serving = Plugin::new("zfs.example").serve(&context.socket);
            stage.until(&spec, AllocationPhase::Registered).await;
            assert!(created.elapsed() < Duration::from_secs(1), "{:?}", created.elapsed());
        });
    }
}

#[test]
fn a_plugin_that_is_not_ready_for_ten_minutes_is_waited_for_as_long_as_it_was_given_hlt_02() {
    story(|| async {
        let mut stage = Stage::open(Rc::new(Minutes::default()));
        let mut spec = spec("a", "zfs");
        spec.health_timeout = Duration::from_secs(15 * 60);
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let plugin = Plugin::new("zfs.example");
        plugin.on("Probe", Act::NotReady);
        let _serving = plugin.serve(&context.socket);
        stage.started(&spec).await;
        tokio::time::sleep(Duration::from_secs(10 * 60)).await;
        let calls = plugin.take_calls();
        assert!(calls.iter().all(|call| *call == "Probe"), "nothing else is asked of it meanwhile (C039)");
        plugin.on("Probe", Act::Answer);
        stage.until(&spec, AllocationPhase::Registered).await;
        let asked = stage.rest();
        assert!(!asked.iter().any(|news| matches!(news, AllocationsNews::RestartRequested { .. })));
    });
}

/// Gives a plugin a fault.
type Play = Box<dyn Fn(&Plugin)>;

#[test]
fn what_keeps_a_plugin_from_being_ready_is_named_when_the_time_is_up_log_05() {
    let long_name = "x".repeat(200);
    let faults: [(&str, Play, &str); 6] = [
        ("an empty name", Box::new(|plugin| plugin.calls_itself("", "1")), "name is empty"),
        (
            "a name of 200 characters",
            Box::new(move |plugin| plugin.calls_itself(&long_name, "1")),
            "name has 200 bytes, at most 63 are allowed",
        ),
        (
            "a map of 1 MiB",
            Box::new(|plugin| plugin.has_manifest(1 << 20)),
            "manifest has 1048576 bytes, at most 4096 are allowed",
        ),
        ("an error", Box::new(|plugin| plugin.on("Probe", Act::Fail(tonic::Code::Internal))), "INTERNAL"),
        (
            "a missing dependency",
            Box::new(|plugin| plugin.on("Probe", Act::Fail(tonic::Code::FailedPrecondition))),
            "FAILED_PRECONDITION",
        ),
        ("a probe that hangs", Box::new(|plugin| plugin.on("Probe", Act::Hang)), "Probe"),
    ];
    for (fault, play, named) in faults {
        story(|| async move {
            let mut stage = Stage::open(Rc::new(Minutes::default()));
            let spec = spec("a", "zfs");
            let context = stage.prepare(&spec).await.expect("it can be prepared");
            let plugin = Plugin::new("zfs.example");
            play(&plugin);
            let _serving = plugin.serve(&context.socket);
            stage.started(&spec).await;
            let event = stage.event(TaskEventKind::NotReadyInTime).await;
            assert!(event.message.contains(named), "{fault}: {}", event.message);
            tokio::time::sleep(Duration::from_secs(600)).await;
            let restarts =
                stage.rest().into_iter().filter(|n| matches!(n, AllocationsNews::RestartRequested { .. }));
            assert_eq!(restarts.count(), 1, "{fault}");
        });
    }
}

#[test]
fn a_process_that_accepts_and_says_nothing_delays_no_other_scl_02() {
    story(|| async {
        let mut stage = Stage::open(Rc::new(Minutes::default()));
        let mut silent = Vec::new();
        for number in 0..100 {
            let spec = spec(&format!("silent-{number}"), "zfs");
            let context = stage.prepare(&spec).await.expect("it can be prepared");
            silent.push(listen(&context.socket));
            stage.started(&spec).await;
        }
        let spec = spec("a", "zfs");
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let _serving = Plugin::new("zfs.example").serve(&context.socket);
        let began = Instant::now();
        stage.started(&spec).await;
        stage.until(&spec, AllocationPhase::Registered).await;
        assert!(began.elapsed() < default_call_deadline() / 5, "{:?}", began.elapsed());
    });
}
