//! The limits and formats of the specification, for requests and answers (C004 to C008, C023, C050, C055).

use std::collections::{BTreeMap, HashSet};

use crate::rpc::{Fault, Problem};
use crate::vocabulary::text::quoted;

/// The size limit of a string field without a limit of its own, in bytes (C004).
pub const STRING_BYTES_MAX: usize = 128;
/// The size limit of an id or a paging token that a plugin chose and gets back unchanged, in bytes. The specification allows 128
/// ([`STRING_BYTES_MAX`]). Some plugins answer longer ids, and their objects can be deleted only by these.
pub const PLUGIN_TEXT_BYTES_MAX: usize = 1_024;
/// The size limit of a map, keys and values together, in bytes (C005).
pub const MAP_BYTES_MAX: usize = 4 * 1024;
/// The size limit of a node id, in bytes (C006).
pub const NODE_ID_BYTES_MAX: usize = 256;
/// The size limit of all mount flags together, in bytes (C007).
pub const MOUNT_FLAGS_BYTES_MAX: usize = 4 * 1024;
/// The size limit of a path, in bytes: that of Linux, without its last zero (C008).
pub const PATH_BYTES_MAX: usize = 4095;
/// The length limit of each part of a topology key, and of a topology value (C055).
const TOPOLOGY_BYTES_MAX: usize = 63;
const EXCERPT_BYTES_MAX: usize = 64;

/// A broken rule.
#[must_use]
pub const fn fault(rule: &'static str, field: &'static str, problem: Problem) -> Fault {
    Fault { rule, field, problem }
}

/// A rule that is broken by the format of a text. The fault has a short excerpt of the text.
#[must_use]
pub fn malformed(rule: &'static str, field: &'static str, text: &str, expected: &'static str) -> Fault {
    let excerpt = text.char_indices().take_while(|(at, _)| *at < EXCERPT_BYTES_MAX).map(|(_, c)| c);
    let excerpt = quoted(&excerpt.collect::<String>());
    fault(rule, field, Problem::Malformed { excerpt, expected })
}

/// A broken rule, with this detail.
#[must_use]
pub fn inconsistent(rule: &'static str, field: &'static str, detail: impl Into<String>) -> Fault {
    fault(rule, field, Problem::Inconsistent { detail: detail.into() })
}

/// Checks the length of a text.
///
/// # Errors
/// [`Problem::TooLong`] above the limit.
pub const fn length(rule: &'static str, field: &'static str, text: &str, limit: usize) -> Result<(), Fault> {
    match text.len() {
        bytes if bytes > limit => Err(fault(rule, field, Problem::TooLong { bytes, limit })),
        _ => Ok(()),
    }
}

/// Checks that a text is not empty and within the limit.
///
/// # Errors
/// [`Problem::Empty`] or [`Problem::TooLong`].
pub const fn filled(rule: &'static str, field: &'static str, text: &str, limit: usize) -> Result<(), Fault> {
    if text.is_empty() {
        return Err(fault(rule, field, Problem::Empty));
    }
    length(rule, field, text, limit)
}

/// Checks an id that a plugin chose (C004, with more room).
///
/// # Errors
/// [`Problem::Empty`], or [`Problem::TooLong`] above [`PLUGIN_TEXT_BYTES_MAX`].
pub const fn plugin_id(field: &'static str, text: &str) -> Result<(), Fault> {
    filled("C004", field, text, PLUGIN_TEXT_BYTES_MAX)
}

/// Checks an id or a token that a plugin chose, and that may be empty (C004, with more room).
///
/// # Errors
/// [`Problem::TooLong`] above [`PLUGIN_TEXT_BYTES_MAX`].
pub const fn plugin_text(field: &'static str, text: &str) -> Result<(), Fault> {
    length("C004", field, text, PLUGIN_TEXT_BYTES_MAX)
}

/// Checks a string that may be empty and has no limit of its own (C004).
///
/// # Errors
/// [`Problem::TooLong`].
pub const fn string(field: &'static str, text: &str) -> Result<(), Fault> {
    length("C004", field, text, STRING_BYTES_MAX)
}

