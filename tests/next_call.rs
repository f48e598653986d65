//! Tests that after every accident the next call of a host goes to a healthy plugin if one lives, and that the status agrees with it.
//! The plugins are real processes, and the host calls them only over leases.

#[path = "support/preloaded.rs"]
mod preloaded;
mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use callboard::actors::allocation::AllocationOptions;
use callboard::actors::allocations::AdoptAllocation;
use callboard::actors::instances::InstancesOptions;
use callboard::actors::inventory::TakeInventory;
use callboard::actors::lease::{Lease, LeaseError};
use callboard::actors::registry::{DescribePlugins, InactiveBecause};
use callboard::actors::vocabulary::{Health, Role};
use callboard::host::Host;
use callboard::proto::csi::v1 as wire;
use preloaded::{Preloaded, own_disk};
use rustix::process::Signal;
use tonic::Status;

use support::{LONG, Stage, Task, id, instances, node, order, until, until_active};

/// How long the host waits for an answer before it requests another lease.
const ANSWER: Duration = Duration::from_secs(1);
/// From a kill to the answer of the standby it takes a millisecond; this is the limit for a busy machine.
const TAKEOVER: Duration = Duration::from_secs(10);

/// A plugin whose node id is the name of its allocation, so that an answer names the allocation that gave it.
fn plugin(stage: &Stage, allocation: &str) -> Task {
    Task::new(stage, allocation, "zfs", Role::Node).with(&["--node-id", allocation])
}

/// Options with which a plugin that hangs is detected soon.
fn watchful() -> InstancesOptions {
    let mut options = instances();
    options.limits.round = Duration::from_millis(100);
    options.limits.call_deadline = Duration::from_millis(300);
    options
}

/// A host with two allocations of the plugin: `old`, which stands by, and `new`, which is active.
async fn two(stage: &Stage) -> (Host, Task, Task) {
    let host = stage.builder().instances(watchful()).start().await.unwrap();
    let (mut old, mut new) = (plugin(stage, "old"), plugin(stage, "new"));
    old.start(&host).await;
    until_active(&host, &node("zfs"), "old").await;
    new.start(&host).await;
    until_active(&host, &node("zfs"), "new").await;
    (host, old, new)
}

async fn node_id(lease: &Lease) -> Result<String, Status> {
    Ok(lease.node().node_get_info(wire::NodeGetInfoRequest {}).await?.into_inner().node_id)
}

/// A call as a host makes it: if its lease has ended, or the plugin does not answer, it is repeated over another lease. Returns
/// the allocation that answered; it must be the allocation of the lease.
async fn call(host: &Host) -> String {
    loop {
        let lease = host.leases().lease(&node("zfs"), LONG).await.unwrap();
        match tokio::time::timeout(ANSWER, node_id(&lease)).await {
            Ok(Ok(answer)) => {
                assert_eq!(answer, lease.allocation().as_str());
                return answer;
            }
            Ok(Err(status)) => {
                let error = LeaseError::of(&status).unwrap_or_else(|| panic!("{status:?}"));
                assert!(error.needs_new_lease(), "{error}");
            }
            // It hangs.
            Err(_) => {}
        }
    }
}

/// Waits until the host shows this allocation, and no other, as serving and healthy; then it must be the active one.
async fn shown(host: &Host, allocation: &str) {
    until(&format!("{allocation} is shown as healthy"), async || {
        let view = host.inventory().ask(TakeInventory).await.unwrap();
        let mut offers = view.offers.iter().filter(|offer| offer.plugin == node("zfs"));
        let Some(offer) = offers.next() else { return false };
        offer.allocation == Some(id(allocation)) && offer.health == Health::Healthy && offers.next().is_none()
    })
    .await;
    assert_eq!(order(host, &node("zfs")).await.0.as_deref(), Some(allocation));
}

/// Waits until the host reports the expected reason why an allocation of the plugin is not active.
async fn lacks(host: &Host, allocation: &str, expected: impl Fn(&InactiveBecause) -> bool) {
    until(&format!("it is shown what {allocation} lacks"), async || {
        let described = host.registry().ask(DescribePlugins).await.unwrap();
        let mut standby = described.iter().flat_map(|plugin| &plugin.standby);
        standby
            .any(|one| one.entry.registration.allocation == id(allocation) && expected(&one.inactive_because))
    })
    .await;
}

fn is_unfit(words: &str) -> impl Fn(&InactiveBecause) -> bool {
    move |lack| matches!(lack, InactiveBecause::Unfit { reason } if reason.contains(words))
}

/// Starts a newer plugin with these arguments beside a healthy one; for this reason it gets no call.
async fn takes_no_call(arguments: &[&str], why: &str) {
    let stage = Stage::new();
    let host = stage.builder().instances(watchful()).start().await.unwrap();
    let mut old = plugin(&stage, "old");
    old.start(&host).await;
    assert_eq!(call(&host).await, "old");
    let mut new = Task::new(&stage, "new", "zfs", Role::Node).with(arguments);
    new.start(&host).await;
    lacks(&host, "new", is_unfit(why)).await;
    assert_eq!(call(&host).await, "old");
    shown(&host, "old").await;
    host.stop().await;
}

