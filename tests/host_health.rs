//! Tests that the health of plugins as a host reports it agrees with its actions. All plugins are real processes.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard::actors::allocations::{
    AllocationPhase, AllocationSpec, Allocations, AllocationsNews, AllocationsView, ListAllocations,
    PrepareAllocation, TaskEvent, TaskEventKind,
};
use callboard::actors::instances::{CheckNow, DispenseError, InstancesNews};
use callboard::actors::inventory::{AwaitFirst, InventoryNews, InventoryOptions, Offer, TakeInventory};
use callboard::actors::registry::{Register, WaitForPlugin};
use callboard::actors::supervisor::StopOutcome;
use callboard::actors::vocabulary::{Health, PluginKey, Role, SocketPath, TaskName};
use callboard::host::Host;
use futures_util::future::join_all;
use rustix::process::Signal;

use support::{LONG, Stage, Task, Watch, dispense, id, node, until};

type AllocationsWatch = Watch<AllocationsNews, AllocationsView>;

fn watch(host: &Host) -> AllocationsWatch {
    Watch::on::<Allocations>(host.allocations())
}

/// The kinds of the events of tasks.
fn kinds(news: &[AllocationsNews]) -> Vec<TaskEventKind> {
    let kind = |news: &AllocationsNews| match news {
        AllocationsNews::Task(event) => Some(event.kind),
        AllocationsNews::Changed(_)
        | AllocationsNews::Gone(_)
        | AllocationsNews::Refused { .. }
        | AllocationsNews::RestartRequested { .. } => None,
    };
    news.iter().filter_map(kind).collect()
}

/// The allocations that are to be restarted.
fn restarts(news: &[AllocationsNews]) -> Vec<&str> {
    let mut found = Vec::new();
    for change in news {
        match change {
            AllocationsNews::RestartRequested { allocation, .. } => found.push(allocation.as_str()),
            AllocationsNews::Changed(_)
            | AllocationsNews::Gone(_)
            | AllocationsNews::Refused { .. }
            | AllocationsNews::Task(_) => {}
        }
    }
    found
}

async fn event(watch: &mut AllocationsWatch, allocation: &str, kind: TaskEventKind) -> TaskEvent {
    let what = format!("{kind:?} of {allocation}");
    let is_it = |news: &AllocationsNews| match news {
        AllocationsNews::Task(event) if event.allocation.as_str() == allocation && event.kind == kind => {
            Some(event.clone())
        }
        _ => None,
    };
    watch.until(&what, is_it).await
}

async fn offer(host: &Host, plugin: &PluginKey) -> Option<Offer> {
    let view = host.inventory().ask(TakeInventory).await.unwrap();
    view.offers.into_iter().find(|offer| offer.plugin == *plugin)
}

fn register(plugin: &PluginKey, socket: &SocketPath) -> Register {
    Register {
        policy: None,
        plugins: vec![plugin.clone()],
        allocation: id("by-hand"),
        socket: socket.clone(),
        provider: None,
        version: None,
        options: Arc::default(),
    }
}

#[actix::test]
async fn a_plugin_is_called_healthy_only_when_everything_was_read_from_it_hlt_01() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let mut allocations = watch(&host);
    let mut instances = Watch::on(host.instances());
    let mut task = Task::new(&stage, "a", "zfs", Role::Node).with(&["--hang=NodeGetCapabilities"]);
    task.start(&host).await;
    host.registry().ask(WaitForPlugin { plugin: plugin.clone(), within: LONG }).await.unwrap().unwrap();
    let reason = instances
        .until("it is unhealthy", |news| match news {
            InstancesNews::Reported(report) => {
                assert_ne!(report.health, Health::Healthy);
                report.health.reason().map(str::to_owned)
            }
            _ => None,
        })
        .await;
    assert!(reason.contains("NodeGetCapabilities"), "{reason}");
    let refused = dispense(&host, &plugin, Duration::ZERO).await.unwrap_err();
    assert!(matches!(&refused, DispenseError::Unhealthy { .. }), "{refused}");
    let told = allocations.during(Duration::from_secs(2)).await;
    assert!(!kinds(&told).contains(&TaskEventKind::Healthy), "{told:#?}");
    let statuses = host.allocations().ask(ListAllocations).await.unwrap();
    assert_ne!(statuses[0].health, Health::Healthy, "{:?}", statuses[0]);
    let offer = offer(&host, &plugin).await;
    assert!(offer.is_none_or(|offer| offer.health != Health::Healthy));

    task.kill(&host).await;
    task.arguments.retain(|argument| !argument.starts_with("--hang"));
    task.start(&host).await;
    event(&mut allocations, "a", TaskEventKind::Healthy).await;
    assert!(task.calls("NodeGetInfo") > 0, "{}", task.said());
    let dispensed = dispense(&host, &plugin, Duration::ZERO).await;
    assert!(dispensed.is_ok(), "what is called healthy is handed out: {dispensed:?}");
    task.stop(&host).await;
    host.stop().await;
}

