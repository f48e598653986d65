//! Names that hosts and operators choose: of plugins, allocations and tasks.

use std::fmt;
use std::sync::Arc;

use super::text::is_harmless;

/// The length limit of a name, in bytes. A name becomes one component of a path, and file systems allow 255 bytes for one.
pub const NAME_BYTES_MAX: usize = 255;

/// Why a text is not a name (R9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedName {
    /// It is empty.
    #[error("the {what} is empty; give it a name of 1 to {NAME_BYTES_MAX} bytes")]
    Empty {
        /// The kind of name: "plugin name", "allocation id", "task name".
        what: &'static str,
    },
    /// Longer than [`NAME_BYTES_MAX`].
    #[error("the {what} {start:?}... has {bytes} bytes; at most {NAME_BYTES_MAX} are allowed")]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// Its first characters, to recognise it by.
        start: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// Names become components of paths, so they must not lead to other directories.
    #[error(
        "the {what} {name:?} would leave its directory when used in a path; '/', '\\', '.' and '..' are not allowed"
    )]
    Path {
        /// The kind of name.
        what: &'static str,
        /// The name as given.
        name: String,
    },
    /// Blanks and control characters would make logs and tables unreadable.
    #[error("the {what} {name:?} holds {character:?}; blanks and control characters are not allowed")]
    Character {
        /// The kind of name.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The first character that is not allowed.
        character: char,
    },
}

fn check(what: &'static str, name: &str) -> Result<(), MalformedName> {
    if name.is_empty() {
        return Err(MalformedName::Empty { what });
    }
    if name.len() > NAME_BYTES_MAX {
        let start = name.chars().take(24).collect();
        return Err(MalformedName::TooLong { what, start, bytes: name.len() });
    }
    if name == "." || name == ".." || name.contains('/') || name.contains('\\') {
        return Err(MalformedName::Path { what, name: name.to_owned() });
    }
    match name.chars().find(|c| c.is_whitespace() || !is_harmless(*c)) {
        Some(character) => Err(MalformedName::Character { what, name: name.to_owned(), character }),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a text as a name.
            ///
            /// # Errors
            /// When it is empty, too long, holds blanks or control characters, or could not be one component of a path.
            pub fn new(name: impl AsRef<str>) -> Result<Self, MalformedName> {
                check($what, name.as_ref())?;
                Ok(Self(Arc::from(name.as_ref())))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = MalformedName;

            fn from_str(name: &str) -> Result<Self, MalformedName> {
                Self::new(name)
            }
        }
    };
}

name!(
    /// The name that hosts and their volumes use for a plugin, for instance `zfs` (the host's choice, not the plugin's own).
    PluginName,
    "plugin name"
);
name!(
    /// The id of one run of a workload on this host.
    AllocationId,
    "allocation id"
);
name!(
    /// The task within an allocation whose process is the plugin.
    TaskName,
    "task name"
);
name!(
    /// The namespace of a volume: equal names of volumes in two namespaces are two volumes (VOL-04).
    VolumeNamespace,
    "volume namespace"
);
name!(
    /// The name that a host uses for a volume within its namespace. The plugin's id of the volume is another one.
    VolumeName,
    "volume name"
);
name!(
    /// The name that hosts and their tasks use for a task driver, for instance `exec`.
    DriverName,
    "driver name"
);

/// A driver as a plugin.
impl From<&DriverName> for PluginName {
    fn from(driver: &DriverName) -> Self {
        Self(driver.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_become_a_path_elsewhere_are_refused_r9() {
        for name in ["/", "a/b", "..", ".", "../a", "a\\b"] {
            assert!(matches!(PluginName::new(name), Err(MalformedName::Path { .. })), "{name:?}");
        }
        let error = VolumeName::new("a\\b").expect_err("it is no name").to_string();
        assert!(error.ends_with("'/', '\\', '.' and '..' are not allowed"), "{error}");
    }

    #[test]
    fn empty_blank_and_overlong_names_are_refused_r9() {
        assert!(matches!(AllocationId::new(""), Err(MalformedName::Empty { .. })));
        assert!(matches!(AllocationId::new("a b"), Err(MalformedName::Character { character: ' ', .. })));
        assert!(matches!(AllocationId::new("a\n"), Err(MalformedName::Character { character: '\n', .. })));
        assert!(matches!(
            DriverName::new("a\u{202e}b"),
            Err(MalformedName::Character { character: '\u{202e}', .. })
        ));
        assert!(matches!(TaskName::new("x".repeat(256)), Err(MalformedName::TooLong { bytes: 256, .. })));
    }

    #[test]
    fn a_name_of_two_hundred_characters_is_a_name_sec_01() {
        assert!(PluginName::new("x".repeat(200)).is_ok());
    }
}
