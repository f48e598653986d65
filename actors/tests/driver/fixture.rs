//! A simulated owner of processes: each process is a task of this one that serves a plugin.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::driver::client::DriverConnections;
use callboard_actors::driver::{DriverSpec, Ordered, ProcessOwner, Reached, Trouble, TroubleKind};
use callboard_actors::drivers::{
    self, DriverLeases, Drivers, DriversMemory, DriversNews, DriversOptions, DriversView,
};
use callboard_actors::eventor::TaskJournals;
use callboard_actors::goplugin::{Handshake, Listener, PluginEndpoint};
use callboard_actors::process::{
    Executable, Launched, Lifetime, ProcessName, ProcessRecord, ProcessSpec, ProcessTag,
};
use callboard_actors::processes::{Recalled, StopProcess};
use callboard_actors::shell::{Address, Drills, FeedItem, IN_FLIGHT_MAX, Running, Settings, Subscription};
use callboard_actors::vocabulary::{DriverName, RunNumber, Timestamp};
use futures_util::future::LocalBoxFuture;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::plugin::Plugin;
pub(crate) use super::story::story;

struct Process {
    launched: Launched,
    serving: JoinHandle<()>,
    ended: watch::Receiver<Option<String>>,
    end: watch::Sender<Option<String>>,
}

/// The running process, and how launches end.
#[derive(Clone)]
pub(crate) struct Fixture {
    directory: Rc<TempDir>,
    pub(crate) plugin: Plugin,
    running: Rc<RefCell<Option<Process>>>,
    /// How many launches fail before one succeeds.
    pub(crate) failures: Rc<Cell<u32>>,
    /// When each launch was ordered.
    pub(crate) launches: Rc<RefCell<Vec<tokio::time::Instant>>>,
    /// Whether processes end only by force.
    pub(crate) is_stubborn: Rc<Cell<bool>>,
    pub(crate) forced: Rc<Cell<u32>>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self {
            directory: Rc::new(tempfile::tempdir().unwrap()),
            plugin: Plugin::new(),
            running: Rc::default(),
            failures: Rc::default(),
            launches: Rc::default(),
            is_stubborn: Rc::default(),
            forced: Rc::default(),
        }
    }

    /// Starts a process, as an earlier run of the host would have left it. The specification of its launch is not known.
    pub(crate) fn spawn(&self, name: ProcessName) -> Launched {
        self.spawn_from(name, None)
    }

    fn spawn_from(&self, name: ProcessName, spec: Option<&ProcessSpec>) -> Launched {
        let number = u8::try_from(self.launches.borrow().len() % 250).unwrap() + 1;
        let socket = self.directory.path().join(format!("{number}.sock"));
        let tag = ProcessTag::new([number; 16]);
        let record = spec.map(|spec| ProcessRecord::intent(name.clone(), tag, spec, Timestamp::default()));
        let launched = Launched {
            name,
            tag,
            pid: 1_000 + u32::from(number),
            started_at: Timestamp::default(),
            handshake: Some(Handshake { app_version: 2, endpoint: PluginEndpoint::Unix(socket.clone()) }),
            is_adopted: false,
            spec_digest: record.map(|record| record.spec_digest),
        };
        let (end, ended) = watch::channel(None);
        let (plugin, tell) = (self.plugin.clone(), end.clone());
        let serving = actix_rt::spawn(async move {
            plugin.serve(&socket).await;
            tell.send_replace(Some("exit code 0".to_owned()));
        });
        *self.running.borrow_mut() = Some(Process { launched: launched.clone(), serving, ended, end });
        launched
    }

    /// Kills the process: its connections break, and its end is reported.
    pub(crate) fn kill(&self, how: &str) {
        if let Some(process) = &*self.running.borrow() {
            process.serving.abort();
            process.end.send_if_modified(|end| {
                let is_first = end.is_none();
                end.get_or_insert_with(|| how.to_owned());
                is_first
            });
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.borrow().as_ref().is_some_and(|process| process.ended.borrow().is_none())
    }

    fn ended_of(&self, tag: Option<ProcessTag>) -> Option<watch::Receiver<Option<String>>> {
        let running = self.running.borrow();
        let process = running.as_ref().filter(|process| tag.is_none_or(|tag| process.launched.tag == tag))?;
        Some(process.ended.clone())
    }
}