#[actix::test]
async fn each_plugin_has_its_own_time_to_get_ready_and_one_restart_is_asked_for_hlt_02() {
    let stage = Stage::new();
    let host = stage.host().await;
    // The slow plugin may become ready while the test still reads the news of the other.
    let (mut allocations, mut of_slow) = (watch(&host), watch(&host));
    let mut slow = Task::new(&stage, "slow", "slow", Role::Node).with(&["--ready-after=4s"]);
    slow.spec.health_timeout = LONG;
    let mut never = Task::new(&stage, "never", "never", Role::Node).with(&["--never-ready"]);
    never.spec.health_timeout = Duration::from_millis(700);
    slow.start(&host).await;
    for _ in 0..2 {
        never.start(&host).await;
        let told = event(&mut allocations, "never", TaskEventKind::NotReadyInTime).await;
        assert!(told.message.contains("not ready"), "{}", told.message);
        let rest = allocations.during(Duration::from_millis(1_500)).await;
        assert_eq!(restarts(&rest), ["never"], "asked once for each start: {rest:#?}");
        never.kill(&host).await;
    }
    event(&mut of_slow, "slow", TaskEventKind::Healthy).await;
    assert_eq!(restarts(&allocations.so_far()), Vec::<&str>::new(), "the slow one is not restarted");
    slow.stop(&host).await;
    never.stop(&host).await;
    host.stop().await;
}

#[actix::test]
async fn a_plugin_that_falls_silent_is_routed_to_no_more_and_told_of_once_hlt_03() {
    let stage = Stage::new();
    let mut options = support::instances();
    options.limits.call_deadline = Duration::from_millis(500);
    let host = stage.builder().instances(options).start().await.unwrap();
    let plugin = node("zfs");
    let mut task = Task::new(&stage, "a", "zfs", Role::Node);
    let mut allocations = watch(&host);
    task.start(&host).await;
    event(&mut allocations, "a", TaskEventKind::Healthy).await;
    dispense(&host, &plugin, LONG).await.unwrap();
    let mut inventory = Watch::on(host.inventory());
    host.inventory().ask(AwaitFirst).await.unwrap();
    inventory.so_far();

    // Its sockets still accept connections, but no answer arrives.
    task.signal(Signal::STOP);
    let told = event(&mut allocations, "a", TaskEventKind::Unhealthy).await;
    assert!(told.message.contains("Probe") && told.message.contains("deadline"), "{}", told.message);
    let refused = dispense(&host, &plugin, Duration::ZERO).await.unwrap_err();
    assert!(matches!(&refused, DispenseError::Unhealthy { .. }), "{refused}");
    let shown = offer(&host, &plugin).await.unwrap();
    assert!(matches!(shown.health, Health::Unhealthy { .. }), "what is shown is what routes");
    let silent = allocations.during(Duration::from_secs(3)).await;
    assert_eq!(kinds(&silent), [], "told once: {silent:#?}");
    assert_eq!(restarts(&silent), Vec::<&str>::new(), "an unhealthy plugin is not restarted by its host");

    task.signal(Signal::CONT);
    dispense(&host, &plugin, LONG).await.unwrap();
    event(&mut allocations, "a", TaskEventKind::Healthy).await;
    let healthy = allocations.during(Duration::from_secs(1)).await;
    assert_eq!(kinds(&healthy), [], "told once: {healthy:#?}");
    task.stop(&host).await;
    host.stop().await;
}

