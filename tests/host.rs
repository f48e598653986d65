//! Tests that a host starts, answers, and ends in order, inside an actix system and on its own thread.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use callboard::actors::inventory::AwaitFirst;
use callboard::actors::persister::OpenError;
use callboard::actors::registry::{Describe, List, Register, Registered, Standing};
use callboard::actors::supervisor::StopOutcome;
use callboard::actors::vocabulary::{AllocationId, PluginKey, PluginName, PluginType, SocketPath};
use callboard::actors::volumes::VolumesOptions;
use callboard::host::{Host, StartError};

/// The deadline of things that happen soon.
const TIMEOUT: Duration = Duration::from_secs(60);

fn plugin() -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap())
}

fn register(allocation: &str) -> Register {
    Register {
        policy: None,
        plugins: vec![plugin()],
        allocation: AllocationId::new(allocation).unwrap(),
        socket: SocketPath::new("/nowhere/csi.sock").unwrap(),
        provider: None,
        version: None,
        options: Arc::new(BTreeMap::new()),
    }
}

#[actix::test]
async fn a_host_stops_its_actors_in_reverse_order_and_reports_each_s2_s3() {
    let data_dir = tempfile::tempdir().unwrap();
    let host = Host::builder(data_dir.path()).start().await.unwrap();
    let tree = host.tree().await.unwrap();
    let started: Vec<&str> = tree.children.iter().map(|child| child.name.as_str()).collect();
    let report = host.stop().await;
    let stopped: Vec<&str> = report.children.iter().map(|child| child.name.as_str()).collect();
    assert_eq!(stopped, started.into_iter().rev().collect::<Vec<_>>());
    for child in &report.children {
        assert_eq!(child.ending, StopOutcome::Stopped, "{}", child.name);
    }
    assert!(host.registry().ask(List).await.is_err(), "no actor is left to answer");
}

#[actix::test]
async fn an_empty_node_is_known_at_once_hlt_06() {
    let data_dir = tempfile::tempdir().unwrap();
    let host = Host::builder(data_dir.path()).start().await.unwrap();
    let first = host.inventory().ask(AwaitFirst);
    let first = tokio::time::timeout(Duration::from_secs(1), first).await;
    assert!(first.expect("no wait for what is not there").is_ok());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_tokio_program_has_a_host_on_a_thread_of_its_own_and_finds_everything_again_p4() {
    let data_dir = tempfile::tempdir().unwrap();
    let host = Host::builder(data_dir.path()).start_on_own_thread().await.unwrap();
    assert_eq!(host.registry().ask(register("a")).await.unwrap(), Ok(Registered::New));
    assert_eq!(host.registry().ask(register("b")).await.unwrap(), Ok(Registered::New));
    let run = host.run_number();
    host.detach().await;

    let host = Host::builder(data_dir.path()).start_on_own_thread().await.unwrap();
    assert!(host.run_number() > run);
    let described = host.registry().ask(Describe { plugin: plugin() }).await.unwrap();
    let order: Vec<&str> =
        described.provisional.iter().map(|entry| entry.registration.allocation.as_str()).collect();
    assert_eq!(order, ["b", "a"], "in their order, the newest first");
    assert!(described.provisional.iter().all(|entry| entry.standing == Standing::Provisional));
    host.stop().await;
}

#[test]
fn a_start_outside_of_an_actix_system_says_how_a_plain_tokio_program_starts_a_host() {
    let stage = tempfile::tempdir().unwrap();
    let data_dir = stage.path().join("data");
    let builder = Host::builder(&data_dir);
    // A thread that has never had an actix system.
    let started = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(builder.start()).map(drop)
    });
    let refused = started.join().expect("it does not panic").unwrap_err();
    assert!(matches!(refused, StartError::NoSystem) && !refused.is_transient(), "{refused}");
    assert!(refused.to_string().contains("HostBuilder::start_on_own_thread"), "{refused}");
    assert!(!data_dir.exists(), "nothing was opened");
}

