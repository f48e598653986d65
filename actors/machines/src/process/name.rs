//! The name of a process, and the tag of its launch.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The limit of a process name, in bytes.
pub const PROCESS_NAME_BYTES_MAX: usize = 128;

/// Why a text is an invalid process name or tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MalformedProcessName {
    /// It is empty or too long.
    #[error("a process name has 1 to {PROCESS_NAME_BYTES_MAX} bytes; this one has {bytes}")]
    Length {
        /// The number of bytes given.
        bytes: usize,
    },
    /// It contains a forbidden character: names are used for directories, cgroups and files (SEC-05).
    #[error("the process name {name:?} holds {character:?}; use letters, digits, '.', '_' and '-'")]
    Character {
        /// The name as given.
        name: String,
        /// The first forbidden character.
        character: char,
    },
    /// A name with a leading dot would be a hidden file, or `..`.
    #[error("the process name {name:?} begins with a dot; begin it with a letter or a digit")]
    Dot {
        /// The name as given.
        name: String,
    },
    /// A tag must be 32 hexadecimal digits.
    #[error("{text:?} is no process tag, which is 32 lower-case hexadecimal digits")]
    Tag {
        /// The text as given.
        text: String,
    },
}

/// The name of a process, chosen by the host; at most one process at a time has it. It is one path component.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessName(Arc<str>);

impl ProcessName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`MalformedProcessName`]: letters, digits, `.`, `_` and `-` only, 1 to 128 bytes, and no dot at the beginning.
    pub fn new(name: impl AsRef<str>) -> Result<Self, MalformedProcessName> {
        let name = name.as_ref();
        if name.is_empty() || name.len() > PROCESS_NAME_BYTES_MAX {
            return Err(MalformedProcessName::Length { bytes: name.len() });
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(character) = name.chars().find(|c| !is_allowed(*c)) {
            return Err(MalformedProcessName::Character { name: name.to_owned(), character });
        }
        if name.starts_with('.') {
            return Err(MalformedProcessName::Dot { name: name.to_owned() });
        }
        Ok(Self(Arc::from(name)))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl FromStr for ProcessName {
    type Err = MalformedProcessName;

    fn from_str(name: &str) -> Result<Self, MalformedProcessName> {
        Self::new(name)
    }
}

/// The unique tag of one launch: 128 random bits in the environment of the process (PRC-09).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessTag([u8; 16]);

impl ProcessTag {
    /// A tag of these bytes, which should be random.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the tag.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for ProcessTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ProcessTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for ProcessTag {
    type Err = MalformedProcessName;

    fn from_str(text: &str) -> Result<Self, MalformedProcessName> {
        let malformed = || MalformedProcessName::Tag { text: text.chars().take(64).collect() };
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.as_bytes().iter().all(is_hex) {
            return Err(malformed());
        }
        u128::from_str_radix(text, 16).map(|tag| Self(tag.to_be_bytes())).map_err(|_| malformed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_become_a_path_elsewhere_is_refused_sec_05() {
        for name in ["", "..", ".", ".hidden", "a/b", "a\\b", "a b", "a\0", "ä", "a\n", &"x".repeat(129)] {
            assert!(ProcessName::new(name).is_err(), "{name:?}");
        }
        for name in ["raw_exec", "driver-docker.v2", "0", &"x".repeat(128)] {
            assert_eq!(ProcessName::new(name).expect("a good name").as_str(), name);
        }
    }

    #[test]
    fn a_tag_is_read_back_as_it_was_written() {
        let tag = ProcessTag::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(tag.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(tag.to_string().parse(), Ok(tag));
        for text in ["", "00", "000102030405060708090A0B0C0D0EFF", "+00102030405060708090a0b0c0d0eff"] {
            assert!(text.parse::<ProcessTag>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_and_tags_are_shown_as_they_are_written() {
        let name = ProcessName::new("zfs").unwrap();
        assert_eq!((format!("{name}"), format!("{name:?}")), ("zfs".to_owned(), "\"zfs\"".to_owned()));
        let tag = ProcessTag::new([0xa1; 16]);
        assert_eq!((format!("{tag}"), format!("{tag:?}")), ("a1".repeat(16), "a1".repeat(16)));
    }
}
