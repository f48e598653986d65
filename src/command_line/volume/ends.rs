//! The ends of a volume: `callboard volume delete` and `callboard volume forget`.

use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::json;

use super::super::ask::{AskError, PlainArgs, pretty};
use super::{WaitArgs, confirm, volume_name};
use crate::admin::AdminClient;
use crate::output::print;

#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    /// Delete it without a question
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

pub(super) async fn delete(mut client: AdminClient, args: &DeleteArgs) -> Result<(), AskError> {
    if !args.yes {
        let question = format!(
            "volume {} is deleted at its plugin, with all data that is in it. Type \"yes\" to go on:",
            args.name
        );
        confirm::at_terminal(&question, "the data of a volume is deleted with it")?;
    }
    let request = wire::DeleteVolumeRequest { name: args.name.clone(), within_ms: args.wait.milliseconds() };
    let wire::DeleteVolumeResponse { name, did_exist, is_configured } = client.delete_volume(request).await?;
    let still =
        if is_configured { "; remove its [[volume]] from the configuration, which has it still" } else { "" };
    let text = match args.plain.json {
        true => pretty(&json!({ "deleted": name, "did_exist": did_exist, "is_configured": is_configured })),
        false if did_exist => format!("{name} is deleted{still}\n"),
        false => String::new(),
    };
    print(&text)?;
    if did_exist { Ok(()) } else { Err(AskError::UnknownVolume(name)) }
}

pub(super) async fn forget(mut client: AdminClient, args: &ForgetArgs) -> Result<(), AskError> {
    let wire::ForgetVolumeResponse { name, was_known } = client.forget_volume(&args.name).await?;
    let text = match args.plain.json {
        true => pretty(&json!({ "forgotten": name, "was_known": was_known })),
        false if was_known => format!("{name} is forgotten\n"),
        false => String::new(),
    };
    print(&text)?;
    if was_known { Ok(()) } else { Err(AskError::UnknownVolume(name)) }
}
