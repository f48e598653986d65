//! Renders the report as a text for people, and as JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use super::report::{Breach, Open, Report, RuleReport};
use super::rule::{Coverage, Rule};
use crate::vocabulary::text::{escaped, quoted};

impl Report {
    /// The report for people. Texts of orchestrators are escaped for terminals.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> std::fmt::Result {
        let count = |wanted: fn(&RuleReport) -> bool| self.rules.iter().filter(|rule| wanted(rule)).count();
        let (broken, tried) =
            (count(|rule| rule.broken > 0), count(|rule| rule.tried > 0 || rule.broken > 0));
        let calls: u64 = self.calls.values().sum();
        let times = if self.starts == 1 { "once".to_owned() } else { format!("{} times", self.starts) };
        writeln!(text, "Exam of an orchestrator by {calls} calls; the plugin was started {times}.")?;
        writeln!(text, "{broken} of the {tried} rules that were tried are broken.")?;
        for rule in self.broken() {
            write_rule(text, rule)?;
        }
        if !self.open.is_empty() {
            writeln!(text, "\nNot undone when this was written:")?;
            for Open { of, what, number } in &self.open {
                let by = if *number == 0 { String::new() } else { format!(" (call {number})") };
                writeln!(text, "  {}: {}{by}", quoted(of), escaped(what))?;
            }
        }
        let held = |rule: &RuleReport| rule.broken == 0 && rule.tried > 0;
        let names =
            self.rules.iter().filter(|rule| held(rule)).map(|it| format!("{} ({})", it.rule, it.tried));
        list(text, "Tried, with how often, and never broken", names)?;
        let untried = |rule: &RuleReport| rule.broken == 0 && rule.tried == 0;
        let is_judged = |rule: Rule| matches!(rule.coverage(), Coverage::Judged | Coverage::InPart(_));
        let names = self.rules.iter().filter(|it| untried(it) && is_judged(it.rule));
        list(text, "Judged, and not tried by any call", names.map(|it| it.rule.to_string()))?;
        let names = self.rules.iter().filter(|it| !is_judged(it.rule)).map(|it| it.rule.to_string());
        list(text, "Not to be seen in calls", names)?;
        list(text, "Calls", self.calls.iter().map(|(call, count)| format!("{call} ({count})")))
    }

    /// The report for programs: `clean`, `starts`, `calls`, `rules` and `open`.
    #[must_use]
    pub fn json(&self) -> Value {
        let rules: Vec<_> = self.rules.iter().map(rule_json).collect();
        let open =
            self.open.iter().map(|it| json!({ "of": it.of, "what": it.what, "call": called(it.number) }));
        json!({
            "clean": self.is_clean(),
            "starts": self.starts,
            "calls": self.calls,
            "rules": rules,
            "open": open.collect::<Vec<_>>(),
        })
    }
}

fn write_rule(text: &mut String, found: &RuleReport) -> std::fmt::Result {
    let RuleReport { rule, tried, broken, breaches } = found;
    writeln!(text, "\n{rule} ({}): {}", rule.strength().as_str(), rule.text())?;
    writeln!(text, "  tried {tried} times, broken {broken} times")?;
    for Breach { number, at_millis, call, problem } in breaches {
        let (seconds, millis) = (at_millis / 1000, at_millis % 1000);
        let when = if *at_millis == 0 { String::new() } else { format!(" at {seconds}.{millis:03} s") };
        let which = if *number == 0 { String::new() } else { format!("call {number} ") };
        writeln!(text, "  {which}{call}{when}: {}", quoted(problem))?;
    }
    let more = broken.saturating_sub(breaches.len() as u64);
    if more > 0 { writeln!(text, "  and {more} more") } else { Ok(()) }
}

fn list(text: &mut String, title: &str, names: impl Iterator<Item = String>) -> std::fmt::Result {
    let names: Vec<_> = names.collect();
    if names.is_empty() { Ok(()) } else { writeln!(text, "\n{title}:\n  {}", names.join(", ")) }
}

/// The number of a call; `None` if there was none.
const fn called(number: u64) -> Option<u64> {
    if number == 0 { None } else { Some(number) }
}

