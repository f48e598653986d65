//! The simulated processes of scripted drivers: each is a task that serves a plugin.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::driver::{Ordered, ProcessOwner, Reached, Trouble, TroubleKind};
use callboard_actors::goplugin::{Handshake, Listener, PluginEndpoint};
use callboard_actors::process::{Launched, ProcessName, ProcessRecord, ProcessSpec, ProcessTag};
use callboard_actors::processes::{Recalled, StopProcess};
use callboard_actors::vocabulary::Timestamp;
use futures_util::future::LocalBoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::driver::DriverPlugin;
use crate::launch::ProcessOwners;

/// The prefix of the names of drivers' processes.
const PREFIX: &str = "driver-";
/// The first process id; they are counted from here.
const FIRST_PID: u32 = 1_001;

struct Process {
    launched: Launched,
    serving: JoinHandle<()>,
    end: watch::Sender<Option<String>>,
}

struct Drivers {
    directory: PathBuf,
    known: BTreeMap<String, DriverPlugin>,
    running: BTreeMap<String, Process>,
    /// How many launches of a driver fail before one succeeds.
    failures: BTreeMap<String, u32>,
    launches: u32,
}

/// The drivers of a script and their processes. Clones share them; they outlive their host.
#[derive(Clone)]
pub(super) struct DriverWorld(Arc<Mutex<Drivers>>);

impl DriverWorld {
    /// A world without drivers, with sockets in this directory.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(Drivers {
            directory,
            known: BTreeMap::new(),
            running: BTreeMap::new(),
            failures: BTreeMap::new(),
            launches: 0,
        })))
    }

    fn drivers(&self) -> MutexGuard<'_, Drivers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process owners that a host receives instead of its own.
    pub(super) fn owners(&self) -> ProcessOwners {
        let world = self.clone();
        ProcessOwners::new(move || Rc::new(world.clone()))
    }

    /// The driver of this name, created at its first use.
    pub(super) fn driver(&self, name: &str) -> DriverPlugin {
        let mut drivers = self.drivers();
        drivers.known.entry(name.to_owned()).or_insert_with(|| DriverPlugin::new(name)).clone()
    }

    /// The driver of this name, if there is one.
    pub(super) fn known(&self, name: &str) -> Option<DriverPlugin> {
        self.drivers().known.get(name).cloned()
    }

    /// Makes this many launches of a driver fail.
    pub(super) fn fail_launches(&self, name: &str, count: u32) {
        self.drivers().failures.insert(name.to_owned(), count);
    }

    /// Kills the process of a driver. False means that none runs.
    pub(super) fn kill(&self, name: &str, how: &str) -> bool {
        let drivers = self.drivers();
        let Some(process) = drivers.running.get(&format!("{PREFIX}{name}")) else { return false };
        let runs = process.end.borrow().is_none();
        end(process, how);
        runs
    }
}

/// Ends a process, unless it has ended.
fn end(process: &Process, how: &str) {
    process.serving.abort();
    process.end.send_if_modified(|end| {
        let is_first = end.is_none();
        end.get_or_insert_with(|| how.to_owned());
        is_first
    });
}

