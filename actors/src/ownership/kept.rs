//! The content of the mark file.
//!
//! ```text
//! callboard identity 1
//! mark 0123456789abcdef
//! path /var/lib/callboard
//! device 66306
//! inode 131075
//! ```
//!
//! The first line contains the version of the format. Bytes of the path that are not printable ASCII, and backslashes, are
//! written as `\x` and two hexadecimal digits.

/// The beginning of the first line, before the version.
const TITLE: &str = "callboard identity";
/// The version that is written, and the newest that is supported.
pub(super) const VERSION: u32 = 1;
/// The number of digits of a mark: it becomes part of file names.
const MARK_DIGITS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) mark: String,
    pub(super) place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Its canonical path, as written in the file.
    pub(super) path: String,
    pub(super) device: u64,
    pub(super) inode: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mistake {
    /// It was written by a newer version.
    Newer(u32),
    Malformed(String),
}

impl Kept {
    pub(super) fn text(&self) -> String {
        let Self { mark, place: Place { path, device, inode } } = self;
        format!("{TITLE} {VERSION}\nmark {mark}\npath {path}\ndevice {device}\ninode {inode}\n")
    }

    pub(super) fn parse(text: &str) -> Result<Self, Mistake> {
        let malformed = |what: &str| Mistake::Malformed(what.to_owned());
        let mut lines = text.lines();
        let title = lines.next().and_then(|line| line.strip_prefix(TITLE)?.strip_prefix(' '));
        let version: Option<u32> = title.and_then(|version| version.parse().ok());
        match version {
            Some(VERSION) => {}
            Some(theirs) if theirs > VERSION => return Err(Mistake::Newer(theirs)),
            Some(_) | None => return Err(malformed("its first line is not `callboard identity 1`")),
        }
        let mut value = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.ok_or_else(|| Mistake::Malformed(format!("a line `{name} ...` is missing at its place")))
        };
        let (mark, path) = (value("mark")?.to_owned(), value("path")?.to_owned());
        let (device, inode) = (value("device")?.parse(), value("inode")?.parse());
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if mark.len() != MARK_DIGITS || !mark.bytes().all(is_digit) {
            return Err(malformed("its mark is not 16 hexadecimal digits in lower case"));
        }
        if !path.starts_with('/') || unescaped(&path).is_none() {
            return Err(malformed("its path is not an absolute one as it is written there"));
        }
        let (Ok(device), Ok(inode)) = (device, inode) else {
            return Err(malformed("its device or inode is not a number"));
        };
        if lines.next().is_some() {
            return Err(malformed("something follows behind its fifth line"));
        }
        Ok(Self { mark, place: Place { path, device, inode } })
    }
}

/// The bytes of a path as text of one line.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' => text.push_str("\\x5c"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

/// Decodes an escaped path; `None` if it is malformed.
pub(super) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'\\' {
            bytes.push(*first);
            rest = behind;
            continue;
        }
        let (digits, behind) = behind.strip_prefix(b"x")?.split_first_chunk::<2>()?;
        let digits = std::str::from_utf8(digits).ok()?;
        let is_plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(is_plain.then(|| u8::from_str_radix(digits, 16).ok())??);
        rest = behind;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(path: &[u8]) -> Kept {
        let place = Place { path: escaped(path), device: u64::MAX, inode: 7 };
        Kept { mark: "0123456789abcdef".to_owned(), place }
    }

    #[test]
    fn what_is_written_is_read_back_whatever_the_path_holds() {
        for path in [&b"/var/lib/callboard"[..], b"/a b\\x41\n\xff\xc3\xa4 ", b"/"] {
            let text = kept(path).text();
            assert_eq!(text.lines().count(), 5, "{text}");
            assert_eq!(Kept::parse(&text), Ok(kept(path)));
            assert_eq!(unescaped(&kept(path).place.path).as_deref(), Some(path));
        }
    }

    #[test]
    fn what_is_not_whole_is_refused_with_what_is_wrong() {
        let good = kept(b"/a").text();
        let broken = [
            (String::new(), "first line"),
            (good.replace("identity 1", "identity 0"), "first line"),
            (good.replace("mark ", "mork "), "`mark ...`"),
            (good.replace("0123456789abcdef", "0123456789abcdeF"), "16 hexadecimal digits"),
            (good.replace("0123456789abcdef", "0123"), "16 hexadecimal digits"),
            (good.replace("/a", "a"), "absolute"),
            (good.replace("/a", "/a\\x+1"), "absolute"),
            (good.replace("/a", "/a\\"), "absolute"),
            (good.replace("inode 7", "inode -7"), "not a number"),
            (good.replace("inode 7\n", ""), "`inode ...`"),
            (format!("{good}more\n"), "fifth line"),
        ];
        for (text, words) in broken {
            let Err(Mistake::Malformed(told)) = Kept::parse(&text) else { panic!("{text:?} is taken") };
            assert!(told.contains(words), "{text:?}: {told}");
        }
        assert_eq!(Kept::parse(&good.replace("identity 1", "identity 2")), Err(Mistake::Newer(2)));
    }
}
