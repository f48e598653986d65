//! Checks that every promise in `docs/guarantees.md` is held by existing stories, laws, searches and tests, that the page names all of
//! those, and that no promised id is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use callboard::actors::examiner::Rule;
use callboard::simulation::Law;
use prost::Message as _;
use prost_types::field_descriptor_proto::Label;
use prost_types::{DescriptorProto, FileDescriptorSet};

/// The failure cases and rules that must be proven.
const IDS: &[&str] = &[
    "REG-01", "REG-02", "REG-03", "REG-04", "REG-05", "REG-06", "REG-07", "REG-08", "REG-10", "RES-01",
    "RES-06", "RES-08", "HLT-01", "HLT-02", "HLT-03", "HLT-04", "HLT-06", "HLT-08", "SHD-04", "SEC-01",
    "SEC-02", "SEC-03", "SCL-01", "SCL-02", "SCL-06", "SCL-07", "SCL-08", "LOG-05", "R1", "R2", "R3", "R4",
    "R5", "R6", "R7", "R8", "R9", "A1", "A2", "A3", "A4", "A5", "I1", "I2", "I3", "I4", "I5", "I6", "I7",
    "I8", "PRC-01", "PRC-02", "PRC-03", "PRC-04", "PRC-05", "PRC-06", "PRC-07", "PRC-08", "PRC-09", "PRC-10",
    "EVT-01", "EVT-02", "EVT-03", "EVT-04", "EVT-05", "HLT-05", "SHD-03", "SHD-06", "SHD-07", "LOG-01",
    "LOG-02", "LOG-03", "LOG-04", "RES-07", "SEC-05", "SEC-06", "SEC-07", "N1", "N2", "P1", "P2", "P3", "P4",
    "P5", "P6", "S1", "S2", "S3", "S4", "C146", "VOL-01", "VOL-02", "VOL-03", "VOL-04", "VOL-05", "VOL-06",
    "VOL-07", "VOL-08", "VOL-09", "RES-04", "RES-05", "RES-09", "SHD-01", "SHD-02", "SHD-05",
];

/// The facts that a driver may rely on from its host, as ranges from the first to the last number of each group.
const FACTS: &[(u32, u32)] = &[
    (1, 5),
    (10, 22),
    (30, 32),
    (40, 50),
    (60, 69),
    (70, 83),
    (90, 92),
    (94, 94),
    (100, 110),
    (115, 117),
    (120, 129),
    (140, 148),
    (150, 155),
    (170, 171),
    (173, 176),
    (190, 194),
    (196, 203),
    (205, 209),
];

/// The rules that follow from these facts for a host, as ranges.
const RULES: &[(u32, u32)] =
    &[(1, 3), (10, 12), (20, 24), (30, 33), (40, 43), (50, 53), (60, 61), (70, 70), (80, 81), (90, 93)];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(below).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The names of all tests of the repository, and of all message scripts.
fn names() -> BTreeSet<String> {
    said().into_keys().collect()
}

/// The same names: each test with its doc comment, each script with its text.
fn said() -> BTreeMap<String, String> {
    let mut found = Vec::new();
    for below in ["src", "tests", "actors", "proto/src", "proto/tests"] {
        files(&root().join(below), &mut found);
    }
    let mut said = BTreeMap::<String, String>::new();
    for path in found {
        let read = || fs::read_to_string(&path).unwrap();
        let of_file = if path.components().any(|part| part.as_os_str() == "scripts") {
            vec![(path.file_name().unwrap().to_str().unwrap().to_owned(), read())]
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            tests(&read())
        } else {
            Vec::new()
        };
        of_file.into_iter().for_each(|(name, text)| *said.entry(name).or_default() += &text);
    }
    said
}

/// The names of the functions with a test attribute, each with its doc comment.
fn tests(text: &str) -> Vec<(String, String)> {
    let (mut is_test, mut doc, mut found) = (false, String::new(), Vec::new());
    for line in text.lines().map(str::trim_start) {
        if let Some(words) = line.strip_prefix("///") {
            doc += words;
        } else if ["#[test]", "#[actix::test", "#[tokio::test"].iter().any(|mark| line.starts_with(mark)) {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            found.extend(rest.split('(').next().map(|name| (name.to_owned(), std::mem::take(&mut doc))));
            is_test = false;
        } else if !is_test && !line.starts_with("#[") {
            doc.clear();
        }
    }
    found
}

/// The texts between backquotes that look like the name of a test or a script.
fn named(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.matches('_').count() >= 2 && !text.contains(' ')).collect()
}