impl Drivers {
    fn launch(&mut self, name: ProcessName, spec: &ProcessSpec) -> Result<Launched, String> {
        let driver = name.as_str().strip_prefix(PREFIX).unwrap_or_default().to_owned();
        let Some(plugin) = self.known.get(&driver).cloned() else {
            return Err(format!("no such file; the script has no `driver {driver}`"));
        };
        if let Some(left) = self.failures.get_mut(&driver).filter(|left| **left > 0) {
            *left -= 1;
            return Err("it ended before its handshake, as the script wants it".to_owned());
        }
        let app_version = plugin.book().protocol;
        let offered = spec.handshake.as_ref().map(|terms| &terms.versions);
        if offered.is_some_and(|offered| !offered.contains(&app_version)) {
            return Err(format!("it speaks version {app_version} of the protocol, which the host does not"));
        }
        self.launches += 1;
        let number = self.launches;
        let socket = self.directory.join(format!("driver-{number}.sock"));
        let serving = plugin.serve(&socket).map_err(|error| format!("{}: {error}", socket.display()))?;
        let mut tag = [0; 16];
        tag[12..].copy_from_slice(&number.to_be_bytes());
        let tag = ProcessTag::new(tag);
        let record = ProcessRecord::intent(name.clone(), tag, spec, Timestamp::default());
        let launched = Launched {
            name: name.clone(),
            tag,
            pid: FIRST_PID + number - 1,
            started_at: Timestamp::default(),
            handshake: Some(Handshake { app_version, endpoint: PluginEndpoint::Unix(socket) }),
            is_adopted: false,
            spec_digest: Some(record.spec_digest),
        };
        let (end, _) = watch::channel(None);
        let tell = end.clone();
        let serving = tokio::spawn(async move {
            serving.await;
            tell.send_replace(Some("exit code 0".to_owned()));
        });
        self.running.insert(name.to_string(), Process { launched: launched.clone(), serving, end });
        Ok(launched)
    }

    fn ignores_sigterm(&self, name: &ProcessName) -> bool {
        let driver = name.as_str().strip_prefix(PREFIX).and_then(|driver| self.known.get(driver));
        driver.is_some_and(|driver| driver.book().ignores_sigterm)
    }

    /// The process of this name, if it is from that launch.
    fn process(&self, name: &ProcessName, tag: Option<ProcessTag>) -> Option<&Process> {
        let process = self.running.get(name.as_str())?;
        tag.is_none_or(|tag| process.launched.tag == tag).then_some(process)
    }
}

async fn ended(mut end: watch::Receiver<Option<String>>) -> Result<Reached, Trouble> {
    let how = match end.wait_for(Option::is_some).await {
        Ok(how) => how.clone().unwrap_or_default(),
        Err(_) => "it is gone".to_owned(),
    };
    Ok(Reached::Ended(how))
}

impl ProcessOwner for DriverWorld {
    fn recall(&self, name: ProcessName) -> Ordered {
        let drivers = self.drivers();
        let recalled = match drivers.process(&name, None).filter(|process| process.end.borrow().is_none()) {
            Some(process) => Recalled::Proven(Launched { is_adopted: true, ..process.launched.clone() }),
            None => Recalled::Unknown,
        };
        Box::pin(std::future::ready(Ok(Reached::Recalled(recalled))))
    }

    fn launch(&self, name: ProcessName, spec: Arc<ProcessSpec>) -> Ordered {
        let launched = self.drivers().launch(name, &spec).map(Reached::Launched);
        let launched = launched.map_err(|what| Trouble { kind: TroubleKind::Answered, what });
        Box::pin(std::future::ready(launched))
    }

    fn stop(&self, order: StopProcess) -> Ordered {
        let drivers = self.drivers();
        let Some(process) = drivers.process(&order.name, order.tag) else {
            return Box::pin(std::future::ready(Ok(Reached::Done)));
        };
        let end_told = process.end.subscribe();
        if drivers.ignores_sigterm(&order.name) {
            let (world, StopProcess { name, tag, grace }) = (self.clone(), order);
            // It is killed after the grace period, whether or not the caller still waits.
            actix_rt::spawn(async move {
                tokio::time::sleep(grace).await;
                if let Some(process) = world.drivers().process(&name, tag) {
                    end(process, "signal 9");
                }
            });
        } else {
            end(process, "signal 15");
        }
        Box::pin(ended(end_told))
    }

    /// Every process of this world is proven.
    fn prove(&self, _: Launched, _: Listener) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn await_end(&self, name: ProcessName, tag: ProcessTag) -> Ordered {
        match self.drivers().process(&name, Some(tag)) {
            Some(process) => Box::pin(ended(process.end.subscribe())),
            None => Box::pin(std::future::ready(Ok(Reached::Ended("it is gone".to_owned())))),
        }
    }
}
