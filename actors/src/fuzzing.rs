//! The targets of the fuzzers, and the replay of every input that they found.
//!
//! A target is a function over arbitrary bytes that checks laws of the result; it panics when a law is violated. Each target
//! is in the folder of the private code that it tests. The fuzzer (`fuzz/`) and the replay below, which is part of every test
//! run, call the same function. None of it is part of the library: it is compiled only for these two.
//! `docs/fuzzing.md` describes how to run them and what was found.

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

/// Arbitrary bytes as an untrusted text: the shown text obeys its limit, contains no terminal control, and does not change when
/// it is shown again.
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

/// The longest text that an error may have, whatever the length of the text that it quotes.
pub const ERROR_BYTES_MAX: usize = 4 * 1024;

/// Holds that the text of an error is not empty, and within bounds.
///
/// # Panics
/// When it does not.
pub fn check_told(error: &dyn std::fmt::Display) {
    let told = error.to_string();
    assert!(!told.trim().is_empty(), "an error says nothing");
    assert!(told.len() <= ERROR_BYTES_MAX, "an error of {} bytes", told.len());
}

/// Holds that the shown text of a plugin does not move a cursor, begin a line or change its direction.
///
/// # Panics
/// When it does.
pub fn check_shown(text: &str) {
    assert!(text.chars().all(crate::vocabulary::text::is_harmless), "control characters are shown: {text:?}");
}

/// Holds the laws of every kind of record: a decoded record that is encoded and decoded again is equal, and an error of decoding
/// has a text.
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
