//! Tests the catalog with real plugin processes: the reference driver, and programs that are not plugins.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard_actors::catalog::{
    self, Catalog, CatalogOptions, ConfigSource, Listing, PluginEntry, Refusal, ResolvePlugin, ScanPlugins,
};
use callboard_actors::goplugin::{Connection, HandshakeTerms, Limits, PluginConfig};
use callboard_actors::process::{Binder, ExecutableError, LaunchError, Lifetime, ProcessName, Surroundings};
use callboard_actors::processes::{
    self, LaunchProcess, ListProcesses, MemoryRecords, Processes, ProcessesOptions, StopProcess,
};
use callboard_actors::shell::{Address, Ending, IN_FLIGHT_MAX, Running, Settings, StopMode};
use callboard_actors::vocabulary::{PluginKey, PluginName, PluginType};
use tempfile::TempDir;
use tokio::time::timeout;

/// Far more than any step of these tests takes.
const TIMEOUT: Duration = Duration::from_secs(120);

struct Fixture {
    directory: TempDir,
    processes: Address<Processes>,
    owner: Running,
    catalog: Address<Catalog>,
    running: Running,
}

impl Fixture {
    /// Opens a fixture whose plugin directory is filled by `furnish`.
    fn open(furnish: impl FnOnce(&Path, &mut CatalogOptions)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let plugins = directory.path().join("plugins");
        fs::create_dir(&plugins).expect("a directory");
        let sockets = directory.path().join("s");
        fs::create_dir(&sockets).expect("a directory");
        let mut options = CatalogOptions::new();
        options.handshake = HandshakeTerms::nomad(Some(sockets));
        options.limits.start_timeout = Duration::from_secs(20);
        options.directory = Some(plugins.clone());
        furnish(&plugins, &mut options);
        let processes = Address::vacant("processes", IN_FLIGHT_MAX);
        let binder = Binder::program(env!("CARGO_BIN_EXE_callboard"));
        let owner = callboard::actors::ownership::settle(directory.path(), true).expect("a mark");
        let surroundings =
            Surroundings::new(directory.path(), owner, Some(binder), false).expect("surroundings");
        let records = MemoryRecords::default();
        let order = ProcessesOptions::new([7; 16]);
        let owner = processes::start(&processes, order, surroundings, records, Settings::default());
        let catalog = Address::vacant("catalog", IN_FLIGHT_MAX);
        let running = catalog::start(&catalog, processes.clone(), options, Settings::default());
        Self { directory, processes, owner, catalog, running }
    }

    async fn scan(&self) -> Listing {
        self.catalog.ask(ScanPlugins).await.expect("it runs").expect("it is not stopping")
    }

    async fn close(self) {
        for running in [&self.running, &self.owner] {
            running.request_stop(StopMode::Stop);
            assert_eq!(running.ended().await, Ending::Normal);
        }
        self.assert_nothing_runs();
        let left = fs::read_dir(self.directory.path().join("processes")).expect("it is there").flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert!(
            !left.iter().any(|name| name.starts_with("catalog-")),
            "nothing of those asked lies there: {left:?}"
        );
    }

    /// Checks that no process of the machine runs a program of this fixture.
    fn assert_nothing_runs(&self) {
        let ours = self.directory.path();
        let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
        let running: Vec<_> = processes
            .filter_map(|process| fs::read(process.path().join("environ")).ok())
            .filter(|environment| {
                let text = String::from_utf8_lossy(environment);
                text.contains(&*ours.to_string_lossy())
            })
            .collect();
        assert_eq!(running.len(), 0, "nothing of the plugins is left");
    }
}

/// Runs a test in real time.
fn story<F: Future<Output = ()>>(tell: impl FnOnce() -> F) {
    actix::System::new().block_on(async { timeout(TIMEOUT, tell()).await }).expect("it ends in time");
}

/// Puts this program into a plugin directory: the program itself, not a symbolic link to it.
fn put_program(plugins: &Path, name: &str) {
    let (program, place) = (env!("CARGO_BIN_EXE_callboard"), plugins.join(name));
    if fs::hard_link(program, &place).is_err() {
        fs::copy(program, &place).expect("it can be copied");
    }
}

/// Writes a script through another process, so that no child that is spawned meanwhile can hold it open for writing.
fn put_script(plugins: &Path, name: &str, text: &str) {
    let path = plugins.join(name);
    let order = "printf '%s' \"$2\" > \"$1\" && chmod 755 \"$1\"";
    let status = Command::new("/bin/sh").args(["-c", order, "sh"]).arg(path).arg(text).status();
    assert!(status.expect("it runs").success());
}

fn exec() -> PluginKey {
    PluginKey::new(PluginType::Driver, PluginName::new("exec").expect("a good name"))
}

fn serving_exec() -> PluginEntry {
    let arguments = ["plugin", "exec", "--name", "exec", "--allow-builtin-name"];
    PluginEntry { arguments: arguments.map(str::to_owned).to_vec(), ..PluginEntry::new() }
}

fn refusal<'l>(listing: &'l Listing, file: &str) -> &'l Refusal {
    let refused = listing.refused.iter().find(|refused| refused.source.name() == file);
    &refused.unwrap_or_else(|| panic!("{file} is not refused: {listing:?}")).reason
}

