//! Tests the catalog's actor, with a real directory and simulated processes, under virtual time.
//!
//! The processes are counted: whatever is launched has to be ended, by whichever way a scan goes (PRC-02).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::catalog::{
    Allowed, Catalog, CatalogOptions, DirectoryError, Launcher, ListPlugins, Listing, ProbeOrder, Refusal,
    ResolveError, ResolvePlugin, ScanError, ScanPlugins, Told, start_with,
};
use callboard_actors::goplugin::{Handshake, PluginEndpoint};
use callboard_actors::process::{LaunchError, Lifetime, ProcessName, ProcessSpec};
use callboard_actors::shell::{Address, Ending, Running, Settings, StopMode};
use callboard_actors::vocabulary::{PluginKey, PluginName, PluginType};
use futures_util::future::LocalBoxFuture;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

// === Simulated processes ===

/// How a program behaves, by its file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It reports its identity after a while.
    Tells(&'static str),
    /// It never prints a handshake; its launch fails at its timeout.
    Silent,
    /// It prints its handshake and never answers.
    Deaf,
    /// Its launch fails and ends it.
    Broken,
    /// A question to it panics, as a fault of ours would.
    Confusing,
    /// It does not end when it is requested to, during its whole grace period.
    Stubborn,
}

#[derive(Debug, Default)]
struct World {
    manners: BTreeMap<String, Manner>,
    running: BTreeMap<String, ProcessSpec>,
    launched: usize,
    most_at_once: usize,
    stopped_while_launching: Vec<String>,
}

/// A launcher with its processes in a table.
#[derive(Debug, Clone, Default)]
struct Pretending(Rc<RefCell<World>>);

impl Pretending {
    fn set(&self, file: &str, manner: Manner) {
        self.0.borrow_mut().manners.insert(file.to_owned(), manner);
    }

    fn manner_of(&self, name: &ProcessName) -> Manner {
        let world = self.0.borrow();
        let spec = &world.running[name.as_str()];
        world.manners[&spec.executable.path.display().to_string()]
    }

    fn running(&self) -> usize {
        self.0.borrow().running.len()
    }
}

impl Launcher for Pretending {
    fn launch(
        &self,
        name: ProcessName,
        spec: ProcessSpec,
    ) -> LocalBoxFuture<'static, Result<Handshake, Refusal>> {
        assert_eq!(spec.lifetime, Lifetime::Bound, "a temporary instance ends with the host");
        let mut world = self.0.borrow_mut();
        let limit = spec.start_timeout;
        let former = world.running.insert(name.to_string(), spec);
        assert_eq!(former, None, "no two share a name");
        world.launched += 1;
        world.most_at_once = world.most_at_once.max(world.running.len());
        let (this, manner) = (self.clone(), {
            drop(world);
            self.manner_of(&name)
        });
        Box::pin(async move {
            let failed = |reason: &str| {
                this.0.borrow_mut().running.remove(name.as_str());
                Refusal::Launch(LaunchError::Failed { name: name.clone(), reason: reason.to_owned() })
            };
            let until = Instant::now() + if manner == Manner::Silent { limit } else { SECOND };
            while Instant::now() < until {
                sleep(SECOND / 10).await;
                if this.0.borrow().stopped_while_launching.contains(&name.to_string()) {
                    return Err(failed("it was stopped"));
                }
            }
            match manner {
                Manner::Silent => Err(failed("it said nothing")),
                Manner::Broken => Err(failed("it is broken")),
                Manner::Tells(_) | Manner::Deaf | Manner::Confusing | Manner::Stubborn => {
                    Ok(Handshake { app_version: 2, endpoint: PluginEndpoint::Unix("/nowhere".into()) })
                }
            }
        })
    }

    fn ask(&self, _: Handshake, order: ProbeOrder) -> LocalBoxFuture<'static, Result<Box<Told>, Refusal>> {
        let manner = self.manner_of(&order.name);
        Box::pin(async move {
            sleep(SECOND).await;
            let silent = |message: &str| Refusal::Silent {
                message: message.to_owned(),
                ending: None,
                is_transient: true,
            };
            match manner {
                Manner::Tells(text) => Ok(Box::new(told(text))),
                Manner::Confusing => panic!("this was to be expected"),
                Manner::Deaf => {
                    sleep(order.call_deadline).await;
                    Err(silent("no answer"))
                }
                Manner::Silent | Manner::Broken | Manner::Stubborn => Err(silent("an error")),
            }
        })
    }

    fn end(&self, name: ProcessName, grace: Duration) -> LocalBoxFuture<'static, Option<String>> {
        let this = self.clone();
        Box::pin(async move {
            if !this.0.borrow().running.contains_key(name.as_str()) {
                return None;
            }
            let manner = this.manner_of(&name);
            sleep(if manner == Manner::Stubborn { grace } else { SECOND / 5 }).await;
            // A process that is still starting ends itself in its launch.
            this.0.borrow_mut().stopped_while_launching.push(name.to_string());
            sleep(SECOND / 5).await;
            this.0.borrow_mut().running.remove(name.as_str());
            None
        })
    }
}

