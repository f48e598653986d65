//! Parses one line of `/proc/PID/mountinfo`.

use std::path::PathBuf;

use super::mount::{DeviceNumber, Mount, MountId, Propagation};

/// The maximum length of the part of a line that an error shows, in characters.
const EXCERPT_CHARS: usize = 120;
/// The suffix that the kernel writes after the root of a mount whose root was deleted.
const DELETED: &[u8] = b"//deleted";

/// A line that is not a line of a mount table. The kernel writes none: the text was truncated, or is another text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is no line of a mount table: {excerpt:?}; read /proc/self/mountinfo again, whole")]
pub struct MalformedMount {
    /// The number of the line, from 1.
    pub line: usize,
    /// Its beginning.
    pub excerpt: String,
}

/// Parses a line. `None` if it is not a line of a mount table.
pub(super) fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = MountId(number(fields.next()?)?);
    let parent = MountId(number(fields.next()?)?);
    let device = device(fields.next()?)?;
    let root = fields.next()?;
    let (root, is_root_deleted) = root.strip_suffix(DELETED).map_or((root, false), |root| (root, true));
    let mount_point = path(fields.next()?)?;
    let options = text(fields.next()?);
    let mut propagation = Propagation::default();
    loop {
        match fields.next()? {
            b"-" => break,
            field => add(field, &mut propagation)?,
        }
    }
    let (fs_type, source) = (fields.next()?, fields.next()?);
    // After an empty source the kernel writes two blanks.
    let fs_options = fields.next()?;
    Some(Mount {
        id,
        unique_id: None,
        parent,
        device,
        root: PathBuf::from(text(root)),
        is_root_deleted,
        mount_point,
        options,
        propagation,
        fs_type: text(fs_type),
        source: text(source),
        fs_options: text(fs_options),
    })
}

/// The error for a line.
pub(super) fn malformed(line: usize, content: &[u8]) -> MalformedMount {
    MalformedMount { line, excerpt: String::from_utf8_lossy(content).chars().take(EXCERPT_CHARS).collect() }
}

/// Parses one optional field. Kernels may add others; they are ignored.
fn add(field: &[u8], propagation: &mut Propagation) -> Option<()> {
    if field == b"unbindable" {
        propagation.is_unbindable = true;
    } else if let Some(group) = field.strip_prefix(b"shared:") {
        propagation.shared = Some(number(group)?);
    } else if let Some(group) = field.strip_prefix(b"master:") {
        propagation.master = Some(number(group)?);
    } else if let Some(group) = field.strip_prefix(b"propagate_from:") {
        propagation.propagate_from = Some(number(group)?);
    }
    Some(())
}

fn number<N: std::str::FromStr>(field: &[u8]) -> Option<N> {
    let is_number = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(field).ok()?.parse().ok())?
}

fn device(field: &[u8]) -> Option<DeviceNumber> {
    let colon = field.iter().position(|byte| *byte == b':')?;
    Some(DeviceNumber { major: number(&field[..colon])?, minor: number(&field[colon + 1..])? })
}

/// An absolute path. A mount outside of the root of the process has none, and the kernel omits it.
fn path(field: &[u8]) -> Option<PathBuf> {
    field.starts_with(b"/").then(|| PathBuf::from(text(field)))
}

