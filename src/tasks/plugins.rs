//! How the drivers of a configuration are to be run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use callboard_actors::catalog::{
    Allowed, Catalog, CatalogOptions, ConfigSource, PluginEntry, ResolvePlugin, ScanPlugins,
};
use callboard_actors::driver::DriverSpec;
use callboard_actors::drivers::DriversOptions;
use callboard_actors::goplugin::HandshakeTerms;
use callboard_actors::process::{Executable, Lifetime, ProcessSpec};
use callboard_actors::shell::{Address, AskError};
use callboard_actors::vocabulary::{DriverName, PluginKey, PluginName, PluginType};

use super::calls::Trouble;
use crate::config::{Config, DRIVERS_MAX, DriverConfig, DriverProgram, PluginPolicy};

/// Knows the plugin of each driver of a configuration.
#[derive(Debug)]
pub struct Plugins {
    drivers: BTreeMap<DriverName, DriverConfig>,
    catalog: Address<Catalog>,
    directory: PathBuf,
    program: PathBuf,
}

impl Plugins {
    /// Of these drivers. What lies in the plugin directory is asked of the catalog; `program` is our own, which is a plugin
    /// too, and what such a plugin keeps goes below the data directory.
    #[must_use]
    pub fn new(
        drivers: Vec<DriverConfig>,
        catalog: Address<Catalog>,
        data_dir: &std::path::Path,
        program: PathBuf,
    ) -> Self {
        let drivers = drivers.into_iter().map(|driver| (driver.name.clone(), driver)).collect();
        Self { drivers, catalog, directory: data_dir.join("drivers"), program }
    }

    /// How a driver is to be run.
    ///
    /// # Errors
    /// Says why it cannot be: its plugin is not there, or refused, or its configuration does not fit.
    pub async fn resolve(&self, name: &DriverName) -> Result<DriverSpec, Trouble> {
        let driver = self.drivers.get(name);
        let driver =
            driver.ok_or_else(|| Trouble::lasting(format!("the configuration has no driver {name}")))?;
        let spec = match &driver.program {
            DriverProgram::Command(path) => self.of_command(driver, Executable::at(path), &[]),
            DriverProgram::Internal(plugin) => {
                let state = self.directory.join(name.as_str()).display().to_string();
                let arguments = ["plugin", plugin, "--name", name.as_str(), "--state-dir", &state];
                self.of_command(driver, Executable::at(&self.program), &arguments)
            }
            DriverProgram::Plugin(_) => self.of_catalog(driver).await?,
        };
        Ok(DriverSpec { stop_grace: driver.stop_grace, ..spec })
    }

    fn of_command(&self, driver: &DriverConfig, executable: Executable, arguments: &[&str]) -> DriverSpec {
        let executable = Executable { sha256: driver.sha256, ..executable };
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        let process = ProcessSpec {
            arguments: arguments.chain(driver.arguments.iter().cloned()).collect(),
            environment: driver.environment.clone(),
            lifetime: if driver.survives { Lifetime::Surviving } else { Lifetime::Bound },
            handshake: Some(HandshakeTerms::nomad(None)),
            start_timeout: driver.start_timeout,
            stop_grace: driver.stop_grace,
            ..ProcessSpec::new(executable)
        };
        DriverSpec::new(driver.name.clone(), process)
    }

    async fn of_catalog(&self, driver: &DriverConfig) -> Result<DriverSpec, Trouble> {
        let name = PluginName::new(driver.name.as_str());
        let name = name.map_err(|error| Trouble::lasting(error.to_string()))?;
        let plugin = PluginKey::new(PluginType::Driver, name);
        let unheard = |error: AskError| Trouble::passing(error.to_string());
        let mut resolved =
            self.catalog.ask(ResolvePlugin { plugin: plugin.clone() }).await.map_err(unheard)?;
        if resolved.is_err() {
            // Somebody may have mended it since it was looked at.
            let scanned = self.catalog.ask(ScanPlugins).await.map_err(unheard)?;
            scanned.map_err(|error| Trouble::passing(error.to_string()))?;
            resolved = self.catalog.ask(ResolvePlugin { plugin }).await.map_err(unheard)?;
        }
        let resolved = resolved
            .map_err(|error| Trouble { is_transient: error.is_transient(), reason: error.to_string() })?;
        let process = ProcessSpec {
            start_timeout: driver.start_timeout,
            stop_grace: driver.stop_grace,
            ..resolved.process
        };
        let spec = DriverSpec::new(driver.name.clone(), process);
        Ok(DriverSpec { api_version: resolved.api_version, config: resolved.config, ..spec })
    }
}

/// What the catalog is told by a configuration: where plugins lie, which of them may be launched, and how.
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
    }
}

/// What the owner of the drivers is told by a configuration: which of them are blocked.
#[must_use]
pub fn drivers_options(config: &Config) -> DriversOptions {
    let blocked = config.plugins.block.iter().filter_map(|name| DriverName::new(name).ok());
    DriversOptions { blocked: blocked.collect(), drivers_max: DRIVERS_MAX, ..DriversOptions::default() }
}
