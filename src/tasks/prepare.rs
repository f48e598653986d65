//! What is done for a task before its driver is told to start it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use callboard_actors::driver::client::{DriverClient, TaskConfig as DriverTask};
use callboard_actors::hclspec::{Config, Schema};

use super::calls::{RunKey, Trouble};
use super::host::QUICK;
use super::identity::TaskIdentities;
use crate::config::TaskConfig;

/// Prepares the tasks of one host.
#[derive(Debug)]
pub struct Preparer {
    data_dir: PathBuf,
    identities: TaskIdentities,
}

impl Preparer {
    /// Will keep what belongs to tasks below this directory.
    #[must_use]
    pub fn new(data_dir: &Path, identities: TaskIdentities) -> Self {
        Self { data_dir: data_dir.to_owned(), identities }
    }

    /// Makes a task's directories, and checks what its configuration says against the driver's own schema.
    ///
    /// # Errors
    /// Says what cannot be made, or what does not fit. The driver has not been told of the run.
    pub async fn prepare(
        &self,
        client: &DriverClient,
        run: &RunKey,
        config: &TaskConfig,
    ) -> Result<DriverTask, Trouble> {
        let schema =
            client.task_config_schema(QUICK).await.map_err(|error| Trouble::passing(error.to_string()))?;
        let place = config.config_place;
        let driver_config = encode(&schema, &config.config).map_err(|error| {
            Trouble::lasting(format!("its `config` (line {place}) does not fit: {error}"))
        })?;
        let identity = self.identities.of(&run.name);
        let allocation_dir = self.data_dir.join("alloc").join(identity.allocation.as_str());
        let logs = self.data_dir.join("logs");
        for directory in [&allocation_dir, &logs] {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|error| Trouble::passing(format!("cannot make {}: {error}", directory.display())))?;
        }
        Ok(DriverTask {
            environment: config.environment.clone(),
            user: config.user.clone(),
            allocation_dir,
            stdout_path: logs.join(format!("{}.stdout.log", run.name)),
            stderr_path: logs.join(format!("{}.stderr.log", run.name)),
            ..DriverTask::new(run.id.clone(), identity.allocation, identity.task, driver_config)
        })
    }
}

fn encode(schema: &callboard_proto::hclspec::Spec, table: &toml::Table) -> Result<Vec<u8>, String> {
    let schema = Schema::from_wire(schema).map_err(|error| error.to_string())?;
    let config = Config::from_toml(table).map_err(|error| error.to_string())?;
    Ok(schema.decode(&config).map_err(|error| error.to_string())?.to_msgpack())
}
