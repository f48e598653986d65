//! Runs one life of a host that is killed: it claims, writes and releases, creates and deletes, and reports each step once it is true.

use std::fs::{self, File};
use std::io::{BufRead, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use callboard::actors::allocations::{AdoptAllocation, PrepareAllocation};
use callboard::actors::volumes::{
    ConfirmClaims, CreateSnapshot, DeleteError, DeleteSnapshot, DeleteVolume, ListVolumes,
};
use callboard::host::Host;
use futures_util::future::join_all;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{DIRECTORY, LIFE, LIVING, VOLUMES, every_number, keeper_of, pairs};
use crate::namespace::block_on;
use crate::node::{claim, create, creation, delete, key, plugin, refined, release};
use crate::support::{self, LONG, PAUSE, Stage, Task, id};

/// The volume that is created and deleted again and again, the allocation that uses it, and its snapshot.
const SCRATCH: (&str, &str, &str) = ("scratch", "scratch-a", "of-scratch");

/// Not a test of its own: one life of the host, in a process that is killed. In life 0 the host ends in order.
#[test]
fn a_host_that_works_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let life: u32 = std::env::var(LIFE).unwrap().parse().unwrap();
    let living = std::env::var(LIVING).unwrap();
    let living: Vec<&str> = living.split_whitespace().collect();
    block_on(async {
        let builder = Host::builder(directory.join("data")).runtime_dir(&directory);
        let builder = builder.instances(support::instances()).allocation(support::allocation());
        let host = refined(builder.registry(support::registry())).start_on_own_thread().await.unwrap();
        let task = take_plugin(&host, life).await;
        for volume in VOLUMES.into_iter().filter(|_| life == 1) {
            create(&host, volume).await;
        }
        let confirmed = ConfirmClaims {
            living: living.iter().map(|allocation| id(allocation)).collect(),
            unclear: [].into(),
        };
        host.volumes().ask(confirmed).await.unwrap();
        say("ready");
        if life > 0 {
            let users = join_all(pairs().map(|pair| claim_and_release(&host, pair, &living)));
            let keepers = join_all(VOLUMES.map(|volume| keep(&host, volume, &living)));
            let scratch = async {
                loop {
                    create_and_delete(&host).await;
                }
            };
            tokio::join!(users, keepers, scratch, follow_plugin(&host, &task));
        }
        end(&host).await;
        say("done");
    });
}

/// Undoes and deletes everything.
async fn end(host: &Host) {
    create_and_delete(host).await;
    while host.volumes().ask(ListVolumes).await.unwrap().iter().any(|volume| volume.status.is_some()) {
        tokio::time::sleep(PAUSE).await;
    }
    for volume in VOLUMES {
        delete(host, &key(volume)).await;
    }
    let report = host.stop().await;
    assert_eq!(report.not_in_order().count(), 0, "{report:?}");
}

/// Reports a line to the test, in one write, as soon as it is true.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

// === Its plugin ===

/// The plugin is a process of the test: it is started in the first life, and survives a kill of the host.
async fn take_plugin(host: &Host, life: u32) -> Task {
    let task = plugin(&Stage::new(), "plugin");
    let spec = task.spec.clone();
    let context = match life {
        1 => host.allocations().ask(PrepareAllocation { spec }).await.unwrap().unwrap(),
        _ => host.allocations().ask(AdoptAllocation { spec }).await.unwrap().unwrap(),
    };
    say(&format!("endpoint {}", context.environment["CSI_ENDPOINT"]));
    task.say_started(host).await;
    task
}

/// Passes the test's events of the plugin on to the host.
async fn follow_plugin(host: &Host, task: &Task) {
    let mut words = said_by_the_test();
    while let Some(word) = words.recv().await {
        match &*word {
            "exited" => task.say_exited(host, "signal 9").await,
            "prepare" => {
                task.prepare(host).await.unwrap();
                say("prepared");
            }
            "started" => task.say_started(host).await,
            _ => panic!("{word:?} is nothing that the test says"),
        }
    }
}

