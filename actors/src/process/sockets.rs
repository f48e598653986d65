//! The private directory for the sockets of a plugin and of its descendants (D8, T030).
//!
//! A task driver's executors inherit the variable that names this directory, bind there too, and must be found at the same
//! path by the next process of that driver, in this run of the host or a later one. So the directory belongs to the *name*
//! of a process and not to one launch. Only sockets that no process has open are removed, and the directory only when it is
//! empty, no record names it, and no living process knows it (TH030, TH031).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::ProcessName;
use super::look;
use super::open_sockets::closed_among;
use crate::datadir::{self, reach};
use crate::goplugin::{Handshake, HandshakeError, HandshakeTerms, SOCKET_DIR_VARIABLE};
use crate::vocabulary::hex;

const DIRECTORY: &str = "sockets";
/// A file beside the directories of processes: the short directory that was used first, so that every later run uses it too.
const SHORT_CHOICE: &str = "short-directory";
/// The limit of attempts to create the directory of a process.
const MAKE_ATTEMPTS: u32 = 10;

#[derive(Debug, Clone)]
pub(super) struct Places<'a> {
    /// The parent of the directories of processes.
    pub(super) processes: &'a Path,
    /// The parent directory for sockets if their path would be too long there.
    pub(super) short: &'a Path,
    /// The owner id of the data directory.
    pub(super) owner: &'a str,
}

impl Places<'_> {
    /// The socket directory of this process: in its own directory or, if that path is too long, below the short one.
    pub(super) fn of(&self, name: &ProcessName) -> PathBuf {
        let direct = self.processes.join(name.as_str()).join(DIRECTORY);
        if HandshakeTerms::nomad(Some(direct.clone())).check().is_ok() {
            return direct;
        }
        let digest: [u8; 32] = Sha256::digest(name.as_str().as_bytes()).into();
        self.short_own().join(hex(&digest[..8]))
    }

    /// Whether a socket directory at this path belongs to any process of ours.
    pub(super) fn holds(&self, directory: &Path) -> bool {
        directory.starts_with(self.processes) || directory.starts_with(self.short_own())
    }

    fn short_own(&self) -> PathBuf {
        self.short.join(format!("callboard-{}", self.owner))
    }

    fn all(&self) -> Vec<PathBuf> {
        let direct = children(self.processes).into_iter().map(|directory| directory.join(DIRECTORY));
        direct.filter(|directory| directory.is_dir()).chain(children(&self.short_own())).collect()
    }
}

fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

/// The short directory of this data directory: the one that was used first if it still exists, otherwise this one. The
/// default depends on the environment, which may differ from run to run.
pub(super) fn settled_short(processes: &Path, wanted: PathBuf) -> PathBuf {
    let chosen = fs::read_to_string(processes.join(SHORT_CHOICE)).map(PathBuf::from);
    chosen.ok().filter(|chosen| chosen.is_absolute() && chosen.is_dir()).unwrap_or(wanted)
}

/// Creates the private directory of a process that is about to be launched. Dead sockets in it are removed.
pub(super) fn begin(places: &Places<'_>, name: &ProcessName) -> io::Result<PathBuf> {
    let place = places.of(name);
    if !place.starts_with(places.processes) {
        reach(places.short).map_err(io::Error::other)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut choice = datadir::open_file(&places.processes.join(SHORT_CHOICE), flags, 0o600)?;
        choice.write_all(places.short.as_os_str().as_encoded_bytes())?;
    }
    let parent = place.parent().unwrap_or(Path::new("/"));
    // Another process that ends may remove the empty parent in between.
    let make_both = || make(parent).and_then(|()| make(&place));
    let is_over =
        |made: &io::Result<()>| !made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    (1..MAKE_ATTEMPTS).map(|_| make_both()).find(is_over).unwrap_or_else(make_both)?;
    collect(&place);
    Ok(place)
}

