//! What the fuzzers try, and the replay of everything they found.
//!
//! A target is a function over any bytes at all that holds laws over what comes of them; it panics when one is broken. Each
//! stands in the folder whose private parts it tries. The same function is called by the fuzzer (`fuzz/`) and by the replay
//! below, which every test run plays. None of it is part of the library: it is compiled for these two alone.
//! `docs/fuzzing.md` says how to run them and what was found.

/// A target by its name, which is also the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// Every target of this crate.
pub const TARGETS: &[Target] = &[
    ("csi_answers", crate::csi::fuzzing::answers),
    ("driver_answers", crate::driver::fuzzing::answers),
    ("handshakes", crate::goplugin::fuzzing::handshakes),
    ("plugin_lines", crate::goplugin::fuzzing::lines),
    ("plugin_schemas", crate::hclspec::fuzzing::schemas),
    ("process_records", crate::processes::fuzzing::records),
    ("registration_records", crate::registry::fuzzing::records),
    ("shown_texts", shown_texts),
    ("volume_records", crate::volumes::fuzzing::records),
];

/// Any bytes as a text of a stranger: what is shown of them obeys its limit, moves no terminal, and stays as it is when it is
/// shown again.
fn shown_texts(data: &[u8]) {
    use crate::vocabulary::text::{
        bounded, escaped, escaped_but_tabs, escaped_lines, from_bytes, is_harmless, json_for_terminals,
        quoted,
    };
    let limit = data.len() % 700;
    let shown = from_bytes(data, limit);
    assert!(shown.len() <= limit, "{} bytes of {limit}", shown.len());
    check_shown(&shown);
    assert_eq!(bounded(&shown, limit), shown);
    let text = String::from_utf8_lossy(data);
    for show in [quoted, escaped, escaped_but_tabs, escaped_lines, json_for_terminals] {
        let shown = show(&text);
        assert!(shown.chars().all(|c| matches!(c, '\n' | '\t') || is_harmless(c)), "{shown:?}");
        assert_eq!(show(&shown), shown);
    }
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(data) {
        let json = value.to_string();
        let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).expect("it is JSON still");
        assert_eq!(read(&json_for_terminals(&json)), read(&json));
    }
}

/// Longest text that an error may have, however long what it complains of is.
pub const ERROR_BYTES_MAX: usize = 4 * 1024;

/// Holds that an error says something, within bounds.
///
/// # Panics
/// When it does not.
pub fn check_told(error: &dyn std::fmt::Display) {
    let told = error.to_string();
    assert!(!told.trim().is_empty(), "an error says nothing");
    assert!(told.len() <= ERROR_BYTES_MAX, "an error of {} bytes", told.len());
}

/// Holds that what is shown of a plugin's words neither moves a cursor nor begins a line nor turns its direction.
///
/// # Panics
/// When it does.
pub fn check_shown(text: &str) {
    assert!(text.chars().all(crate::vocabulary::text::is_harmless), "control characters are shown: {text:?}");
}

/// Holds what is to hold of every kind of record: what decodes is encoded to what decodes to the same, and what does not
/// decode is reported in words.
///
/// # Panics
/// When it does not hold.
pub fn check_record<R: crate::persister::Record + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    use crate::persister::{decode, encode};
    match decode::<R>(bytes) {
        Ok(record) => {
            let written = encode(&record);
            let read = decode::<R>(&written);
            assert_eq!(read.as_ref(), Ok(&record), "a record does not come back as it was");
            assert_eq!(encode(&record), written, "a record has two forms");
        }
        Err(error) => check_told(&error),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::TARGETS;

    #[test]
    fn everything_that_the_fuzzers_kept_is_played_again() {
        let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        for (name, target) in TARGETS {
            let files = std::fs::read_dir(corpora.join(name)).expect("every target has a corpus");
            let inputs: Vec<_> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
            inputs.iter().for_each(|input| target(input));
            println!("{name}: {} inputs", inputs.len());
            assert!(!inputs.is_empty(), "the corpus of {name} is empty");
        }
    }
}
