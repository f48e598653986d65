//! `callboard volume release`: a release in order, or a forced release.

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
    #[arg(long, value_name = "ID", required_unless_present_any = ["force", "orders"], conflicts_with = "orders")]
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
        (false, []) => format!("{name} is released: what was set up for {allocation} is undone\n"),
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
    print(&match args.plain.json {
        true => pretty(&json!({ "forced": name, "reason": reason, "left": left })),
        false => args.given_up(&name, &left),
    })?;
    Ok(())
}

impl ReleaseArgs {
    /// The allocation, or an empty text for all that is left of the volume.
    fn allocation_name(&self) -> String {
        self.allocation.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// What is forgotten of the volume with this name.
    fn forgotten(&self, name: &str) -> String {
        match &self.allocation {
            _ if self.orders => format!("what was ordered of {name}"),
            Some(allocation) => format!("the claim of {allocation} to {name}"),
            None => format!("all that was released of {name}"),
        }
    }

    /// What is given up of the volume with this name, and what may be left of it.
    fn given_up(&self, name: &str, left: &[String]) -> String {
        let forgotten = self.forgotten(name);
        if left.is_empty() {
            return format!("{forgotten} is given up and forgotten\n");
        }
        let warning = match &self.allocation {
            _ if self.orders => "the plugin may have done it, wholly or in part".to_owned(),
            Some(_) => format!(
                "unmount what is left of it; `callboard volume status {name}` shows what the host still undoes"
            ),
            None => {
                "the host undoes nothing of it any more; unmount by hand what is still mounted".to_owned()
            }
        };
        let lines: String = left.iter().map(|step| format!("  {}\n", harmless(step))).collect();
        format!("{forgotten} is given up and forgotten; {warning}:\n{lines}")
    }

    fn question(&self) -> String {
        const ORDERED: &str =
            "what was ordered of it and is not done (expansions, snapshots, changed parameters)";
        let name = &self.name;
        let (of, left) = match &self.allocation {
            _ if self.orders => (
                format!("of volume {name} {ORDERED}"),
                "the plugin may have done it, wholly or in part, and the host does not follow it up",
            ),
            Some(allocation) => (
                format!("the released claim of {allocation} to volume {name}"),
                "its mount may be left, unmount it by hand; what it shared with others stays until then",
            ),
            None => (
                format!("all that is released of volume {name}, and {ORDERED},"),
                "mounts, an attachment, the volume itself or what was ordered may be left, and the host does not follow them up",
            ),
        };
        format!("{of} is forgotten without a confirmation: {left}. Type \"yes\" to go on:")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        release: ReleaseArgs,
    }

    fn given_up(more: &[&str], left: &[&str]) -> String {
        let line = ["release", "data", "--force", "--reason", "x", "--socket", "/admin.sock"];
        let words = line.iter().chain(more).copied();
        let args = Line::try_parse_from(words).expect("it is valid").release;
        let left: Vec<_> = left.iter().map(|step| (*step).to_owned()).collect();
        args.given_up("default/data", &left)
    }

    #[test]
    fn after_a_forced_release_it_is_said_what_is_not_undone_any_more_v9() {
        let mount = "publish of web is unknown-down, at /t\u{1b}[2J";
        assert_eq!(
            given_up(&[], &[mount, "stage is up, at /s"]),
            "all that was released of default/data is given up and forgotten; the host undoes nothing of it any more; unmount \
            by hand what is still mounted:\n  publish of web is unknown-down, at /t\\u{1b}[2J\n  stage is up, at /s\n"
        );
        let claim = given_up(&["--allocation", "web"], &[mount]);
        let expected = "the claim of web to default/data is given up and forgotten; unmount what is left of it; `callboard volume status \
                        default/data` shows what the host still undoes:\n  publish of web";
        assert!(claim.starts_with(expected), "{claim}");
        let orders = given_up(&["--orders"], &["\"modify label\" is unknown-up"]);
        let expected = "what was ordered of default/data is given up and forgotten; the plugin may have done it, wholly or in part:\n  \"modify label\" is \
                        unknown-up\n";
        assert_eq!(orders, expected);
        assert_eq!(
            given_up(&["--orders"], &[]),
            "what was ordered of default/data is given up and forgotten\n"
        );
    }
}
