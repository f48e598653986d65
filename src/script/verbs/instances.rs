//! The messages to the instances and to the inventory.

use callboard_actors::instances::{AwaitRetired, CheckNow, DescribeInstances, Dispense, HealthOf};
use callboard_actors::inventory::{AwaitFirst, TakeInventory};

use super::{Entry, Mistake, Stage, Words};
use crate::timeline::answers;

pub(super) const VERBS: &[Entry] = &[
    ("dispense PLUGIN [within=DURATION]", dispense),
    ("check PLUGIN", check),
    ("health ALLOCATION", health),
    ("retired ALLOCATION", retired),
    ("instances", instances),
    ("inventory", inventory),
    ("first", first),
];

fn dispense(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let plugin = words.plugin()?;
    let within = words.duration("within")?.unwrap_or_default();
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(Dispense { plugin, within }), |answer| answers::dispensed(&answer));
    Ok(())
}

fn check(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let plugin = words.plugin()?;
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(CheckNow { plugin }), |answer| answers::checked(&answer));
    Ok(())
}

fn health(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(HealthOf { allocation }), |reports| answers::health(&reports));
    Ok(())
}

fn retired(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(AwaitRetired { allocation }), |answer| answers::retired(&answer));
    Ok(())
}

fn instances(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(DescribeInstances), |all| answers::instance_list(&all));
    Ok(())
}

fn inventory(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let inventory = stage.host()?.inventory().clone();
    stage.ask("inventory", inventory.ask(TakeInventory), |view| answers::offered(&view));
    Ok(())
}

fn first(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let inventory = stage.host()?.inventory().clone();
    stage.ask("inventory", inventory.ask(AwaitFirst), |view| answers::first(&view));
    Ok(())
}
