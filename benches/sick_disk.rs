//! A disk that hangs, beside a sound one: the time of a `status` of a real host, and of a takeover in a registry on disk.
//!
//! The host's disk hangs by a library that intercepts its system calls, compiled by `cc`; without a C compiler that part is
//! skipped. The registry's disk hangs in its storage backend.

mod support;

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callboard::admin::{AdminClient, find_socket};
use callboard_actors::persister::{DiskHealth, MakeBackend};
use callboard_actors::vocabulary::PluginKey;
use redb::StorageBackend;
use redb::backends::FileBackend;

use support::Pace;
use support::clients::{departure, plugin, registration};
use support::disk::directory;
use support::drivers::{CALLBOARD, TIMEOUT};
use support::figures::Samples;
use support::rig::{Actives, Rig};

fn main() {
    support::run(
        "a hanging disk: status of a host, and takeover in a registry on disk, beside a sound one",
        measure,
    );
}

async fn measure(pace: Pace) {
    println!("what | disk | median ms | p99 ms");
    match host() {
        Some(host) => statuses(host, pace).await,
        None => println!("status | not measured: cc cannot be run"),
    }
    for hangs in [false, true] {
        let samples = takeovers(hangs, pace.choose(5_000, 20)).await;
        report("takeover", hangs, &samples);
    }
}

fn report(what: &str, hangs: bool, samples: &Samples) {
    let disk = if hangs { "hangs" } else { "sound" };
    println!("{what} | {disk} | {} | {:.3}", samples.spread(3), samples.percentile(99.0));
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < TIMEOUT, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

// === A host ===

/// A real host; killed on drop, with its processes.
struct Host {
    place: tempfile::TempDir,
    child: Child,
}

impl Drop for Host {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Host {
    fn disk(&self, state: &str) {
        std::fs::write(self.place.path().join("disk"), state).expect("it can be written");
    }

    async fn connect(&self) -> AdminClient {
        let data_dir = self.place.path().join("data");
        let begun = Instant::now();
        loop {
            if let Ok(socket) = find_socket(&data_dir)
                && let Ok(client) = AdminClient::connect(&socket).await
            {
                return client;
            }
            assert!(begun.elapsed() < TIMEOUT, "the host does not answer");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A host of one plugin, with a disk that can be made to hang. `None` without a C compiler.
fn host() -> Option<Host> {
    let place = directory();
    let (library, config) = (place.path().join("sick_disk.so"), place.path().join("host.toml"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/sick_disk.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([source, "-ldl"]);
    if !compiler.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let text = format!(
        "data_dir = {:?}\n[[allocation]]\nname = \"a\"\nplugin = \"disks\"\ntype = \"node\"\ncommand = {CALLBOARD:?}\n\
         args = [\"plugin\", \"hostpath\", \"--endpoint\", \"${{CSI_ENDPOINT}}\", \"--role\", \"node\"]\n",
        place.path().join("data")
    );
    std::fs::write(&config, text).expect("it can be written");
    std::fs::write(place.path().join("disk"), "ok").expect("it can be written");
    let child = Command::new(CALLBOARD)
        .args(["run", "--config"])
        .arg(&config)
        .env("LD_PRELOAD", &library)
        .env("SICK_DISK", place.path().join("disk"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    Some(Host { place, child })
}

async fn statuses(host: Host, pace: Pace) {
    let mut client = host.connect().await;
    until("the plugin is healthy", async || {
        let status = client.status().await.expect("it answers");
        status.plugins.iter().any(|plugin| plugin.health == "healthy")
    })
    .await;
    for hangs in [false, true] {
        if hangs {
            host.disk("hang");
            // Its end is written, and this write waits for the disk.
            client.stop("a", false).await.expect("it answers");
            until("the disk is sick", async || {
                let status = client.status().await.expect("it answers");
                status.host.and_then(|host| host.disk).is_some_and(|disk| disk.health == "sick")
            })
            .await;
        }
        let mut samples = Samples::default();
        for _ in 0..pace.choose(2_000, 20) {
            let begun = Instant::now();
            client.status().await.expect("it answers");
            samples.push(millis(begun));
        }
        report("status", hangs, &samples);
    }
    host.disk("ok");
}

fn millis(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

// === A registry ===

/// A file whose syncs do not return while it hangs.
#[derive(Debug)]
struct Hanging {
    file: FileBackend,
    hangs: Arc<AtomicBool>,
}

impl StorageBackend for Hanging {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        while self.hangs.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }
}

fn backend(directory: &Path, hangs: &Arc<AtomicBool>) -> MakeBackend {
    let (path, hangs) = (directory.join("hanging.redb"), Arc::clone(hangs));
    Arc::new(move || {
        let mut options = std::fs::File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path)?;
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Box::new(Hanging { file, hangs: Arc::clone(&hangs) }))
    })
}

/// From `Deregister` of the active allocation, of many of one plugin, to the subscriber's `ActiveChanged`, in milliseconds.
async fn takeovers(hangs: bool, times: usize) -> Samples {
    let (place, gate) = (directory(), Arc::new(AtomicBool::new(false)));
    let rig = Rig::on_backend(place.path(), backend(place.path(), &gate)).await;
    let plugin: PluginKey = plugin("node");
    let name = |place: usize| format!("a{place:06}");
    for place in 0..times + 2 {
        rig.registry
            .ask(registration(plugin.clone(), &name(place)))
            .await
            .expect("it runs")
            .expect("it is sound");
    }
    let mut actives = Actives::of(&rig.registry).await;
    if hangs {
        gate.store(true, Ordering::Relaxed);
        rig.registry.ask(departure(&registration(plugin.clone(), &name(times + 1)))).await.expect("it runs");
        actives.changed().await;
        until("the disk is sick", async || rig.disk() != DiskHealth::Sound).await;
    }
    let mut samples = Samples::default();
    let newest = if hangs { times } else { times + 1 };
    for place in (newest + 1 - times..=newest).rev() {
        let message = departure(&registration(plugin.clone(), &name(place)));
        let begun = Instant::now();
        let answer = rig.registry.ask(message);
        actives.changed().await;
        samples.push(millis(begun));
        answer.await.expect("it waits for no disk");
    }
    gate.store(false, Ordering::Relaxed);
    rig.end().await;
    samples
}