#[actix::test]
async fn whatever_fails_first_is_tried_again_until_it_works_hlt_04() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let mut task = Task::new(&stage, "a", "zfs", Role::Node);
    let context = task.prepare(&host).await.unwrap();
    let mut instances = Watch::on(host.instances());
    host.registry().ask(register(&plugin, &context.socket)).await.unwrap().unwrap();
    let unhealthy = |news: &InstancesNews| match news {
        InstancesNews::Reported(report) => report.health.reason().map(str::to_owned),
        _ => None,
    };
    let reason = instances.until("the first failure", unhealthy).await;
    assert!(reason.contains("no socket is there"), "{reason}");
    for _ in 0..10 {
        // Each check is another attempt, and each fails like the first.
        let report = host.instances().ask(CheckNow { plugin: plugin.clone() }).await.unwrap().unwrap();
        assert_eq!(report.health.reason(), Some(&*reason));
    }
    task.spawn(&context);
    let dispensed = dispense(&host, &plugin, LONG).await.unwrap();
    assert_eq!(dispensed.allocation, id("by-hand"));

    // A host stops cleanly while one plugin works and another has never worked.
    let absent = SocketPath::new("/nowhere/csi.sock").unwrap();
    host.registry().ask(register(&node("absent"), &absent)).await.unwrap().unwrap();
    instances.until("the other fails", unhealthy).await;
    let report = host.stop().await;
    assert!(report.children.iter().all(|child| child.ending == StopOutcome::Stopped), "{report:?}");
}

#[actix::test]
async fn a_plugin_that_has_nothing_to_offer_is_no_reason_to_wait_hlt_06() {
    let stage = Stage::new();
    let host = stage.host().await;
    let mut task = Task::new(&stage, "a", "zfs", Role::Node).with(&["--without-controller"]);
    task.start(&host).await;
    dispense(&host, &node("zfs"), LONG).await.unwrap();
    host.detach().await;

    let began = Instant::now();
    let host = stage.host().await;
    let view = host.inventory().ask(AwaitFirst).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(view.first.unwrap().healthy, [node("zfs")]);
    let offered = view.offers[0].fingerprint.as_ref().unwrap().csi().unwrap();
    assert_eq!(
        (&offered.plugin[..], offered.node.as_deref()),
        (&[][..], Some(&[][..])),
        "empty, not unknown"
    );
    task.signal(Signal::TERM);
    task.end().await;
    host.stop().await;
}

#[actix::test]
async fn the_first_inventory_waits_for_each_allocation_of_a_plugin_and_for_none_that_is_refused_n1() {
    let stage = Stage::new();
    let expected = ["a", "b", "refused"].map(|name| (node("zfs"), id(name))).to_vec();
    let options = InventoryOptions { expected, ..InventoryOptions::default() };
    let host = stage.builder().inventory(options).start().await.unwrap();
    let mut first = Task::new(&stage, "a", "zfs", Role::Node);
    first.start(&host).await;
    dispense(&host, &node("zfs"), LONG).await.unwrap();
    let environment = [("CSI_ENDPOINT".to_owned(), "tcp://127.0.0.1:7".to_owned())].into();
    let task = TaskName::new("plugin").unwrap();
    let spec = AllocationSpec::new(id("refused"), task, node("zfs").name, Role::Node);
    let spec = AllocationSpec { environment, ..spec };
    assert!(host.allocations().ask(PrepareAllocation { spec }).await.unwrap().is_err());
    let known = host.inventory().ask(TakeInventory).await.unwrap();
    assert_eq!(known.first, None, "the second one has not answered");

    let mut second = Task::new(&stage, "b", "zfs", Role::Node);
    second.start(&host).await;
    let view = host.inventory().ask(AwaitFirst).await.unwrap();
    let summary = view.first.unwrap();
    assert_eq!((summary.healthy, summary.missing), (vec![node("zfs")], vec![]));
    for task in [&mut first, &mut second] {
        task.signal(Signal::TERM);
        task.end().await;
    }
    host.stop().await;
}

