//! The socket file of a host: created with its mode from the first instant, and never taken from a process that uses it (SEC-02).

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use callboard_actors::datadir::reach_or_make;
use callboard_actors::vocabulary::SocketPath;
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::UnixListener;

use super::claim::{Claim, lock_of};
use super::error::SocketError;
use super::place::{SOCKET_FILE, short_directory};

/// The length of the queue of pending connections.
const BACKLOG: i32 = 64;
/// How many times the directory of a socket may be removed while the socket is being claimed.
const ATTEMPTS: u32 = 16;
/// How long to wait for a socket at a claimed place to refuse connections, and the pause between two attempts. A process that a killed host
/// was just starting has a copy of its socket for an instant. The attempts wait in its queue.
const TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// Only the owner may connect.
const SOCKET_MODE: u32 = 0o600;

/// A socket file of ours, and the link to it if there is one. It is removed by a call of `remove`.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: SocketPath,
    /// Device and inode, by which it is recognised.
    file: (u64, u64),
    link: Option<PathBuf>,
    /// The claims on the places of both.
    claims: Vec<Claim>,
}

impl SocketFile {
    /// Listens on a path, in place of a dead socket of ours if there is one.
    pub(super) fn listen(path: &SocketPath, data_dir: &Path) -> Result<(Self, UnixListener), SocketError> {
        let (place, inside) = (path.as_path(), data_dir.join(SOCKET_FILE));
        let mut claims = vec![claim_in_its_directory(place)?];
        make_way(place, &inside)?;
        // Where the socket is elsewhere, a link in the data directory leads there.
        let link = (inside != place).then_some(inside);
        if let Some(link) = &link {
            claims.push(claim(link)?);
            make_way(link, link)?;
        }
        let listener = bind(path).map_err(|source| system("listen on", place, source))?;
        let file = file_at(place).map_err(|source| system("look at", place, source))?;
        let listening = Self { path: path.clone(), file, link: None, claims };
        let Some(link) = link else { return Ok((listening, listener)) };
        if let Err(source) = std::os::unix::fs::symlink(place, &link) {
            listening.remove();
            return Err(system("make", &link, source));
        }
        Ok((Self { link: Some(link), ..listening }, listener))
    }

    /// Removes the socket, the link to it, and its short directory. Files that another process has put in their place stay.
    pub(super) fn remove(self) {
        let Self { path, file, link, claims } = self;
        let place = path.as_path();
        let removed = match file_at(place) {
            Ok(found) if found == file => std::fs::remove_file(place),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(%path, %error, "cannot remove the admin socket");
        }
        if let Some(link) = link.filter(|link| std::fs::read_link(link).is_ok_and(|to| to == place))
            && let Err(error) = std::fs::remove_file(&link)
        {
            tracing::warn!(path = %link.display(), %error, "cannot remove the link to the admin socket");
        }
        // The locks are in the same directory.
        drop(claims);
        if let Some(directory) = short_directory(place)
            && let Err(error) = std::fs::remove_dir(directory)
            && !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty)
        {
            tracing::warn!(path = %directory.display(), %error, "cannot remove the directory of the admin socket");
        }
    }
}

