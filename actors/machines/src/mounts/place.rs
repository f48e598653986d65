//! A path below a base directory of ours, and the errors of creating or removing it.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::look::LookError;

/// The length limit of one name in a path, in bytes, as in file systems.
pub const NAME_BYTES_MAX: usize = 255;
/// The length limit of a path, in bytes, as in the kernel without the final zero.
pub const PATH_BYTES_MAX: usize = 4_095;

/// A path below a base directory. Nothing outside of the base is made or removed, and the base itself stays (V6).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    base: PathBuf,
    names: Vec<String>,
    kept: usize,
}

/// A path that is not a [`Place`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is no path below {base}: {reason}", path = path.display(), base = base.display())]
pub struct MalformedPlace {
    /// The base.
    pub base: PathBuf,
    /// The path.
    pub path: PathBuf,
    /// The rule that it breaks.
    pub reason: &'static str,
}

impl Place {
    /// Takes an absolute path below an absolute base. The base may contain symbolic links; the rest of the path may not.
    ///
    /// # Errors
    /// [`MalformedPlace`] if the path is not below the base, has `.` or `..` in it, or is too long.
    pub fn new(base: &Path, path: &Path) -> Result<Self, MalformedPlace> {
        let malformed = |reason| MalformedPlace { base: base.to_owned(), path: path.to_owned(), reason };
        if !base.is_absolute() {
            return Err(malformed("the base is not absolute"));
        }
        if path.as_os_str().len() > PATH_BYTES_MAX {
            return Err(malformed("it is longer than 4095 bytes"));
        }
        let below = path.strip_prefix(base).map_err(|_| malformed("it does not begin with it"))?;
        let names = below.components().map(|part| match part {
            Component::Normal(name) => name.to_str().ok_or("a name in it is not UTF-8"),
            _ => Err("it has .. in it"),
        });
        let names: Vec<&str> = names.collect::<Result<_, _>>().map_err(malformed)?;
        if names.is_empty() {
            return Err(malformed("it is the base itself"));
        }
        if names.iter().any(|name| name.len() > NAME_BYTES_MAX || name.contains('\0')) {
            return Err(malformed("a name in it is longer than 255 bytes, or has a zero byte"));
        }
        let names = names.into_iter().map(str::to_owned).collect();
        Ok(Self { base: base.to_owned(), names, kept: 0 })
    }

    /// The same place, whose first `names` names stay when it is removed.
    #[must_use]
    pub fn keeping(self, names: usize) -> Self {
        Self { kept: names, ..self }
    }

    /// The directory that stays.
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The names below the base; at least one.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of the first names that stay when it is removed.
    #[must_use]
    pub const fn kept(&self) -> usize {
        self.kept
    }

    /// The whole path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.base.iter().chain(self.names.iter().map(String::as_ref)).collect()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

/// The result of making a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Made {
    /// It was not there.
    New,
    /// It was there, with nothing mounted on it.
    AlreadyThere,
    /// Something is mounted on it. The mount was not touched.
    Mounted,
}

