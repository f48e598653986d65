//! Parses the mount table (`/proc/PID/mountinfo`).

use std::path::{Path, PathBuf};

/// One line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The id of this mount.
    pub id: u64,
    /// The id of its parent mount.
    pub parent: u64,
    /// The root of the mount in its file system: `/` unless it is a bind mount of a directory or file.
    pub part: PathBuf,
    /// The mount point.
    pub place: PathBuf,
    /// Whether this mount is read-only, independent of its file system.
    pub is_read_only: bool,
    /// Its options, as written: `rw,nosuid,noexec`.
    pub options: String,
    /// The type of its file system: `ext4`, `tmpfs`.
    pub kind: String,
    /// The options of its file system, as written.
    pub file_system_options: String,
}

/// The whole table, in the kernel's order: of two mounts on one mount point the later one is on top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable(Vec<Mount>);

impl MountTable {
    /// Parses a text. Malformed lines are skipped.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(line).collect())
    }

    /// All mounts.
    #[must_use]
    pub fn mounts(&self) -> &[Mount] {
        &self.0
    }

    /// The topmost mount on this mount point.
    #[must_use]
    pub fn topmost_at(&self, place: &Path) -> Option<&Mount> {
        self.0.iter().rfind(|mount| mount.place == place)
    }

    /// The mounts on this path or below it, in the order in which they can be unmounted: the latest first.
    #[must_use]
    pub fn at_or_below(&self, place: &Path) -> Vec<&Mount> {
        self.0.iter().rev().filter(|mount| mount.place.starts_with(place)).collect()
    }
}

fn line(text: &str) -> Option<Mount> {
    let (before, after) = text.split_once(" - ")?;
    let mut fields = before.split(' ');
    let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let (part, place) = (path(fields.nth(1)?), path(fields.next()?));
    let options = fields.next()?.to_owned();
    let mut after = after.split(' ');
    let (kind, _source) = (after.next()?.to_owned(), after.next()?);
    let is_read_only = options.split(',').any(|option| option == "ro");
    let file_system_options = after.next().unwrap_or_default().to_owned();
    Some(Mount { id, parent, part, place, is_read_only, options, kind, file_system_options })
}

/// Decodes the octal escapes of the kernel for blanks, tabs, line breaks and backslashes. Other bytes are unchanged; a path
/// that is not UTF-8 was skipped before.
fn path(text: &str) -> PathBuf {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                rest = &after[3..];
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw\n\
                         30 21 0:5 / /d/a\\040b rw,nosuid,noexec - tmpfs tmpfs rw,size=1024k,mode=755\n\
                         31 30 8:1 /home /d/a\\040b ro,relatime master:4 shared:2 - ext4 /dev/sda rw\n\
                         32 21 0:6 / /d/abc rw - tmpfs tmpfs rw\n\
                         not a mount\n";

    #[test]
    fn lines_are_read_with_their_escapes_and_optional_fields() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.mounts().len(), 4);
        let lower = &table.mounts()[1];
        assert_eq!((lower.id, lower.parent, lower.place.as_path()), (30, 21, Path::new("/d/a b")));
        assert_eq!(
            (lower.kind.as_str(), lower.file_system_options.as_str()),
            ("tmpfs", "rw,size=1024k,mode=755")
        );
        assert!(!lower.is_read_only);
    }

    #[test]
    fn the_upper_of_two_mounts_is_found_and_comes_off_first() {
        let table = MountTable::parse(TABLE);
        let top = table.topmost_at(Path::new("/d/a b")).unwrap();
        assert!(top.id == 31 && top.is_read_only && top.part == Path::new("/home"));
        let ids: Vec<u64> = table.at_or_below(Path::new("/d/a b")).iter().map(|mount| mount.id).collect();
        assert_eq!(ids, [31, 30], "and a neighbour with a similar name is not below");
        assert_eq!(table.at_or_below(Path::new("/d")).len(), 3);
        assert_eq!(table.topmost_at(Path::new("/d")), None);
    }

    #[test]
    fn a_backslash_that_begins_no_escape_stays() {
        assert_eq!(path("/a\\134b"), Path::new("/a\\b"));
        assert_eq!(path("/a\\9"), Path::new("/a\\9"));
        assert_eq!(path("/a\\"), Path::new("/a\\"));
    }
}