fn told(text: &str) -> Told {
    let (name, version) = text.split_once('@').unwrap_or((text, "1.0.0"));
    Told {
        plugin: driver(name),
        version: version.to_owned(),
        api_versions: vec!["v0.1.0".to_owned()],
        schema: None,
    }
}

// === The stage ===

struct Stage {
    directory: TempDir,
    processes: Pretending,
    address: Address<Catalog>,
    running: Running,
}

impl Stage {
    fn open(programs: &[(&str, Manner)], options: CatalogOptions) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let processes = Pretending::default();
        for (file, manner) in programs {
            put(directory.path(), file, 0o755);
            processes.set(file, *manner);
        }
        let options = CatalogOptions { directory: Some(directory.path().to_owned()), ..options };
        let address = Address::vacant("catalog", 64);
        let running = start_with(&address, processes.clone(), options, Settings::default());
        Self { directory, processes, address, running }
    }

    async fn scan(&self) -> Listing {
        self.address.ask(ScanPlugins).await.expect("it runs").expect("it is not stopping")
    }

    async fn stop(self) {
        self.running.request_stop(StopMode::Stop);
        let ending = timeout(200 * SECOND, self.running.ended()).await.expect("stopping is bounded");
        assert_eq!(ending, Ending::Normal);
        assert_eq!(self.processes.running(), 0, "nothing is left");
    }
}

fn everything() -> CatalogOptions {
    CatalogOptions { allowed: Allowed::Everything, ..CatalogOptions::new() }
}

fn put(directory: &Path, file: &str, mode: u32) {
    let path = directory.join(file);
    std::fs::write(&path, "#!/bin/sh\n").expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

fn driver(name: &str) -> PluginKey {
    PluginKey::new(PluginType::Driver, PluginName::new(name).expect("a good name"))
}

fn found(listing: &Listing) -> Vec<String> {
    listing.found.keys().map(ToString::to_string).collect()
}

fn refused(listing: &Listing) -> Vec<String> {
    listing.refused.iter().map(|refused| format!("{}: {}", refused.source, refused.reason)).collect()
}

/// Runs a test under virtual time.
fn story<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let local = tokio::task::LocalSet::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    local.block_on(&runtime.expect("a runtime"), test());
}

// === Stories ===

#[test]
fn every_plugin_is_asked_and_its_temporary_instance_ended_prc_02() {
    story(|| async {
        let programs =
            [("a", Manner::Tells("alpha")), ("b", Manner::Tells("beta@2.1")), ("c", Manner::Stubborn)];
        let stage = Stage::open(&programs, everything());
        let resolving = stage.address.ask(ResolvePlugin { plugin: driver("beta") });
        let resolved = resolving.await.expect("it runs").expect("it was found");
        assert_eq!(resolved.process.executable.place(), stage.directory.path().join("b"));
        assert_eq!(resolved.info.version.as_str(), "2.1");
        assert_eq!(stage.processes.running(), 0, "who is asked has ended before anything is told");
        let listing = stage.address.ask(ListPlugins).await.expect("it runs");
        assert_eq!(found(&listing), ["driver/alpha", "driver/beta"]);
        assert_eq!(refused(&listing), ["file c: it was launched but did not identify itself: an error"]);
        stage.stop().await;
    });
}

#[test]
fn one_broken_plugin_is_reported_and_stops_no_other_prc_02() {
    story(|| async {
        let programs = [
            ("a", Manner::Silent),
            ("b", Manner::Deaf),
            ("c", Manner::Broken),
            ("d", Manner::Confusing),
            ("e", Manner::Tells("echo")),
        ];
        let stage = Stage::open(&programs, everything());
        let listing = stage.scan().await;
        assert_eq!(found(&listing), ["driver/echo"]);
        assert_eq!(listing.refused.len(), 4, "{:?}", refused(&listing));
        assert_eq!(stage.processes.running(), 0, "also of the one whose asking crashed");
        stage.stop().await;
    });
}

#[test]
fn only_so_many_plugins_are_asked_at_once_scl_08() {
    story(|| async {
        let names: Vec<String> = (10..30).map(|number| format!("p{number}")).collect();
        let programs: Vec<_> = names.iter().map(|name| (name.as_str(), Manner::Tells("same"))).collect();
        let mut options = everything();
        options.limits.probes_at_once = 3;
        let stage = Stage::open(&programs, options);
        let listing = stage.scan().await;
        assert_eq!((listing.found.len(), listing.shadowed.len()), (1, 19));
        let counts = |world: &World| (world.launched, world.most_at_once);
        assert_eq!(counts(&stage.processes.0.borrow()), (20, 3));
        stage.stop().await;
    });
}

