//! The effect handler of the catalog: reads the directory and probes plugins.

use std::sync::Arc;

use futures_util::FutureExt;

use super::directory;
use super::launcher::Launcher;
use super::probe::Probes;
use super::through::ThroughProcesses;
use super::{Catalog, CatalogCall, CatalogNews, CatalogOptions, CatalogOutcome};
use crate::processes::Processes;
use crate::shell::{Address, EffectHandler, NoStore, Running, Settings, Started, start as start_machine};

/// Starts the catalog at a vacant address. It scans at once, and launches its temporary instances through `processes`.
pub fn start(
    address: &Address<Catalog>,
    processes: Address<Processes>,
    options: CatalogOptions,
    settings: Settings,
) -> Running {
    start_with(address, ThroughProcesses::new(processes), options, settings)
}

/// Starts the catalog with another launcher for temporary instances.
pub fn start_with(
    address: &Address<Catalog>,
    launcher: impl Launcher,
    options: CatalogOptions,
    settings: Settings,
) -> Running {
    let handler = Handler { probes: Probes::new(launcher) };
    start_machine(address, Arc::new(options), handler, NoStore, settings)
}

struct Handler {
    probes: Probes,
}

impl EffectHandler<Catalog> for Handler {
    fn call(&mut self, call: CatalogCall) -> Started<CatalogOutcome> {
        match call {
            CatalogCall::Sweep => Started::running(self.probes.sweep().map(|()| CatalogOutcome::Swept)),
            CatalogCall::ReadDirectory { directory, files_max } => {
                Started::running(directory::read(directory, files_max).map(CatalogOutcome::Directory))
            }
            CatalogCall::Probe(order) => {
                Started::running(self.probes.begin(*order).map(CatalogOutcome::Probed))
            }
        }
    }

    fn published(&mut self, news: &CatalogNews) {
        match news {
            CatalogNews::Found(found) | CatalogNews::Changed(found) => {
                let (plugin, version) = (&found.info.plugin, &found.info.version);
                let (source, api_version) = (&found.info.source, &found.api_version);
                tracing::info!(%plugin, %version, api_version, %source, "plugin can be used");
            }
            CatalogNews::Lost { plugin, reason: None } => {
                tracing::warn!(%plugin, "plugin no longer exists")
            }
            CatalogNews::Lost { plugin, reason: Some(reason) } => {
                tracing::warn!(%plugin, error = %reason, "plugin can no longer be used");
            }
            CatalogNews::Refused(refused) => {
                let source = &refused.source;
                tracing::warn!(%source, error = %refused.reason, "plugin is refused");
            }
            CatalogNews::Scanned { found, shadowed, refused, blocked } => {
                tracing::info!(found, shadowed, refused, blocked, "plugins were scanned");
            }
        }
    }
}
