//! Decides whether the mark in a directory may be used.

use std::fmt;

use super::kept::Place;

/// The content of the path where a mark was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Former {
    /// No data directory with this mark.
    Gone,
    /// The present directory, under another path: a symlink, or mounted twice.
    Same,
    /// Another directory with the same mark.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Unchanged,
    /// It may be used, and the present place must be written.
    Changed(Change),
    /// Two directories have it: one of them is a copy.
    Copied,
}

/// Why the present place differs from the written one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The path is the same, and device or inode are not.
    Replaced,
    /// The directory is the same, and the path is not.
    Renamed,
    /// Neither is the same, and the former path no longer has a directory with this mark.
    Restored,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replaced => {
                "the data directory is another one at the same path, or its device has another number; its identity is kept"
            }
            Self::Renamed => "the data directory has another path than before; its identity is kept",
            Self::Restored => {
                "the data directory was copied from a place where there is none any more; it is taken to be moved, and its \
                 identity is kept"
            }
        })
    }
}

/// Decides about a mark that was written at `kept` and is found at `present`. `look` inspects the former path; it is called
/// only if that is another path. Device numbers are compared only among existing directories, since a reboot may change
/// them.
pub(super) fn decide<E>(
    kept: &Place,
    present: &Place,
    look: impl FnOnce() -> Result<Former, E>,
) -> Result<Verdict, E> {
    if kept == present {
        return Ok(Verdict::Unchanged);
    }
    if kept.path == present.path {
        return Ok(Verdict::Changed(Change::Replaced));
    }
    let is_same_file = (kept.device, kept.inode) == (present.device, present.inode);
    Ok(match look()? {
        Former::Other => Verdict::Copied,
        Former::Same => Verdict::Changed(Change::Renamed),
        Former::Gone if is_same_file => Verdict::Changed(Change::Renamed),
        Former::Gone => Verdict::Changed(Change::Restored),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, device: u64, inode: u64) -> Place {
        Place { path: path.to_owned(), device, inode }
    }

    #[test]
    fn a_mark_goes_with_its_directory_and_never_with_a_copy_beside_it_th053() {
        let kept = place("/a", 1, 2);
        let verdict = |present: Place, former: Former| decide::<()>(&kept, &present, || Ok(former)).unwrap();
        let unasked = |present: Place| {
            let look = || -> Result<Former, ()> { panic!("there is no other path to look at") };
            decide(&kept, &present, look).unwrap()
        };
        assert_eq!(unasked(place("/a", 1, 2)), Verdict::Unchanged);
        assert_eq!(unasked(place("/a", 7, 2)), Verdict::Changed(Change::Replaced));
        assert_eq!(unasked(place("/a", 1, 9)), Verdict::Changed(Change::Replaced));
        assert_eq!(verdict(place("/b", 1, 2), Former::Gone), Verdict::Changed(Change::Renamed));
        assert_eq!(verdict(place("/b", 1, 3), Former::Gone), Verdict::Changed(Change::Restored));
        assert_eq!(verdict(place("/b", 3, 2), Former::Gone), Verdict::Changed(Change::Restored));
        assert_eq!(verdict(place("/b", 9, 9), Former::Same), Verdict::Changed(Change::Renamed));
        // The clone of a disk has the inode of the original, and after a reboot perhaps its device number too.
        assert_eq!(verdict(place("/b", 1, 2), Former::Other), Verdict::Copied);
        assert_eq!(decide(&kept, &place("/b", 1, 2), || Err("unclear")), Err("unclear"));
    }
}