async fn end(mut ended: watch::Receiver<Option<String>>) -> Result<Reached, Trouble> {
    let how = ended.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    Ok(Reached::Ended(how))
}

impl ProcessOwner for Fixture {
    fn recall(&self, _: ProcessName) -> Ordered {
        let recalled = match &*self.running.borrow() {
            Some(process) if process.ended.borrow().is_none() => Recalled::Proven(process.launched.clone()),
            Some(_) | None => Recalled::Unknown,
        };
        Box::pin(std::future::ready(Ok(Reached::Recalled(recalled))))
    }

    fn launch(&self, name: ProcessName, spec: std::sync::Arc<ProcessSpec>) -> Ordered {
        assert!(!self.is_running(), "one process of a driver at a time");
        self.launches.borrow_mut().push(tokio::time::Instant::now());
        if self.failures.get() > 0 {
            self.failures.set(self.failures.get() - 1);
            let what = "no such file".to_owned();
            return Box::pin(std::future::ready(Err(Trouble { kind: TroubleKind::Answered, what })));
        }
        let launched = self.spawn_from(name, Some(&spec));
        Box::pin(async move {
            // The plugin listens before it says its handshake (D32).
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            Ok(Reached::Launched(launched))
        })
    }

    fn stop(&self, order: StopProcess) -> Ordered {
        let Some(ended) = self.ended_of(order.tag) else {
            return Box::pin(std::future::ready(Ok(Reached::Done)));
        };
        let fixture = self.clone();
        Box::pin(async move {
            if fixture.is_stubborn.get() {
                let _ = tokio::time::timeout(order.grace, end(ended.clone())).await;
                if fixture.is_running() {
                    fixture.forced.set(fixture.forced.get() + 1);
                }
                fixture.kill("signal 9");
            } else {
                fixture.kill("signal 15");
            }
            end(ended).await
        })
    }

    /// Every process is proven: this fixture started all of them.
    fn prove(&self, _: Launched, _: Listener) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn await_end(&self, _: ProcessName, tag: ProcessTag) -> Ordered {
        match self.ended_of(Some(tag)) {
            Some(ended) => Box::pin(end(ended)),
            None => Box::pin(std::future::ready(Ok(Reached::Ended("long ago".to_owned())))),
        }
    }
}

/// The owner of the drivers, and the view of it from outside.
pub(crate) struct Stage {
    pub(crate) fixture: Fixture,
    pub(crate) drivers: Address<Drivers>,
    pub(crate) leases: DriverLeases,
    pub(crate) journals: TaskJournals,
    pub(crate) running: Running,
    pub(crate) drills: Drills,
    pub(crate) feed: Subscription<DriversNews, DriversView>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(Fixture::new(), DriversOptions::default())
    }

    pub(crate) fn with(fixture: Fixture, options: DriversOptions) -> Self {
        let drivers = Address::vacant("drivers", IN_FLIGHT_MAX);
        let drills = Drills::default();
        let settings = Settings { seed: Some(7), drills: Some(drills.clone()), ..Settings::default() };
        let owner = Rc::new(fixture.clone());
        let connections = DriverConnections::default();
        let leases = DriverLeases::new(drivers.clone(), connections.clone());
        let journals = TaskJournals::default();
        let memory = DriversMemory::of_run(RunNumber::new(1), journals.clone());
        let running = drivers::start(&drivers, options, owner, memory, connections, settings);
        let feed = drivers.subscribe("test", 4_096).expect("it runs");
        Self { fixture, drivers, leases, journals, running, drills, feed }
    }

    /// Reads news until one fits.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&DriversNews) -> bool) -> DriversNews {
        let limit = Duration::from_secs(24 * 3_600);
        let reading = async {
            loop {
                match self.feed.next().await.expect("the feed goes on") {
                    FeedItem::Change { news, .. } if is_it(&news) => return news,
                    FeedItem::Change { .. } | FeedItem::Snapshot { .. } | FeedItem::Lagged { .. } => {}
                }
            }
        };
        tokio::time::timeout(limit, reading).await.expect("within a day")
    }
}

pub(crate) fn name() -> DriverName {
    DriverName::new("exec").unwrap()
}

pub(crate) fn spec() -> DriverSpec {
    let mut process = ProcessSpec::new(Executable::at("/bin/driver"));
    process.lifetime = Lifetime::Surviving;
    DriverSpec { config: vec![0x80], ..DriverSpec::new(name(), process) }
}