#[actix::test]
async fn a_restart_within_the_grace_is_no_removal_and_a_longer_absence_is_one_hlt_08() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let mut task = Task::new(&stage, "a", "zfs", Role::Node);
    task.start(&host).await;
    dispense(&host, &plugin, LONG).await.unwrap();
    host.inventory().ask(AwaitFirst).await.unwrap();
    until("it is offered", async || offer(&host, &plugin).await.is_some()).await;
    let mut inventory = Watch::on(host.inventory());
    let mut instances = Watch::on(host.instances());

    task.kill(&host).await;
    let gone = |news: &InstancesNews| match news {
        InstancesNews::Left(report) => Some(report.health.clone()),
        _ => None,
    };
    assert_eq!(instances.until("its last word", gone).await, Health::Gone);
    until("it is known to be away", async || offer(&host, &plugin).await.unwrap().restarting).await;
    let refused = dispense(&host, &plugin, Duration::ZERO).await.unwrap_err();
    assert!(matches!(&refused, DispenseError::NotServed { .. }), "nothing new is placed on it: {refused}");
    task.start(&host).await;
    dispense(&host, &plugin, LONG).await.unwrap();
    until("it is back", async || !offer(&host, &plugin).await.unwrap().restarting).await;
    let told = inventory.so_far();
    // The number of volumes in use may become known only now.
    let is_no_removal =
        |news: &InventoryNews| matches!(news, InventoryNews::Changed(_) | InventoryNews::VolumesUsed { .. });
    assert!(told.iter().all(is_no_removal), "a restart within the grace removes nothing: {told:?}");

    task.kill(&host).await;
    let removed = |news: &InventoryNews| match news {
        InventoryNews::Removed(offer) => Some(offer.clone()),
        InventoryNews::Changed(_) | InventoryNews::VolumesUsed { .. } => None,
        InventoryNews::First(..) => panic!("{news:?}"),
    };
    let last = inventory.until("the removal", removed).await;
    assert_eq!((last.plugin, last.health), (plugin, Health::Gone));
    assert_eq!(inventory.during(Duration::from_millis(500)).await, []);
    host.stop().await;
}

