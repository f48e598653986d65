//! Restarts and rounds: one supervisor, one prober (A5, REG-07, HLT-03).

use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocations::{
    AllocationPhase, AllocationSpec, AllocationsMemory, AllocationsNews, DescribeAllocations, TaskContext,
    TaskEventKind, TaskExited, TaskStarted,
};
use callboard_actors::registry::{Describe, List};
use callboard_actors::shell::{Address, Ending};

use crate::fixture::{Act, Fixture, Plugin, Serving, node, story};
use crate::stage::{Minutes, Stage, options, spec, start_again};

const ROUND: Duration = Duration::from_secs(30);

#[test]
fn fifty_restarts_leave_one_prober_and_one_removal_at_the_end_reg_07() {
    story(|| async {
        let minutes = Minutes::default();
        let mut stage = Stage::open(Rc::new(minutes.clone()));
        let spec = spec("a", "zfs");
        let plugin = Plugin::new("zfs.example");
        let mut contexts = Vec::new();
        for _ in 0..50 {
            let serving = begin(&mut stage, &spec, &plugin, &mut contexts).await;
            stage.exited(&spec).await;
            serving.kill();
        }
        let _serving = begin(&mut stage, &spec, &plugin, &mut contexts).await;
        assert!(contexts.windows(2).all(|pair| pair[0] == pair[1]), "the same each time (RES-02)");
        assert_eq!(stage.list().await.len(), 1);
        plugin.take_calls();
        minutes.take();
        tokio::time::sleep(10 * ROUND).await;
        let probes = plugin.take_calls();
        assert!((9..=11).contains(&probes.len()), "one probe in each of ten rounds: {probes:?}");

        minutes.take();
        assert!(stage.stop(&spec).await.deregistered);
        assert_eq!(minutes.take(), ["deregister", "retired"], "one removal, at the end");
    });
}

/// Starts a task and waits until it is registered.
async fn begin(
    stage: &mut Stage,
    spec: &AllocationSpec,
    plugin: &Plugin,
    contexts: &mut Vec<TaskContext>,
) -> Serving {
    let context = stage.prepare(spec).await.expect("it can be prepared");
    let serving = plugin.serve(&context.socket);
    contexts.push(context);
    stage.started(spec).await;
    stage.until(spec, AllocationPhase::Registered).await;
    serving
}

#[test]
fn the_instance_probes_the_active_one_and_the_supervisor_the_standby_hlt_03() {
    story(|| async {
        let fixture = Fixture::open();
        let mut stage = Stage::in_fixture(&fixture, "data");
        let (first, second) = (spec("first", "zfs"), spec("second", "zfs"));
        let plugins = [Plugin::new("zfs.example"), Plugin::new("zfs.example")];
        let mut servings = Vec::new();
        for (spec, plugin) in [&first, &second].into_iter().zip(&plugins) {
            let context = stage.prepare(spec).await.expect("it can be prepared");
            servings.push(plugin.serve(&context.socket));
            stage.started(spec).await;
            stage.until(spec, AllocationPhase::Registered).await;
        }
        tokio::time::sleep(2 * ROUND).await;
        // Active is the newest one that has proven itself (R1a), so both must have had their first fingerprint.
        let described = fixture.registry.ask(Describe { plugin: node("zfs") }).await.expect("it runs");
        assert_eq!(described.active.expect("one is").registration.allocation, second.allocation);
        plugins.iter().for_each(|plugin| drop(plugin.take_calls()));
        tokio::time::sleep(10 * ROUND).await;
        for (plugin, who) in plugins.iter().zip(["standby", "active"]) {
            let calls = plugin.take_calls();
            assert!(calls.iter().all(|call| *call == "Probe"), "{who}: {calls:?}");
            assert!((9..=11).contains(&calls.len()), "{who}: one in each of ten rounds, not {}", calls.len());
        }
    });
}

