//! The temporary directory of the demo, with its configuration.

mod volumes;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use callboard_actors::mounts::mounts_of_this_process;
use callboard_actors::vocabulary::SocketPath;
use rustix::mount::UnmountFlags;
use serde_json::Value;
use tempfile::TempDir;

use super::error::DemoError;
use crate::output::complain;

pub(super) use self::volumes::{
    COPIER, COPY, DATA, FileObserver, Hold, LEDGER, LEFT, PAGE_FILE, RIGHT, STORAGE_1, STORAGE_2,
};

/// The plugin of all allocations in the demo.
pub(super) const PLUGIN: &str = "hostpath";
/// The first of two allocations that are ready at once.
pub(super) const BLUE: &str = "blue";
/// The second one.
pub(super) const GREEN: &str = "green";
/// The driver in the second part.
pub(super) const DRIVER: &str = "exec";
/// A task that runs until it is stopped.
pub(super) const WEB: &str = "web";
/// A task that ends by itself.
pub(super) const BATCH: &str = "batch";
/// An allocation that becomes ready late.
pub(super) const LATE: &str = "late";

/// The number of log lines shown after an error.
const LOG_LINES_SHOWN: usize = 20;

/// The directory with everything.
#[derive(Debug)]
pub(super) struct Workspace {
    directory: TempDir,
    socket: SocketPath,
    /// Our own program.
    pub(super) program: PathBuf,
    /// The environment variable, with its value, of all processes that outlive a host but must not outlive the demo.
    host_mark: (&'static str, String),
    part: Part,
}

/// The present part of the demo; each has a host of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The storage plugin.
    Storage,
    /// The driver.
    Driver,
    /// Volumes, with both.
    Volumes,
}

