//! Adds drivers to a host: as configured, or with their last configuration.

use std::rc::Rc;

use callboard_actors::driver::DriverSpec;
use callboard_actors::drivers::{AddDriver, Drivers, GiveUpDriver};
use callboard_actors::shell::Address;
use callboard_actors::vocabulary::DriverName;

use super::plugins::Plugins;
use super::{KeptDriver, Trouble};

/// Adds a driver of the configuration.
pub(super) async fn set_up(
    drivers: Address<Drivers>,
    plugins: Rc<Plugins>,
    driver: DriverName,
) -> Result<(), Trouble> {
    let added = async { add(&drivers, plugins.resolve(&driver).await?).await }.await;
    if let Err(trouble) = &added
        && !trouble.is_transient
    {
        // No caller needs to wait for this driver. An unreachable owner does not wait for it either.
        let reason = trouble.reason.clone();
        let _ = drivers.ask(GiveUpDriver { name: driver, reason }).await;
    }
    added
}

/// Adds a driver that is no longer configured, so that its tasks can be stopped.
pub(super) async fn set_up_unconfigured(
    drivers: Address<Drivers>,
    plugins: Rc<Plugins>,
    driver: DriverName,
    kept: Box<KeptDriver>,
) -> Result<(), Trouble> {
    let spec = plugins.set_up_unconfigured(&driver, &kept)?;
    plugins.make_state_directory(&driver, &kept.program).await?;
    let added = add(&drivers, spec).await;
    match &added {
        Ok(()) => {
            tracing::warn!(%driver, "this driver is no longer in the configuration; it is set up again to stop its tasks")
        }
        Err(error) => {
            tracing::warn!(%driver, %error, "this driver is no longer in the configuration, and cannot be set up again to stop its tasks")
        }
    }
    added
}

async fn add(drivers: &Address<Drivers>, spec: DriverSpec) -> Result<(), Trouble> {
    match drivers.ask(AddDriver { spec }).await {
        Ok(Ok(_added)) => Ok(()),
        Ok(Err(error)) => {
            Err(Trouble { is_transient: error.is_transient(), ..Trouble::passing(error.to_string()) })
        }
        Err(error) => Err(Trouble::passing(error.to_string())),
    }
}