fn system(what: &'static str, path: &Path, source: io::Error) -> SocketError {
    SocketError::System { what, path: path.to_owned(), source }
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

fn ours() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the directory of the socket if it does not exist. No other user may be able to replace our socket.
fn make_directory(directory: &Path) -> Result<(), SocketError> {
    Ok(reach_or_make(directory).map(drop)?)
}

/// Makes the directory of a place and claims the place. A host that ends may remove the directory in between.
fn claim_in_its_directory(place: &Path) -> Result<Claim, SocketError> {
    let mut attempts = 0;
    loop {
        make_directory(place.parent().unwrap_or(Path::new("/")))?;
        match claim(place) {
            Err(SocketError::System { source, .. })
                if source.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS =>
            {
                attempts += 1;
            }
            claimed => return claimed,
        }
    }
}

/// Claims a place, so that no other host changes it.
fn claim(place: &Path) -> Result<Claim, SocketError> {
    let claim = Claim::take(place).map_err(|source| system("lock", &lock_of(place), source))?;
    claim.ok_or_else(|| in_use(place, connect(place).ok().as_ref()))
}

/// Removes a dead socket of ours at a claimed place. A socket is dead if it refuses a connection. The link in the data directory was left
/// by an earlier run, whatever it points to.
fn make_way(place: &Path, link: &Path) -> Result<(), SocketError> {
    let found = match std::fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(system("look at", place, source)),
        Ok(found) => found,
    };
    if found.uid() != ours() {
        return Err(SocketError::NotOurs { path: place.to_owned(), owner: found.uid(), ours: ours() });
    }
    let is_link = found.file_type().is_symlink();
    if !found.file_type().is_socket() && !is_link {
        return Err(SocketError::NotASocket { path: place.to_owned() });
    }
    let remove = || std::fs::remove_file(place).map_err(|source| system("remove", place, source));
    if is_link && place == link {
        tracing::info!(path = %place.display(), "removing the link to the socket of an earlier host");
        return remove();
    }
    match connect_for_a_while(place) {
        Ok(stream) => Err(in_use(place, Some(&stream))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(in_use(place, None)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused || is_link => {
            tracing::info!(path = %place.display(), "removing the socket of a dead host");
            remove()
        }
        Err(source) => Err(system("connect to", place, source)),
    }
}

/// Connects to the listener at a place, if it still listens after a while.
fn connect_for_a_while(place: &Path) -> io::Result<UnixStream> {
    let begun = Instant::now();
    loop {
        let connected = connect(place);
        let is_full = connected.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if begun.elapsed() >= TIMEOUT || !(is_full || connected.is_ok()) {
            return connected;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Connects without waiting for the listener. [`io::ErrorKind::WouldBlock`] if its queue is full.
fn connect(place: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(place)?)?;
    Ok(socket.into())
}

fn in_use(place: &Path, stream: Option<&UnixStream>) -> SocketError {
    let peer = stream.and_then(|stream| rustix::net::sockopt::socket_peercred(stream).ok());
    let pid = peer.map_or_else(|| "unknown".to_owned(), |peer| peer.pid.as_raw_nonzero().to_string());
    SocketError::InUse { path: place.to_owned(), pid }
}

/// Binds with the mode set before the file exists: the kernel gives the file the mode of the socket, so that at no instant another user can
/// connect.
fn bind(path: &SocketPath) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::from_bits_truncate(SOCKET_MODE))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path.as_path())?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    UnixListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener as Listener;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Barrier, Mutex};

    use super::*;

    struct Stage {
        directory: tempfile::TempDir,
        runtime: tokio::runtime::Runtime,
    }

    impl Stage {
        fn new() -> Self {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            Self {
                directory: tempfile::tempdir().expect("a directory"),
                runtime: runtime.expect("a runtime"),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn data_dir(&self, name: &str) -> PathBuf {
            let data_dir = self.path(name);
            std::fs::create_dir(&data_dir).expect("a directory");
            data_dir
        }

        fn listen(&self, path: &Path, data_dir: &Path) -> Result<(SocketFile, UnixListener), SocketError> {
            let _entered = self.runtime.enter();
            SocketFile::listen(&SocketPath::new(path.to_string_lossy()).expect("a path"), data_dir)
        }

        /// The file names in a directory.
        fn names(&self, directory: &str) -> Vec<String> {
            let entries = std::fs::read_dir(self.path(directory)).expect("it is there");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("it is there").file_name().into_string().expect("text"))
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn of_hosts_that_start_at_once_one_has_the_socket_and_keeps_it_sec_02() {
        const HOSTS: usize = 4;
        let stage = Stage::new();
        // A host that ends also removes the directory.
        let socket = stage.path("callboard-admin-1/admin.sock");
        let (begun, ended) = (Barrier::new(HOSTS), Barrier::new(HOSTS));
        let data_dirs: Vec<_> = (0..HOSTS).map(|host| stage.data_dir(&host.to_string())).collect();
        let (listening, problems) = (AtomicU32::new(0), Mutex::new(Vec::new()));
        let problem = |problem: String| problems.lock().expect("no host panics").push(problem);
        let host = |data_dir: &Path| {
            for round in 0..50 {
                begun.wait();
                let listener = stage.listen(&socket, data_dir);
                listening.fetch_add(u32::from(listener.is_ok()), Ordering::SeqCst);
                ended.wait();
                let count = listening.load(Ordering::SeqCst);
                if count != 1 {
                    problem(format!("{count} hosts listen in round {round}"));
                }
                if let Ok((file, _listener)) = listener {
                    if let Err(error) = UnixStream::connect(&socket) {
                        problem(format!("no host is reached in round {round}: {error}"));
                    }
                    // In every other round it is killed, and its socket stays behind.
                    if round % 2 == 0 {
                        file.remove();
                    }
                }
                begun.wait();
                listening.store(0, Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| {
            for data_dir in &data_dirs {
                scope.spawn(|| host(data_dir));
            }
        });
        assert_eq!(problems.into_inner().expect("no host panics"), Vec::<String>::new());
    }

    #[test]
    fn a_copy_of_the_socket_of_a_killed_host_that_a_process_drops_as_it_starts_is_no_living_host_sec_02() {
        let stage = Stage::new();
        let data_dir = stage.data_dir("data");
        let socket = stage.path("admin.sock");
        let copy = Listener::bind(&socket).expect("it listens");
        let (file, _listener) = std::thread::scope(|scope| {
            // The process starts while the next host looks.
            scope.spawn(move || copy.accept().expect("the next host looks").1);
            stage.listen(&socket, &data_dir).expect("no process listens any more")
        });
        UnixStream::connect(&socket).expect("the next host listens");
        file.remove();
    }

    #[test]
    fn nothing_is_left_of_a_socket_and_its_link() {
        let stage = Stage::new();
        let data_dir = stage.data_dir("data");
        let (file, _listener) = stage.listen(&stage.path("run/a.sock"), &data_dir).expect("it listens");
        assert_eq!(std::fs::read_link(data_dir.join(SOCKET_FILE)).expect("a link"), stage.path("run/a.sock"));
        file.remove();
        assert_eq!((stage.names("data"), stage.names("run")), (vec![], vec![]));

        let short = stage.path("callboard-admin-1");
        let (file, _listener) = stage.listen(&short.join(SOCKET_FILE), &data_dir).expect("it listens");
        std::fs::write(short.join("strange"), "").expect("a file");
        file.remove();
        assert_eq!(stage.names("callboard-admin-1"), ["strange"], "what is not ours stays");
        std::fs::remove_file(short.join("strange")).expect("it is there");
        let (file, _listener) = stage.listen(&short.join(SOCKET_FILE), &data_dir).expect("it listens");
        file.remove();
        assert!(!short.exists());
    }

    #[test]
    fn a_link_that_leads_elsewhere_by_now_is_not_removed_sec_02() {
        let stage = Stage::new();
        let data_dir = stage.data_dir("data");
        let (file, _listener) = stage.listen(&stage.path("run/a.sock"), &data_dir).expect("it listens");
        let link = data_dir.join(SOCKET_FILE);
        std::fs::remove_file(&link).expect("it is there");
        std::os::unix::fs::symlink("/run/elsewhere.sock", &link).expect("a link");
        file.remove();
        assert_eq!(std::fs::read_link(&link).expect("it is there"), Path::new("/run/elsewhere.sock"));
    }

    #[test]
    fn a_living_socket_in_the_place_of_the_link_is_left_alone_sec_02() {
        let stage = Stage::new();
        let data_dir = stage.data_dir("data");
        let _other = Listener::bind(data_dir.join(SOCKET_FILE)).expect("a socket");
        let refused = stage.listen(&stage.path("run/a.sock"), &data_dir).expect_err("it is in use");
        let pid = format!("(pid {})", std::process::id());
        assert!(refused.to_string().contains(&pid), "{refused}");
        UnixStream::connect(data_dir.join(SOCKET_FILE)).expect("it listens as before");
        assert_eq!(stage.names("run"), Vec::<String>::new());
    }

    #[test]
    fn a_socket_that_is_bound_and_does_not_listen_yet_is_its_hosts_sec_02() {
        let stage = Stage::new();
        let (data_dir, place) = (stage.data_dir("data"), stage.path("a.sock"));
        let _starting = claim(&place).expect("it is free");
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&socket, &SocketAddrUnix::new(&place).expect("a path")).expect("it is bound");
        let refused = stage.listen(&place, &data_dir).expect_err("it is in use");
        assert!(refused.to_string().contains("listens on"), "{refused}");
        assert!(place.exists());
    }

    #[test]
    fn the_link_of_an_earlier_run_makes_way_wherever_it_leads() {
        let stage = Stage::new();
        let data_dir = stage.data_dir("data");
        let (elsewhere, place) = (stage.path("other.sock"), data_dir.join(SOCKET_FILE));
        let _other = Listener::bind(&elsewhere).expect("a socket");
        std::os::unix::fs::symlink(&elsewhere, &place).expect("a link");
        let _listening = stage.listen(&place, &data_dir).expect("it listens");
        assert!(file_at(&place).is_ok_and(|file| file_at(&elsewhere).is_ok_and(|other| other != file)));
    }
}
