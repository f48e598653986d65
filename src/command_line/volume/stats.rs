//! `callboard volume stats`

use callboard_proto::admin::v1 as wire;
use clap::Args;
use serde_json::{Value, json};

use super::super::ask::{AskError, PlainArgs, pretty};
use super::super::usage;
use super::page::{condition, standing};
use super::{ReadWaitArgs, volume_name};
use crate::admin::AdminClient;
use crate::output::{harmless, print};

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    #[command(flatten)]
    wait: ReadWaitArgs,

    #[command(flatten)]
    pub(super) plain: PlainArgs,
}

pub(super) async fn stats(mut client: AdminClient, args: &StatsArgs) -> Result<(), AskError> {
    let request =
        wire::GetVolumeStatsRequest { name: args.name.clone(), within_ms: args.wait.milliseconds() };
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
    for figure in &stats.figures {
        text.push_str(&format!("  {}  {}\n", harmless(&figure.unit), told(figure)));
    }
    for (place, condition) in [("this node", &stats.on_node), ("its controller", &stats.at_controller)] {
        if let Some(condition) = condition {
            let message = harmless(&condition.message);
            let message = if message.is_empty() { String::new() } else { format!(": {message}") };
            text.push_str(&format!("  {}, says {place}{message}\n", standing(condition)));
        }
    }
    text
}

/// The plugin's report about one unit. A missing number is zero, and only the total is always present.
fn told(figure: &wire::VolumeFigure) -> String {
    let wire::VolumeFigure { unit, available, total, used } = figure;
    let shown = |number: u64| if unit == "bytes" { usage::bytes(number) } else { number.to_string() };
    match (*used, *total, *available) {
        (0, 0, 0) => "not told".to_owned(),
        (0, 0, available) => format!("{} available", shown(available)),
        (used, 0, 0) => format!("{} used", shown(used)),
        (used, 0, available) => format!("{} used, {} available", shown(used), shown(available)),
        (0, total, 0) => format!("{} in all", shown(total)),
        (used, total, available) => {
            format!("{} of {} used, {} available", shown(used), shown(total), shown(available))
        }
    }
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

    #[test]
    fn what_a_plugin_leaves_out_is_not_shown_as_zero() {
        let figure = |used, total, available| {
            told(&wire::VolumeFigure { unit: "bytes".to_owned(), available, total, used })
        };
        for (shown, expected) in [
            (figure(0, 0, 0), "not told"),
            (figure(1024, 0, 0), "1.0 KiB used"),
            (figure(0, 0, 1024), "1.0 KiB available"),
            (figure(1024, 0, 1024), "1.0 KiB used, 1.0 KiB available"),
            (figure(0, 2048, 0), "2.0 KiB in all"),
            (figure(0, 2048, 2048), "0 B of 2.0 KiB used, 2.0 KiB available"),
            (figure(2048, 2048, 0), "2.0 KiB of 2.0 KiB used, 0 B available"),
        ] {
            assert_eq!(shown, expected);
        }
        let silent = Some(wire::VolumeCondition { abnormal: false, message: String::new() });
        let stats = wire::GetVolumeStatsResponse {
            name: "default/data".to_owned(),
            at_controller: silent,
            ..Default::default()
        };
        assert_eq!(text(&stats), "default/data\n  in order, says its controller\n");
    }
}