/// Decodes the escapes of the kernel: a backslash and three octal digits for a blank, tab, line break, backslash or `#`. Bytes that are
/// not UTF-8 are replaced: such a mount is still found below a path, but is at no path that a host names.
fn text(field: &[u8]) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(field.len()), field);
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'\\').then(|| octal(after.get(..3)?)).flatten();
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn octal(digits: &[u8]) -> Option<u8> {
    let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    is_octal.then(|| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok())?
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const PLAIN: &str = "36 35 98:0 /mnt1 /mnt2 rw,noatime - ext3 /dev/root rw,errors=continue";

    #[test]
    fn every_field_of_a_line_is_read_v7() {
        let line = b"36 35 98:1 /m /n rw,noatime shared:3 master:1 propagate_from:2 new:5 - fuse.a b c=d";
        let mount = parse(line).unwrap();
        assert_eq!((mount.id, mount.parent), (MountId(36), MountId(35)));
        assert_eq!(mount.device, DeviceNumber { major: 98, minor: 1 });
        assert_eq!((mount.root.as_path(), mount.mount_point.as_path()), (Path::new("/m"), Path::new("/n")));
        assert_eq!((mount.options.as_str(), mount.fs_options.as_str()), ("rw,noatime", "c=d"));
        assert_eq!((mount.fs_type.as_str(), mount.source.as_str()), ("fuse.a", "b"));
        let expected =
            Propagation { shared: Some(3), master: Some(1), propagate_from: Some(2), is_unbindable: false };
        assert_eq!(mount.propagation, expected);
        assert_eq!(mount.propagation.to_string(), "shared and slave");
        assert_eq!(mount.to_string(), "mount 36, fuse.a 98:1:/m (from \"b\" at /n)");
        assert!(!mount.is_root_deleted);
    }

    #[test]
    fn a_mount_without_optional_fields_is_private_c178() {
        assert_eq!(parse(PLAIN.as_bytes()).unwrap().propagation, Propagation::default());
        let unbindable = PLAIN.replace(" - ", " unbindable - ");
        assert_eq!(parse(unbindable.as_bytes()).unwrap().propagation.to_string(), "unbindable");
        let shared = PLAIN.replace(" - ", " shared:7 - ");
        assert_eq!(parse(shared.as_bytes()).unwrap().propagation.to_string(), "shared");
        let slave = PLAIN.replace(" - ", " master:7 - ");
        assert_eq!(parse(slave.as_bytes()).unwrap().propagation.to_string(), "slave");
        assert_eq!(parse(PLAIN.as_bytes()).unwrap().propagation.to_string(), "private");
    }

    #[test]
    fn escapes_are_decoded_and_other_backslashes_stay_v7() {
        let line = PLAIN.replace("/mnt2", "/a\\040b\\011\\134\\012").replace("/dev/root", "a\\043\\9");
        let mount = parse(line.as_bytes()).unwrap();
        assert_eq!(mount.mount_point, Path::new("/a b\t\\\n"));
        assert_eq!(mount.source, "a#\\9");
        let cut = PLAIN.replace("/mnt2", "/a\\04");
        assert_eq!(parse(cut.as_bytes()).unwrap().mount_point, Path::new("/a\\04"));
        let too_large = PLAIN.replace("/mnt2", "/a\\777");
        assert_eq!(parse(too_large.as_bytes()).unwrap().mount_point, Path::new("/a\\777"));
    }

    #[test]
    fn a_root_that_was_deleted_is_said_so_v7() {
        let mount = parse(PLAIN.replace("/mnt1", "/mnt1//deleted").as_bytes()).unwrap();
        assert!(mount.is_root_deleted && mount.root == Path::new("/mnt1"));
    }

    #[test]
    fn an_empty_source_leaves_the_options_in_their_place_v7() {
        let mount = parse(PLAIN.replace("/dev/root", "").as_bytes()).unwrap();
        assert_eq!((mount.source.as_str(), mount.fs_options.as_str()), ("", "rw,errors=continue"));
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_below_their_directory_v7() {
        let line = b"36 35 98:0 / /a/\xff\xfe rw - ext3 s rw";
        let mount = parse(line).unwrap();
        assert!(mount.mount_point.starts_with("/a") && mount.mount_point != Path::new("/a"));
    }

    #[test]
    fn what_is_no_line_of_a_table_is_refused_v7() {
        assert!(parse(PLAIN.as_bytes()).is_some());
        for end in (0..PLAIN.len()).filter(|end| !PLAIN[..*end].contains("/dev/root ")) {
            assert_eq!(parse(&PLAIN.as_bytes()[..end]), None, "{}", &PLAIN[..end]);
        }
        for (good, bad) in [
            ("36 ", "-36 "),
            ("35 ", "+35 "),
            ("98:0", "98"),
            ("98:0", "98:"),
            ("98:0", ":0"),
            ("/mnt2", "mnt2"),
            (" - ", " shared:x - "),
            (" - ", " master: - "),
        ] {
            assert_eq!(parse(PLAIN.replacen(good, bad, 1).as_bytes()), None, "{bad}");
        }
    }
}
