//! Tests leases of plugins: calls of a host program over the connection of an instance, with real plugins on real sockets, under virtual
//! time.

mod fixture;

use std::time::Duration;

use callboard_actors::instance::InstanceLimits;
use callboard_actors::instances::{
    AwaitRetired, CheckNow, DescribeInstances, InstancesOptions, LeaseRefused,
};
use callboard_actors::lease::{ConnectionEnd, Lease, LeaseError, LeasedCalls, NewLease, RetireCause};
use callboard_actors::registry::MemoryStore;
use callboard_actors::vocabulary::{PluginKey, SocketPath};
use callboard_proto::csi::v1 as wire;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::Status;

use fixture::{Act, Fixture, Plugin, Serving, allocation, node, story};

const SECOND: Duration = Duration::from_secs(1);

/// A healthy plugin of allocation `a`, and a lease of it.
struct Leased {
    fixture: Fixture,
    zfs: PluginKey,
    socket: SocketPath,
    plugin: Plugin,
    serving: Serving,
    lease: Lease,
}

impl Leased {
    async fn open() -> Self {
        Self::open_in(Fixture::open()).await
    }

    async fn open_in(fixture: Fixture) -> Self {
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let plugin = Plugin::new("zfs.example");
        let serving = plugin.serve(&socket);
        fixture.register(&zfs, "a", &socket).await;
        let lease = fixture.leases.lease(&zfs, 5 * SECOND).await.expect("it is healthy");
        Self { fixture, zfs, socket, plugin, serving, lease }
    }
}

/// Calls `NodeGetInfo` over a lease, and returns the node id.
async fn node_id(lease: &Lease) -> Result<String, Status> {
    let answer = lease.node().node_get_info(wire::NodeGetInfoRequest {}).await?;
    Ok(answer.into_inner().node_id)
}

