//! The requests of a host to a driver besides its tasks: networks of allocations, and the schema of a task's configuration.

use callboard_actors::driver::NetworkMode;
use callboard_actors::driver::client::{CreatedNetwork, DriverClient, NetworkIsolation};
use callboard_actors::drivers::Wanted;
use callboard_actors::hclspec::{Config, schema_from_wire};

use super::super::told::{schema as told_schema, value as told_value};
use super::drivers::name;
use super::tasks::{ask_driver, done, within};
use super::{Entry, Mistake, Stage, Words};

pub(super) const VERBS: &[Entry] = &[
    ("create-network NAME ALLOCATION [hostname=TEXT] [within=DURATION]", create),
    ("destroy-network NAME ALLOCATION [within=DURATION]", destroy),
    ("task-schema NAME [config=TEXT] [within=DURATION]", schema),
];

/// Creates a network, and keeps its data.
fn create(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (driver, allocation, within) = (name(words)?, words.allocation()?, within(words)?);
    let hostname = words.key("hostname").unwrap_or_default().to_owned();
    let (networks, key) = (stage.networks.clone(), (driver.clone(), allocation.clone()));
    let ask = move |client: DriverClient| async move {
        client.create_network(&allocation, &hostname, within).await
    };
    ask_driver(stage, driver, Wanted::Healthy, ask, move |CreatedNetwork { network, is_new }| {
        let Some(network) = network else { return "it needs none".to_owned() };
        let told = format!("{}{}", if is_new { "made: " } else { "it is there: " }, told(&network));
        networks.borrow_mut().insert(key, network);
        told
    })
}

fn told(network: &NetworkIsolation) -> String {
    let mode = match network.mode {
        NetworkMode::Host => "that of the host",
        NetworkMode::Group => "one for the allocation",
        NetworkMode::Task => "one for the task",
        NetworkMode::None => "none but the loopback device",
    };
    let hosts = network.hosts_entry.as_ref().map(|(name, address)| format!(", {name} is {address}"));
    format!("{mode}, {}{}", network.path, hosts.unwrap_or_default())
}

fn destroy(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (driver, allocation, within) = (name(words)?, words.allocation()?, within(words)?);
    let network = stage.networks.borrow().get(&(driver.clone(), allocation.clone())).cloned();
    let network = network.ok_or_else(|| {
        Mistake::new(format!("the script has no network of {allocation}; `create-network` it before"))
    })?;
    let ask = move |client: DriverClient| async move {
        client.destroy_network(&allocation, &network, within).await
    };
    ask_driver(stage, driver, Wanted::Reachable, ask, done("removed"))
}

/// Requests the schema of a task's configuration, and shows it, or shows what the driver would receive of a configuration in HCL.
fn schema(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (driver, within) = (name(words)?, within(words)?);
    let config = words.key("config").map(Config::from_hcl).transpose();
    let config = config.map_err(|errors| Mistake::new(errors.to_string()))?;
    let ask = move |client: DriverClient| async move { client.task_config_schema(within).await };
    ask_driver(stage, driver, Wanted::Reachable, ask, move |spec| {
        let schema = match schema_from_wire(&spec) {
            Ok(schema) => schema,
            Err(malformed) => return format!("no: {malformed}"),
        };
        match config.map(|config| schema.decode(&config)) {
            None => told_schema(schema.root()),
            Some(Ok(value)) => told_value(&value),
            Some(Err(errors)) => format!("no: {errors}"),
        }
    })
}