/// Accepts a handshake unless its socket is in the directory of another process of this host.
pub(super) fn placed(
    handshake: Handshake,
    places: &Places<'_>,
    name: &ProcessName,
) -> Result<Handshake, HandshakeError> {
    let Some(path) = handshake.endpoint.socket_path() else { return Ok(handshake) };
    // A missing directory contains no socket; the connect will show that.
    let directory = path.parent().and_then(|directory| directory.canonicalize().ok());
    if directory.is_some_and(|directory| places.holds(&directory) && !directory.starts_with(places.of(name)))
    {
        return Err(HandshakeError::foreign_place(path));
    }
    Ok(handshake)
}

/// Removes the sockets that no process has open. Other files stay.
pub(super) fn collect(place: &Path) {
    if let Err(error) = remove_dead(place)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(directory = %place.display(), %error, "cannot remove old sockets of a plugin");
    }
}

/// Removes these directories, unless a living process knows one of them or has a socket there open.
pub(super) fn retire(places: &Places<'_>, left: &[PathBuf]) -> io::Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let told = look::values_of(SOCKET_DIR_VARIABLE)?;
    for place in left.iter().filter(|place| !told.contains(place.as_os_str())) {
        collect(place);
        match datadir::remove_dir(place) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => {}
            outcome => outcome.map_err(|error| named(place, &error))?,
        }
    }
    // It may contain the directories of other processes, and it is created again for the next one.
    let _ = fs::remove_dir(places.short_own());
    Ok(())
}

/// Removes the directories without a record, at the start of a host.
pub(super) fn sweep(places: &Places<'_>, recorded: &[ProcessName]) {
    let recorded: BTreeSet<PathBuf> = recorded.iter().map(|name| places.of(name)).collect();
    let left: Vec<PathBuf> = places.all().into_iter().filter(|place| !recorded.contains(place)).collect();
    if let Err(error) = retire(places, &left) {
        tracing::warn!(%error, "cannot remove socket directories of plugins that are gone");
    }
}

fn make(directory: &Path) -> io::Result<()> {
    datadir::check(directory).map_err(io::Error::other)?;
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(named(directory, &io::ErrorKind::InvalidInput.into()));
    };
    let above = datadir::enter(parent, OFlags::PATH).map_err(|error| named(parent, &error))?;
    match rustix::fs::mkdirat(&above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(named(directory, &error.into())),
    }
    let found = rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW);
    let found = found.map_err(|error| named(directory, &error.into()))?;
    let us = rustix::process::geteuid().as_raw();
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if is_directory && found.st_uid == us && found.st_mode & 0o077 == 0 {
        return Ok(());
    }
    let problem = "it is no directory of ours that is closed to others (0700); remove it";
    Err(named(directory, &io::Error::new(io::ErrorKind::PermissionDenied, problem)))
}

fn named(directory: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
}

fn remove_dead(directory: &Path) -> io::Result<()> {
    datadir::check(directory).map_err(io::Error::other)?;
    let mut sockets = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_socket() {
            sockets.push(entry.path());
        }
    }
    closed_among(sockets)?.iter().try_for_each(|socket| datadir::remove_file(socket))
}

#[cfg(test)]
mod tests {
    use std::fs::DirBuilder;
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn name() -> ProcessName {
        ProcessName::new("driver-exec").expect("a good name")
    }