/// Checks the size of a map (C005).
///
/// # Errors
/// [`Problem::TooLong`] above [`MAP_BYTES_MAX`].
pub fn map(field: &'static str, entries: &BTreeMap<String, String>) -> Result<(), Fault> {
    match entries.iter().map(|(key, value)| key.len() + value.len()).sum() {
        bytes if bytes > MAP_BYTES_MAX => {
            Err(fault("C005", field, Problem::TooLong { bytes, limit: MAP_BYTES_MAX }))
        }
        _ => Ok(()),
    }
}

/// Checks that a required list or map has an element (C009).
///
/// # Errors
/// [`Problem::Empty`].
pub const fn some(rule: &'static str, field: &'static str, length: usize) -> Result<(), Fault> {
    match length {
        0 => Err(fault(rule, field, Problem::Empty)),
        _ => Ok(()),
    }
}

/// Checks that a number fits into the signed field of the wire.
///
/// # Errors
/// [`Problem::TooLarge`].
pub const fn number(rule: &'static str, field: &'static str, value: u64) -> Result<(), Fault> {
    const LIMIT: u64 = i64::MAX.unsigned_abs();
    match value {
        value if value > LIMIT => Err(fault(rule, field, Problem::TooLarge { value, limit: LIMIT })),
        _ => Ok(()),
    }
}

/// Checks the number of entries that a list may have at most (C091).
///
/// # Errors
/// [`Problem::TooLarge`].
pub fn entries_max(rule: &'static str, field: &'static str, value: u32) -> Result<(), Fault> {
    const LIMIT: u32 = i32::MAX.unsigned_abs();
    match value {
        value if value > LIMIT => {
            Err(fault(rule, field, Problem::TooLarge { value: value.into(), limit: LIMIT.into() }))
        }
        _ => Ok(()),
    }
}

/// Checks a path for a plugin: absolute, without `..`, no longer than Linux allows (C008, C125, C136).
///
/// # Errors
/// The rule `rule` if it is not such a path; C008 if it is too long.
pub fn path(rule: &'static str, field: &'static str, path: &str) -> Result<(), Fault> {
    filled(rule, field, path, usize::MAX)?;
    length("C008", field, path, PATH_BYTES_MAX)?;
    let is_clean = !path.contains('\0') && path.split('/').all(|part| part != "..");
    match path.starts_with('/') && is_clean {
        true => Ok(()),
        false => Err(malformed(rule, field, path, "an absolute path without '..'")),
    }
}

/// Checks a name that the host gives to a volume or snapshot: no control characters except tab and line breaks (C004, C050).
///
/// # Errors
/// The rule that it breaks.
pub fn given_name(field: &'static str, name: &str) -> Result<(), Fault> {
    filled("C004", field, name, STRING_BYTES_MAX)?;
    match name.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        true => Err(malformed("C050", field, name, "a name without control characters")),
        false => Ok(()),
    }
}

/// Checks the size, the keys and the values of a topology (C005, C055).
///
/// # Errors
/// The rule that it breaks.
pub fn topology(segments: &BTreeMap<String, String>) -> Result<(), Fault> {
    map("topology", segments)?;
    let mut keys = HashSet::new();
    for (key, value) in segments {
        topology_key(key)?;
        filled("C055", "topology value", value, TOPOLOGY_BYTES_MAX)?;
        if !is_label(value) {
            return Err(malformed("C055", "topology value", value, LABEL));
        }
        if !keys.insert(key.to_ascii_lowercase()) {
            return Err(malformed("C055", "topology key", key, "no two keys that differ in case only"));
        }
    }
    Ok(())
}

const LABEL: &str = "letters, digits, '-', '_' and '.', with a letter or digit at both ends";

fn topology_key(key: &str) -> Result<(), Fault> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    filled("C055", "topology key", name, TOPOLOGY_BYTES_MAX)?;
    if !is_label(name) {
        return Err(malformed("C055", "topology key", key, LABEL));
    }
    let Some(prefix) = prefix else { return Ok(()) };
    filled("C055", "prefix of a topology key", prefix, TOPOLOGY_BYTES_MAX)?;
    if is_domain(prefix) {
        return Ok(());
    }
    Err(malformed("C055", "prefix of a topology key", prefix, "a domain name"))
}