fn rule_json(found: &RuleReport) -> Value {
    let (coverage, remark) = match found.rule.coverage() {
        Coverage::Judged => ("judged", ""),
        Coverage::InPart(remark) => ("in part", remark),
        Coverage::NotSeen(remark) => ("not seen", remark),
    };
    let breach = |it: &Breach| json!({ "call": called(it.number), "name": it.call, "at_ms": it.at_millis, "problem": it.problem });
    json!({
        "id": found.rule.id(),
        "strength": found.rule.strength().as_str(),
        "text": found.rule.text(),
        "coverage": coverage,
        "remark": remark,
        "tried": found.tried,
        "broken": found.broken,
        "breaches": found.breaches.iter().map(breach).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn report() -> Report {
        let breach = Breach {
            number: 7,
            at_millis: 12_034,
            call: "NodeUnstageVolume",
            problem: "target /a\u{1b}[2J is up since call 5".to_owned(),
        };
        let rule = |rule, tried, broken, breaches| RuleReport { rule, tried, broken, breaches };
        Report {
            starts: 1,
            calls: BTreeMap::from([("NodeUnstageVolume", 3), ("Probe", 1)]),
            rules: vec![
                rule(Rule::C001, 4, 0, vec![]),
                rule(Rule::C010, 0, 0, vec![]),
                rule(Rule::C013, 0, 0, vec![]),
                rule(Rule::C131, 3, 2, vec![breach]),
            ],
            open: vec![Open {
                of: "vol-1".to_owned(),
                what: "staged at /s: up since call 4".to_owned(),
                number: 4,
            }],
        }
    }

    #[test]
    fn the_text_has_what_is_broken_first_and_nothing_that_a_terminal_obeys() {
        assert_eq!(
            report().text(),
            "Exam of an orchestrator by 4 calls; the plugin was started once.
1 of the 2 rules that were tried are broken.

C131 (must): unstage only after every unpublish has succeeded
  tried 3 times, broken 2 times
  call 7 NodeUnstageVolume at 12.034 s: target /a\\u{1b}[2J is up since call 5
  and 1 more

Not undone when this was written:
  vol-1: staged at /s: up since call 4 (call 4)

Tried, with how often, and never broken:
  C001 (4)

Judged, and not tried by any call:
  C013

Not to be seen in calls:
  C010

Calls:
  NodeUnstageVolume (3), Probe (1)
"
        );
    }

    #[test]
    fn the_json_has_every_rule_with_its_calls() {
        let json = report().json();
        assert_eq!((&json["clean"], &json["calls"]["Probe"]), (&Value::Bool(false), &json!(1)));
        let rule = &json["rules"][3];
        assert_eq!((&rule["id"], &rule["tried"], &rule["broken"]), (&json!("C131"), &json!(3), &json!(2)));
        assert_eq!(
            (&rule["breaches"][0]["call"], &rule["breaches"][0]["at_ms"]),
            (&json!(7), &json!(12_034))
        );
        assert_eq!(json["rules"][1]["coverage"], json!("not seen"));
        assert_eq!((&json["open"][0]["of"], &json["open"][0]["call"]), (&json!("vol-1"), &json!(4)));
    }

    #[test]
    fn what_no_single_call_did_has_the_number_of_none() {
        let problem = "at the end volume vol-1 is not deleted".to_owned();
        let breach = Breach { number: 0, at_millis: 0, call: "CreateVolume", problem };
        let rule = RuleReport { rule: Rule::C062, tried: 1, broken: 1, breaches: vec![breach] };
        let open = Open { of: "vol-1".to_owned(), what: "not deleted".to_owned(), number: 0 };
        let report = Report { starts: 1, calls: BTreeMap::new(), rules: vec![rule], open: vec![open] };
        let (text, json) = (report.text(), report.json());
        assert!(text.contains("\n  CreateVolume: at the end volume vol-1 is not deleted\n"), "{text}");
        assert!(text.contains("\n  vol-1: not deleted\n"), "{text}");
        let calls = [&json["open"][0]["call"], &json["rules"][0]["breaches"][0]["call"]];
        assert_eq!(calls, [&Value::Null; 2]);
    }
}
