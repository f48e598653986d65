//! `callboard volume release`: a release in order, and one that is forced.

use std::process::ExitCode;

use callboard_actors::vocabulary::AllocationId;
use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::json;

use super::{WaitArgs, confirm, volume_name};
use crate::admin::AdminClient;
use crate::command_line::ask::{AskError, PlainArgs, ask, pretty};
use crate::output::{harmless, print};

/// What can be said to `volume release`.
#[derive(Debug, Args)]
pub(super) struct ReleaseArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    /// The allocation that owns the claim; with --force it may be left out, for all that is left of the volume on this node
    #[arg(long, value_name = "ID", required_unless_present = "force", conflicts_with = "orders")]
    allocation: Option<AllocationId>,

    /// Do not wait for the confirmation of what is released, and forget it; asks before that
    #[arg(long, requires = "reason", conflicts_with = "within")]
    force: bool,

    /// Forget only what was ordered and is not done: expansions, snapshots, changed parameters; claims stay
    #[arg(long, requires = "force")]
    orders: bool,

    /// Why it is forced, for the audit
    #[arg(long, value_name = "TEXT", requires = "force")]
    reason: Option<String>,

    /// Force it without a question
    #[arg(long, requires = "force")]
    yes: bool,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

/// `callboard volume release`
pub(super) fn release(args: &ReleaseArgs) -> ExitCode {
    match args.force {
        true => ask(&args.plain, async |client| force(client, args).await),
        false => ask(&args.plain, async |client| in_order(client, args).await),
    }
}

async fn in_order(mut client: AdminClient, args: &ReleaseArgs) -> Result<(), AskError> {
    let allocation = args.allocation_name();
    let request = wire::ReleaseVolumeRequest {
        name: args.name.clone(),
        allocation: allocation.clone(),
        within_ms: args.wait.milliseconds(),
    };
    let wire::ReleaseVolumeResponse { name, was_held, others } = client.release_volume(request).await?;
    let text = match (args.plain.json, &others[..]) {
        (true, _) => pretty(
            &json!({ "released": name, "allocation": allocation, "was_held": was_held, "others": others }),
        ),
        (false, _) if !was_held => String::new(),
        (false, []) => format!("{name} is released, and nothing of it is left on this node\n"),
        (false, others) => format!("{name} is released; it is still claimed by {}\n", others.join(", ")),
    };
    print(&text)?;
    if was_held { Ok(()) } else { Err(AskError::NoClaim { allocation, name }) }
}

async fn force(mut client: AdminClient, args: &ReleaseArgs) -> Result<(), AskError> {
    if !args.yes {
        confirm::at_terminal(&args.question(), "--force forgets what may be left")?;
    }
    let request = wire::ForceReleaseVolumeRequest {
        name: args.name.clone(),
        allocation: args.allocation_name(),
        reason: args.reason.clone().unwrap_or_default(),
        orders_only: args.orders,
    };
    let wire::ForceReleaseVolumeResponse { name, reason, left } =
        client.force_release_volume(request).await?;
    let text = match (args.plain.json, &left[..]) {
        (true, _) => pretty(&json!({ "forced": name, "reason": reason, "left": left })),
        (false, []) => format!("{} is forgotten; nothing of it may be left\n", args.forgotten(&name)),
        (false, left) => {
            let lines: String = left.iter().map(|step| format!("  {}\n", harmless(step))).collect();
            format!("{} is forgotten; look after what may be left of it:\n{lines}", args.forgotten(&name))
        }
    };
    print(&text)?;
    Ok(())
}

impl ReleaseArgs {
    /// The allocation, or an empty text for all that is left of the volume.
    fn allocation_name(&self) -> String {
        self.allocation.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// What is forgotten, of the volume with this name.
    fn forgotten(&self, name: &str) -> String {
        match &self.allocation {
            _ if self.orders => format!("what was ordered of {name}"),
            Some(allocation) => format!("the claim of {allocation} to {name}"),
            None => format!("all that was released of {name}"),
        }
    }

    fn question(&self) -> String {
        const ORDERED: &str =
            "what was ordered of it and is not done (expansions, snapshots, changed parameters)";
        let name = &self.name;
        let (of, left) = match &self.allocation {
            _ if self.orders => (
                format!("of volume {name} {ORDERED}"),
                "the plugin may have done it, wholly or in part, and that is not looked after any more",
            ),
            Some(allocation) => (
                format!("the released claim of {allocation} to volume {name}"),
                "its mount may be left and is yours to unmount; what it shared with others stays until then",
            ),
            None => (
                format!("all that is released of volume {name}, and {ORDERED},"),
                "mounts, an attachment, the volume itself or what was ordered may be left, and are not looked after any more",
            ),
        };
        format!("{of} is forgotten without a confirmation: {left}. Type \"yes\" to go on:")
    }
}
