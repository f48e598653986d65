//! Resolves how the drivers of a configuration are run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use actix_rt::task::spawn_blocking;
use callboard_actors::catalog::{
    Allowed, Catalog, CatalogOptions, ConfigSource, NOMAD_API_VERSION, PluginEntry, Refusal, ResolveError,
    ResolveFile,
};
use callboard_actors::datadir;
use callboard_actors::driver::{DriverSpec, NodeFacts};
use callboard_actors::drivers::DriversOptions;
use callboard_actors::goplugin::HandshakeTerms;
use callboard_actors::process::{Executable, Lifetime, ProcessSpec};
use callboard_actors::shell::{Address, AskError};
use callboard_actors::vocabulary::{DriverName, PluginKey, PluginName, PluginType};

use super::{KeptDriver, Trouble};
use crate::config::{Config, ConfigPlaces, DRIVERS_MAX, DriverConfig, DriverProgram, PluginPolicy};

/// Why a departed driver is only reattached, and not launched.
const NOT_THE_SAME: &str = "it had an `env` or a `config`, which are not kept since they may hold secrets, and without them it is not the same driver";

/// Resolves the plugin of each driver of a configuration.
#[derive(Debug)]
pub struct Plugins {
    drivers: BTreeMap<DriverName, DriverConfig>,
    policy: PluginPolicy,
    catalog: Address<Catalog>,
    /// The drivers for which the catalog was asked before.
    asked: RefCell<BTreeSet<DriverName>>,
    directory: PathBuf,
    program: PathBuf,
    node: NodeFacts,
}

impl Plugins {
    /// The drivers of this configuration. Files in the plugin directory are resolved by the catalog. `program` is this
    /// program, which contains plugins, too; their state goes below the data directory. Each driver gets `node`.
    #[must_use]
    pub fn new(config: &Config, catalog: Address<Catalog>, program: PathBuf, node: NodeFacts) -> Self {
        let drivers = config.drivers.iter().map(|driver| (driver.name.clone(), driver.clone())).collect();
        let (policy, directory) = (config.plugins.clone(), config.data_dir.join("drivers"));
        Self { drivers, policy, catalog, asked: RefCell::default(), directory, program, node }
    }

    /// Resolves how a driver is run.
    ///
    /// # Errors
    /// The plugin is missing or refused, or its configuration does not fit.
    pub async fn resolve(&self, name: &DriverName) -> Result<DriverSpec, Trouble> {
        let driver = self.drivers.get(name);
        let driver =
            driver.ok_or_else(|| Trouble::lasting(format!("the configuration has no driver {name}")))?;
        let spec = match &driver.program {
            DriverProgram::Command(_) | DriverProgram::Internal(_) => {
                self.make_state_directory(name, &driver.program).await?;
                let process = self.process(name, &driver.into());
                let environment = driver.environment.clone();
                DriverSpec::new(name.clone(), ProcessSpec { environment, ..process })
            }
            DriverProgram::Plugin(file) => self.of_catalog(driver, file).await?,
        };
        Ok(DriverSpec { stop_grace: driver.stop_grace, node: self.node.clone(), ..spec })
    }