#[test]
fn stopping_at_any_moment_leaves_no_temporary_instance_prc_02() {
    for tenths in 0..60 {
        story(|| async move {
            let programs = [
                ("a", Manner::Tells("alpha")),
                ("b", Manner::Silent),
                ("c", Manner::Deaf),
                ("d", Manner::Broken),
                ("e", Manner::Stubborn),
            ];
            let stage = Stage::open(&programs, everything());
            sleep(SECOND / 10 * tenths).await;
            let waiting = stage.address.ask(ScanPlugins);
            stage.running.request_stop(StopMode::Detach);
            assert_eq!(waiting.await.expect("it is answered"), Err(ScanError::Stopping), "after {tenths}");
            stage.stop().await;
        });
    }
}

#[test]
fn ending_the_catalog_by_force_leaves_no_temporary_instance_prc_02() {
    for tenths in [0, 5, 9, 10, 11, 15, 19, 20, 21, 25] {
        story(|| async move {
            let programs = [("a", Manner::Tells("alpha")), ("b", Manner::Silent), ("c", Manner::Deaf)];
            let stage = Stage::open(&programs, everything());
            sleep(SECOND / 10 * tenths).await;
            stage.running.kill();
            assert_eq!(stage.running.ended().await, Ending::Killed);
            sleep(10 * SECOND).await;
            assert_eq!(stage.processes.running(), 0, "after {tenths} tenths of a second");
        });
    }
}

#[test]
fn links_directories_and_odd_names_are_never_launched_sec_05() {
    story(|| async {
        let stage = Stage::open(&[("good", Manner::Tells("good"))], everything());
        let at = |file: &str| stage.directory.path().join(file);
        put(stage.directory.path(), "inert", 0o644);
        put(stage.directory.path(), "a b", 0o755);
        put(stage.directory.path(), ".hidden", 0o755);
        put(stage.directory.path(), "esc\u{1b}[31m", 0o755);
        std::fs::create_dir(at("directory")).expect("a directory");
        symlink("/bin/sh", at("outside")).expect("a link");
        symlink("good", at("inside")).expect("a link");
        symlink("nowhere", at("dangling")).expect("a link");
        let socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        let listing = stage.scan().await;
        drop(socket);
        assert_eq!(found(&listing), ["driver/good"]);
        let kinds: Vec<_> = listing.refused.iter().map(|one| (one.source.name(), &one.reason)).collect();
        assert_eq!(
            kinds,
            [
                (".hidden", &Refusal::OddName),
                ("a b", &Refusal::OddName),
                ("dangling", &Refusal::Link),
                ("directory", &Refusal::NotAFile),
                ("esc\u{1b}[31m", &Refusal::OddName),
                ("inert", &Refusal::NotExecutable),
                ("inside", &Refusal::Link),
                ("outside", &Refusal::Link),
                ("socket", &Refusal::NotAFile),
            ]
        );
        assert!(!refused(&listing).join("").contains('\u{1b}'), "odd names are escaped");
        stage.stop().await;
    });
}

#[test]
fn what_is_neither_allowed_nor_configured_is_never_launched_sec_05() {
    story(|| async {
        let stage = Stage::open(&[("stranger", Manner::Tells("stranger"))], CatalogOptions::new());
        let listing = stage.scan().await;
        assert_eq!((listing.found.len(), listing.blocked.len()), (0, 1));
        assert_eq!(stage.processes.0.borrow().launched, 0);
        stage.stop().await;
    });
}

#[test]
fn a_directory_that_is_missing_or_too_full_is_told() {
    story(|| async {
        let mut options = everything();
        options.limits.files_max = 2;
        let stage = Stage::open(&[("a", Manner::Tells("alpha"))], options);
        assert_eq!(found(&stage.scan().await), ["driver/alpha"]);
        put(stage.directory.path(), "b", 0o755);
        put(stage.directory.path(), "c", 0o755);
        let listing = stage.scan().await;
        assert!(matches!(listing.directory_error, Some(DirectoryError::TooMany { most: 2, .. })));
        assert_eq!(found(&listing), ["driver/alpha"], "what was known is neither confirmed nor gone");
        std::fs::remove_dir_all(stage.directory.path()).expect("it can be removed");
        let listing = stage.scan().await;
        assert!(matches!(listing.directory_error, Some(DirectoryError::System { .. })));
        let asked = stage.address.ask(ResolvePlugin { plugin: driver("beta") });
        let error = asked.await.expect("it runs").expect_err("it is unknown");
        assert!(matches!(error, ResolveError::Unread { .. }) && error.is_transient(), "{error}");
        stage.stop().await;
    });
}
