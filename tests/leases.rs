//! Tests leases of real plugin processes: used by threads without an actor system, over deaths and stops.

mod support;

use std::time::Duration;

use callboard::actors::allocation::AllocationOptions;
use callboard::actors::allocations::StopAllocation;
use callboard::actors::csi::Reaction;
use callboard::actors::instances::{InstancesOptions, LeaseRefused};
use callboard::actors::lease::{Lease, LeaseError, NewLease};
use callboard::actors::vocabulary::Role;
use callboard::actors::volumes::VolumesOptions;
use callboard::proto::csi::v1 as wire;
use tokio::time::timeout;
use tonic::Status;

use support::{LONG, Stage, Task, id, node};

async fn node_id(lease: &Lease) -> Result<String, Status> {
    Ok(lease.node().node_get_info(wire::NodeGetInfoRequest {}).await?.into_inner().node_id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_works_from_any_thread_and_ends_with_its_process_reg_06() {
    let stage = Stage::new();
    let host = stage.builder().start_on_own_thread().await.unwrap();
    let mut first = Task::new(&stage, "first", "zfs", Role::Node);
    first.start(&host).await;
    let lease = host.leases().lease(&node("zfs"), LONG).await.unwrap();
    let answers = (0..16).map(|_| {
        let leases = host.leases();
        tokio::spawn(async move { node_id(&leases.lease(&node("zfs"), LONG).await.unwrap()).await.unwrap() })
    });
    for answer in answers.collect::<Vec<_>>() {
        assert!(!answer.await.unwrap().is_empty());
    }
    // A runtime of another thread that runs no actors.
    let leases = host.leases();
    let elsewhere = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { node_id(&leases.lease(&node("zfs"), LONG).await.unwrap()).await.unwrap() })
    });
    assert!(!elsewhere.join().unwrap().is_empty());

    first.kill(&host).await;
    let status = node_id(&lease).await.expect_err("its process is dead");
    let error = LeaseError::of(&status).unwrap_or_else(|| panic!("{status:?}"));
    assert!(error.needs_new_lease(), "{error}");
    let mut second = Task::new(&stage, "second", "zfs", Role::Node);
    second.start(&host).await;
    let next = loop {
        let lease = host.leases().lease(&node("zfs"), LONG).await.unwrap();
        if *lease.allocation() == id("second") {
            break lease;
        }
    };
    assert!(next.generation() > lease.generation());
    assert!(!node_id(&next).await.unwrap().is_empty());

    host.allocations()
        .ask(StopAllocation { allocation: id("second"), even_if_used: false })
        .await
        .unwrap()
        .unwrap();
    let status = node_id(&next).await.expect_err("it has left");
    let new_lease = |status| LeaseError::of(status).map(LeaseError::new_lease);
    assert_eq!(new_lease(&status), Some(NewLease::HelpsOnceServed), "{status}");
    let leases = host.leases();
    host.stop().await;
    let refused = leases.lease(&node("zfs"), Duration::ZERO).await.expect_err("the host has ended");
    assert!(matches!(refused, LeaseRefused::NotAnswered(_)), "{refused}");
    let status = node_id(&next).await.expect_err("the host has ended");
    assert_eq!(new_lease(&status), Some(NewLease::CannotHelp), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadlines_and_rounds_may_be_as_long_as_there_is_time() {
    const MAX: Duration = Duration::MAX;
    let stage = Stage::new();
    let allocation = AllocationOptions {
        call_deadline: MAX,
        round: MAX,
        retire_deadline: MAX,
        directory_deadline: MAX,
        stop_deadline: MAX,
        ..AllocationOptions::default()
    };
    let (mut instances, mut volumes) = (InstancesOptions::default(), VolumesOptions::default());
    instances.limits.round = MAX;
    instances.limits.call_deadline = MAX;
    instances.limits.retire_deadline = MAX;
    volumes.volume.call_deadline = MAX;
    volumes.volume.stop_within = MAX;
    let builder = stage.builder().allocation(allocation).instances(instances).volumes(volumes);
    let host = builder.start_on_own_thread().await.expect("it starts");
    let mut task = Task::new(&stage, "a", "zfs", Role::Node);
    task.spec.health_timeout = MAX;
    task.start(&host).await;
    let leases = host.leases();
    let client = timeout(LONG, leases.csi(&node("zfs"), MAX)).await.expect("in time").expect("it is healthy");
    let info = timeout(LONG, client.node_get_info(MAX)).await.expect("in time").expect("it answers");
    assert!(!info.node_id.is_empty());
    assert_eq!(host.notices().recent(), [], "nothing has crashed");

    timeout(LONG, host.stop()).await.expect("in time");
    let late = client.node_get_info(MAX).await.expect_err("the host has ended");
    assert!(late.to_string().contains("a new lease cannot help"), "{late}");
    assert_eq!((late.outcome().reaction, late.is_transient()), (Reaction::NextRun, false), "{late}");
}
