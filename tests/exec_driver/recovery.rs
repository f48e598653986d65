//! Tests handles as Nomad returns them after a restart of its agent: without the configuration of the driver, and with any
//! environment (T150, T151, T174).

use std::fs;

use callboard_proto::drivers::*;
use rustix::process::Signal;

use crate::rig::{LONG, Place, Plugin, lives, next};

/// The part of a handle that Nomad stores.
fn stored(handle: TaskHandle) -> TaskHandle {
    let config = handle.config.expect("a configuration");
    let config =
        TaskConfig { msgpack_driver_config: Vec::new(), env: [].into(), device_env: [].into(), ..config };
    TaskHandle { config: Some(config), ..handle }
}

async fn pid(plugin: &mut Plugin, task_id: &str) -> i32 {
    let attributes = plugin.inspect(task_id).await.driver.expect("attributes").attributes;
    attributes["pid"].parse().expect("a number")
}

#[tokio::test]
async fn a_task_is_recovered_without_its_configuration_and_without_its_environment_t150_t151_t174_th092() {
    let place = Place::new();
    let mut first = place.start(&[]).await;
    let script = format!(
        "echo up >> {}; trap 'exit 6' USR1; while :; do sleep 0.02; done",
        place.path("starts").display()
    );
    let handle = first.start(place.shell("t1", &script)).await.expect("it starts");
    place.until("starts", "up\n").await;
    let before = pid(&mut first, "t1").await;
    // The agent stops in order: the driver is shut down, but its task is not.
    first.signal(Signal::TERM);
    assert_eq!(first.end().await.code(), Some(0));

    let mut second = place.start(&[]).await;
    second.recover(stored(handle.clone())).await.expect("its record lies beside it");
    assert_eq!(pid(&mut second, "t1").await, before);
    let output = second.exec("t1", &["/bin/sh", "-c", "echo $WORD-$PWD"], LONG).await.expect("it runs");
    let told = format!("hello-{}\n", place.path("alloc/t1-task").display());
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        told,
        "what the task has, and not what the handle has"
    );
    let mut reports = second.stats("t1").await;
    let report = reports.message().await.expect("a report").expect("a report").stats.expect("stats");
    assert!(report.agg_resource_usage.expect("a sum").memory.expect("memory").rss > 0);
    second.kill().await;

    let mut third = place.start(&[]).await;
    let other = [("WORD".to_owned(), "other".to_owned())].into();
    let mut different = stored(handle);
    different.config.as_mut().expect("a configuration").env = other;
    third.recover(different).await.expect("its record lies beside it");
    let output = third.exec("t1", &["/bin/sh", "-c", "echo $WORD"], LONG).await.expect("it runs");
    assert_eq!(&*output.stdout, b"hello\n");
    third.signal_task("t1", "SIGUSR1").await.expect("it runs");
    assert_eq!(third.wait("t1").await, (6, 0, String::new()));
    third.destroy("t1", false).await.expect("it has ended");
    assert_eq!(place.read("starts"), "up\n", "it was started once");
}

#[tokio::test]
async fn a_task_that_ended_while_no_driver_was_there_is_recovered_with_its_exit_code_t151_t154_th092() {
    let place = Place::new();
    let mut first = place.start(&[]).await;
    let script = format!("while ! [ -e {0}/go ]; do sleep 0.02; done; exit 9", place.path("").display());
    let handle = first.start(place.shell("t1", &script)).await.expect("it starts");
    let task = pid(&mut first, "t1").await;
    first.kill().await;
    fs::write(place.path("go"), "").expect("room");
    crate::rig::until("it ends", || !lives(task)).await;
    let mut second = place.start(&[]).await;
    second.recover(stored(handle)).await.expect("its record lies beside it");
    assert_eq!(second.wait("t1").await, (9, 0, String::new()));
    // A host that subscribes late and without positions still receives the end.
    let request = tonic::Request::new(TaskEventsRequest {});
    let mut events = second.driver.task_events(request).await.expect("a stream").into_inner();
    let kinds =
        [next(&mut events).await, next(&mut events).await].map(|event| event.annotations["kind"].clone());
    assert_eq!(kinds, ["recovered", "exited"]);
}

#[tokio::test]
async fn a_task_that_threw_its_environment_away_gets_what_its_handle_says_th092() {
    let place = Place::new();
    let mut first = place.start(&[]).await;
    let handle =
        first.start(place.task("t1", &["/usr/bin/env", "-i", "sleep", "1000"])).await.expect("it starts");
    let task = pid(&mut first, "t1").await;
    crate::rig::until("it has thrown it away", || Place::command_of(task).starts_with("sleep")).await;
    first.kill().await;
    let mut second = place.start(&[]).await;
    let config = handle.config.clone().expect("a configuration");
    let config = TaskConfig { msgpack_driver_config: Vec::new(), ..config };
    second.recover(TaskHandle { config: Some(config), ..handle }).await.expect("its record lies beside it");
    let output = second.exec("t1", &["/bin/sh", "-c", "echo $WORD"], LONG).await.expect("it runs");
    assert_eq!(&*output.stdout, b"hello\n");
    second.destroy("t1", true).await.expect("it is killed");
}

/// An operator forgets --state-dir, and the host forgets the handle: the task can still be destroyed.
#[tokio::test]
async fn a_task_that_is_not_recovered_can_be_destroyed_without_any_flag_t152_t174() {
    let place = Place::new();
    let mut first = place.start(&[]).await;
    first.start(place.shell("t1", "exec sleep 1000")).await.expect("it starts");
    let task = pid(&mut first, "t1").await;
    first.kill().await;
    let mut second = place.start(&[]).await;
    second.destroy("t1", true).await.expect("it is noted where the system keeps such things");
    assert!(!lives(task));
    let notes = place.path("runtime/callboard-exec");
    assert_eq!(fs::read_dir(notes).expect("the notes").count(), 0, "nothing is left");
}

#[tokio::test]
async fn what_is_kept_of_a_task_holds_nothing_that_may_be_secret_p6_t150() {
    let place = Place::new();
    let mut plugin = place.start(&[]).await;
    let mut task = place.shell("t1", "sleep 1000 # secret-argument");
    task.env.insert("TOKEN".to_owned(), "secret-value".to_owned());
    let handle = plugin.start(task).await.expect("it starts");
    let kept = |directory: &str| {
        let mut found = Vec::new();
        let mut waiting = vec![place.path(directory)];
        while let Some(path) = waiting.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => waiting.extend(entries.flatten().map(|entry| entry.path())),
                // A FIFO has no contents.
                Err(_) if path.ends_with("control") => {}
                Err(_) => found.extend(fs::read(&path).unwrap_or_default()),
            }
        }
        String::from_utf8_lossy(&found).into_owned()
    };
    for text in [kept("alloc"), kept("runtime"), String::from_utf8_lossy(&handle.driver_state).into_owned()] {
        assert!(!text.is_empty() && !text.contains("secret"), "{text}");
    }
    plugin.destroy("t1", true).await.expect("it is killed");
}
