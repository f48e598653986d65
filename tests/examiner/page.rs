//! Checks that the table of rules in `docs/examiner.md` equals that of the program.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use callboard::actors::examiner::{Coverage, Rule};

/// The line above the table.
const HEAD: &str = "| rule | strength | seen | what it demands |\n|---|---|---|---|\n";

fn table() -> String {
    let mut table = HEAD.to_owned();
    for rule in Rule::ALL {
        let seen = match rule.coverage() {
            Coverage::Judged => "judged".to_owned(),
            Coverage::InPart(remark) => format!("in part: {remark}"),
            Coverage::NotSeen(remark) => format!("no: {remark}"),
        };
        let (strength, text) = (rule.strength().as_str(), rule.text());
        writeln!(table, "| {rule} | {strength} | {seen} | {text} |").expect("a text takes everything");
    }
    table
}

/// `UPDATE_GOLDENFILES=1` writes the table.
#[test]
fn the_page_has_every_rule_with_what_is_seen_of_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examiner.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = page.split_once(HEAD).expect("it has the table");
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let expected = format!("{before}{}\n{after}", table());
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(&path, &expected).expect("it can be written");
    }
    assert!(page == expected, "docs/examiner.md has another table; UPDATE_GOLDENFILES=1 writes it");
}
