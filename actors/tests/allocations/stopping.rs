//! The way out: routing first, files last, and nothing that is not ours (A4, SHD-04, VOL-06, S3, S4).

use std::cell::Cell;
use std::fs;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::allocation::{Neighbours, RegisterOutcome, RetiredOutcome};
use callboard_actors::allocations::{
    AllocationPhase, AllocationsNews, PrepareError, StopAllocation, StopAllocationError, TaskEventKind,
    UnknownAllocation,
};
use callboard_actors::instances::{AwaitRetired, CheckError, CheckNow, Dispense};
use callboard_actors::registry::{Deregister, Deregistered, List, Register};
use callboard_actors::shell::{AskError, Ending, StopMode};
use callboard_actors::vocabulary::{AllocationId, Health, PluginKey};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use crate::fixture::{Fixture, LONG, Plugin, node, story};
use crate::stage::{Minutes, Stage, sockets_below, spec};

#[test]
fn calls_in_a_tight_loop_during_a_stop_never_meet_a_missing_file_shd_04() {
    story(|| async {
        let fixture = Fixture::open();
        let mut stage = Stage::in_fixture(&fixture, "data");
        let spec = spec("a", "zfs");
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let plugin = Plugin::new("zfs.example");
        let _serving = plugin.serve(&context.socket);
        stage.started(&spec).await;
        stage.until(&spec, AllocationPhase::Registered).await;
        let zfs = node("zfs");
        let dispense = Dispense { plugin: zfs.clone(), within: Duration::from_secs(5) };
        fixture.instances.ask(dispense).await.expect("it runs").expect("it is healthy");

        let mut stopping = Box::pin(
            stage
                .allocations
                .ask(StopAllocation { allocation: spec.allocation.clone(), even_if_used: false }),
        );
        let (mut answered, mut refused) = (0, 0);
        let stopped = loop {
            match fixture.instances.ask(CheckNow { plugin: zfs.clone() }).await.expect("it runs") {
                Ok(report) => {
                    assert!(report.health.reason().is_none(), "{}", report.health);
                    answered += 1;
                }
                Err(CheckError::NotServed { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
            if let Some(stopped) = (&mut stopping).now_or_never() {
                break stopped.expect("it runs").expect("it is known");
            }
        };
        assert!(stopped.deregistered && stopped.remarks.is_empty(), "{stopped:?}");
        assert!(answered + refused > 0);
        assert!(!context.socket.as_path().exists());
        assert!(!context.socket.as_path().parent().expect("a directory").exists());
        assert!(fixture.registry.ask(List).await.expect("it runs").is_empty());
    });
}

#[test]
fn files_of_others_are_named_and_left_and_volumes_are_never_touched_vol_06() {
    story(|| async {
        let minutes = Minutes::default();
        let mut stage = Stage::open(Rc::new(minutes.clone()));
        let spec = spec("a", "zfs");
        let context = stage.prepare(&spec).await.expect("it can be prepared");
        let volumes = &context.mounts[1].host_path;
        let staged = volumes.join("staging/default/vol1/rw");
        fs::create_dir_all(&staged).expect("it can be made");
        fs::write(staged.join("data"), "kept").expect("it can be written");
        let own = context.socket.as_path().parent().expect("a directory").to_owned();
        std::os::unix::fs::symlink(volumes, own.join("link")).expect("it can be made");
        fs::write(own.join("core"), "kept").expect("it can be written");
        let _serving = Plugin::new("zfs.example").serve(&context.socket);
        stage.started(&spec).await;
        stage.until(&spec, AllocationPhase::Registered).await;

        let stopped = stage.stop(&spec).await;
        let [remark] = &stopped.remarks[..] else { panic!("{stopped:?}") };
        assert!(
            remark.contains(own.to_str().expect("readable")) && remark.contains("core, link"),
            "{remark}"
        );
        assert!(stage.event(TaskEventKind::StoppedWithRemarks).await.message.contains("core, link"));
        assert_eq!(fs::read_to_string(staged.join("data")).expect("it is there"), "kept");
        assert_eq!(fs::read_to_string(own.join("core")).expect("it is there"), "kept");
        assert!(!context.socket.as_path().exists(), "the socket is ours and goes");
        assert_eq!(minutes.take(), ["register", "health", "deregister", "retired"]);
    });
}

#[test]
fn a_stopped_allocation_is_unknown_and_can_begin_anew() {
    story(|| async {
        let mut stage = Stage::open(Rc::new(Minutes::default()));
        let spec = spec("a", "zfs");
        let unknown = UnknownAllocation { allocation: spec.allocation.clone() };
        let unknown = StopAllocationError::from(unknown);
        let stop = || {
            stage.allocations.ask(StopAllocation { allocation: spec.allocation.clone(), even_if_used: false })
        };
        assert_eq!(stop().await, Ok(Err(unknown.clone())));
        stage.prepare(&spec).await.expect("it can be prepared");
        let (one, two) = tokio::join!(stop(), stop());
        assert_eq!(one, two, "both hear of the same end");
        assert_eq!(stop().await, Ok(Err(unknown)));
        stage.prepare(&spec).await.expect("it can be prepared");
        assert!(stage.rest().contains(&AllocationsNews::Gone(spec.allocation.clone())), "its end was told");
    });
}

/// Neighbours whose registry cannot write for a while.
struct BadDisk {
    others: Minutes,
    is_bad: Rc<Cell<bool>>,
}

impl Neighbours for BadDisk {
    fn register(&self, message: Register) -> LocalBoxFuture<'static, RegisterOutcome> {
        self.others.register(message)
    }

    fn deregister(&self, message: Deregister) -> LocalBoxFuture<'static, Result<Deregistered, AskError>> {
        if self.is_bad.get() {
            let (actor, error) = ("registry".to_owned(), "no space left on device".to_owned());
            return Box::pin(async { Err(AskError::NotDurable { actor, error, is_begun: true }) });
        }
        self.others.deregister(message)
    }

    fn health_of(
        &self,
        allocation: AllocationId,
        plugins: Vec<PluginKey>,
    ) -> LocalBoxFuture<'static, Result<Vec<Health>, AskError>> {
        self.others.health_of(allocation, plugins)
    }

    fn await_retired(&self, message: AwaitRetired) -> LocalBoxFuture<'static, RetiredOutcome> {
        self.others.await_retired(message)
    }
}

