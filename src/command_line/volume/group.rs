//! `callboard volume snapshot group`

use std::process::ExitCode;

use callboard_proto::admin::v1 as wire;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::super::ask::{AskError, PlainArgs, ask, pretty};
use super::snapshot::{created, json as snapshot_json, table};
use super::{ListWaitArgs, ParameterArgs, WaitArgs, confirm, volume_name};
use crate::admin::AdminClient;
use crate::output::{Palette, harmless, print};

/// What can be said to `volume snapshot group`.
#[derive(Debug, Args)]
pub(super) struct GroupArgs {
    #[command(subcommand)]
    command: GroupCommand,
}

#[derive(Debug, Subcommand)]
enum GroupCommand {
    /// Take snapshots of several volumes at once, and wait until all are ready; the same command again asks for the same group
    Create(CreateArgs),
    /// Delete a group with all of its snapshots, and wait until that is confirmed
    Delete(DeleteArgs),
    /// Show a group with its snapshots
    Show(ShowArgs),
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// The volumes, all of one plugin: the name of each, or its namespace, a slash and its name
    #[arg(required = true, value_name = "VOLUME", value_parser = volume_name)]
    volumes: Vec<String>,

    /// The name of the group, which no other group of the plugin has
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: String,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

/// Which group.
#[derive(Debug, Args)]
struct GroupOfArgs {
    /// The first volume of the group, as `create` shows it; if that is gone, another one of its plugin
    #[arg(value_parser = volume_name)]
    volume: String,

    /// The id of the group with the plugin, as `create` and `volume snapshot list` show it
    #[arg(long)]
    id: String,

    /// The id of a snapshot of the group; give all of them. They are looked up in the list of the plugin if none is given
    #[arg(long = "snapshot", value_name = "ID")]
    snapshots: Vec<String>,
}

#[derive(Debug, Args)]
struct DeleteArgs {
    #[command(flatten)]
    of: GroupOfArgs,

    /// Do not ask before it is deleted
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    of: GroupOfArgs,

    #[command(flatten)]
    wait: ListWaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

/// `callboard volume snapshot group`
pub(super) fn group(args: &GroupArgs) -> ExitCode {
    match &args.command {
        GroupCommand::Create(args) => ask(&args.plain, async |client| create(client, args).await),
        GroupCommand::Delete(args) => ask(&args.plain, async |client| delete(client, args).await),
        GroupCommand::Show(args) => ask(&args.plain, async |client| show(client, args).await),
    }
}

async fn create(mut client: AdminClient, args: &CreateArgs) -> Result<(), AskError> {
    let request = wire::CreateGroupSnapshotRequest {
        names: args.volumes.clone(),
        group: args.name.clone(),
        parameters: args.parameters.read()?,
        within_ms: args.wait.milliseconds(),
    };
    let wire::CreateGroupSnapshotResponse { name, group } = client.create_group_snapshot(request).await?;
    let group = group.unwrap_or_default();
    let text = match args.plain.json {
        true => pretty(&json!({ "volume": name, "group": json(&group) })),
        false => {
            let (of, id) = (args.volumes.join(", "), harmless(&group.group_snapshot_id));
            let snapshots = table(&group.snapshots).lines(Palette::of_stdout());
            format!("{} is taken of {of}: id {id}, kept by {name}\n{snapshots}", harmless(&args.name))
        }
    };
    print(&text)?;
    Ok(())
}

async fn delete(mut client: AdminClient, args: &DeleteArgs) -> Result<(), AskError> {
    let DeleteArgs { of, yes, wait, plain } = args;
    let request = |snapshot_ids| wire::DeleteGroupSnapshotRequest {
        name: of.volume.clone(),
        group_snapshot_id: of.id.clone(),
        snapshot_ids,
        within_ms: wait.milliseconds(),
    };
    // During its deletion, the list of the plugin may lack some or all of its snapshots.
    if of.snapshots.is_empty() && client.delete_group_snapshot(request(vec![])).await?.was_ordered {
        return print_deleted(of, plain);
    }
    let snapshot_ids: Vec<_> = match &of.snapshots[..] {
        [] => {
            let found = find(&mut client, of, wait.milliseconds()).await?;
            found.snapshots.into_iter().map(|snapshot| snapshot.snapshot_id).collect()
        }
        given => given.to_vec(),
    };
    if snapshot_ids.is_empty() {
        return Err(AskError::NoGroup { name: of.volume.clone(), id: of.id.clone() });
    }
    if !yes {
        let question = format!(
            "group {} is deleted at the plugin of volume {}, with its snapshots {}. Type \"yes\" to go on:",
            harmless(&of.id),
            of.volume,
            harmless(&snapshot_ids.join(", "))
        );
        confirm::at_terminal(&question, "a deleted snapshot cannot be restored")?;
    }
    client.delete_group_snapshot(request(snapshot_ids)).await?;
    print_deleted(of, plain)
}

fn print_deleted(of: &GroupOfArgs, plain: &PlainArgs) -> Result<(), AskError> {
    let text = match plain.json {
        true => pretty(&json!({ "deleted_group": of.id })),
        false => format!("the plugin of {} has no group {} any more\n", of.volume, harmless(&of.id)),
    };
    print(&text)?;
    Ok(())
}

async fn show(mut client: AdminClient, args: &ShowArgs) -> Result<(), AskError> {
    let group = find(&mut client, &args.of, args.wait.milliseconds()).await?;
    if group.snapshots.is_empty() {
        return Err(AskError::NoGroup { name: args.of.volume.clone(), id: args.of.id.clone() });
    }
    let text = match args.plain.json {
        true => pretty(&json!({ "group": json(&group) })),
        false => {
            let (id, age) = (harmless(&group.group_snapshot_id), created(group.created_unix_ms));
            let age = if age.is_empty() { String::new() } else { format!(", taken {age} ago") };
            let ready = if group.ready { "ready" } else { "not ready yet" };
            format!("{id} is {ready}{age}\n{}", table(&group.snapshots).lines(Palette::of_stdout()))
        }
    };
    print(&text)?;
    Ok(())
}

/// The group as its plugin describes it, without snapshots if the list of the plugin contains none of them.
async fn find(
    client: &mut AdminClient,
    of: &GroupOfArgs,
    within_ms: u64,
) -> Result<wire::VolumeGroupSnapshot, AskError> {
    let request = wire::GetGroupSnapshotRequest {
        name: of.volume.clone(),
        group_snapshot_id: of.id.clone(),
        snapshot_ids: of.snapshots.clone(),
        within_ms,
    };
    let found = client.get_group_snapshot(request).await?.group;
    let none = || wire::VolumeGroupSnapshot { group_snapshot_id: of.id.clone(), ..Default::default() };
    Ok(found.unwrap_or_else(none))
}

fn json(group: &wire::VolumeGroupSnapshot) -> Value {
    let wire::VolumeGroupSnapshot { group_snapshot_id, snapshots, created_unix_ms, ready } = group;
    json!({
        "group_snapshot_id": group_snapshot_id,
        "created_unix_ms": Some(created_unix_ms).filter(|at| **at > 0),
        "ready": ready,
        "snapshots": snapshots.iter().map(snapshot_json).collect::<Vec<_>>(),
    })
}