    fn places(processes: &Path) -> Places<'_> {
        Places { processes, short: Path::new("/run"), owner: "0011" }
    }

    fn above() -> (tempfile::TempDir, PathBuf) {
        let above = tempfile::tempdir().expect("a directory");
        let processes = above.path().to_owned();
        DirBuilder::new().mode(0o700).create(processes.join("driver-exec")).expect("it can be made");
        (above, processes)
    }

    #[test]
    fn the_sockets_lie_with_the_process_or_below_the_short_directory_when_that_is_too_long_sec_01() {
        let at = |directory: &str| places(Path::new(directory)).of(&name());
        assert_eq!(at("/var/p"), Path::new("/var/p/driver-exec/sockets"));
        let short = at(&format!("/var/{}", "x".repeat(200)));
        assert!(short.starts_with("/run/callboard-0011"), "{short:?}");
        HandshakeTerms::nomad(Some(short)).check().expect("it is short enough");
    }

    #[test]
    fn the_short_directory_is_the_same_in_every_run_as_long_as_it_is_there_th030() {
        let (_above, processes) = above();
        let (first, second) = (processes.join("first"), processes.join("second"));
        fs::create_dir(&first).expect("it can be made");
        assert_eq!(settled_short(&processes, first.clone()), first);
        fs::write(processes.join(SHORT_CHOICE), first.as_os_str().as_encoded_bytes()).expect("room");
        assert_eq!(settled_short(&processes, second.clone()), first);
        fs::remove_dir(&first).expect("it is empty");
        assert_eq!(settled_short(&processes, second.clone()), second);
    }

    #[test]
    fn sockets_that_no_process_has_open_go_and_everything_else_stays_th030() {
        let (_above, processes) = above();
        let places = places(&processes);
        let place = begin(&places, &name()).expect("it can be made");
        drop(UnixListener::bind(place.join("dead")).expect("a socket"));
        let executor = UnixListener::bind(place.join("executor")).expect("a socket");
        fs::write(place.join("note"), "not ours").expect("it can be written");
        let listed = || {
            let entries = fs::read_dir(&place).expect("it is there").filter_map(Result::ok);
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(begin(&places, &name()).expect("it can be used again"), place);
        assert_eq!(listed(), ["executor", "note"]);
        sweep(&places, &[]);
        assert_eq!(listed(), ["executor", "note"]);
        drop(executor);
        fs::remove_file(place.join("note")).expect("it is there");
        sweep(&places, &[name()]);
        assert!(place.exists(), "a record names it");
        sweep(&places, &[]);
        assert!(!place.exists());
    }

    #[test]
    fn the_short_directory_goes_with_the_last_of_its_processes_and_comes_again() {
        let (above, _) = above();
        let processes = above.path().join("long".repeat(30));
        fs::create_dir(&processes).expect("it can be made");
        let short = above.path().join("run");
        fs::create_dir(&short).expect("it can be made");
        let places = Places { processes: &processes, short: &short, owner: "0011" };
        let other = ProcessName::new("driver-other").expect("a good name");
        let [first, second] = [name(), other].map(|name| begin(&places, &name).expect("it can be made"));
        retire(&places, std::slice::from_ref(&first)).expect("it can be removed");
        assert!(!first.exists() && second.exists());
        retire(&places, &[second]).expect("it can be removed");
        assert_eq!(children(&short), [] as [PathBuf; 0]);
        assert_eq!(begin(&places, &name()).expect("it can be made again"), first);
    }

    #[test]
    fn a_directory_that_a_living_process_was_told_of_stays_th030() {
        let (_above, processes) = above();
        let places = places(&processes);
        let place = begin(&places, &name()).expect("it can be made");
        let mut told = std::process::Command::new("/bin/sleep")
            .arg("1000")
            .env(SOCKET_DIR_VARIABLE, &place)
            .spawn()
            .expect("a process");
        sweep(&places, &[]);
        assert!(place.exists(), "it may bind there at any moment");
        told.kill().expect("it runs");
        told.wait().expect("it ends");
        sweep(&places, &[]);
        assert!(!place.exists());
    }

    #[test]
    fn a_directory_that_others_may_enter_or_that_leads_elsewhere_is_refused_sec_02() {
        let above = tempfile::tempdir().expect("a directory");
        let open = above.path().join("driver-exec");
        DirBuilder::new().mode(0o700).create(&open).expect("it can be made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let elsewhere = tempfile::tempdir().expect("a directory");
        symlink(&open, elsewhere.path().join("driver-exec")).expect("it can be made");
        for processes in [above.path(), elsewhere.path()] {
            let refused = begin(&places(processes), &name()).expect_err("others may enter");
            assert!(refused.to_string().contains("closed to others"), "{refused}");
        }
    }
}
