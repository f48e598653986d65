//! Removes the directories of allocations: one socket file, and empty directories; never anything recursively, and nothing
//! through a symlink (VOL-06).

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::directory::{Asker, Trouble, blocking, check_owner, enter, is_listened_on, kind, unlink};
use super::{Layout, Place, SOCKET_FILE};
use crate::datadir::{DataDirError, reach};
use crate::vocabulary::text::quoted;
use crate::vocabulary::{AllocationId, SocketPath};

const LEFTOVERS_NAMED: usize = 5;

pub(super) fn take_away(place: &Place, socket_file: Option<&str>, asker: &Asker) -> Result<(), Trouble> {
    let Some((last, way)) = place.steps.split_last() else { return Ok(()) };
    let above = Place { base: place.base.clone(), steps: way.to_vec() };
    let (Some(above), path) = (find(&above)?, place.path()) else { return Ok(()) };
    let directory = match enter_if_there(&above, &last.name, &path)? {
        Some(directory) => directory,
        None => return Ok(()),
    };
    check_ours(&above, &directory, &path)?;
    if let Some(file) = socket_file
        && kind(&directory, file) == Ok(FileType::Socket)
    {
        unlink(&directory, file, &path.join(file), asker)?;
    }
    asker.check(&path)?;
    match rustix::fs::unlinkat(&above, &*last.name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => leave(&Place { base: place.base.clone(), steps: way.to_vec() }, asker),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Trouble::new(path, leftovers(&directory))),
        Err(error) => Err(Trouble::of(path, error)),
    }
}

/// Removes the directory above those of allocations after the last of them, if it is ours.
fn leave(place: &Place, asker: &Asker) -> Result<(), Trouble> {
    let Some((last, way)) = place.steps.split_last() else { return Ok(()) };
    let above = Place { base: place.base.clone(), steps: way.to_vec() };
    let (Some(above), path) = (find(&above)?, place.path()) else { return Ok(()) };
    let Some(directory) = enter_if_there(&above, &last.name, &path)? else { return Ok(()) };
    if check_ours(&above, &directory, &path).is_err() {
        return Ok(());
    }
    asker.check(&path)?;
    match rustix::fs::unlinkat(&above, &*last.name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(error) => Err(Trouble::of(path, error)),
    }
}

/// Removes the dead sockets and empty directories of allocations whose host was killed, except those of the `kept` allocations.
/// Call it while none of the others runs. Returns what stays, and why.
pub async fn sweep(layout: &Layout, kept: &[AllocationId]) -> Vec<String> {
    let kept: BTreeSet<PathBuf> = kept
        .iter()
        .flat_map(|allocation| layout.socket_places(allocation))
        .map(|place| place.path())
        .collect();
    let mut left = Vec::new();
    for parent in layout.socket_parents() {
        let path = parent.path();
        let listed = blocking(move |_| Ok(names(&path))).await.unwrap_or_default();
        let places = listed.iter().map(|name| parent.clone().inner(name));
        for place in places.filter(|place| !kept.contains(&place.path())) {
            left.extend(sweep_away(place).await.err().map(Trouble::left));
        }
        left.extend(blocking(move |asker| leave(&parent, asker)).await.err().map(Trouble::left));
    }
    left
}

/// Removes the dead sockets and empty directories of these allocations, whose host was killed. Sockets with a listening process stay.
/// Call it while none of them can be started. Returns what else stays, and why.
pub async fn clear(layout: &Layout, allocations: &[AllocationId]) -> Vec<String> {
    let mut left = Vec::new();
    for place in allocations.iter().flat_map(|allocation| layout.socket_places(allocation)) {
        let socket = SocketPath::new(place.path().join(SOCKET_FILE).to_string_lossy());
        let is_live = match &socket {
            Ok(socket) => is_listened_on(socket).await.unwrap_or(true),
            Err(_too_long) => false,
        };
        if !is_live {
            let removed = blocking(move |asker| take_away(&place, Some(SOCKET_FILE), asker)).await;
            left.extend(removed.err().map(Trouble::left));
        }
    }
    left
}