/// Whether each part between dots begins and ends with a letter or digit and contains only letters, digits and dashes.
#[must_use]
pub fn is_domain(name: &str) -> bool {
    name.split('.').all(|part| !part.contains('_') && is_label(part))
}

/// Whether it begins and ends with a letter or digit and contains only letters, digits, `-`, `_` and `.`.
#[must_use]
pub fn is_label(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|byte| byte.is_some_and(|b| b.is_ascii_alphanumeric()))
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology_of(entries: &[(&str, &str)]) -> Result<(), Fault> {
        topology(&entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }
    #[test]
    fn topologies_of_plugins_in_the_field_are_topologies_c055() {
        let good =
            [("topology.kubernetes.io/zone", "us-east-1a"), ("region", "R_1"), ("com.EXAMPLE/rack", "7")];
        assert_eq!(topology_of(&good), Ok(()));
    }

    #[test]
    fn malformed_topologies_are_faults_c055() {
        let long = "x".repeat(64);
        let bad: [&[(&str, &str)]; 8] = [
            &[("", "a")],
            &[("/zone", "a")],
            &[("a/b/c", "a")],
            &[("zone", "")],
            &[("zone", "-a")],
            &[("zone", "a"), ("Zone", "b")],
            &[(&long, "a")],
            &[("zone", &long)],
        ];
        for entries in bad {
            assert_eq!(topology_of(entries).expect_err("malformed").rule, "C055", "{entries:?}");
        }
    }

    #[test]
    fn a_fault_shows_a_short_excerpt_and_never_the_whole_c011() {
        let fault = malformed("C030", "name", &format!("\n{}", "é".repeat(1 << 20)), "a domain name");
        assert!(fault.to_string().len() < 200, "{fault}");
        let Problem::Malformed { excerpt, .. } = malformed("C030", "name", &"x".repeat(65), "a name").problem
        else {
            panic!("it is malformed");
        };
        assert_eq!(excerpt, quoted(&"x".repeat(64)));
    }

    #[test]
    fn a_path_is_absolute_and_does_not_climb_c008_c125_c136() {
        for good in ["/", "/a/b..c/d", &format!("/{}", "x".repeat(PATH_BYTES_MAX - 1))] {
            assert_eq!(path("C125", "path", good), Ok(()), "{good}");
        }
        for bad in ["", "a", "./a", "/a/../b", "/..", "/a\0b"] {
            assert_eq!(path("C125", "path", bad).expect_err(bad).rule, "C125", "{bad}");
        }
        let long = format!("/{}", "x".repeat(PATH_BYTES_MAX));
        assert_eq!(path("C125", "path", &long).expect_err("too long").rule, "C008");
    }

    #[test]
    fn a_given_name_has_128_bytes_and_no_control_characters_c004_c050() {
        for good in ["x", "ein Name\tmit\r\n", "\u{202e}", &"n".repeat(128)] {
            assert_eq!(given_name("name", good), Ok(()), "{good:?}");
        }
        assert_eq!(given_name("name", "").expect_err("empty").problem, Problem::Empty);
        let long = given_name("name", &"n".repeat(129)).expect_err("too long");
        assert_eq!((long.rule, &*long.to_string()), ("C004", "name has 129 bytes, at most 128 are allowed"));
        for bad in ["\0", "a\u{b}", "\u{7f}", "\u{9f}"] {
            assert_eq!(given_name("name", bad).expect_err("a control character").rule, "C050", "{bad:?}");
        }
    }

    /// Holds C091.
    #[test]
    fn numbers_fit_into_the_fields_of_the_wire() {
        assert_eq!(number("C052", "size", i64::MAX.unsigned_abs()), Ok(()));
        assert!(number("C052", "size", 1 << 63).is_err());
        assert_eq!(entries_max("C091", "max_entries", i32::MAX.unsigned_abs()), Ok(()));
        let fault = entries_max("C091", "max_entries", u32::MAX).expect_err("too many");
        assert_eq!(
            (fault.rule, &*fault.to_string()),
            ("C091", "max_entries is 4294967295, at most 2147483647 is allowed")
        );
    }
}
