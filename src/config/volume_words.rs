//! The words for volumes that configurations, commands and the admin socket share: names, sizes, access modes.

use callboard_actors::csi::{AccessMode, rules};
use callboard_actors::vocabulary::{VolumeName, VolumeNamespace};
use callboard_actors::volume::VolumeKey;

use super::suggest;

/// The namespace of a volume that names none.
pub(super) const NAMESPACE: &str = "default";
/// The units of sizes, as powers of two.
const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

/// The namespace in a text, or the default, and the name within it.
pub(super) fn split(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or((NAMESPACE, text))
}

/// Reads the name of a volume, with or without its namespace.
///
/// # Errors
/// Why the name is malformed.
pub(crate) fn volume_key(text: &str) -> Result<VolumeKey, String> {
    let (namespace, name) = split(text);
    if name.contains('/') {
        return Err(format!(
            "{text:?} is no name of a volume, which has one slash at most: a namespace, a slash and a name"
        ));
    }
    let namespace = VolumeNamespace::new(namespace).map_err(|error| error.to_string())?;
    rules::given_name("name", name)
        .map_err(|fault| format!("the volume {} {}", fault.field, fault.problem))?;
    let name = VolumeName::new(name).map_err(|error| error.to_string())?;
    Ok(VolumeKey { namespace, name })
}

/// Whether a text names the volume of this namespace and name, which are separated by a slash.
pub(crate) fn is_named(volume: &str, text: &str) -> bool {
    volume.split_once('/') == Some(split(text))
}

/// Reads a size with a unit, as in `512MiB`.
pub(super) fn size_with_unit(text: &str) -> Option<u64> {
    UNITS
        .iter()
        .find_map(|(unit, shift)| digits(text.strip_suffix(unit)?.trim_end())?.checked_mul(1 << shift))
}

/// A size that a volume can have: from one byte to what fits into a request.
pub(super) fn possible_size(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|bytes| *bytes > 0 && rules::number("C052", "capacity", *bytes).is_ok())
}

/// Reads the size of a volume: a whole number of bytes, with or without a unit.
///
/// # Errors
/// How sizes are written.
pub(crate) fn volume_size(text: &str) -> Result<u64, String> {
    let bytes = digits(text).or_else(|| size_with_unit(text)).and_then(possible_size);
    bytes.ok_or_else(|| format!("{text:?} is no size of a volume; {SIZE_ADVICE}"))
}

/// How a size is written.
pub(super) const SIZE_ADVICE: &str =
    "give a whole number of bytes from 1 to 2^63 - 1, or one with a unit, as in \"512MiB\" or \"10GiB\"";

fn digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Reads the word for an access mode.
///
/// # Errors
/// The known words, or the word that was probably meant.
pub(crate) fn access_mode(text: &str) -> Result<AccessMode, String> {
    let mode = AccessMode::ALL.into_iter().find(|mode| mode.word() == text);
    mode.ok_or_else(|| {
        let words = AccessMode::ALL.map(AccessMode::word);
        suggest::advice(text, &words.each_ref().map(String::as_str))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_named_with_or_without_its_namespace() {
        let key = |text: &str| volume_key(text).map(|key| key.to_string());
        assert_eq!(key("data"), Ok("default/data".to_owned()));
        assert_eq!(key("blue/data"), Ok("blue/data".to_owned()));
        assert!(is_named("default/data", "data") && is_named("blue/data", "blue/data"));
        assert!(!is_named("blue/data", "data") && !is_named("default/data", "blue/data"));
        for (text, part) in [
            ("", "the volume name is empty"),
            ("blue/", "the volume name is empty"),
            ("/data", "the volume namespace is empty"),
            ("a/b/c", "has one slash at most"),
            ("my data", "blanks and control characters are not allowed"),
            (&"n".repeat(129), "has 129 bytes, at most 128 are allowed"),
        ] {
            let error = key(text).expect_err(text);
            assert!(error.contains(part) && !error.contains("rule"), "{error}");
        }
    }

    #[test]
    fn a_size_is_a_number_of_bytes_or_has_a_unit() {
        for (text, bytes) in [("1", 1), ("4096", 4_096), ("512MiB", 512 << 20), ("10 GiB", 10 << 30)] {
            assert_eq!(volume_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "0MiB", "-1", "1.5GiB", "1GB", "MiB", "9223372036854775808", "99999999TiB"] {
            let error = volume_size(text).expect_err(text);
            assert!(error.contains("as in \"512MiB\""), "{error}");
        }
    }

    #[test]
    fn every_access_mode_has_a_word_and_a_slip_of_the_fingers_finds_it() {
        for mode in AccessMode::ALL {
            assert_eq!(access_mode(&mode.word()), Ok(mode));
        }
        let error = access_mode("single-node-writter").expect_err("a slip");
        assert_eq!(error, "did you mean `single-node-writer`?");
        assert!(access_mode("rw").expect_err("none").starts_with("known here: single-node-writer, "));
    }
}