#[test]
fn every_test_and_script_that_a_guarantee_names_exists() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let names = names();
    let named = named(&page);
    assert!(named.len() > 80, "the page is not what it was: {} names", named.len());
    let missing: Vec<&str> = named.into_iter().filter(|name| !names.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/guarantees.md names what does not exist:\n{}", missing.join("\n"));
}

#[test]
fn every_test_that_the_page_about_nomad_names_exists() {
    let page = fs::read_to_string(root().join("docs/nomad.md")).unwrap();
    let (names, (_, proof)) = (names(), page.split_once("## How it is proven").unwrap());
    let named = named(proof);
    assert!(named.len() > 15, "the page is not what it was: {} names", named.len());
    let missing: Vec<&str> = named.into_iter().filter(|name| !names.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/nomad.md names what does not exist:\n{}", missing.join("\n"));
}

/// The names that the page gives after this word, in all rows: from the word to the next semicolon.
fn named_behind<'a>(word: &str, page: &'a str) -> BTreeSet<&'a str> {
    let cells = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .filter_map(|row| row.trim_end_matches(" |").rsplit_once(" | "));
    let parts = cells.flat_map(|(_, held_by)| held_by.split("; "));
    parts.filter(|part| part.starts_with(&format!("{word} `"))).flat_map(named).collect()
}

/// The names of the tests in these files.
fn tests_of(paths: impl Iterator<Item = PathBuf>) -> BTreeSet<String> {
    let of_file = |path| tests(&fs::read_to_string::<PathBuf>(path).unwrap());
    paths.flat_map(of_file).map(|(name, _)| name).collect()
}

fn stands_beside_a_promise(word: &str, there: &BTreeSet<String>) {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let named: BTreeSet<String> = named_behind(word, &page).into_iter().map(str::to_owned).collect();
    let unknown: Vec<_> = named.difference(there).collect();
    assert!(unknown.is_empty(), "docs/guarantees.md names as {word} what is none: {unknown:#?}");
    let left_out: Vec<_> = there.difference(&named).collect();
    assert!(left_out.is_empty(), "docs/guarantees.md names as {word} beside no promise: {left_out:#?}");
}

#[test]
fn every_story_stands_beside_the_promise_that_it_shows() {
    let entries = fs::read_dir(root().join("tests/scripts")).unwrap();
    let stories = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    stands_beside_a_promise("script", &stories.collect());
}

#[test]
fn every_search_and_every_broken_machine_stands_beside_the_law_that_it_tries() {
    let mut found = Vec::new();
    files(&root().join("actors/simulation/tests/interleavings"), &mut found);
    files(&root().join("tests/interleavings"), &mut found);
    let is_broken = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("broken_");
    let is_search = |path: &PathBuf| !path.ends_with("walks.rs");
    let (broken, sound): (Vec<_>, Vec<_>) = found.into_iter().filter(is_search).partition(is_broken);
    stands_beside_a_promise("search", &tests_of(sound.into_iter()));
    stands_beside_a_promise("broken", &tests_of(broken.into_iter()));
}

/// The promises of the page: one row each, without the heads of tables.
fn promises(page: &str) -> impl Iterator<Item = &str> {
    let is_head = |line: &&str| line.starts_with("|---") || line.ends_with("| held by |");
    page.lines().filter(move |line| line.starts_with('|') && !is_head(line))
}

#[test]
fn every_guarantee_is_held_by_something() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let empty: Vec<&str> = promises(&page).filter(|row| named(row).is_empty()).collect();
    assert!(empty.is_empty(), "nothing holds these:\n{}", empty.join("\n"));
}

/// The fault in how a promise is held: it must have a script, a law, a search and a broken machine, or give a reason that the page
/// explains. Without a law there is nothing to search for or to break.
fn fault<'a>(row: &'a str, reasons: &BTreeSet<&str>) -> Option<&'a str> {
    let held_by = row.trim_end_matches(" |").rsplit_once(" | ")?.1;
    let parts: Vec<&str> = held_by.split("; ").collect();
    let has = |word: &str| parts.iter().any(|part| part.starts_with(&format!("{word} ")));
    let missing = parts.iter().find_map(|part| part.strip_prefix("no "));
    let (lacking, reason) = missing.and_then(|missing| missing.split_once(": ")).unwrap_or_default();
    let lacks = |word: &str| lacking.split(", no ").any(|lacking| lacking == word);
    if missing.is_some() && !reasons.contains(reason) {
        return Some("its reason stands nowhere on the page");
    }
    if missing.is_some() && !lacks("script") && !lacks("law") {
        return Some("it gives a reason for nothing");
    }
    if has("script") == lacks("script") {
        return Some("it has a script, or says why not");
    }
    if ["law", "search", "broken"].iter().any(|word| has(word) == lacks("law")) {
        return Some("it has a law, a search and a broken machine, or says why it has no law");
    }
    None
}