#[actix::test]
async fn a_bad_rollout_takes_no_call_f4_r1a() {
    takes_no_call(&["--node-id", ""], "node_id is empty").await;
}

#[actix::test]
async fn an_impostor_takes_no_call_c031() {
    takes_no_call(&["--node-id", "new", "--name", "impostor.example"], "impostor.example").await;
}

#[actix::test]
async fn a_plugin_that_hangs_is_left_for_the_standby_hlt_03_r1b() {
    let stage = Stage::new();
    let (host, _old, new) = two(&stage).await;
    assert_eq!(call(&host).await, "new");
    new.signal(Signal::STOP);
    assert_eq!(call(&host).await, "old");
    shown(&host, "old").await;
    lacks(&host, "new", is_unfit("")).await;
    new.signal(Signal::CONT);
    host.stop().await;
}

#[actix::test]
async fn a_plugin_that_crashes_in_a_loop_disturbs_the_standby_once_r1c_u35() {
    let stage = Stage::new();
    let (host, _old, mut new) = two(&stage).await;
    assert_eq!(call(&host).await, "new");
    // The host detects the death of a process by the end of its connection.
    new.signal(Signal::KILL);
    assert_eq!(call(&host).await, "old");
    new.end().await;
    let served = host.leases().lease(&node("zfs"), LONG).await.unwrap();
    for _ in 0..2 {
        new.say_exited(&host, "signal 9").await;
        new.start(&host).await;
        lacks(&host, "new", |lack| matches!(lack, InactiveBecause::Calm { .. })).await;
        assert_eq!(node_id(&served).await.unwrap(), "old");
        new.signal(Signal::KILL);
        new.end().await;
        assert_eq!(node_id(&served).await.unwrap(), "old", "the very lease that it had before");
    }
    shown(&host, "old").await;
    host.stop().await;
}

#[actix::test]
async fn a_plugin_that_a_wrapper_starts_again_is_another_generation_hlt_08() {
    let stage = Stage::new();
    let host = stage.builder().instances(watchful()).start().await.unwrap();
    let mut only = plugin(&stage, "only");
    let context = only.prepare(&host).await.unwrap();
    only.spawn(&context);
    only.say_started(&host).await;
    assert_eq!(call(&host).await, "only");
    let before = host.leases().lease(&node("zfs"), LONG).await.unwrap();
    only.signal(Signal::KILL);
    only.end().await;
    only.spawn(&context);
    assert_eq!(call(&host).await, "only");
    let after = host.leases().lease(&node("zfs"), LONG).await.unwrap();
    assert!(after.generation() > before.generation());
    let ended = node_id(&before).await.expect_err("it was a lease of the process that died");
    assert!(LeaseError::of(&ended).is_some_and(|error| error.needs_new_lease()), "{ended:?}");
    host.stop().await;
}

/// Checks that an allocation that has just become active answers the next call, and received no other call since it was read.
async fn answers_unread(host: &Host, task: &Task, read: &[String]) {
    let allocation = task.spec.allocation.as_str();
    shown(host, allocation).await;
    let lease = host.leases().lease(&node("zfs"), LONG).await.unwrap();
    assert_eq!(node_id(&lease).await.unwrap(), allocation);
    let calls = task.received();
    assert_eq!(calls[..read.len()], *read);
    assert_eq!(calls[read.len()..], ["NodeGetInfo"], "the call of the host, and none before it");
}

#[actix::test]
async fn a_standby_stays_warm_through_takeovers_in_both_directions_r1d() {
    let stage = Stage::new();
    // No check is due during this test.
    let (mut rounds, mut probes) = (instances(), support::allocation());
    (rounds.limits.round, probes.round) = (60 * LONG, 60 * LONG);
    let host = stage.builder().instances(rounds).allocation(probes).start().await.unwrap();
    let (mut old, mut new) = (plugin(&stage, "old"), plugin(&stage, "new"));
    old.start(&host).await;
    until_active(&host, &node("zfs"), "old").await;
    shown(&host, "old").await;
    assert_eq!(old.calls("NodeGetInfo"), 1, "{:?}", old.received());

    // A newer allocation takes over from the old one. The old one was dispensed, so its new standby instance reads it once more; it is
    // active again when the newer one dies, without another check.
    new.start(&host).await;
    until_active(&host, &node("zfs"), "new").await;
    until("the standby is read", async || old.calls("NodeGetInfo") == 2).await;
    let read = old.received();
    new.signal(Signal::KILL);
    answers_unread(&host, &old, &read).await;

    // The newer one comes back, stands by in its calm time, and is the only one left when the old one dies.
    new.end().await;
    let before = new.received().len();
    new.say_exited(&host, "signal 9").await;
    new.start(&host).await;
    lacks(&host, "new", |lack| matches!(lack, InactiveBecause::Calm { .. })).await;
    let read = new.received();
    assert!(read[before..].contains(&"NodeGetInfo".to_owned()), "{read:?}");
    old.signal(Signal::KILL);
    answers_unread(&host, &new, &read).await;
    host.stop().await;
}