#[test]
fn a_probe_that_fails_becomes_one_event_within_a_round_and_no_second_prober_hlt_03() {
    story(|| async {
        let fixture = Fixture::open();
        let mut stage = Stage::in_fixture(&fixture, "data");
        let spec = spec("a", "zfs");
        let plugin = Plugin::new("zfs.example");
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let _serving = plugin.serve(&context.socket);
        stage.started(&spec).await;
        stage.event(TaskEventKind::Healthy).await;
        plugin.on("Probe", Act::Fail(tonic::Code::Internal));
        let event = stage.event(TaskEventKind::Unhealthy).await;
        assert!(event.message.contains("INTERNAL"), "{}", event.message);
        tokio::time::sleep(10 * ROUND).await;
        let events = stage.rest().into_iter().filter(|news| matches!(news, AllocationsNews::Task(_)));
        assert_eq!(events.count(), 0, "it is told once");
        plugin.on("Probe", Act::Answer);
        stage.event(TaskEventKind::Healthy).await;
    });
}

#[test]
fn what_comes_from_many_allocations_ends_as_it_was_said_in_order() {
    story(|| async {
        let fixture = Fixture::open();
        let stage = Stage::in_fixture(&fixture, "data");
        let specs: Vec<_> = (0..50).map(|number| spec(&format!("a{number}"), "zfs")).collect();
        let plugin = Plugin::new("zfs.example");
        let mut servings = Vec::new();
        for spec in &specs {
            let context = stage.prepare(spec).await.expect("it can be prepared");
            servings.push(plugin.serve(&context.socket));
        }
        // No caller waits for an answer before the next message.
        for _ in 0..5 {
            for spec in &specs {
                drop(stage.allocations.ask(TaskStarted { allocation: spec.allocation.clone() }));
            }
            for spec in specs.iter().skip(25) {
                drop(
                    stage.allocations.ask(TaskExited {
                        allocation: spec.allocation.clone(),
                        how: "exit code 0".to_owned(),
                    }),
                );
            }
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
        let phases: Vec<_> = stage.list().await.into_iter().map(|s| (s.allocation, s.phase)).collect();
        for (at, spec) in specs.iter().enumerate() {
            let phase = if at < 25 { AllocationPhase::Registered } else { AllocationPhase::Prepared };
            assert!(phases.contains(&(spec.allocation.clone(), phase)), "{:?}", spec.allocation);
        }
        assert_eq!(fixture.registry.ask(List).await.expect("it runs").len(), 25);
        let described = stage.allocations.ask(DescribeAllocations).await.expect("it runs");
        assert!(described.iter().all(|one| one.crashes == 0 && one.vitals.is_some()));
    });
}

#[test]
fn an_owner_that_was_ended_by_force_knows_what_it_owned_and_leaves_no_second_prober_reg_07() {
    story(|| async {
        let minutes = Minutes::default();
        let mut stage = Stage::open(Rc::new(minutes.clone()));
        let options = options(&stage.data_dir, &stage.runtime_dir);
        let memory = AllocationsMemory::default();
        let start =
            |address: &_| start_again(address, options.clone(), Rc::new(minutes.clone()), memory.clone());
        stage.allocations = Address::vacant("allocations", 64);
        stage.running = start(&stage.allocations);
        stage.news = stage.allocations.subscribe("test", 64).expect("it runs");
        let spec = spec("a", "zfs");
        let plugin = Plugin::new("zfs.example");
        let _serving = begin(&mut stage, &spec, &plugin, &mut Vec::new()).await;
        for _ in 0..10 {
            stage.running.kill();
            assert_eq!(stage.running.ended().await, Ending::Killed);
            stage.running = start(&stage.allocations);
            stage.news = stage.allocations.subscribe("test", 64).expect("it runs");
            stage.until(&spec, AllocationPhase::Registered).await;
        }
        assert!(!minutes.take().contains(&"deregister"), "it never deregistered");
        plugin.take_calls();
        tokio::time::sleep(10 * ROUND).await;
        let probes = plugin.take_calls();
        assert!((9..=11).contains(&probes.len()), "one probe in each of ten rounds: {probes:?}");
    });
}