/// Makes the same call in a task of its own. The call has begun when this returns.
async fn begin_call(lease: Lease) -> JoinHandle<Result<String, Status>> {
    let call = tokio::spawn(async move { node_id(&lease).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    call
}

fn lease_error(status: &Status) -> &LeaseError {
    LeaseError::of(status).unwrap_or_else(|| panic!("not of the lease: {status:?}"))
}

async fn calls_of(fixture: &Fixture, plugin: &PluginKey) -> LeasedCalls {
    let all = fixture.instances.ask(DescribeInstances).await.expect("it runs");
    all.iter().find(|status| status.report.plugin == *plugin).expect("it has an instance").calls
}

#[test]
fn a_lease_calls_the_plugin_is_shown_and_is_given_back_when_it_is_dropped() {
    story(|| async {
        let fixture = Fixture::open();
        let (zfs, socket) = (node("zfs"), fixture.socket("a.sock"));
        let _serving = Plugin::new("zfs.example").serve(&socket);
        let refused = fixture.leases.lease(&zfs, Duration::ZERO).await.expect_err("nothing serves it");
        assert!(matches!(refused, LeaseRefused::NotDispensed(_)) && refused.is_transient(), "{refused}");
        fixture.register(&zfs, "a", &socket).await;
        let lease = fixture.leases.lease(&zfs, 5 * SECOND).await.expect("it is healthy");
        assert_eq!(node_id(&lease).await.expect("it answers"), "node-1");
        assert_eq!(lease.allocation(), &allocation("a"));
        assert_eq!(&*lease.fingerprint().identity.provider, "zfs.example");
        let channel = lease.channel();
        assert_eq!(calls_of(&fixture, &zfs).await, LeasedCalls { leases: 1, in_flight: 0 });
        drop(lease);
        assert_eq!(calls_of(&fixture, &zfs).await.leases, 1, "a channel of it is left");
        drop(channel);
        assert_eq!(calls_of(&fixture, &zfs).await, LeasedCalls::default());
        fixture.stop_instances().await;
    });
}

#[test]
fn a_lease_never_reaches_the_next_generation_at_the_same_path_reg_06() {
    story(|| async {
        let Leased { fixture, zfs, socket, lease, serving: first, .. } = Leased::open().await;
        first.kill();
        fixture.deregister(&zfs, "a").await;
        let second = Plugin::new("zfs.example");
        let _serving = second.serve(&socket);
        fixture.register(&zfs, "b", &socket).await;
        let next = fixture.leases.lease(&zfs, 5 * SECOND).await.expect("it is healthy again");
        assert!(next.generation() > lease.generation());
        second.take_calls();
        let status = node_id(&lease).await.expect_err("its generation has ended");
        let error = lease_error(&status);
        assert!(
            matches!(error, LeaseError::Ended { generation, .. } if *generation == lease.generation()),
            "{error}"
        );
        assert!(error.needs_new_lease() && !error.may_have_taken_effect());
        assert_eq!(second.take_calls(), Vec::<&str>::new(), "the other generation hears nothing");
        assert!(node_id(&next).await.is_ok());
        fixture.stop_instances().await;
    });
}

#[test]
fn a_plugin_that_leaves_answers_the_calls_in_flight_first_and_gets_no_new_ones_a4_shd_04() {
    story(|| async {
        let Leased { fixture, zfs, plugin, lease, serving: _serving, .. } = Leased::open().await;
        let other = fixture.leases.lease(&zfs, 5 * SECOND).await.expect("it is healthy");
        plugin.on("NodeGetInfo", Act::After(2 * SECOND));
        let call = begin_call(lease).await;
        assert_eq!(calls_of(&fixture, &zfs).await.in_flight, 1);
        let began = Instant::now();
        fixture.deregister(&zfs, "a").await;
        let retired = tokio::spawn(fixture.instances.ask(AwaitRetired { allocation: allocation("a") }));
        tokio::time::sleep(SECOND).await;
        let status = node_id(&other).await.expect_err("it takes no more calls");
        assert!(
            matches!(
                lease_error(&status),
                LeaseError::Ended { end: ConnectionEnd::Retired(RetireCause::NotServed), .. }
            ),
            "{status}"
        );
        assert_eq!(lease_error(&status).new_lease(), NewLease::HelpsOnceServed, "{status}");
        assert!(!retired.is_finished(), "a call is in flight");
        assert_eq!(call.await.expect("no panic").expect("it is answered"), "node-1");
        retired.await.expect("no panic").expect("it runs").expect("it has retired");
        assert!(began.elapsed() < 3 * SECOND, "{:?}", began.elapsed());
        fixture.stop_instances().await;
    });
}

#[test]
fn a_call_that_takes_too_long_is_cut_when_its_plugin_leaves_and_its_caller_learns_it_c015() {
    story(|| async {
        let Leased { fixture, zfs, plugin, lease, serving: _serving, .. } = Leased::open().await;
        plugin.on("NodeGetInfo", Act::Hang);
        let call = begin_call(lease).await;
        let began = Instant::now();
        fixture.deregister(&zfs, "a").await;
        let retired = fixture.instances.ask(AwaitRetired { allocation: allocation("a") }).await;
        retired.expect("it runs").expect("it has retired");
        let deadline = InstanceLimits::default().retire_deadline;
        assert!(began.elapsed() >= deadline && began.elapsed() < deadline + SECOND, "{:?}", began.elapsed());
        let status = call.await.expect("no panic").expect_err("it is cut");
        let error = lease_error(&status);
        assert!(matches!(error, LeaseError::Cut { .. }) && error.may_have_taken_effect(), "{error}");
        assert_eq!(error.new_lease(), NewLease::HelpsOnceServed, "{error}");
        fixture.stop_instances().await;
    });
}

#[test]
fn a_lease_that_is_kept_keeps_no_connection_open_scl_06() {
    story(|| async {
        let Leased { fixture, zfs, lease, serving, .. } = Leased::open().await;
        let channel = lease.channel();
        assert!(!serving.is_left());
        fixture.deregister(&zfs, "a").await;
        let retired = fixture.instances.ask(AwaitRetired { allocation: allocation("a") }).await;
        retired.expect("it runs").expect("it has retired");
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(serving.is_left(), "its plugin has seen the end");
        drop((lease, channel));
        fixture.stop_instances().await;
    });
}

#[test]
fn no_lease_is_given_over_a_connection_that_has_ended() {
    story(|| async {
        let Leased { fixture, zfs, socket, serving: first, .. } = Leased::open().await;
        first.kill();
        tokio::time::sleep(Duration::from_millis(20)).await;
        let refused = fixture.leases.lease(&zfs, Duration::ZERO).await.expect_err("it is dead");
        assert!(refused.is_transient(), "{refused}");
        let second = Plugin::new("zfs.example").serve(&socket);
        let lease = fixture.leases.lease(&zfs, Duration::MAX).await.expect("it is back");
        assert!(node_id(&lease).await.is_ok(), "over a connection of its own");
        drop(second);
        fixture.stop_instances().await;
    });
}

#[test]
fn a_host_that_stops_waits_for_the_calls_in_flight_too_s3() {
    story(|| async {
        let Leased { fixture, zfs, plugin, lease, serving: _serving, .. } = Leased::open().await;
        plugin.on("NodeGetInfo", Act::After(SECOND));
        let other = fixture.leases.lease(&zfs, SECOND).await.expect("it is healthy");
        let call = begin_call(lease).await;
        fixture.stop_instances().await;
        assert_eq!(call.await.expect("no panic").expect("it is answered"), "node-1");
        let status = node_id(&other).await.expect_err("the host stops");
        let error = lease_error(&status);
        assert_eq!(error.new_lease(), NewLease::CannotHelp, "{error}");
        assert!(!error.needs_new_lease(), "{error}");
    });
}

#[test]
fn a_lease_that_ends_with_a_takeover_says_that_a_new_one_helps_reg_05() {
    story(|| async {
        let Leased { fixture, zfs, lease, serving: _serving, .. } = Leased::open().await;
        let socket = fixture.socket("b.sock");
        let _newer = Plugin::new("zfs.example").serve(&socket);
        fixture.register(&zfs, "b", &socket).await;
        tokio::time::sleep(SECOND).await;
        let status = node_id(&lease).await.expect_err("another one serves");
        let error = lease_error(&status);
        assert!(
            matches!(error, LeaseError::Ended { end: ConnectionEnd::Retired(RetireCause::Superseded), .. }),
            "{error}"
        );
        assert_eq!(error.new_lease(), NewLease::Helps, "{error}");
        let next = fixture.leases.lease(&zfs, Duration::ZERO).await.expect("it is healthy");
        assert_eq!(next.allocation(), &allocation("b"));
        fixture.stop_instances().await;
    });
}

#[test]
fn too_many_calls_are_refused_at_once_and_hold_up_no_probe_f17_hlt_03() {
    story(|| async {
        let limits = InstanceLimits { calls_max: 2, ..InstanceLimits::default() };
        let options = InstancesOptions { limits, ..InstancesOptions::default() };
        let fixture = Fixture::open_with(options, &MemoryStore::default());
        let Leased { fixture, zfs, plugin, lease, serving: _serving, .. } = Leased::open_in(fixture).await;
        plugin.on("NodeGetInfo", Act::After(SECOND));
        let mut calls = Vec::new();
        for _ in 0..2 {
            calls.push(begin_call(fixture.leases.lease(&zfs, SECOND).await.expect("it is healthy")).await);
        }
        let status = node_id(&lease).await.expect_err("two are in flight");
        let error = lease_error(&status);
        assert!(
            matches!(error, LeaseError::TooMany { in_flight: 2, .. }) && !error.needs_new_lease(),
            "{error}"
        );
        let report = fixture.instances.ask(CheckNow { plugin: zfs.clone() }).await.expect("it runs");
        assert_eq!(report.expect("it is served").health.as_str(), "healthy");
        for call in calls {
            assert!(call.await.expect("no panic").is_ok());
        }
        plugin.on("NodeGetInfo", Act::Answer);
        assert!(node_id(&lease).await.is_ok(), "there is room again");
        fixture.stop_instances().await;
    });
}

#[test]
fn calls_in_flight_of_a_plugin_that_dies_fail_at_once() {
    story(|| async {
        let Leased { fixture, zfs, plugin, lease, serving, .. } = Leased::open().await;
        let other = fixture.leases.lease(&zfs, 5 * SECOND).await.expect("it is healthy");
        plugin.on("NodeGetInfo", Act::Hang);
        let call = begin_call(lease).await;
        let began = Instant::now();
        serving.kill();
        let status = call.await.expect("no panic").expect_err("its plugin is dead");
        assert!(began.elapsed() < SECOND);
        assert!(lease_error(&status).needs_new_lease() && lease_error(&status).may_have_taken_effect());
        let status = node_id(&other).await.expect_err("its connection has ended");
        assert!(
            matches!(lease_error(&status), LeaseError::Ended { end: ConnectionEnd::Lost, .. }),
            "{status}"
        );
        fixture.stop_instances().await;
    });
}