/// A fault: its name, the arguments of the plugin, and the words that its report must contain.
type Injected = (&'static str, &'static [&'static str], &'static [&'static str]);

const FAULTS: [Injected; 11] = [
    ("never-listens", &["--listen-after=1h"], &["no socket is there"]),
    ("dies", &["--exit-after=300ms", "--never-ready"], &["refused"]),
    ("never-ready", &["--never-ready"], &["not ready"]),
    ("hangs", &["--hang=Probe"], &["Probe", "deadline"]),
    ("hangs-later", &["--hang=GetPluginInfo"], &["GetPluginInfo", "deadline"]),
    ("fails", &["--fail=Probe=INTERNAL"], &["Probe", "INTERNAL", "as it was told to"]),
    ("precondition", &["--fail=Probe=FAILED_PRECONDITION"], &["Probe", "FAILED_PRECONDITION"]),
    ("empty-name", &["--garbage=empty-name"], &["GetPluginInfo", "name is empty"]),
    ("long-name", &["--garbage=long-name"], &["GetPluginInfo", "200 bytes"]),
    ("bad-name", &["--garbage=bad-name"], &["GetPluginInfo", "expected a domain name"]),
    ("large-map", &["--garbage=large-map"], &["GetPluginInfo", "manifest has 1048581 bytes"]),
];

#[actix::test]
async fn whatever_keeps_a_plugin_from_getting_ready_is_called_by_its_name_log_05() {
    let stage = Stage::new();
    let options = callboard::actors::allocation::AllocationOptions {
        call_deadline: Duration::from_millis(400),
        ..support::allocation()
    };
    let host = stage.builder().allocation(options).start().await.unwrap();
    let told = FAULTS.map(|(name, arguments, words)| {
        let (host, stage) = (&host, &stage);
        async move {
            let mut allocations = watch(host);
            let mut task = Task::new(stage, name, name, Role::Node).with(arguments);
            task.spec.health_timeout = Duration::from_secs(3);
            task.start(host).await;
            let event = event(&mut allocations, name, TaskEventKind::NotReadyInTime).await;
            for word in words {
                assert!(event.message.contains(word), "{name}: {word:?} is missing in: {}", event.message);
            }
            assert!(event.message.lines().count() == 1 && event.message.len() < 1_000, "{}", event.message);
            println!("{name}: {}", event.message);
            let statuses = host.allocations().ask(ListAllocations).await.unwrap();
            let status = statuses.iter().find(|status| status.allocation == id(name)).unwrap();
            assert_eq!(status.phase, AllocationPhase::AwaitingRestart);
            assert!(words.iter().all(|word| status.last_event.contains(word)), "{}", status.last_event);
            task
        }
    });
    let mut tasks = join_all(told).await;

    // None of these faults affected the host.
    let mut good = Task::new(&stage, "good", "good", Role::Monolith);
    good.start(&host).await;
    dispense(&host, &node("good"), LONG).await.unwrap();
    assert_eq!(host.notices().recent(), []);
    for task in &mut tasks {
        if task.spec.allocation == id("dies") {
            task.end().await;
            task.say_exited(&host, "exit code 1").await;
        }
        assert!(task.stop(&host).await.remarks.is_empty());
    }
    good.stop(&host).await;
    host.stop().await;
}

#[actix::test]
async fn what_goes_wrong_after_a_plugin_signed_in_is_shown_by_its_name_in_the_inventory_log_05() {
    let faults: [Injected; 6] = [
        (
            "capabilities",
            &["--fail=NodeGetCapabilities=UNAVAILABLE"],
            &["NodeGetCapabilities", "UNAVAILABLE"],
        ),
        ("hangs", &["--hang=NodeGetInfo"], &["NodeGetInfo", "deadline"]),
        ("empty-name", &["--garbage=empty-name"], &["GetPluginInfo", "name is empty"]),
        ("long-name", &["--garbage=long-name"], &["GetPluginInfo", "200 bytes"]),
        ("large-map", &["--garbage=large-map"], &["GetPluginInfo", "1048581 bytes"]),
        ("dies", &["--exit-after=2s"], &["refused"]),
    ];
    let stage = Stage::new();
    let mut options = support::instances();
    options.limits.call_deadline = Duration::from_millis(700);
    let host = stage.builder().instances(options).start().await.unwrap();
    host.inventory().ask(AwaitFirst).await.unwrap();
    let shown = faults.map(|(name, arguments, words)| {
        let (host, stage) = (&host, &stage);
        async move {
            let plugin = node(name);
            let mut task = Task::new(stage, name, name, Role::Node).with(arguments);
            let context = task.prepare(host).await.unwrap();
            task.spawn(&context);
            until("it listens", async || context.socket.as_path().exists()).await;
            host.registry().ask(register(&plugin, &context.socket)).await.unwrap().unwrap();
            until(&format!("{name} is shown with {words:?}"), async || {
                let shown = offer(host, &plugin).await;
                let reason = shown.as_ref().and_then(|offer| offer.health.reason()).unwrap_or_default();
                words.iter().all(|word| reason.contains(word)) && reason.lines().count() == 1
            })
            .await;
            let refused = dispense(host, &plugin, Duration::ZERO).await.unwrap_err().to_string();
            assert!(words.iter().all(|word| refused.contains(word)), "{name}: {refused}");
            task
        }
    });
    let tasks = join_all(shown).await;
    assert_eq!(host.notices().recent(), []);
    host.stop().await;
    drop(tasks);
}

#[actix::test]
async fn a_plugin_that_comes_back_under_another_name_is_refused_by_its_rule_log_05_c031() {
    let stage = Stage::new();
    let host = stage.host().await;
    let plugin = node("zfs");
    let mark = format!("--rename-on-restart={}", stage.path("mark").display());
    let mut task = Task::new(&stage, "a", "zfs", Role::Node).with(&[&mark]);
    let context = task.prepare(&host).await.unwrap();
    task.spawn(&context);
    host.registry().ask(register(&plugin, &context.socket)).await.unwrap().unwrap();
    dispense(&host, &plugin, LONG).await.unwrap();
    task.signal(Signal::KILL);
    task.end().await;
    task.spawn(&context);
    until("it is found out", async || {
        let refused = dispense(&host, &plugin, Duration::ZERO).await;
        refused.is_err_and(|refused| {
            let told = refused.to_string();
            told.contains("renamed.hostpath.callboard.example") && told.contains("and is now")
        })
    })
    .await;
    host.stop().await;
}