    /// How a departed driver is run, so that its tasks can be stopped. Its former configuration is permission enough, unless
    /// the present policy for plugins excludes it.
    ///
    /// # Errors
    /// The present policy for plugins excludes it.
    pub fn set_up_unconfigured(&self, name: &DriverName, kept: &KeptDriver) -> Result<DriverSpec, Trouble> {
        let PluginPolicy { directory, allow, block } = &self.policy;
        let mut api_version = String::new();
        if let DriverProgram::Plugin(file) = &kept.program {
            let is_blocked = block.contains(file) || block.iter().any(|blocked| blocked == name.as_str());
            let is_missing = allow.as_ref().is_some_and(|allow| !allow.contains(file));
            match (directory, is_blocked, is_missing) {
                (None, _, _) => {
                    return Err(Trouble::lasting(format!(
                        "there is no `plugin_dir` to run its file {file} from"
                    )));
                }
                (_, true, _) => {
                    return Err(Trouble::lasting(format!("its plugin {file} is on `block_plugins`")));
                }
                (_, _, true) => {
                    return Err(Trouble::lasting(format!("its plugin {file} is not on `allow_plugins`")));
                }
                (Some(_), false, false) => api_version = NOMAD_API_VERSION.to_owned(),
            }
        }
        let not_launched = kept.had_more.then(|| NOT_THE_SAME.to_owned());
        let spec = DriverSpec::new(name.clone(), self.process(name, kept));
        let (node, stop_grace) = (self.node.clone(), kept.stop_grace);
        // A process of it that still runs knows its tasks, whatever has happened to the plugin directory.
        Ok(DriverSpec { api_version, not_launched, adopts_any: true, stop_grace, node, ..spec })
    }

    fn state_directory(&self, name: &DriverName) -> PathBuf {
        self.directory.join(name.as_str())
    }

    /// Makes the state directory of a driver of this program. It must not be behind a link: the driver itself opens it by its path.
    ///
    /// # Errors
    /// A link or a file takes its place, or the place of its parent directory.
    pub async fn make_state_directory(
        &self,
        name: &DriverName,
        program: &DriverProgram,
    ) -> Result<(), Trouble> {
        match program {
            DriverProgram::Internal(_) => make_through_no_link(self.state_directory(name)).await,
            DriverProgram::Command(_) | DriverProgram::Plugin(_) => Ok(()),
        }
    }

    fn process(&self, name: &DriverName, kept: &KeptDriver) -> ProcessSpec {
        let (executable, arguments) = match &kept.program {
            DriverProgram::Command(path) => (Executable::at(path), vec![]),
            DriverProgram::Internal(plugin) => {
                let state = self.state_directory(name).display().to_string();
                // This host has no built-in driver of the same name that it could replace by mistake.
                let named = ["plugin", plugin, "--name", name.as_str(), "--allow-builtin-name"];
                let arguments = named.into_iter().chain(["--state-dir", &state]);
                (Executable::at(&self.program), arguments.map(str::to_owned).collect())
            }
            DriverProgram::Plugin(file) => {
                let directory = self.policy.directory.clone().unwrap_or_default();
                (Executable::within(directory, file), vec![])
            }
        };
        ProcessSpec {
            arguments: arguments.into_iter().chain(kept.arguments.iter().cloned()).collect(),
            lifetime: if kept.survives { Lifetime::Surviving } else { Lifetime::Bound },
            handshake: Some(HandshakeTerms::nomad(None)),
            start_timeout: kept.start_timeout,
            stop_grace: kept.stop_grace,
            ..ProcessSpec::new(Executable { sha256: kept.sha256, ..executable })
        }
    }

    async fn of_catalog(&self, driver: &DriverConfig, file: &str) -> Result<DriverSpec, Trouble> {
        let name = PluginName::new(driver.name.as_str());
        let name = name.map_err(|error| Trouble::lasting(error.to_string()))?;
        let plugin = PluginKey::new(PluginType::Driver, name);
        let unheard = |error: AskError| Trouble::passing(error.to_string());
        // A second request means that the first failed; an operator may have fixed the plugin since.
        let anew = !self.asked.borrow_mut().insert(driver.name.clone());
        let asked = self.catalog.ask(ResolveFile { plugin, file: file.to_owned(), anew });
        let resolved =
            asked.await.map_err(unheard)?.map_err(|error| refused(&error, &driver.config_places))?;
        let spec = DriverSpec::new(driver.name.clone(), resolved.process);
        Ok(DriverSpec { api_version: resolved.api_version, config: resolved.config, ..spec })
    }
}

