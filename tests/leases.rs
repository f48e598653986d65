//! Leases of real plugin processes: asked by threads that know nothing of actors, over deaths and stops.

mod support;

use std::time::Duration;

use callboard::actors::allocations::StopAllocation;
use callboard::actors::instances::LeaseRefused;
use callboard::actors::lease::{Lease, LeaseError, NewLease};
use callboard::actors::vocabulary::Role;
use callboard::proto::csi::v1 as wire;
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
    // A runtime of another thread, which is no runtime of an actor.
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