#[actix::test]
async fn deadlines_that_leave_a_call_of_a_volume_no_time_are_refused_and_said() {
    let stage = tempfile::tempdir().unwrap();
    let data_dir = stage.path().join("data");
    let with_deadlines = |call_s, look_s| {
        let mut options = VolumesOptions::default();
        options.volume.call_deadline = Duration::from_secs(call_s);
        options.volume.look_deadline = Duration::from_secs(look_s);
        Host::builder(&data_dir).volumes(options)
    };
    for call_s in [0, 9, 10] {
        let refused = with_deadlines(call_s, 10).start().await.unwrap_err();
        assert!(
            matches!(refused, StartError::VolumeDeadlines { .. }) && !refused.is_transient(),
            "{refused}"
        );
        let told = refused.to_string();
        let call = format!("VolumeOptions::call_deadline is {:?}", Duration::from_secs(call_s));
        for part in [call.as_str(), "VolumeOptions::look_deadline", "is 10s", "make call_deadline the longer"]
        {
            assert!(told.contains(part), "{part:?} is missing in: {told}");
        }
        assert!(!data_dir.exists(), "nothing was opened");
    }
    with_deadlines(11, 10).start().await.expect("some time is left").stop().await;
}

#[actix::test]
async fn a_stop_that_overlaps_with_another_has_the_same_report_and_a_later_one_says_that_it_has_ended() {
    let data_dir = tempfile::tempdir().unwrap();
    let host = Host::builder(data_dir.path()).start().await.unwrap();
    let (first, second) = tokio::join!(host.stop(), host.stop());
    assert_eq!(first.children.len(), second.children.len(), "{first:?} {second:?}");
    assert!(first.children.len() > 1, "{first:?}");
    let late = host.stop().await;
    let [child] = &late.children[..] else { panic!("{late:?}") };
    assert_eq!(child.name, "host");
    assert!(matches!(child.ending, StopOutcome::EndedBefore { in_order: true, .. }), "{late:?}");
}

#[actix::test]
async fn a_second_host_on_the_same_directory_is_refused_and_told_who_was_first_p5() {
    let data_dir = tempfile::tempdir().unwrap();
    let first = Host::builder(data_dir.path()).start().await.unwrap();
    let second = Host::builder(data_dir.path()).start().await.unwrap_err();
    assert!(matches!(&second, StartError::Database(OpenError::Locked { .. })), "{second}");
    assert!(second.to_string().contains(&std::process::id().to_string()), "{second}");
    first.stop().await;
    let third = Host::builder(data_dir.path()).start().await.expect("the directory is free again");
    third.stop().await;
}

#[actix::test]
async fn a_host_does_not_start_on_a_copy_whose_original_was_moved_and_runs_th053() {
    if callboard::actors::ownership::default_marks_dir().is_none() {
        eprintln!(
            "SKIPPED: a copy whose original was moved is not shown, since there is no directory of marks here"
        );
        return;
    }
    let stage = tempfile::tempdir().unwrap();
    let [original, copy, moved] = ["original", "copy", "moved"].map(|name| stage.path().join(name));
    Host::builder(&original).start().await.unwrap().stop().await;
    let copied = std::process::Command::new("cp").arg("-a").args([&original, &copy]).status().unwrap();
    assert!(copied.success());
    std::fs::rename(&original, &moved).unwrap();
    let host = Host::builder(&moved).start().await.unwrap();
    let Err(StartError::Ownership(refused)) = Host::builder(&copy).start().await else {
        panic!("two hosts run with one mark");
    };
    assert!(refused.to_string().contains(&moved.canonicalize().unwrap().display().to_string()), "{refused}");
    host.stop().await;
    // A host that has ended has released its mark.
    Host::builder(&moved).start().await.unwrap().stop().await;
}

/// Sends a message when the waker is woken.
struct Alarm(mpsc::Sender<()>);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

/// Starts a host on a directory that another host is about to release.
async fn start_when_free(data_dir: &std::path::Path) -> callboard::host::HostThread {
    let began = Instant::now();
    loop {
        match Host::builder(data_dir).start_on_own_thread().await {
            Ok(host) => return host,
            Err(StartError::Database(OpenError::Locked { .. })) if began.elapsed() < TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_host_whose_start_is_given_up_at_any_moment_leaves_its_directory_p5_s4() {
    for waits_for_the_answer in [true, false] {
        let data_dir = tempfile::tempdir().unwrap();
        let mut start = Box::pin(Host::builder(data_dir.path()).start_on_own_thread());
        let (wake, woken) = mpsc::channel();
        let waker = Waker::from(Arc::new(Alarm(wake)));
        assert!(start.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        if waits_for_the_answer {
            // Then the answer has arrived, but is not read.
            woken.recv_timeout(TIMEOUT).expect("the thread answers");
        }
        drop(start);
        let next = start_when_free(data_dir.path()).await;
        next.stop().await;
    }
}