#[test]
fn every_promise_has_a_script_a_law_a_search_and_a_broken_machine_or_says_why_not() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let head = page.split("\n## ").next().unwrap_or_default();
    let reasons = head.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**:"));
    let reasons: BTreeSet<&str> = reasons.map(|(reason, _)| reason).collect();
    let faults = promises(&page).filter_map(|row| Some(format!("{}\n  {row}", fault(row, &reasons)?)));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let idle: Vec<_> = reasons.iter().filter(|reason| !page.contains(&format!(": {reason}; "))).collect();
    assert!(idle.is_empty(), "the page explains what no promise says: {idle:?}");
}

/// A law is only useful if it detects a machine that breaks it.
#[test]
fn every_law_is_broken_by_a_machine_that_is_wrong_on_purpose() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let broken = named_behind("broken", &page);
    let is_tried = |law: &&Law| {
        let ending = format!("_breaks_{}", law.id().to_lowercase().replace('-', "_"));
        broken.iter().any(|name| name.ends_with(&ending))
    };
    let untried: Vec<&str> = Law::ALL.iter().filter(|law| !is_tried(law)).map(|law| law.id()).collect();
    assert!(untried.is_empty(), "no broken machine breaks {untried:?}");
}

/// An id is proven by a test with the id in its name, not only promised.
#[test]
fn every_failure_case_has_a_test_of_its_name() {
    let names: Vec<String> = names().into_iter().map(|name| format!("_{name}_")).collect();
    let is_case = |id: &&&str| id.contains('-');
    let carried = |id: &str| {
        let id = format!("_{}_", id.to_lowercase().replace('-', "_"));
        names.iter().any(|name| name.contains(&id))
    };
    let missing: Vec<&&str> = IDS.iter().filter(is_case).filter(|id| !carried(id)).collect();
    assert!(missing.is_empty(), "no test carries {missing:?}");
}

#[test]
fn every_promised_id_stands_among_the_guarantees() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let words: BTreeSet<&str> = page.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
    let missing: Vec<&&str> = IDS.iter().filter(|id| !words.contains(**id)).collect();
    assert!(missing.is_empty(), "docs/guarantees.md says nothing of {missing:?}");
}

