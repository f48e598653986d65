//! What is said to the instances and to the inventory.

use callboard_actors::instances::{AwaitRetired, CheckNow, DescribeInstances, Dispense, HealthOf};
use callboard_actors::inventory::{AwaitFirst, InventoryView, TakeInventory};

use super::super::told::{offer, report, summary};
use super::{Entry, Mistake, Stage, Words, lines};

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
    stage.ask("instances", instances.ask(Dispense { plugin, within }), |answer| match answer {
        Ok(dispensed) => {
            format!("here: {} of {} @{}", dispensed.plugin, dispensed.allocation, dispensed.generation)
        }
        Err(error) => format!("no: {error}"),
    });
    Ok(())
}

fn check(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let plugin = words.plugin()?;
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(CheckNow { plugin }), |answer| match answer {
        Ok(seen) => report(&seen),
        Err(error) => format!("no: {error}"),
    });
    Ok(())
}

fn health(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(HealthOf { allocation }), |reports| {
        lines(reports.iter().map(report), "no instance talks to it")
    });
    Ok(())
}

fn retired(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let allocation = words.allocation()?;
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(AwaitRetired { allocation }), |answer| match answer {
        Ok(()) => "no instance talks to it any more".to_owned(),
        Err(error) => format!("no: {error}"),
    });
    Ok(())
}

fn instances(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let instances = stage.host()?.instances().clone();
    stage.ask("instances", instances.ask(DescribeInstances), |all| {
        let told = all.iter().map(|status| {
            format!("{}, {}, {} restarts", report(&status.report), status.state.as_str(), status.restarts)
        });
        lines(told, "no instances")
    });
    Ok(())
}

fn inventory(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let inventory = stage.host()?.inventory().clone();
    stage.ask("inventory", inventory.ask(TakeInventory), offered);
    Ok(())
}

fn offered(view: InventoryView) -> String {
    if view.first.is_none() {
        return "nothing is told before the first inventory".to_owned();
    }
    lines(view.offers.iter().map(offer), "this node offers nothing")
}

fn first(stage: &mut Stage, _: &mut Words<'_>) -> Result<(), Mistake> {
    let inventory = stage.host()?.inventory().clone();
    stage.ask("inventory", inventory.ask(AwaitFirst), |view| match view.first {
        Some(found) => format!("first inventory: {}", summary(&found)),
        None => "not waited for".to_owned(),
    });
    Ok(())
}