/// The allocations that have left directories and no longer run, except the `kept` ones: their host was killed, and nothing listens for
/// them. Call it before they are swept.
pub async fn departed(layout: &Layout, kept: &[AllocationId]) -> Vec<AllocationId> {
    let mut departed = BTreeSet::new();
    for parent in layout.socket_parents() {
        let path = parent.path();
        let listed = blocking(move |_| Ok(names(&path))).await.unwrap_or_default();
        let ids = listed.iter().filter_map(|name| AllocationId::new(name).ok());
        for id in ids.filter(|id| !kept.contains(id)) {
            if has_ended(layout, &id, &parent).await {
                departed.insert(id);
            }
        }
    }
    departed.into_iter().collect()
}

/// Whether a directory below this parent is that of an allocation for which nothing listens.
async fn has_ended(layout: &Layout, id: &AllocationId, parent: &Place) -> bool {
    let own = parent.clone().inner(id.as_str()).path();
    let places = layout.socket_places(id).map(|place| place.path());
    if !places.contains(&own) {
        return false;
    }
    for place in places {
        let socket = SocketPath::new(place.join(SOCKET_FILE).to_string_lossy());
        if let Ok(socket) = socket
            && is_listened_on(&socket).await.unwrap_or(true)
        {
            return false;
        }
    }
    true
}

async fn sweep_away(place: Place) -> Result<(), Trouble> {
    let path = place.path();
    let socket = SocketPath::new(path.join(SOCKET_FILE).to_string_lossy());
    // A path that is too long for a socket has no listener.
    if let Ok(socket) = socket
        && is_listened_on(&socket).await?
    {
        return Err(Trouble::new(path, "a process listens there"));
    }
    blocking(move |asker| take_away(&place, Some(SOCKET_FILE), asker)).await
}