/// Each rule has a row, and each fact has a row or a reason why it binds no host.
#[test]
fn every_fact_and_every_rule_of_task_drivers_stands_among_the_guarantees() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let (rows, reasons): (Vec<&str>, Vec<&str>) = page.lines().partition(|line| line.starts_with('|'));
    let is_id = |word: &&str| {
        let number = word.strip_prefix("TH").or_else(|| word.strip_prefix('T'));
        number.is_some_and(|number| number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let ids = |cell: &str| {
        let words = cell.split(|c: char| !c.is_alphanumeric()).filter(is_id);
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    let ids_of_row = |row: &&str| ids(row.trim_start_matches('|').split('|').next().unwrap_or_default());
    let in_rows: BTreeSet<String> = rows.iter().flat_map(ids_of_row).collect();
    let given = reasons.iter().filter_map(|line| line.strip_prefix("- **")?.split_once("**:"));
    let given: BTreeSet<String> = given.flat_map(|(given, _)| ids(given)).collect();
    let numbers = |groups: &'static [(u32, u32)]| groups.iter().flat_map(|(first, last)| *first..=*last);
    let facts = numbers(FACTS).map(|number| format!("T{number:03}"));
    let facts = facts.filter(|fact| !in_rows.contains(fact) && !given.contains(fact));
    let rules = numbers(RULES).map(|number| format!("TH{number:03}"));
    let missing: Vec<String> = facts.chain(rules.filter(|rule| !in_rows.contains(rule))).collect();
    assert!(missing.is_empty(), "docs/guarantees.md says nothing of {missing:?}");
    let both: Vec<&String> = given.intersection(&in_rows).collect();
    assert!(both.is_empty(), "these have a row and a reason for having none: {both:?}");
}

/// The fault in how a rule is held: it must have existing tests that carry its id, or a reason for having none.
fn fault_of_rule(id: &str, held_by: &str, said: &BTreeMap<String, String>) -> Option<String> {
    let (tests, rest) = held_by.split_once("; in part: ").unwrap_or((held_by, "said"));
    let named = named(tests);
    if let Some(reason) = tests.strip_prefix("none: ") {
        return (!named.is_empty() || reason.len() < 10).then(|| format!("{id} gives no reason"));
    }
    let in_name = format!("_{}_", id.to_lowercase().replace('.', "_"));
    let carries = |name: &str| {
        let words = said.get(name)?.split(|c: char| !c.is_alphanumeric() && c != '.');
        let is_said = words.map(|word| word.trim_end_matches('.')).any(|word| word == id);
        Some(is_said || format!("_{name}_").contains(&in_name))
    };
    if named.is_empty() || named.len() != tests.split(", ").count() || rest.is_empty() {
        return Some(format!("{id} names no test, or says something else"));
    }
    named.iter().find_map(|name| match carries(name) {
        None => Some(format!("{id} is held by {name}, which does not exist")),
        Some(false) => Some(format!("{id} is held by {name}, which does not carry that id")),
        Some(true) => None,
    })
}

#[test]
fn every_rule_of_csi_is_held_by_tests_that_carry_its_id_or_says_why_not() {
    let page = fs::read_to_string(root().join("docs/csi-rules.md")).unwrap();
    let (_, table) = page.split_once("|---|---|---|\n").unwrap();
    let rows: Vec<[&str; 3]> = table
        .lines()
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().try_into().expect(row))
        .collect();
    let ids: Vec<&str> = rows.iter().map(|[id, ..]| *id).collect();
    assert_eq!(ids, Rule::ALL.iter().map(|rule| rule.id()).collect::<Vec<_>>());
    assert!(rows.iter().all(|[_, asks, _]| !asks.is_empty()));
    let said = said();
    let faults = rows.iter().filter_map(|[id, _, held_by]| fault_of_rule(id, held_by, &said));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "docs/csi-rules.md:\n{}", faults.join("\n"));
}

/// Everything that the simulator and the search check stands beside the promise that it holds, and nothing else is called a law.
#[test]
fn every_law_of_the_simulation_stands_beside_its_promise() {
    let page = fs::read_to_string(root().join("docs/guarantees.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let named: BTreeSet<String> = rows
        .flat_map(|row| row.split("law ").skip(1))
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '-').collect())
        .filter(|name: &String| name.starts_with(char::is_uppercase))
        .collect();
    let laws: BTreeSet<String> = Law::ALL.iter().map(|law| law.id().to_owned()).collect();
    assert_eq!(named, laws);
}

/// The paths of all fields of a message, also of nested messages, as `resources.ports[].label`.
fn fields(messages: &[DescriptorProto], message: &str, path: &str, found: &mut Vec<String>) {
    let descriptor = messages.iter().find(|other| other.name() == message).unwrap();
    for field in &descriptor.field {
        let within = field.type_name().rsplit('.').next().unwrap();
        let is_map = descriptor.nested_type.iter().any(|entry| entry.name() == within);
        let repeated = if field.label() == Label::Repeated && !is_map { "[]" } else { "" };
        let is_message = !is_map && messages.iter().any(|other| other.name() == within);
        let path = format!("{path}{}", field.name());
        match is_message {
            true => fields(messages, within, &format!("{path}{repeated}."), found),
            false => found.push(path),
        }
    }
}

#[test]
fn every_field_that_a_driver_is_told_of_a_task_stands_on_the_page_for_drivers() {
    let set = FileDescriptorSet::decode(callboard_proto::FILE_DESCRIPTOR_SET).unwrap();
    let package = set.file.iter().find(|file| file.package() == "hashicorp.nomad.plugins.drivers.proto");
    let mut paths = Vec::new();
    fields(&package.unwrap().message_type, "TaskConfig", "", &mut paths);
    assert!(paths.len() > 40, "these are not all: {paths:?}");
    let page = fs::read_to_string(root().join("docs/drivers.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    let rows: Vec<(&str, &str)> = rows.collect();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let has_row = |path: &&String| {
        rows.iter().any(|(cell, rest)| {
            let is_whole = rest.contains("with all that is in it");
            names(cell)
                .iter()
                .any(|name| name == *path || is_whole && path.starts_with(&format!("{name}[].")))
        })
    };
    let missing: Vec<&String> = paths.iter().filter(|path| !has_row(path)).collect();
    assert!(missing.is_empty(), "docs/drivers.md has no row for {missing:#?}");
}
