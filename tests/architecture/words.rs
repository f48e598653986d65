//! Checks for words that no text may use.

use std::fs;
use std::path::{Path, PathBuf};

use super::{below_root, complain, root, rust_files};

#[test]
fn texts_say_which_caller_client_or_process_is_meant() {
    let vague = [concat!("some", "body"), concat!("no", "body"), concat!("who", "ever")];
    let mut complaints = Vec::new();
    for below in
        ["CHANGELOG.md", "README.md", "actors", "benches", "docs", "examples", "proto", "src", "tests"]
    {
        for (file, text) in texts(&root().join(below)) {
            for (number, line) in text.lines().enumerate() {
                let found = vague.iter().filter(|word| uses(line, word));
                complaints.extend(found.map(|word| {
                    format!(
                        "{}:{}: {word}; name the caller, client or process",
                        below_root(&file),
                        number + 1
                    )
                }));
            }
        }
    }
    complain(&complaints);
}

/// Whether the comment of a line uses a forbidden phrase that leaves open what happens.
fn tells(line: &str) -> bool {
    let phrases =
        ["told", "not told"].map(|told| ["is", "are"].map(|verb| format!("{verb} {told}"))).concat();
    line.split_once("//").is_some_and(|(_, comment)| phrases.iter().any(|phrase| uses(comment, phrase)))
}

#[test]
fn comments_say_what_is_sent_received_reported_or_requested() {
    assert!(tells(concat!("/// The owner is ", "told so.")) && !tells("/// It is notified."));
    let mut complaints = Vec::new();
    for below in ["actors", "benches", "examples", "proto", "src", "tests"] {
        for file in rust_files(&root().join(below)) {
            let path = below_root(&file);
            let text = fs::read_to_string(&file).unwrap();
            let found = text.lines().enumerate().filter(|(_, line)| tells(line));
            complaints.extend(found.map(|(number, _)| {
                format!(
                    "{path}:{}: say that it is notified, receives, gets, or is requested to, or that it is reported",
                    number + 1
                )
            }));
        }
    }
    complain(&complaints);
}

/// All texts at or below a path, of every kind.
fn texts(path: &Path) -> Vec<(PathBuf, String)> {
    if !path.is_dir() {
        return fs::read_to_string(path).map(|text| (path.to_owned(), text)).into_iter().collect();
    }
    let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| texts(entry)).collect()
}

/// Whether a line has this word, not as part of an identifier. In backticks or quotation marks it is the name of a Unix user.
fn uses(line: &str, word: &str) -> bool {
    let line = line.to_lowercase();
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
        let is_whole = !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word);
        is_whole && !(before == after && matches!(before, Some('`' | '"')))
    })
}