/// The names in a directory, except those that are not UTF-8, which are not ours.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Opens a place; `None` if it does not exist.
fn find(place: &Place) -> Result<Option<OwnedFd>, Trouble> {
    let mut path = place.base.clone();
    let mut at = match reach(&path) {
        Ok(at) => at,
        Err(DataDirError::System { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Trouble::new(path, error.to_string())),
    };
    for step in &place.steps {
        path.push(&step.name);
        match enter_if_there(&at, &step.name, &path)? {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn enter_if_there(at: &OwnedFd, name: &str, path: &Path) -> Result<Option<OwnedFd>, Trouble> {
    match kind(at, name) {
        Err(Errno::NOENT) => Ok(None),
        Ok(_) => enter(at, name, path).map(Some),
        Err(error) => Err(Trouble::of(path, error)),
    }
}

/// Refuses a directory of another user, and a mount point.
fn check_ours(above: &OwnedFd, directory: &OwnedFd, path: &Path) -> Result<(), Trouble> {
    let outer = rustix::fs::fstat(above).map_err(|error| Trouble::of(path, error))?;
    let inner = rustix::fs::fstat(directory).map_err(|error| Trouble::of(path, error))?;
    if outer.st_dev != inner.st_dev {
        return Err(Trouble::new(path, "something is mounted on it; unmount it, then remove it"));
    }
    check_owner(&inner, path)
}

/// Lists the files in a directory that are not ours.
fn leftovers(directory: &OwnedFd) -> String {
    let names: Vec<String> = match Dir::read_from(directory) {
        Ok(entries) => entries.flatten().map(|entry| shown(entry.file_name())).collect(),
        Err(error) => return format!("it is not empty, and cannot be read: {error}"),
    };
    let mut names: Vec<String> = names.into_iter().filter(|name| name != "." && name != "..").collect();
    names.sort();
    let more = match names.len().saturating_sub(LEFTOVERS_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(LEFTOVERS_NAMED);
    format!("it still holds {}{more}; look what it is and remove it by hand", names.join(", "))
}

fn shown(name: &CStr) -> String {
    quoted(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A data directory, a runtime directory, and a layout with sockets in the second if the name of the first is long.
    fn layout(base: &Path, data_dir: &str) -> (Layout, PathBuf) {
        let (data_dir, runtime_dir) = (base.join(data_dir), base.join("run"));
        fs::create_dir_all(&data_dir).unwrap();
        fs::create_dir_all(&runtime_dir).unwrap();
        (Layout::new(data_dir, &runtime_dir).unwrap(), runtime_dir)
    }

    fn swept(layout: &Layout, kept: &[AllocationId]) -> Vec<String> {
        block_on(sweep(layout, kept))
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    }

    fn made(place: &Place) -> PathBuf {
        fs::create_dir_all(place.path()).unwrap();
        place.path().join(SOCKET_FILE)
    }

    fn id(name: &str) -> AllocationId {
        AllocationId::new(name).unwrap()
    }

    #[test]
    fn dead_sockets_of_unknown_allocations_go_with_their_directories_wherever_they_are_sec_02() {
        let base = tempfile::tempdir().unwrap();
        let (layout, runtime_dir) = layout(base.path(), "data");
        let [direct, short] = layout.socket_places(&id("a1")).map(|place| made(&place));
        drop((UnixListener::bind(&direct).unwrap(), UnixListener::bind(&short).unwrap()));
        assert_eq!(swept(&layout, &[]), Vec::<String>::new());
        assert_eq!(fs::read_dir(runtime_dir).unwrap().count(), 0);
        assert_eq!(fs::read_dir(base.path().join("data/csi")).unwrap().count(), 0);
    }

    #[test]
    fn known_allocations_living_sockets_and_files_of_others_stay_and_the_last_two_are_named_sec_02() {
        let base = tempfile::tempdir().unwrap();
        let (layout, _) = layout(base.path(), "data");
        let [known, living, foreign] = ["known", "living", "foreign"].map(|name| {
            let [direct, _] = layout.socket_places(&id(name));
            made(&direct)
        });
        drop(UnixListener::bind(&known).unwrap());
        let _plugin = UnixListener::bind(&living).unwrap();
        let note = foreign.with_file_name("note");
        fs::write(&note, "").unwrap();
        let mut left = swept(&layout, &[id("known")]);
        left.sort();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[0].contains("/foreign was left: it still holds note"), "{left:?}");
        assert!(left[1].contains("/living was left: a process listens there"), "{left:?}");
        assert!(known.exists() && living.exists() && note.exists());
    }

    #[test]
    fn those_that_left_directories_and_that_nothing_listens_for_have_departed_v14() {
        let base = tempfile::tempdir().unwrap();
        let (layout, _) = layout(base.path(), "data");
        let [kept, living, dead] = ["kept", "living", "dead"].map(|name| {
            let [direct, _] = layout.socket_places(&id(name));
            made(&direct)
        });
        drop((UnixListener::bind(&kept).unwrap(), UnixListener::bind(&dead).unwrap()));
        let _plugin = UnixListener::bind(&living).unwrap();
        let departed = block_on(departed(&layout, &[id("kept")]));
        assert_eq!(departed, [id("dead")]);
        assert!(dead.exists(), "it is only looked at");
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_not_followed_and_named_sec_02() {
        let base = tempfile::tempdir().unwrap();
        let (layout, _) = layout(base.path(), "data");
        let [direct, _] = layout.socket_places(&id("a1"));
        let elsewhere = base.path().join("elsewhere");
        fs::create_dir_all(&elsewhere).unwrap();
        drop(UnixListener::bind(elsewhere.join(SOCKET_FILE)).unwrap());
        fs::create_dir_all(direct.path().parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&elsewhere, direct.path()).unwrap();
        assert!(swept(&layout, &[])[0].contains("it is a link or not a directory"));
        assert!(elsewhere.join(SOCKET_FILE).exists() && direct.path().is_symlink());
    }
}
