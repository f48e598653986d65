//! Versions of plugins and of their interfaces.

use std::cmp::Ordering;
use std::fmt;

/// The length limit of a version, in bytes.
pub const VERSION_BYTES_MAX: usize = 128;

/// A version of a plugin: parsed leniently, compared as semver. `v1.2` equals `1.2.0`, and is above `1.2.0-rc.1`.
#[derive(Debug, Clone)]
pub struct PluginVersion {
    told: String,
    order: semver::Version,
}

/// A malformed version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no version; a version is up to three numbers such as 1.4.2, with or without a leading v and a pre-release such as -rc.1"
)]
pub struct MalformedVersion {
    /// The text, truncated if it is long.
    pub text: String,
}

impl PluginVersion {
    /// Parses a version.
    ///
    /// # Errors
    /// [`MalformedVersion`]: one to three numbers, optionally with a `v` before them, a pre-release and a build after them.
    pub fn new(text: &str) -> Result<Self, MalformedVersion> {
        let malformed = || MalformedVersion { text: text.chars().take(VERSION_BYTES_MAX).collect() };
        if text.len() > VERSION_BYTES_MAX {
            return Err(malformed());
        }
        order(text.trim()).map(|order| Self { told: text.trim().to_owned(), order }).ok_or_else(malformed)
    }

    /// The version as the plugin spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.told
    }
}

fn order(text: &str) -> Option<semver::Version> {
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let (core, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let mut numbers = [0_u64; 3];
    for (place, part) in core.split('.').enumerate() {
        // A number has no sign: a sign would begin the rest.
        *numbers.get_mut(place)? = part.parse().ok()?;
    }
    let (pre, build) = rest.split_once('+').map_or((rest, None), |(pre, build)| (pre, Some(build)));
    let [major, minor, patch] = numbers;
    let mut order = semver::Version::new(major, minor, patch);
    if let Some(pre) = pre.strip_prefix('-') {
        order.pre = semver::Prerelease::new(pre).ok().filter(|pre| !pre.is_empty())?;
    }
    if let Some(build) = build {
        // The build does not affect the order, but must be well formed.
        semver::BuildMetadata::new(build).ok().filter(|build| !build.is_empty())?;
    }
    Some(order)
}

impl fmt::Display for PluginVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

impl PartialEq for PluginVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PluginVersion {}

impl PartialOrd for PluginVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PluginVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp_precedence(&other.order)
    }
}

/// The highest interface version that both sides support, spelt as the plugin spells it. Malformed versions are ignored.
pub(super) fn negotiate(offered: &[String], spoken: &[String]) -> Option<String> {
    let read = |texts: &[String]| -> Vec<PluginVersion> {
        texts.iter().filter_map(|text| PluginVersion::new(text).ok()).collect()
    };
    let spoken = read(spoken);
    read(offered).into_iter().filter(|offer| spoken.contains(offer)).max().map(|version| version.told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> PluginVersion {
        PluginVersion::new(text).unwrap()
    }

    #[test]
    fn versions_are_read_leniently_and_compared_with_their_pre_releases() {
        let rising =
            ["0.9", "v1.2.0-alpha.2", "1.2.0-alpha.10", "1.2.0-rc.1", "v1.2", "1.2.1", "1.10.0", "v2"];
        for pair in rising.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        for (one, same) in [("v1.2", "1.2.0"), ("1", "V1.0.0"), ("1.2.0+build.7", "1.2"), (" 1.2 ", "1.2.0")]
        {
            assert_eq!(version(one), version(same));
        }
        assert_eq!(version(" v1.2 ").to_string(), "v1.2");
        assert_eq!(version(" v1.2 ").as_str(), "v1.2");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        let long = "1".repeat(200);
        for text in ["", "v", "latest", "1.2.3.4", "1..2", "1.-2", "1.2-", "1.2+", "1,2", "+1", "-rc", &long]
        {
            assert!(PluginVersion::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_highest_version_that_both_speak_is_taken() {
        let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(|&text| text.to_owned()).collect() };
        let agreed = |offered: &[&str], spoken: &[&str]| negotiate(&texts(offered), &texts(spoken));
        assert_eq!(agreed(&["v0.1.0", "v0.2.0"], &["0.1", "0.2", "0.3"]), Some("v0.2.0".to_owned()));
        assert_eq!(agreed(&["v0.4.0"], &["0.1"]), None);
        assert_eq!(agreed(&["nonsense"], &["nonsense"]), None);
    }
}