/// The wrapper survives, so no end of a process notifies the host; and with the default rounds of hosts no probe is in time.
#[actix::test]
async fn a_plugin_that_is_lost_behind_its_wrapper_is_left_for_the_standby_at_once_hlt_08_r1b() {
    let stage = Stage::new();
    let options = InstancesOptions::default();
    assert!(options.limits.round > 2 * TAKEOVER);
    let host = stage.builder().instances(options).allocation(AllocationOptions::default());
    let host = host.start().await.unwrap();
    let mut old = plugin(&stage, "old");
    old.start(&host).await;
    until_active(&host, &node("zfs"), "old").await;
    let mut new = plugin(&stage, "new").behind_a_wrapper();
    new.start(&host).await;
    until_active(&host, &node("zfs"), "new").await;
    assert_eq!(call(&host).await, "new");
    let before = host.leases().lease(&node("zfs"), LONG).await.unwrap();

    new.signal_behind_the_wrapper(Signal::KILL);
    let began = Instant::now();
    assert_eq!(call(&host).await, "old");
    assert!(began.elapsed() < TAKEOVER, "it took {:?}", began.elapsed());
    let ended = node_id(&before).await.expect_err("it was a lease of the process that died");
    assert!(LeaseError::of(&ended).is_some_and(|error| error.needs_new_lease()), "{ended:?}");
    shown(&host, "old").await;
    lacks(&host, "new", is_unfit("")).await;
    assert_eq!(call(&host).await, "old");
    host.stop().await;
}

#[actix::test]
async fn a_host_that_is_started_again_calls_the_plugins_that_outlived_it_r2_r8() {
    let stage = Stage::new();
    let (host, old, new) = two(&stage).await;
    assert_eq!(call(&host).await, "new");
    host.detach().await;
    let host = stage.builder().instances(watchful()).start().await.unwrap();
    for task in [&old, &new] {
        host.allocations().ask(AdoptAllocation { spec: task.spec.clone() }).await.unwrap().unwrap();
        task.say_started(&host).await;
    }
    assert!(["old", "new"].contains(&call(&host).await.as_str()));
    until_active(&host, &node("zfs"), "new").await;
    assert_eq!(call(&host).await, "new");
    shown(&host, "new").await;
    host.stop().await;
}

/// Runs a test in its own process, whose disk can be made sick.
fn on_its_own_disk(test: &str, story: impl AsyncFnOnce()) {
    const INSIDE: &str = "NEXT_CALL_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return actix::System::new().block_on(story());
    }
    let directory = tempfile::tempdir().unwrap();
    let preloaded = Preloaded::below(directory.path());
    let mut inside = Command::new(std::env::current_exe().unwrap());
    inside.args(["--exact", test, "--nocapture"]).env(INSIDE, "yes").envs(preloaded.environment());
    let played = inside.output().unwrap();
    let said =
        [played.stdout, played.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(played.status.success() && said.contains("1 passed"), "{}\n{said}", played.status);
}

/// The active plugin dies while the disk is sick: neither this call nor a later one waits for the disk.
async fn dies_on_a_sick_disk(state: &str) {
    let stage = Stage::new();
    let (host, _old, new) = two(&stage).await;
    assert_eq!(call(&host).await, "new");
    own_disk(state);
    new.signal(Signal::KILL);
    let began = Instant::now();
    assert_eq!(call(&host).await, "old");
    shown(&host, "old").await;
    // The disk is reported as sick after 3 s; until then it might only be slow.
    assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
    until("the disk is sick", async || host.database().disk().health().reason().is_some()).await;
    assert_eq!(call(&host).await, "old");
    assert!(host.database().unwritten() > 0, "nothing that it was told is on disk");
    own_disk("ok");
    until("all is on disk", async || host.database().unwritten() == 0).await;
    assert_eq!(call(&host).await, "old");
    host.stop().await;
}

#[test]
fn a_plugin_that_dies_while_the_disk_is_full_is_left_for_the_standby_shell_1a_r1b() {
    on_its_own_disk(
        "a_plugin_that_dies_while_the_disk_is_full_is_left_for_the_standby_shell_1a_r1b",
        async || dies_on_a_sick_disk("full").await,
    );
}

#[test]
fn a_plugin_that_dies_while_the_disk_hangs_is_left_for_the_standby_shell_1a_r1b() {
    on_its_own_disk(
        "a_plugin_that_dies_while_the_disk_hangs_is_left_for_the_standby_shell_1a_r1b",
        async || dies_on_a_sick_disk("hang").await,
    );
}