impl Workspace {
    /// Creates the directory and writes the configuration. The directory is removed on drop, unless `keep` is set.
    pub(super) fn build(keep: bool, host_mark: (&'static str, String)) -> Result<Self, DemoError> {
        let of_temporary =
            |source| DemoError::File { what: "make a directory in", path: env::temp_dir(), source };
        let program = env::current_exe()
            .map_err(|source| DemoError::Start { program: PathBuf::from("/proc/self/exe"), source })?;
        let mut directory = TempDir::with_prefix("callboard-demo-").map_err(of_temporary)?;
        directory.disable_cleanup(keep);
        let path = directory.path().join("admin.sock");
        let socket =
            SocketPath::new(path.to_string_lossy()).map_err(|source| DemoError::Socket { path, source })?;
        let workspace = Self { directory, socket, program, host_mark, part: Part::Storage };
        workspace.write_config(&workspace.config_text())?;
        Ok(workspace)
    }

    /// Switches to the second part: another configuration, with a data directory of its own.
    pub(super) fn open_second_part(&mut self) -> Result<(), DemoError> {
        self.part = Part::Driver;
        self.write_config(&self.config_text_of_driver())
    }

    fn write_config(&self, text: &str) -> Result<(), DemoError> {
        let path = self.config();
        fs::write(&path, text).map_err(|source| DemoError::File { what: "write", path, source })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn config(&self) -> PathBuf {
        self.path().join(match self.part {
            Part::Storage => "host.toml",
            Part::Driver => "driver.toml",
            Part::Volumes => "volumes.toml",
        })
    }

    pub(super) const fn socket(&self) -> &SocketPath {
        &self.socket
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path().join("host.log")
    }

    /// The beginning of all configurations.
    fn config_head(&self, data_dir: &str) -> String {
        format!(
            "# Made by `callboard demo`. Start it with `callboard run --config {}`.\n\
             data_dir = {}\nadmin_socket = {}\n\n\
             [restart]\nattempts = 10\nwindow = \"1m\"\ndelay = \"1s\"\n",
            self.config().display(),
            quoted_path(&self.path().join(data_dir)),
            quoted_path(self.socket().as_path()),
        )
    }

    fn config_text(&self) -> String {
        let mut text = self.config_head("data");
        for (name, more) in [(BLUE, ""), (GREEN, ""), (LATE, ", \"--ready-after\", \"3s\"")] {
            text += &format!(
                "\n[[allocation]]\nname = \"{name}\"\nplugin = \"{PLUGIN}\"\ntype = \"monolith\"\n\
                 command = [{}, \"plugin\", \"hostpath\"{more}]\nhealth_timeout = \"20s\"\nstart = false\n",
                quoted_path(&self.program),
            );
        }
        text
    }

    /// The driver, which outlives its hosts.
    fn config_of_driver(&self) -> String {
        let (variable, value) = &self.host_mark;
        format!(
            "\n[[driver]]\nname = \"{DRIVER}\"\nsurvives = true\nenv = {{ {variable} = {} }}\n",
            quoted(value),
        )
    }

    /// The driver with its two tasks: shells that write down their process ids when they start.
    fn config_text_of_driver(&self) -> String {
        let (variable, value) = &self.host_mark;
        let mut text = self.config_head("data-of-driver") + &self.config_of_driver();
        let work = [(WEB, "exec sleep 600"), (BATCH, "until [ -e \"$DONE\" ]; do sleep 0.05; done")];
        for (name, work) in work {
            text += &format!(
                "\n[[task]]\nname = \"{name}\"\ndriver = \"{DRIVER}\"\nstart = false\n\
                 env = {{ {variable} = {}, STARTS = {}, DONE = {} }}\n\
                 config = {{ command = \"/bin/sh\", args = [\"-c\", {}] }}\n",
                quoted(value),
                quoted_path(&self.starts_file(name)),
                quoted_path(&self.done_file()),
                quoted(&format!("echo $$ >> \"$STARTS\"; {work}")),
            );
        }
        text
    }

    /// The environment variable of all processes that must not outlive the demo.
    pub(super) fn host_mark(&self) -> (&'static str, &str) {
        (self.host_mark.0, &self.host_mark.1)
    }

    fn starts_file(&self, task: &str) -> PathBuf {
        self.path().join(format!("{task}.starts"))
    }

    fn done_file(&self) -> PathBuf {
        self.path().join("done")
    }

    /// The process ids of a task's starts, from the task's own file.
    pub(super) fn starts(&self, task: &str) -> Vec<String> {
        let text = fs::read_to_string(self.starts_file(task)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Lets the task `batch` end.
    pub(super) fn finish_batch(&self) -> Result<(), DemoError> {
        let path = self.done_file();
        fs::write(&path, "").map_err(|source| DemoError::File { what: "write", path, source })
    }

    pub(super) fn log_end(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let end = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
        if end.is_empty() { "(it is empty)".to_owned() } else { end.join("\n") }
    }

    pub(super) fn sockets(&self) -> Result<Vec<PathBuf>, DemoError> {
        let mut sockets = Vec::new();
        find_sockets(self.path(), &mut sockets).map_err(|source| DemoError::File {
            what: "look through",
            path: self.path().to_owned(),
            source,
        })?;
        Ok(sockets)
    }
}

impl Drop for Workspace {
    /// Killed tasks leave mounts in their directories. While a mount stays, nothing is removed: it may show other files.
    fn drop(&mut self) {
        let mount_points = self.data_dir_of_volumes().join("csi");
        if let Err(error) = unmount_below(self.directory.path()) {
            self.directory.disable_cleanup(true);
            let path = self.directory.path().display();
            complain(&format!("callboard: {path} is left, since its mounts cannot be removed: {error}"));
        } else if let Err(error) = open_directories(&mount_points) {
            let path = self.directory.path().display();
            complain(&format!("callboard: {path} may be left, since {error}"));
        }
    }
}

/// Opens directories to their owner: mount points of volumes are closed to all users except root while nothing is mounted there.
fn open_directories(directory: &Path) -> io::Result<()> {
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    fs::read_dir(directory)?.try_for_each(|entry| open_directories(&entry?.path()))
}

fn unmount_below(directory: &Path) -> io::Result<()> {
    let table = mounts_of_this_process()?;
    // The kernel names mount points without links.
    for mount in table.at_or_below(&directory.canonicalize()?) {
        // A killed process may use it for another instant.
        rustix::mount::unmount(&mount.mount_point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)?;
    }
    Ok(())
}

fn find_sockets(directory: &Path, sockets: &mut Vec<PathBuf>) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            find_sockets(&entry.path(), sockets)?;
        } else if kind.is_socket() {
            sockets.push(entry.path());
        }
    }
    Ok(())
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// Quotes a text for TOML, as JSON does.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::config::Config;

    fn workspace() -> Workspace {
        Workspace::build(false, ("HOST_MARK", "held".to_owned())).unwrap()
    }

    #[test]
    fn the_configuration_of_the_demo_is_well_formed() {
        let mut workspace = workspace();
        let config = Config::load(&workspace.config()).unwrap();
        let names: Vec<_> = config.allocations.iter().map(|found| found.name.to_string()).collect();
        assert_eq!(names, [BLUE, GREEN, LATE]);
        assert!(config.allocations.iter().all(|found| !found.start));
        assert_eq!(config.admin_socket.unwrap().to_string(), workspace.socket().to_string());
        workspace.open_second_part().unwrap();
        let config = Config::load(&workspace.config()).unwrap();
        let names: Vec<_> = config.tasks.iter().map(|found| found.name.to_string()).collect();
        assert_eq!((names, config.drivers.len()), (vec![WEB.to_owned(), BATCH.to_owned()], 1));
        assert!(config.drivers[0].survives && config.tasks.iter().all(|found| !found.start));
        assert_eq!(config.drivers[0].environment["HOST_MARK"], "held");
        workspace.open_third_part().unwrap();
        let config = Config::load(&workspace.config()).unwrap();
        let names: Vec<_> = config.tasks.iter().map(|found| found.name.to_string()).collect();
        assert_eq!(names, [LEFT, RIGHT, COPIER]);
        let names: Vec<_> = config.allocations.iter().map(|found| found.name.to_string()).collect();
        assert_eq!((names, config.volumes.len()), (vec![STORAGE_1.to_owned(), STORAGE_2.to_owned()], 2));
        assert!(config.tasks.iter().all(|found| !found.start && !found.volumes.is_empty()));
    }

    #[test]
    fn the_directory_is_removed_with_mount_points_that_are_closed() {
        let workspace = workspace();
        let staging = workspace.data_dir_of_volumes().join("csi/node/hostpath/staging/default/data/rw");
        fs::create_dir_all(&staging).unwrap();
        fs::set_permissions(&staging, fs::Permissions::from_mode(0o000)).unwrap();
        let path = workspace.path().to_owned();
        drop(workspace);
        assert!(!path.exists());
    }

    #[test]
    fn sockets_are_found_wherever_they_lie_and_the_directory_leaves_nothing_behind() {
        let workspace = workspace();
        assert_eq!(workspace.sockets().unwrap(), Vec::<PathBuf>::new());
        let below = workspace.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let socket = below.join("s.sock");
        drop(UnixListener::bind(&socket).unwrap());
        assert_eq!(workspace.sockets().unwrap(), [socket]);
        let path = workspace.path().to_owned();
        drop(workspace);
        assert!(!path.exists());
    }
}
