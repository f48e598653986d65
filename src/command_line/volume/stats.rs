//! `callboard volume stats`

use std::time::Duration;

use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::{Value, json};

use super::super::ask::{AskError, PlainArgs, pretty};
use super::super::usage;
use super::page::{condition, standing};
use super::volume_name;
use crate::admin::AdminClient;
use crate::duration::parse_duration;
use crate::output::{harmless, print};

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    /// How long to wait for the plugin; 10s at most
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    within: Duration,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

pub(super) async fn stats(mut client: AdminClient, args: &StatsArgs) -> Result<(), AskError> {
    let within_ms = super::milliseconds(args.within);
    let request = wire::GetVolumeStatsRequest { name: args.name.clone(), within_ms };
    let stats = client.volume_stats(request).await?;
    print(&if args.plain.json { pretty(&json(&stats)) } else { text(&stats) })?;
    Ok(())
}

fn json(stats: &wire::GetVolumeStatsResponse) -> Value {
    let figures = stats.figures.iter().map(|figure| {
        let wire::VolumeFigure { unit, available, total, used } = figure;
        json!({ "unit": unit, "available": available, "total": total, "used": used })
    });
    json!({
        "stats": stats.name,
        "path": Some(&stats.path).filter(|path| !path.is_empty()),
        "usage": figures.collect::<Vec<_>>(),
        "condition": {
            "on_node": stats.on_node.as_ref().map(condition),
            "at_controller": stats.at_controller.as_ref().map(condition),
        },
    })
}

fn text(stats: &wire::GetVolumeStatsResponse) -> String {
    let at = if stats.path.is_empty() { String::new() } else { format!(" at {}", harmless(&stats.path)) };
    let mut text = format!("{}{at}\n", stats.name);
    for wire::VolumeFigure { unit, available, total, used } in &stats.figures {
        let shown = |number: &u64| if unit == "bytes" { usage::bytes(*number) } else { number.to_string() };
        let (used, total, available) = (shown(used), shown(total), shown(available));
        text.push_str(&format!("  {}  {used} of {total} used, {available} available\n", harmless(unit)));
    }
    for (place, condition) in [("this node", &stats.on_node), ("its controller", &stats.at_controller)] {
        if let Some(condition) = condition {
            let (word, message) = (standing(condition), harmless(&condition.message));
            text.push_str(&format!("  {word}, says {place}: {message}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_shown_by_unit_and_no_text_of_a_plugin_moves_the_terminal() {
        let condition =
            |abnormal, message: &str| wire::VolumeCondition { abnormal, message: message.to_owned() };
        let figure = |unit: &str| wire::VolumeFigure {
            unit: unit.to_owned(),
            available: 1024,
            total: 2048,
            used: 1024,
        };
        let stats = wire::GetVolumeStatsResponse {
            name: "default/data".to_owned(),
            path: "/d/web".to_owned(),
            figures: vec![figure("bytes"), figure("inodes")],
            on_node: Some(condition(false, "fine")),
            at_controller: Some(condition(true, "a disk \u{1b}[2Jis gone")),
        };
        let expected = "\
default/data at /d/web
  bytes  1.0 KiB of 2.0 KiB used, 1.0 KiB available
  inodes  1024 of 2048 used, 1024 available
  in order, says this node: fine
  not in order, says its controller: a disk \\u{1b}[2Jis gone
";
        assert_eq!(text(&stats), expected);
        let json =
            json(&wire::GetVolumeStatsResponse { name: "default/data".to_owned(), ..Default::default() });
        assert_eq!(json["path"], Value::Null);
    }
}
