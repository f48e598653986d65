//! A page of a list of a plugin, and the condition of a volume: as text and as JSON.

use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::{Value, json};

use crate::command_line::ask::pretty;
use crate::command_line::table::Table;
use crate::output::{Palette, harmless};

/// Which page is asked for.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// The most entries of a page [default: as many as the plugin gives]
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(super) max: u32,

    /// The token of the page, as the page before has shown it
    #[arg(long, value_name = "TOKEN", default_value = "", hide_default_value = true)]
    pub(super) token: String,
}

/// One page: its subject, its entries as JSON and as a table, and the token of the next page, which is empty on the last page.
pub(super) struct Page<'p> {
    pub(super) of: &'static str,
    pub(super) entries: Vec<Value>,
    pub(super) table: Table,
    pub(super) next_token: &'p str,
}

impl Page<'_> {
    pub(super) fn shown(self, is_json: bool) -> String {
        let Self { of, entries, table, next_token } = self;
        let next = Some(next_token).filter(|token| !token.is_empty());
        if is_json {
            return pretty(&json!({ (of): entries, "next_token": next }));
        }
        let more = next.map(|token| format!("more with --token {}\n", harmless(token))).unwrap_or_default();
        match entries.is_empty() {
            true => format!("no {of}\n{more}"),
            false => format!("{}{more}", table.lines(Palette::of_stdout())),
        }
    }
}

/// The condition of a volume in words.
pub(super) const fn standing(condition: &wire::VolumeCondition) -> &'static str {
    if condition.abnormal { "not in order" } else { "in order" }
}

pub(super) fn condition(wire::VolumeCondition { abnormal, message }: &wire::VolumeCondition) -> Value {
    json!({ "abnormal": abnormal, "message": message })
}
