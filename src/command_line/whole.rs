//! One thing of a status, whole: everything that `--json` shows of it, as lines.

use serde_json::Value;

use super::show::ago;
use crate::output::{Palette, Tone, harmless};

/// The lists of a status, and what one of each is called.
const LISTS: [(&str, &str); 4] =
    [("plugins", "plugin"), ("allocations", "allocation"), ("drivers", "driver"), ("tasks", "task")];

/// Every thing in a status, with all that is known of it.
pub(super) fn text(status: &Value, palette: Palette) -> String {
    let mut text = String::new();
    for (list, kind) in LISTS {
        for thing in status[list].as_array().into_iter().flatten() {
            let name = harmless(thing["name"].as_str().unwrap_or_default());
            text.push_str(&format!("{kind} {}\n", palette.paint(Tone::Good, &name)));
            lines(thing, "  ", palette, &mut text);
            let is_logged = kind != "plugin";
            if is_logged {
                text.push_str(&format!(
                    "  {}  callboard logs {kind}/{name} --tail 20\n",
                    palette.paint(Tone::Faint, "log")
                ));
            }
        }
    }
    text
}

/// What is known of a thing: nothing that is empty or unknown.
fn lines(thing: &Value, indent: &str, palette: Palette, text: &mut String) {
    for (key, value) in thing.as_object().into_iter().flatten() {
        let label = palette.paint(Tone::Faint, &harmless(key));
        match value {
            Value::Null => {}
            Value::Array(all) if all.iter().all(|one| !one.is_object()) => {
                let all: Vec<_> = all.iter().map(plain).collect();
                if !all.is_empty() {
                    let between = if all.iter().any(|one| one.contains(' ')) { " | " } else { " " };
                    text.push_str(&format!("{indent}{label}  {}\n", all.join(between)));
                }
            }
            Value::Array(all) => {
                text.push_str(&format!("{indent}{label}\n"));
                for one in all {
                    text.push_str(&format!("{indent}  -\n"));
                    lines(one, &format!("{indent}    "), palette, text);
                }
            }
            Value::Object(map) if map.is_empty() => {}
            Value::Object(_) => {
                text.push_str(&format!("{indent}{label}\n"));
                lines(value, &format!("{indent}  "), palette, text);
            }
            Value::Number(at) if key.ends_with("_unix_ms") => {
                let since = ago(at.as_u64().unwrap_or_default());
                text.push_str(&format!("{indent}{label}  {since} ago\n"));
            }
            value => text.push_str(&format!("{indent}{label}  {}\n", plain(value))),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => harmless(text),
        other => harmless(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_is_known_of_a_thing_is_shown_and_nothing_that_is_not() {
        let plugin = json!({ "name": "zfs", "node_id": "n1\u{1b}[2J", "reason": null, "standby": ["a", "b"], "remarks": ["is odd", "and new"], "capabilities": { "node": ["STAGE_UNSTAGE_VOLUME"] } });
        let shown = text(&json!({ "plugins": [plugin] }), Palette::plain());
        let expected = "plugin zfs\n  capabilities\n    node  STAGE_UNSTAGE_VOLUME\n  name  zfs\n  node_id  n1\\u{1b}[2J\n  remarks  is odd | and new\n  standby  a b\n";
        assert_eq!(shown, expected);
        assert_eq!(text(&json!({ "plugins": [{ "remarks": [] }] }), Palette::plain()), "plugin \n");
    }
}