async fn make_through_no_link(directory: PathBuf) -> Result<(), Trouble> {
    let shown = directory.display().to_string();
    let made = spawn_blocking(move || datadir::enter_or_make(&directory, 0o700)).await;
    match made.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(Trouble::lasting(format!(
            "its state directory {shown} cannot be used: {error}; remove the link, or move the directory to its place"
        ))),
        // The driver itself reports what it cannot keep.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Why the plugin of a driver is unavailable. Errors in its configuration get their lines, which the catalog does not know.
fn refused(error: &ResolveError, places: &ConfigPlaces) -> Trouble {
    let reason = match error {
        ResolveError::Refused { plugin, source_name, reason } => match &**reason {
            Refusal::Config(errors) => {
                let told = places.told(errors);
                format!("plugin {plugin} ({source_name}) is refused: its `config` does not fit: {told}")
            }
            _ => error.to_string(),
        },
        _ => error.to_string(),
    };
    Trouble { is_transient: error.is_transient(), ..Trouble::passing(reason) }
}

/// The catalog's options from a configuration: the plugin directory, which plugins may be launched, and how.
#[must_use]
pub fn catalog_options(config: &Config) -> CatalogOptions {
    let PluginPolicy { directory, allow, block } = &config.plugins;
    let entries = config.drivers.iter().filter_map(|driver| match &driver.program {
        DriverProgram::Plugin(file) => Some((file.clone(), entry(driver))),
        DriverProgram::Command(_) | DriverProgram::Internal(_) => None,
    });
    CatalogOptions {
        directory: directory.clone(),
        allowed: Allowed::Only(allow.iter().flatten().cloned().collect()),
        blocked: block.iter().cloned().collect(),
        entries: entries.collect(),
        ..CatalogOptions::new()
    }
}

fn entry(driver: &DriverConfig) -> PluginEntry {
    PluginEntry {
        arguments: driver.arguments.clone(),
        sha256: driver.sha256,
        config: Some(ConfigSource::Toml(driver.config.clone())),
        environment: driver.environment.clone(),
        lifetime: if driver.survives { Lifetime::Surviving } else { Lifetime::Bound },
        start_timeout: Some(driver.start_timeout),
        stop_grace: Some(driver.stop_grace),
    }
}

/// The options for the owner of the drivers: which drivers are expected, and which are blocked.
#[must_use]
pub fn drivers_options(config: &Config) -> DriversOptions {
    let blocked = config.plugins.block.iter().filter_map(|name| DriverName::new(name).ok());
    DriversOptions {
        blocked: blocked.collect(),
        expected: config.drivers.iter().map(|driver| driver.name.clone()).collect(),
        drivers_max: DRIVERS_MAX,
        ..DriversOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use callboard_actors::datadir::DataDir;

    use super::*;

    #[tokio::test]
    async fn the_state_of_a_driver_is_kept_in_its_data_directory_and_through_no_link() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let (data, elsewhere) = (place.path().join("data"), place.path().join("elsewhere"));
        fs::create_dir(&elsewhere).expect("it can be made");
        let held = DataDir::open(&data).expect("it is ours");
        let state = data.join("drivers/exec");
        make_through_no_link(state.clone()).await.expect("nothing is there yet");
        make_through_no_link(state.clone()).await.expect("it is there");
        for (link, of) in [(state.clone(), "drivers/exec"), (data.join("drivers"), "drivers")] {
            fs::remove_dir(&link).expect("it is empty");
            symlink(&elsewhere, &link).expect("it can be made");
            let refused = make_through_no_link(state.clone()).await.expect_err("it leads elsewhere");
            assert!(!refused.is_transient && refused.reason.contains("link"), "{of}: {}", refused.reason);
            fs::remove_file(&link).expect("it is a link");
        }
        assert_eq!(fs::read_dir(&elsewhere).expect("it is there").count(), 0, "nothing was made there");
        drop(held);
    }
}
