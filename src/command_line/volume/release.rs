//! `callboard volume release`: a release in order, and one that is forced.

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use callboard_actors::vocabulary::AllocationId;
use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::json;

use super::{WaitArgs, volume_name};
use crate::admin::AdminClient;
use crate::command_line::ask::{AskError, PlainArgs, ask, pretty};
use crate::output::{complain, harmless, print};

/// What can be said to `volume release`.
#[derive(Debug, Args)]
pub(super) struct ReleaseArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    /// The allocation that owns the claim; with --force it may be left out, for all that is left of the volume on this node
    #[arg(long, value_name = "ID", required_unless_present = "force")]
    allocation: Option<AllocationId>,

    /// Do not wait for the confirmation of what is released, and forget it; asks before that
    #[arg(long, requires = "reason", conflicts_with = "within")]
    force: bool,

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
        (false, _) if !was_held => format!("{allocation} had no claim to {name}\n"),
        (false, []) => format!("{name} is released, and nothing of it is left on this node\n"),
        (false, others) => format!("{name} is released; {} still claim it\n", others.join(", ")),
    };
    print(&text)?;
    Ok(())
}

async fn force(mut client: AdminClient, args: &ReleaseArgs) -> Result<(), AskError> {
    let stdin = io::stdin();
    let terminal = stdin.is_terminal().then(|| stdin.lock());
    if !args.yes {
        confirm(&args.question(), terminal)?;
    }
    let request = wire::ForceReleaseVolumeRequest {
        name: args.name.clone(),
        allocation: args.allocation_name(),
        reason: args.reason.clone().unwrap_or_default(),
    };
    let wire::ForceReleaseVolumeResponse { name, reason, left } =
        client.force_release_volume(request).await?;
    let text = match (args.plain.json, &left[..]) {
        (true, _) => pretty(&json!({ "forced": name, "reason": reason, "left": left })),
        (false, []) => format!("{name} is forgotten; nothing of it may be left\n"),
        (false, left) => {
            let lines = left.iter().map(|step| format!("  {}\n", harmless(step)));
            format!("{name} is forgotten; look after what may be left of it:\n{}", lines.collect::<String>())
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

    fn question(&self) -> String {
        let of = match &self.allocation {
            Some(allocation) => format!("the released claim of {allocation} to volume {}", self.name),
            None => format!("all that is released of volume {}", self.name),
        };
        format!(
            "{of} is forgotten without a confirmation: mounts, an attachment or the volume itself may be left, and are not looked after \
             any more. Type \"yes\" to go on:"
        )
    }
}

/// Asks the user at the terminal, if there is one.
///
/// # Errors
/// Unless the answer is yes.
fn confirm(question: &str, terminal: Option<impl BufRead>) -> Result<(), AskError> {
    let Some(mut terminal) = terminal else {
        let message = "--force asks before it forgets anything, and standard input is no terminal; nothing was changed: add --yes to \
                       force it without a question";
        return Err(AskError::Invalid(message.to_owned()));
    };
    complain(question);
    let mut answer = String::new();
    let unread = |error| AskError::Invalid(format!("cannot read the answer: {error}; nothing was changed"));
    terminal.read_line(&mut answer).map_err(unread)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(AskError::Declined) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_force_is_confirmed_by_yes_and_by_nothing_else_v9() {
        let answered = |answer: &'static str| confirm("sure?", Some(answer.as_bytes()));
        assert!(answered("yes\n").is_ok());
        for answer in ["", "\n", "y\n", "no\n", "yes please\n"] {
            let error = answered(answer).expect_err(answer);
            assert_eq!(error.to_string(), "nothing was changed, since the answer was not \"yes\"");
            assert_eq!(error.exit_code(), 1);
        }
        let error = confirm("sure?", None::<&[u8]>).expect_err("no terminal");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().ends_with("nothing was changed: add --yes to force it without a question"));
    }
}
