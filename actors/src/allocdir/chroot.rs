//! The content of a chroot: read-only bind mounts of the host, since a copy for each task would be slow and large (T047).

use std::path::{Component, Path};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::mount::MountFlags;

use super::binding::is_read_only;
use super::error::AllocDirError;
use super::prepare::show;
use super::release::unmount;
use super::roots::AllocDirs;
use super::tree::{Accepted, Dir, Wanted, kind_word};

/// Populates a task's directory with those paths of the list that the host has.
pub(super) fn fill(dirs: &AllocDirs, task: &Dir, accepted: &Accepted) -> Result<(), AllocDirError> {
    for shown in &dirs.chroot {
        let Ok(found) = std::fs::symlink_metadata(shown) else { continue };
        let names = names(shown)?;
        let Some((last, above)) = names.split_last() else {
            return Err(own_root(dirs, shown));
        };
        let wanted = Wanted { mode: 0o755, owner: None, accepted };
        let mut parent = None;
        for name in above {
            parent = Some(parent.as_ref().unwrap_or(task).make(name, &wanted)?);
        }
        let parent = parent.as_ref().unwrap_or(task);
        if found.is_symlink() {
            link(shown, parent, last)?;
        } else if found.is_dir() {
            let real = shown.canonicalize().map_err(AllocDirError::refused("look at", shown))?;
            if [&dirs.root, &dirs.mounts].into_iter().any(|root| root.starts_with(&real)) {
                return Err(own_root(dirs, shown));
            }
            show_read_only(dirs, &Dir::named(&real)?, parent, last, &wanted)?;
        }
    }
    Ok(())
}

fn own_root(dirs: &AllocDirs, shown: &Path) -> AllocDirError {
    AllocDirError::OwnRoot { shown: shown.to_owned(), kept: dirs.root.clone() }
}

/// The components of an absolute path without `..`.
pub(super) fn names(path: &Path) -> Result<Vec<&str>, AllocDirError> {
    let odd = || {
        AllocDirError::Name(format!("`chroot` names {}; give absolute paths without `..`", path.display()))
    };
    let mut components = path.components();
    if components.next() != Some(Component::RootDir) {
        return Err(odd());
    }
    components
        .map(|component| match component {
            Component::Normal(name) => name.to_str().ok_or_else(odd),
            _ => Err(odd()),
        })
        .collect()
}

fn show_read_only(
    dirs: &AllocDirs,
    source: &Dir,
    parent: &Dir,
    name: &str,
    wanted: &Wanted<'_>,
) -> Result<(), AllocDirError> {
    if parent.look(name)?.is_some_and(|known| known.mount != parent.known.mount) {
        let mounted = parent.open(name)?;
        let is_whole = mounted.is_same_as(source) && is_read_only(&mounted)?;
        drop(mounted);
        if is_whole {
            return Ok(());
        }
        // An outdated mount, or a bind mount that was interrupted before it was read-only.
        unmount(parent, name, dirs.timeout)?;
    }
    parent.make(name, wanted)?;
    show(source, parent, name, MountFlags::RDONLY)
}

/// Creates the same symlink as on the host, so that `/bin` is the same.
fn link(shown: &Path, parent: &Dir, name: &str) -> Result<(), AllocDirError> {
    let target = std::fs::read_link(shown).map_err(AllocDirError::refused("read the link", shown))?;
    let path = parent.path.join(name);
    match rustix::fs::symlinkat(&target, parent.fd(), name) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => {
            let is_same = rustix::fs::readlinkat(parent.fd(), name, Vec::new())
                .is_ok_and(|there| there.as_bytes() == target.as_os_str().as_encoded_bytes());
            if is_same {
                return Ok(());
            }
            let found = parent.look(name)?.map_or(FileType::Unknown, |known| known.kind);
            Err(AllocDirError::NotADirectory { path, found: kind_word(found) })
        }
        Err(error) => Err(AllocDirError::refused("make the link", &path)(error)),
    }
}
