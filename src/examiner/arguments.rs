//! The arguments of the examiner.

use std::collections::BTreeMap;
use std::path::PathBuf;

use callboard_actors::csi::{Call, Secrets, check_secrets};
use callboard_proto::marks::secret_fields;
use clap::Args;

use crate::hostpath::HostpathArgs;

/// The arguments of `callboard plugin examiner`.
#[derive(Debug, Clone, Args)]
pub struct ExaminerArgs {
    /// What the plugin is to its callers, and its faults.
    #[command(flatten)]
    pub plugin: HostpathArgs,

    /// The arguments of the exam.
    #[command(flatten)]
    pub exam: ExamArgs,
}

/// What concerns the exam.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Exam")]
pub struct ExamArgs {
    /// Write the report to this file when the plugin stops, and on SIGUSR1: as JSON if its name ends in .json, else as text; may be given
    /// several times
    #[arg(long, value_name = "FILE")]
    pub report: Vec<PathBuf>,

    /// Keep the observations in this file, so that a plugin that dies goes on with the same exam when it is started again
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,

    /// Count what is not undone when the report is written as broken rules
    #[arg(long)]
    pub expect_undone: bool,

    /// Refuse this call without the secret of this key, for instance NodeStageVolume=token; may be given several times
    #[arg(long, value_name = "CALL=KEY", value_parser = call_and_key)]
    pub needs_secret: Vec<(Call, String)>,
}

fn call_and_key(text: &str) -> Result<(Call, String), String> {
    let (call, key) = text.split_once('=').ok_or("expected CALL=KEY, for instance NodeStageVolume=token")?;
    if key.is_empty() {
        return Err("the key of the secret is empty".to_owned());
    }
    let secrets = Secrets::new(BTreeMap::from([(key.to_owned(), String::new())]));
    check_secrets(&secrets).map_err(|fault| fault.to_string())?;
    let call = Call::named(call)?;
    match has_secrets(call) {
        true => Ok((call, key.to_owned())),
        false => Err(format!("{call} has no secrets in the specification, so no orchestrator can send one")),
    }
}

/// Whether the request of a call has a field for secrets.
fn has_secrets(call: Call) -> bool {
    secret_fields(&format!("csi.v1.{call}Request")).is_some_and(|fields| !fields.is_empty())
}