/// A path that was not made or not removed. Directories made on the way stay until they are removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// A part of the path is a symbolic link. It is never followed (V6).
    #[error("{path} is a symbolic link, which is never followed here; look at it and remove it", path = path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A part of the path is of another kind.
    #[error("{path} is {found} and not {wanted}; look at it and remove it", path = path.display())]
    WrongKind {
        /// The part.
        path: PathBuf,
        /// Its kind.
        found: &'static str,
        /// The kind that is needed.
        wanted: &'static str,
    },
    /// Something is mounted on a part of the path. Nothing below it is made or removed (V6).
    #[error(
        "something is mounted on {path}, and nothing is made or removed below a mount; see it with findmnt {path} and unmount it",
        path = path.display()
    )]
    Mounted {
        /// The mount point.
        path: PathBuf,
    },
    /// A part of the path belongs to another user, so it is not ours (V6).
    #[error("{path} belongs to user {owner} and was not made by this host; look at it and remove it", path = path.display())]
    Foreign {
        /// The part.
        path: PathBuf,
        /// The id of the user.
        owner: u32,
    },
    /// It holds files, which are never removed (V6).
    #[error("{path} holds files, which may be user data and are not removed; check them and remove the directory", path = path.display())]
    NotEmpty {
        /// The directory or file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {attempt} {path}: {reason}", path = path.display())]
    Refused {
        /// The attempted operation.
        attempt: &'static str,
        /// The path.
        path: PathBuf,
        /// The refusal.
        reason: String,
    },
    /// It hung, or was not begun.
    #[error(transparent)]
    Unanswered(#[from] LookError),
}

impl PlaceError {
    /// Whether the same call may succeed later without a repair.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Mounted { .. } | Self::Refused { .. } | Self::Unanswered(_) => true,
            Self::Link { .. } | Self::WrongKind { .. } | Self::Foreign { .. } | Self::NotEmpty { .. } => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Result<Place, &'static str> {
        Place::new(Path::new("/data"), Path::new(path)).map_err(|error| error.reason)
    }

    #[test]
    fn a_place_is_a_path_below_its_base_v6() {
        let there = place("/data/csi//node/./a b").unwrap();
        assert_eq!(there.names(), ["csi", "node", "a b"]);
        assert_eq!(there.base(), Path::new("/data"));
        assert_eq!(there.to_string(), "/data/csi/node/a b");
    }

    #[test]
    fn what_leads_out_of_the_base_is_refused_v6() {
        assert_eq!(place("/data"), Err("it is the base itself"));
        assert_eq!(place("/database/x"), Err("it does not begin with it"));
        assert_eq!(place("csi"), Err("it does not begin with it"));
        assert_eq!(place("/data/../etc"), Err("it has .. in it"));
        assert_eq!(place("/data/a/.."), Err("it has .. in it"));
        let relative = Place::new(Path::new("data"), Path::new("data/x")).unwrap_err();
        assert_eq!(relative.to_string(), "data/x is no path below data: the base is not absolute");
    }

    #[test]
    fn names_and_paths_have_the_limits_of_the_kernel_v6() {
        let name = |bytes: usize| format!("/data/{}", "n".repeat(bytes));
        let too_long = "a name in it is longer than 255 bytes, or has a zero byte";
        assert!(place(&name(255)).is_ok());
        assert_eq!(place(&name(256)), Err(too_long));
        assert_eq!(place("/data/a\0b"), Err(too_long));
        let path = |bytes: usize| format!("/data{}/", "/n".repeat((bytes - 6) / 2));
        assert!(place(&path(4_094)).is_ok());
        assert_eq!(place(&path(4_096)), Err("it is longer than 4095 bytes"));
    }

    #[test]
    fn an_error_says_which_part_of_the_path_and_what_to_do_v6() {
        let path = PathBuf::from("/data/a");
        let errors = [
            (PlaceError::Link { path: path.clone() }, "is a symbolic link", false),
            (
                PlaceError::WrongKind { path: path.clone(), found: "a file", wanted: "a directory" },
                "is a file and not a directory",
                false,
            ),
            (PlaceError::Mounted { path: path.clone() }, "findmnt /data/a", true),
            (PlaceError::Foreign { path: path.clone(), owner: 7 }, "belongs to user 7", false),
            (PlaceError::NotEmpty { path: path.clone() }, "holds files", false),
            (
                PlaceError::Refused { attempt: "make", path: path.clone(), reason: "disk full".into() },
                "cannot make /data/a: disk full",
                true,
            ),
            (
                PlaceError::Unanswered(LookError::Refused { path, reason: "none".into() }),
                "cannot look at /data/a",
                true,
            ),
        ];
        for (error, words, is_transient) in errors {
            assert!(error.to_string().contains(words) && error.is_transient() == is_transient, "{error}");
        }
    }
}