fn said_by_the_test() -> UnboundedReceiver<String> {
    let (tell, words) = unbounded_channel();
    std::thread::spawn(move || {
        // The host may have ended.
        std::io::stdin().lock().lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
    });
    words
}

// === Its users ===

async fn claim_and_release(host: &Host, (volume, allocation): (&str, String), living: &[&str]) {
    let mut is_kept = living.contains(&&*allocation);
    loop {
        let path = claim_in_time(host, volume, &allocation, is_kept).await;
        let (file, found) = written(&path, &allocation);
        say(&format!("found {allocation} {found}"));
        append(&file, found + 1);
        say(&format!("written {allocation} {}", found + 1));
        is_kept = false;
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..40))).await;
        say(&format!("releasing {allocation}"));
        release(host, &key(volume), &allocation).await;
        say(&format!("released {allocation}"));
    }
}

/// Claims a volume for the workload of the test, which never ends.
async fn keep(host: &Host, volume: &str, living: &[&str]) {
    let keeper = keeper_of(volume);
    claim_in_time(host, volume, &keeper, living.contains(&&*keeper)).await;
}

async fn claim_in_time(host: &Host, volume: &str, allocation: &str, is_kept: bool) -> PathBuf {
    say(&format!("claiming {allocation}"));
    loop {
        match claim(host, &key(volume), allocation, false).await {
            Ok(claimed) => {
                say(&format!("claimed {allocation} {is_kept} {}", claimed.path.display()));
                return claimed.path;
            }
            // Its claim of an earlier life is being undone, or the plugin is gone.
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The file of an allocation, and its number of lines.
fn written(path: &Path, allocation: &str) -> (PathBuf, u64) {
    let file = path.join(allocation);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.unwrap(),
    };
    (file, every_number(&text).unwrap_or_else(|| panic!("{allocation}: {text:?}")))
}

fn append(file: &Path, number: u64) {
    let mut file = File::options().create(true).append(true).open(file).unwrap();
    file.write_all(format!("{number}\n").as_bytes()).unwrap();
}

// === A volume that is created and deleted ===

/// Creates a volume, writes into it, takes a snapshot of it, and deletes all of it: continues from wherever an earlier life was cut off.
async fn create_and_delete(host: &Host) {
    let (volume, allocation, name) = SCRATCH;
    let volume = key(volume);
    until_done(async || host.volumes().ask(creation(SCRATCH.0)).await.unwrap(), |error| error.is_transient())
        .await;
    let path = claim_in_time(host, SCRATCH.0, allocation, false).await;
    fs::write(path.join("file"), "of no use").unwrap();
    let take =
        CreateSnapshot { volume: volume.clone(), name: name.to_owned(), parameters: [].into(), within: LONG };
    let taken =
        until_done(async || host.volumes().ask(take.clone()).await.unwrap(), |error| error.is_transient());
    let snapshot_id = taken.await.snapshot_id.clone();
    say(&format!("releasing {allocation}"));
    release(host, &volume, allocation).await;
    say(&format!("released {allocation}"));
    let drop_it = DeleteSnapshot { volume: volume.clone(), snapshot_id, within: LONG };
    until_done(async || host.volumes().ask(drop_it.clone()).await.unwrap(), |error| error.is_transient())
        .await;
    let delete_it = DeleteVolume { volume, within: LONG };
    until_done(
        async || host.volumes().ask(delete_it.clone()).await.unwrap(),
        |error| match error {
            DeleteError::Refused(error) => error.goes_on(),
            error => matches!(error, DeleteError::NoAnswer(_) | DeleteError::Unread { .. }),
        },
    )
    .await;
    say("deleted scratch");
}

/// Retries a request that an earlier life or a missing plugin still prevents.
async fn until_done<T, E: std::fmt::Display>(
    mut ask: impl AsyncFnMut() -> Result<T, E>,
    is_transient: impl Fn(&E) -> bool,
) -> T {
    loop {
        match ask().await {
            Ok(done) => return done,
            Err(error) => assert!(is_transient(&error), "{error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
