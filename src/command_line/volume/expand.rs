//! `callboard volume expand`

use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::json;

use super::super::ask::{AskError, PlainArgs, pretty};
use super::super::usage;
use super::{WaitArgs, volume_name};
use crate::admin::AdminClient;
use crate::config::volume_words;
use crate::output::print;

#[derive(Debug, Args)]
pub(super) struct ExpandArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    /// How large it is to be: a number of bytes, or one with KiB, MiB, GiB or TiB, as in 2GiB
    #[arg(long, value_name = "SIZE", value_parser = volume_words::volume_size, allow_hyphen_values = true)]
    capacity: u64,

    /// How large it may become at most [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = volume_words::volume_size, allow_hyphen_values = true)]
    limit: Option<u64>,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

pub(super) async fn expand(mut client: AdminClient, args: &ExpandArgs) -> Result<(), AskError> {
    let request = wire::ExpandVolumeRequest {
        name: args.name.clone(),
        capacity_bytes: args.capacity,
        limit_bytes: args.limit.unwrap_or_default(),
        within_ms: args.wait.milliseconds(),
    };
    let wire::ExpandVolumeResponse { name, capacity_bytes, node_next } =
        client.expand_volume(request).await?;
    let size = Some(capacity_bytes).filter(|bytes| *bytes > 0);
    let text = match args.plain.json {
        true => pretty(&json!({ "expanded": name, "capacity_bytes": size, "node_next": node_next })),
        false => {
            let size = size.map(|bytes| format!(" to {}", usage::bytes(bytes))).unwrap_or_default();
            let next = if node_next { "; it grows on this node with its next claim" } else { "" };
            format!("{name} is expanded{size}{next}\n")
        }
    };
    print(&text)?;
    Ok(())
}