#[test]
fn a_real_driver_is_asked_who_it_is_ended_and_run_as_it_is_given_out_prc_02_d102() {
    story(|| async {
        let fixture = Fixture::open(|plugins, options| {
            put_program(plugins, "runner");
            let entry = PluginEntry {
                config: Some(ConfigSource::Hcl("# Everything at its default.\n".to_owned())),
                lifetime: Lifetime::Bound,
                ..serving_exec()
            };
            options.entries.insert("runner".to_owned(), entry);
        });
        let resolved = fixture.catalog.ask(ResolvePlugin { plugin: exec() }).await.expect("it runs");
        let resolved = resolved.expect("it told its own name, which is not that of its file");
        assert_eq!((&*resolved.api_version, resolved.info.source.name()), ("v0.1.0", "runner"));
        assert!(fixture.processes.ask(ListProcesses).await.expect("it runs").is_empty(), "it was ended");
        fixture.assert_nothing_runs();
        // The catalog's result can be launched, and accepts the configuration that was encoded for it.
        let name = ProcessName::new("driver-exec").expect("a good name");
        let launched = LaunchProcess { name: name.clone(), spec: Arc::new(resolved.process) };
        let launched = fixture.processes.ask(launched).await.expect("it runs").expect("it was run before");
        let handshake = launched.handshake.expect("it said one");
        let connection = Connection::dial(&handshake.endpoint, Limits::default()).await.expect("it listens");
        let config =
            PluginConfig { msgpack: resolved.config, nomad: None, api_version: resolved.api_version.clone() };
        connection.set_config(config, TIMEOUT).await.expect("it takes what fits its schema");
        let grace = Duration::from_secs(5);
        let stopped = fixture.processes.ask(StopProcess { name, tag: None, grace }).await.expect("it runs");
        stopped.expect("it ran");
        fixture.close().await;
    });
}

#[test]
fn programs_that_are_no_plugins_are_refused_each_with_its_reason_d22_d33_d42_sec_05_sec_07() {
    story(|| async {
        let fixture = Fixture::open(|plugins, options| {
            put_program(plugins, "runner");
            put_program(plugins, "pinned");
            put_program(plugins, "cautious");
            put_script(plugins, "foreign", "#!/bin/sh\necho '1|7|unix|/nowhere/at.all|grpc'\nsleep 100\n");
            put_script(plugins, "brief", "#!/bin/sh\necho 'no licence' >&2\nexit 3\n");
            put_script(plugins, "liar", "#!/bin/sh\necho '1|2|unix|/nowhere/at.all|grpc'\nsleep 100\n");
            symlink("/bin/sh", plugins.join("outside")).expect("a link");
            for name in ["runner", "cautious", "foreign", "brief", "liar", "outside"] {
                options.entries.insert(name.to_owned(), serving_exec());
            }
            options
                .entries
                .insert("pinned".to_owned(), PluginEntry { sha256: Some([0; 32]), ..serving_exec() });
            let surplus = "surplus = 1".parse().expect("it is TOML");
            let cautious = options.entries.get_mut("cautious").expect("it was put there");
            cautious.config = Some(ConfigSource::Toml(surplus));
        });
        let listing = fixture.scan().await;
        // Two files provide one plugin: the first by name is used. Its configuration does not fit, but the other file does not replace it.
        assert!(listing.found.is_empty() && listing.shadowed.len() == 1, "{listing:?}");
        let cautious = refusal(&listing, "cautious").to_string();
        assert!(cautious.contains("config.surplus: the plugin knows no such key"), "{cautious}");
        assert!(matches!(refusal(&listing, "outside"), Refusal::Link));
        let is_digest = |source: &ExecutableError| matches!(source, ExecutableError::Digest { .. });
        let pinned = refusal(&listing, "pinned");
        assert!(
            matches!(pinned, Refusal::Launch(LaunchError::Executable { source, .. }) if is_digest(source)),
            "{pinned}"
        );
        let brief = refusal(&listing, "brief").to_string();
        assert!(brief.contains("no licence"), "{brief}");
        let foreign = refusal(&listing, "foreign");
        assert!(matches!(foreign, Refusal::Launch(LaunchError::Handshake { .. })), "{foreign}");
        let liar = refusal(&listing, "liar").to_string();
        assert!(liar.contains("/nowhere/at.all"), "{liar}");
        let names: BTreeSet<_> = listing.refused.iter().map(|refused| refused.source.name()).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        fixture.close().await;
    });
}

#[test]
fn a_host_that_stops_while_plugins_are_asked_leaves_none_of_them_prc_02() {
    story(|| async {
        let fixture = Fixture::open(|plugins, options| {
            for name in ["a", "b", "c"] {
                put_script(plugins, name, "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n");
                options.entries.insert(name.to_owned(), PluginEntry::new());
            }
            options.limits.stop_grace = Duration::from_millis(300);
        });
        let deadline = Instant::now() + TIMEOUT;
        while fixture.processes.ask(ListProcesses).await.expect("it runs").len() < 3 {
            assert!(Instant::now() < deadline, "three are asked at once");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        fixture.close().await;
    });
}
