//! How drivers are added to those of a host: as they are configured, or reattached to the process that an earlier run of it left.

use std::rc::Rc;

use callboard_actors::driver::{DriverSpec, process_name};
use callboard_actors::drivers::{AddDriver, Drivers, GiveUpDriver};
use callboard_actors::processes::{Processes, RecallProcess, Recalled};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::DriverName;

use super::plugins::{Plugins, Unresolved};
use super::{Brought, KeptDriver, Trouble};

/// Adds drivers to those of a host.
#[derive(Debug, Clone)]
pub(super) struct Bringer {
    pub(super) drivers: Address<Drivers>,
    pub(super) processes: Address<Processes>,
    pub(super) plugins: Rc<Plugins>,
}

impl Bringer {
    /// Adds a driver of the configuration. If its plugin cannot be used, it is reattached to its process of an earlier run.
    pub(super) async fn bring(self, driver: DriverName) -> Result<Brought, Trouble> {
        let brought = match self.plugins.resolve(&driver).await {
            Ok(spec) => self.add(spec).await.map(|()| Brought::Whole),
            Err(unresolved) => self.reattach(unresolved).await,
        };
        if let Err(trouble) = &brought
            && !trouble.is_transient
        {
            // No caller has to wait for it. An owner that cannot be reached does not wait either.
            let reason = trouble.reason.clone();
            let _ = self.drivers.ask(GiveUpDriver { name: driver, reason }).await;
        }
        brought
    }

    /// Adds a driver that is only reattached, if a process of it is there for that.
    async fn reattach(&self, unresolved: Unresolved) -> Result<Brought, Trouble> {
        let Unresolved { trouble, reattached } = unresolved;
        match reattached {
            Some(spec) if self.is_left(&spec).await => {
                self.add(*spec).await.map(|()| Brought::Reattached(trouble))
            }
            Some(_) | None => Err(trouble),
        }
    }

    /// Whether a process is left that this driver may be reattached to.
    async fn is_left(&self, spec: &DriverSpec) -> bool {
        let Ok(name) = process_name(&spec.name) else { return false };
        match self.processes.ask(RecallProcess { name }).await {
            Ok(Ok(Recalled::Proven(launched))) => spec.adopts_any || launched.is_of(&spec.launched_process()),
            // An owner of the processes that does not answer is asked again with the plugin.
            Ok(_) | Err(_) => false,
        }
    }

    /// Adds a driver that is no longer configured, so that its tasks can be stopped.
    pub(super) async fn bring_back(
        self,
        driver: DriverName,
        kept: Box<KeptDriver>,
    ) -> Result<Brought, Trouble> {
        let spec = self.plugins.bring_back(&driver, &kept)?;
        self.plugins.make_state_directory(&driver, &kept.program).await?;
        let added = self.add(spec).await;
        match &added {
            Ok(()) => {
                tracing::warn!(%driver, "the configuration has this driver no more; it is brought back to stop its tasks")
            }
            Err(error) => {
                tracing::warn!(%driver, %error, "the configuration has this driver no more, and it cannot be brought back")
            }
        }
        added.map(|()| Brought::Whole)
    }

    async fn add(&self, spec: DriverSpec) -> Result<(), Trouble> {
        match self.drivers.ask(AddDriver { spec }).await {
            Ok(Ok(_added)) => Ok(()),
            Ok(Err(error)) => {
                Err(Trouble { is_transient: error.is_transient(), ..Trouble::passing(error.to_string()) })
            }
            Err(error) => Err(Trouble::passing(error.to_string())),
        }
    }
}
