//! Tests drivers in the inventory, in the same shape as CSI plugins, with the real reference driver.

mod support;

use callboard::actors::drivers::{DescribeDriver, RestartDriver};
use callboard::actors::inventory::{AwaitFirst, InventoryNews, Offer, TakeInventory};
use callboard::actors::vocabulary::{Family, Health, PluginKey, PluginName, PluginType};
use callboard::host::Host;
use rustix::process::{Pid, Signal, kill_process};

use support::drivers::{DriverStage, add, driver_name, remove};
use support::{Watch, until};

fn key(name: &str) -> PluginKey {
    PluginKey::new(PluginType::Driver, PluginName::new(name).unwrap())
}

async fn pid_of(host: &Host, name: &str) -> Pid {
    let described = host.drivers().ask(DescribeDriver { name: driver_name(name) }).await.unwrap().unwrap();
    Pid::from_raw(i32::try_from(described.report.pid.unwrap()).unwrap()).unwrap()
}

fn changed(name: &str, is_it: impl Fn(&Health) -> bool) -> impl Fn(&InventoryNews) -> Option<Offer> {
    let plugin = key(name);
    move |news| match news {
        InventoryNews::Changed(offer) if offer.plugin == plugin && is_it(&offer.health) => {
            Some(offer.clone())
        }
        _ => None,
    }
}

#[actix::test]
async fn a_driver_is_offered_with_its_fingerprint_through_a_kill_and_a_restart_until_it_is_removed_hlt_07_hlt_08()
 {
    let stage = DriverStage::new();
    let host = stage.host().await;
    host.inventory().ask(AwaitFirst).await.unwrap();
    let mut inventory = Watch::on(host.inventory());
    add(&host, &stage.exec("exec", &[])).await;
    let first = inventory.until("it is healthy", changed("exec", |health| *health == Health::Healthy)).await;
    let fingerprint = first.fingerprint.as_ref().unwrap().driver().unwrap();
    assert_eq!(first.allocation, None);
    assert!(fingerprint.version.is_some(), "{fingerprint:?}");
    assert!(fingerprint.capabilities.as_ref().unwrap().exec, "{fingerprint:?}");
    assert!(fingerprint.attributes.contains_key("driver.exec"), "{fingerprint:?}");
    let view = host.inventory().ask(TakeInventory).await.unwrap();
    assert_eq!(view.family(Family::Driver).map(|offer| &offer.plugin).collect::<Vec<_>>(), [&key("exec")]);
    assert_eq!(view.family(Family::Csi).chain(view.family(Family::Device)).count(), 0);

    // Its process is killed: that is reported at once, with its reason, and so is its return.
    kill_process(pid_of(&host, "exec").await, Signal::KILL).unwrap();
    let is_unhealthy = |health: &Health| health.reason().is_some_and(|reason| reason.contains("signal 9"));
    inventory.until("it is not healthy", changed("exec", is_unhealthy)).await;
    let second = inventory.until("it is back", changed("exec", |health| *health == Health::Healthy)).await;
    assert!(second.generation > first.generation);
    assert_eq!(second.fingerprint, first.fingerprint);

    // A restart on request is not reported to subscribers.
    inventory.so_far();
    host.drivers().ask(RestartDriver { name: driver_name("exec") }).await.unwrap().unwrap();
    until("it serves again", async || {
        let view = host.inventory().ask(TakeInventory).await.unwrap();
        let [offer] = &view.offers[..] else { panic!("{view:?}") };
        !offer.restarting && offer.health == Health::Healthy && offer.generation > second.generation
    })
    .await;
    let told = inventory.so_far();
    assert!(told.is_empty(), "{told:?}");

    remove(&host, "exec").await;
    let removed = |news: &InventoryNews| match news {
        InventoryNews::Removed(offer) => Some(offer.health.clone()),
        InventoryNews::Changed(_) | InventoryNews::First(..) | InventoryNews::VolumesUsed { .. } => None,
    };
    assert_eq!(inventory.until("its removal", removed).await, Health::Gone);
    assert!(host.inventory().ask(TakeInventory).await.unwrap().offers.is_empty());
    host.stop().await;
    assert_eq!(stage.living(), []);
}