#[test]
fn a_stop_that_the_disk_keeps_from_deregistering_is_made_good_when_it_can_write_again_p3_a4() {
    story(|| async {
        let (minutes, is_bad) = (Minutes::default(), Rc::new(Cell::new(false)));
        let mut stage = Stage::open(Rc::new(BadDisk { others: minutes.clone(), is_bad: Rc::clone(&is_bad) }));
        let specs = [spec("a", "zfs"), spec("b", "zfs")];
        let plugin = Plugin::new("zfs.example");
        let mut servings = Vec::new();
        for spec in &specs {
            let context = stage.prepare(spec).await.expect("it can be prepared");
            servings.push(plugin.serve(&context.socket));
            stage.started(spec).await;
            stage.until(spec, AllocationPhase::Registered).await;
        }
        is_bad.set(true);
        for spec in &specs {
            let began = tokio::time::Instant::now();
            let stopped = stage.stop(spec).await;
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
            let [remark] = &stopped.remarks[..] else { panic!("{stopped:?}") };
            assert!(!stopped.deregistered && remark.contains("no space left"), "{remark}");
        }
        assert!(sockets_below(stage.directory.path()).is_empty(), "the rest is put away");
        let again = stage.prepare(&specs[0]).await;
        assert!(matches!(again, Err(PrepareError::Stopping { .. })), "{again:?}");

        minutes.take();
        is_bad.set(false);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(minutes.take(), ["deregister", "deregister"]);
        assert!(stage.list().await.is_empty());
        stage.prepare(&specs[0]).await.expect("it can begin anew");

        // A host that stops does not wait for the disk a second time.
        stage.started(&specs[0]).await;
        is_bad.set(true);
        stage.stop(&specs[0]).await;
        let began = tokio::time::Instant::now();
        stage.running.request_stop(StopMode::Stop);
        assert_eq!(tokio::time::timeout(LONG, stage.running.ended()).await, Ok(Ending::Normal));
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    });
}

#[test]
fn a_shutdown_stops_all_at_once_and_leaves_no_socket_s4() {
    story(|| async {
        let fixture = Fixture::open();
        let mut stage = Stage::in_fixture(&fixture, "data");
        let specs: Vec<_> = (0..20).map(|number| spec(&format!("a{number}"), "zfs")).collect();
        let plugin = Plugin::new("zfs.example");
        let before = tasks();
        let mut servings = Vec::new();
        for spec in &specs {
            let context = stage.prepare(spec).await.expect("it can be prepared");
            servings.push(plugin.serve(&context.socket));
            stage.started(spec).await;
            stage.until(spec, AllocationPhase::Registered).await;
        }
        let began = tokio::time::Instant::now();
        stage.running.request_stop(StopMode::Stop);
        assert_eq!(tokio::time::timeout(LONG, stage.running.ended()).await, Ok(Ending::Normal));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        assert!(sockets_below(stage.directory.path()).is_empty());
        assert!(fixture.registry.ask(List).await.expect("it runs").is_empty());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(tasks() <= before + servings.len(), "no task of a supervisor is left");
    });
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}
