//! The requests of `callboard volume` to plugins: their volumes, their free capacity, and whether they support a usage.

use callboard_actors::vocabulary::PluginName;
use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::{Value, json};

use super::super::ask::{AskError, PlainArgs, pretty};
use super::super::table::{Cell, Table};
use super::super::usage;
use super::page::{Page, PageArgs, condition, standing};
use super::{ListWaitArgs, ParameterArgs, ReadWaitArgs, UsageArgs, WaitArgs, volume_name};
use crate::admin::AdminClient;
use crate::output::{harmless, print};

#[derive(Debug, Args)]
pub(super) struct OfPluginArgs {
    /// The plugin
    plugin: PluginName,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    wait: ListWaitArgs,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

#[derive(Debug, Args)]
pub(super) struct CapacityArgs {
    /// The plugin
    plugin: PluginName,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    wait: ListWaitArgs,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    usage: UsageArgs,

    #[command(flatten)]
    wait: ReadWaitArgs,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

#[derive(Debug, Args)]
pub(super) struct ModifyArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

pub(super) async fn list(mut client: AdminClient, args: &OfPluginArgs) -> Result<(), AskError> {
    let request = wire::ListPluginVolumesRequest {
        plugin: args.plugin.to_string(),
        max_entries: args.page.max,
        token: args.page.token.clone(),
        within_ms: args.wait.milliseconds(),
    };
    let wire::ListPluginVolumesResponse { volumes, next_token } = client.list_plugin_volumes(request).await?;
    let page = Page {
        of: "volumes",
        entries: volumes.iter().map(json).collect(),
        table: table(&volumes),
        next_token: &next_token,
    };
    print(&page.shown(args.plain.json))?;
    Ok(())
}

fn json(volume: &wire::PluginVolume) -> Value {
    json!({
        "volume_id": volume.volume_id,
        "capacity_bytes": Some(volume.capacity_bytes).filter(|bytes| *bytes > 0),
        "nodes": volume.nodes,
        "condition": volume.condition.as_ref().map(condition),
    })
}

/// The condition of a volume, with the plugin's report about it.
fn described(condition: &wire::VolumeCondition) -> String {
    match condition.message.as_str() {
        "" => standing(condition).to_owned(),
        message => format!("{}: {message}", standing(condition)),
    }
}

fn table(volumes: &[wire::PluginVolume]) -> Table {
    let mut table = Table::new(&["VOLUME ID", "SIZE", "NODES", "CONDITION"]);
    for volume in volumes {
        let size =
            Some(volume.capacity_bytes).filter(|bytes| *bytes > 0).map(usage::bytes).unwrap_or_default();
        let condition = volume.condition.as_ref().map(described);
        let cells = vec![
            Cell::plain(&volume.volume_id),
            Cell::plain(size),
            Cell::plain(volume.nodes.join(", ")),
            Cell::plain(condition.unwrap_or_default()),
        ];
        table.row(cells, Vec::new());
    }
    table
}

pub(super) async fn capacity(mut client: AdminClient, args: &CapacityArgs) -> Result<(), AskError> {
    let request = wire::GetPluginCapacityRequest {
        plugin: args.plugin.to_string(),
        parameters: args.parameters.read()?,
        within_ms: args.wait.milliseconds(),
    };
    let found = client.get_plugin_capacity(request).await?;
    let wire::GetPluginCapacityResponse { available_bytes, largest_bytes, smallest_bytes } = found;
    let said = |bytes: u64| Some(bytes).filter(|bytes| *bytes > 0);
    let text = match args.plain.json {
        true => pretty(&json!({
            "plugin": args.plugin.as_str(),
            "available_bytes": available_bytes,
            "largest_bytes": said(largest_bytes),
            "smallest_bytes": said(smallest_bytes),
        })),
        false => {
            let bound = |word: &str, bytes| {
                said(bytes).map(|bytes| format!(", {word} {}", usage::bytes(bytes))).unwrap_or_default()
            };
            let (largest, smallest) = (bound("at most", largest_bytes), bound("at least", smallest_bytes));
            format!("{} available{largest}{smallest} for a volume\n", usage::bytes(available_bytes))
        }
    };
    print(&text)?;
    Ok(())
}

/// The usage that is validated if none is given.
const USUAL: &str = "; it was asked about the usage of its entry in the configuration, or without one about a file system with one \
                     writer: name another usage by --block, --access-mode and so on";

pub(super) async fn validate(mut client: AdminClient, args: &ValidateArgs) -> Result<(), AskError> {
    let request = wire::ValidateVolumeRequest {
        name: args.name.clone(),
        usage: args.usage.given(),
        parameters: args.parameters.read()?,
        within_ms: args.wait.milliseconds(),
    };
    let asked = if request.usage.is_none() { USUAL } else { "" };
    let wire::ValidateVolumeResponse { name, unconfirmed, message } = client.validate_volume(request).await?;
    let is_confirmed = unconfirmed.is_empty();
    let text = match args.plain.json {
        true => pretty(&json!({
            "validated": name,
            "confirmed": is_confirmed,
            "unconfirmed": unconfirmed,
            "message": Some(&message).filter(|message| !message.is_empty()),
        })),
        false if is_confirmed => format!("{name} supports this usage\n"),
        false => {
            let why = if message.is_empty() { String::new() } else { format!(": {}", harmless(&message)) };
            format!("not confirmed for {name}: {}{why}{asked}\n", unconfirmed.join(", "))
        }
    };
    print(&text)?;
    if is_confirmed { Ok(()) } else { Err(AskError::Unconfirmed(name)) }
}

pub(super) async fn modify(mut client: AdminClient, args: &ModifyArgs) -> Result<(), AskError> {
    if args.parameters.parameters.is_empty() {
        let message = format!("nothing of volume {} is to be changed; give --parameter KEY=VALUE", args.name);
        return Err(AskError::Invalid(message));
    }
    let request = wire::ModifyVolumeRequest {
        name: args.name.clone(),
        parameters: args.parameters.read()?,
        within_ms: args.wait.milliseconds(),
    };
    let wire::ModifyVolumeResponse { name } = client.modify_volume(request).await?;
    let text = match args.plain.json {
        true => pretty(&json!({ "modified": name })),
        false => format!("{name} is modified\n"),
    };
    print(&text)?;
    Ok(())
}
