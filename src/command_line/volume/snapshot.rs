//! `callboard volume snapshot`

use std::collections::HashMap;
use std::process::ExitCode;

use callboard_actors::vocabulary::PluginName;
use callboard_proto::admin::v1 as wire;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::super::ask::{AskError, PlainArgs, ask, pretty};
use super::super::table::{Cell, Table};
use super::super::times::ago;
use super::super::usage;
use super::group::GroupArgs;
use super::page::{Page, PageArgs};
use super::{ListWaitArgs, ParameterArgs, WaitArgs, confirm, group, volume_name};
use crate::admin::AdminClient;
use crate::output::{harmless, print};

/// What can be said to `volume snapshot`.
#[derive(Debug, Args)]
pub(super) struct SnapshotArgs {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    /// Take a snapshot of a volume, and wait until it is ready; the same command again asks for the same snapshot
    Create(CreateArgs),
    /// Delete a snapshot, and wait until that is confirmed
    Delete(DeleteArgs),
    /// List the snapshots that a plugin has
    List(ListArgs),
    /// Take snapshots of several volumes at once, show and delete such groups
    Group(GroupArgs),
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    volume: String,

    /// The name of the snapshot, which no other snapshot of the plugin has
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: String,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

#[derive(Debug, Args)]
struct DeleteArgs {
    /// The volume that the snapshot is of; if that is gone, another one of its plugin
    #[arg(value_parser = volume_name)]
    volume: String,

    /// The id of the snapshot with the plugin, as `create` and `list` show it
    #[arg(long)]
    id: String,

    /// Do not ask before it is deleted
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// The plugin
    #[arg(long, value_name = "NAME")]
    plugin: PluginName,

    /// Only those of this volume
    #[arg(long, value_name = "NAME", value_parser = volume_name)]
    volume: Option<String>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    wait: ListWaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

/// `callboard volume snapshot`
pub(super) fn snapshot(args: &SnapshotArgs) -> ExitCode {
    match &args.command {
        SnapshotCommand::Create(args) => ask(&args.plain, async |client| create(client, args).await),
        SnapshotCommand::Delete(args) => ask(&args.plain, async |client| delete(client, args).await),
        SnapshotCommand::Group(args) => group::group(args),
        SnapshotCommand::List(args) => ask(&args.plain, async |client| list(client, args).await),
    }
}

async fn create(mut client: AdminClient, args: &CreateArgs) -> Result<(), AskError> {
    let parameters: HashMap<_, _> = args.parameters.read()?;
    let request = wire::CreateSnapshotRequest {
        name: args.volume.clone(),
        snapshot: args.name.clone(),
        parameters,
        within_ms: args.wait.milliseconds(),
    };
    let wire::CreateSnapshotResponse { name, snapshot } = client.create_snapshot(request).await?;
    let snapshot = snapshot.unwrap_or_default();
    let text = match args.plain.json {
        true => pretty(&json!({ "volume": name, "snapshot": json(&snapshot) })),
        false => {
            format!("{} is taken of {name}: id {}\n", harmless(&args.name), harmless(&snapshot.snapshot_id))
        }
    };
    print(&text)?;
    Ok(())
}

async fn delete(mut client: AdminClient, args: &DeleteArgs) -> Result<(), AskError> {
    if !args.yes {
        let question = format!(
            "snapshot {} is deleted at the plugin of volume {}. Type \"yes\" to go on:",
            harmless(&args.id),
            args.volume
        );
        confirm::at_terminal(&question, "a deleted snapshot cannot be restored")?;
    }
    let request = wire::DeleteSnapshotRequest {
        name: args.volume.clone(),
        snapshot_id: args.id.clone(),
        within_ms: args.wait.milliseconds(),
    };
    let wire::DeleteSnapshotResponse { snapshot_id } = client.delete_snapshot(request).await?;
    let text = match args.plain.json {
        true => pretty(&json!({ "deleted_snapshot": snapshot_id })),
        false => {
            format!("the plugin of {} has no snapshot {} any more\n", args.volume, harmless(&snapshot_id))
        }
    };
    print(&text)?;
    Ok(())
}

async fn list(mut client: AdminClient, args: &ListArgs) -> Result<(), AskError> {
    let request = wire::ListSnapshotsRequest {
        plugin: args.plugin.to_string(),
        volume: args.volume.clone().unwrap_or_default(),
        max_entries: args.page.max,
        token: args.page.token.clone(),
        within_ms: args.wait.milliseconds(),
    };
    let wire::ListSnapshotsResponse { snapshots, next_token } = client.list_snapshots(request).await?;
    let page = Page {
        of: "snapshots",
        entries: snapshots.iter().map(json).collect(),
        table: table(&snapshots),
        next_token: &next_token,
    };
    print(&page.shown(args.plain.json))?;
    Ok(())
}

pub(super) fn json(snapshot: &wire::VolumeSnapshot) -> Value {
    let wire::VolumeSnapshot {
        snapshot_id,
        source_volume_id,
        size_bytes,
        created_unix_ms,
        ready,
        group_snapshot_id,
    } = snapshot;
    json!({
        "snapshot_id": snapshot_id,
        "source_volume_id": source_volume_id,
        "size_bytes": Some(size_bytes).filter(|bytes| **bytes > 0),
        "created_unix_ms": Some(created_unix_ms).filter(|at| **at > 0),
        "ready": ready,
        "group_snapshot_id": Some(group_snapshot_id).filter(|id| !id.is_empty()),
    })
}

pub(super) fn table(snapshots: &[wire::VolumeSnapshot]) -> Table {
    let mut table = Table::new(&["SNAPSHOT", "VOLUME ID", "SIZE", "AGE", "READY", "GROUP"]);
    for snapshot in snapshots {
        let size = Some(snapshot.size_bytes).filter(|bytes| *bytes > 0).map(usage::bytes).unwrap_or_default();
        let age = created(snapshot.created_unix_ms);
        let cells = vec![
            Cell::plain(&snapshot.snapshot_id),
            Cell::plain(&snapshot.source_volume_id),
            Cell::plain(size),
            Cell::plain(age),
            Cell::plain(if snapshot.ready { "ready" } else { "not yet" }),
            Cell::plain(&snapshot.group_snapshot_id),
        ];
        table.row(cells, Vec::new());
    }
    table
}

/// How long ago a snapshot was taken; empty if the plugin does not report it.
pub(super) fn created(unix_ms: u64) -> String {
    Some(unix_ms).filter(|at| *at > 0).map(ago).unwrap_or_default()
}
