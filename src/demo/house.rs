//! The temporary directory of the demo, and the configuration in it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use callboard_actors::vocabulary::SocketPath;
use serde_json::Value;
use tempfile::TempDir;

use super::error::DemoError;

/// The plugin that all allocations of the demo serve.
pub(super) const PLUGIN: &str = "hostpath";
/// Two allocations that are ready at once.
pub(super) const BLUE: &str = "blue";
/// The other one.
pub(super) const GREEN: &str = "green";
/// An allocation that is not ready for a while.
pub(super) const LATE: &str = "late";

/// How much of the log is shown when something goes wrong.
const LOG_LINES_SHOWN: usize = 20;

/// The directory that holds everything.
#[derive(Debug)]
pub(super) struct House {
    directory: TempDir,
    socket: SocketPath,
    /// Our own program.
    pub(super) program: PathBuf,
}

impl House {
    /// Makes the directory and writes the configuration. It is removed again with its contents, unless it is to be kept.
    pub(super) fn build(keep: bool) -> Result<Self, DemoError> {
        let of_temporary =
            |source| DemoError::File { what: "make a directory in", path: env::temp_dir(), source };
        let program = env::current_exe()
            .map_err(|source| DemoError::Start { program: PathBuf::from("/proc/self/exe"), source })?;
        let mut directory = TempDir::with_prefix("callboard-demo-").map_err(of_temporary)?;
        directory.disable_cleanup(keep);
        let path = directory.path().join("admin.sock");
        let socket =
            SocketPath::new(path.to_string_lossy()).map_err(|source| DemoError::Socket { path, source })?;
        let house = Self { directory, socket, program };
        let (config, text) = (house.config(), house.config_text());
        fs::write(&config, text).map_err(|source| DemoError::File { what: "write", path: config, source })?;
        Ok(house)
    }

    /// Where everything lies.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The configuration of the host.
    pub(super) fn config(&self) -> PathBuf {
        self.path().join("host.toml")
    }

    /// The admin socket of the host.
    pub(super) const fn socket(&self) -> &SocketPath {
        &self.socket
    }

    /// What the host logs.
    pub(super) fn log(&self) -> PathBuf {
        self.path().join("host.log")
    }

    fn config_text(&self) -> String {
        let quoted = |path: &Path| quoted(&path.to_string_lossy());
        let mut text = format!(
            "# Made by `callboard demo`. Start it with `callboard run --config {}`.\n\
             data_dir = {}\nadmin_socket = {}\n\n\
             [restart]\nattempts = 10\nwindow = \"1m\"\ndelay = \"1s\"\n",
            self.config().display(),
            quoted(&self.path().join("data")),
            quoted(self.socket().as_path()),
        );
        for (name, more) in [(BLUE, ""), (GREEN, ""), (LATE, ", \"--ready-after\", \"3s\"")] {
            text += &format!(
                "\n[[allocation]]\nname = \"{name}\"\nplugin = \"{PLUGIN}\"\ntype = \"monolith\"\n\
                 command = [{}, \"plugin\", \"hostpath\"{more}]\nhealth_timeout = \"20s\"\nstart = false\n",
                quoted(&self.program),
            );
        }
        text
    }

    /// The last lines that the host logged.
    pub(super) fn log_end(&self) -> String {
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        let end = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
        if end.is_empty() { "(it is empty)".to_owned() } else { end.join("\n") }
    }

    /// Every socket file below the directory.
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

/// A text in quotes. What JSON escapes, TOML reads.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::config::Config;

    #[test]
    fn the_configuration_of_the_demo_is_well_formed() {
        let house = House::build(false).unwrap();
        let config = Config::load(&house.config()).unwrap();
        let names: Vec<_> = config.allocations.iter().map(|found| found.name.to_string()).collect();
        assert_eq!(names, [BLUE, GREEN, LATE]);
        assert!(config.allocations.iter().all(|found| !found.start));
        assert_eq!(config.admin_socket.unwrap().to_string(), house.socket().to_string());
    }

    #[test]
    fn sockets_are_found_wherever_they_lie_and_the_directory_leaves_nothing_behind() {
        let house = House::build(false).unwrap();
        assert_eq!(house.sockets().unwrap(), Vec::<PathBuf>::new());
        let below = house.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let socket = below.join("s.sock");
        drop(UnixListener::bind(&socket).unwrap());
        assert_eq!(house.sockets().unwrap(), [socket]);
        let path = house.path().to_owned();
        drop(house);
        assert!(!path.exists());
    }
}
