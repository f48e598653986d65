//! Selects the host of a command.

use std::fmt;
use std::path::{Path, PathBuf};

use callboard_actors::ownership::{OwnershipError, check_path, default_marks_dir};
use callboard_actors::persister::{Holder, holder_of};
use callboard_actors::vocabulary::SocketPath;
use clap::Args;

use crate::admin::{AdminError, find_socket};
use crate::config::{Config, ConfigError};

/// Says which host is asked; one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct TargetArgs {
    /// The admin socket of the host
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// The data directory of the host
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// The configuration that the host runs
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The argument by which the user named the host.
impl fmt::Display for TargetArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.socket.iter().chain(&self.data_dir).chain(&self.config);
        named.into_iter().try_for_each(|path| write!(f, "{}", path.display()))
    }
}

/// Why no host can be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    /// The configuration that should name its directory cannot be used.
    #[error("{}{}or name the host by --data-dir or --socket", .0, joint(.0))]
    Config(#[from] ConfigError),
    /// It does not run, or did not answer as requested.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// It has not opened its admin socket yet, has closed it, or the socket was removed.
    #[error(
        "the host {holder} has the data directory {} and does not answer: it is starting or ending, or its admin socket was removed; while \
         it waits for its disk or for a repair of its database, its log says so",
        data_dir.display()
    )]
    NotAnswering {
        /// The data directory.
        data_dir: PathBuf,
        /// The host.
        holder: Holder,
    },
    /// Its data directory was removed or replaced while it runs, and its socket with it.
    #[error(transparent)]
    Replaced(OwnershipError),
}

/// The separator between an error and the advice: a list of problems has a line for each, and the advice is the last line.
const fn joint(error: &ConfigError) -> &'static str {
    match error {
        ConfigError::Problems { .. } => "\n",
        ConfigError::Unreadable { .. } | ConfigError::TooLong { .. } => "; ",
    }
}

impl TargetError {
    /// The exit code for it.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Admin(_) | Self::NotAnswering { .. } | Self::Replaced(_) => 1,
        }
    }
}

impl TargetArgs {
    /// The admin socket of the selected host.
    pub(super) fn socket(&self) -> Result<SocketPath, TargetError> {
        if let Some(socket) = &self.socket {
            return absolute(socket);
        }
        if let Some(data_dir) = &self.data_dir {
            return Ok(find_socket(data_dir)?);
        }
        let config = self.config.clone().expect("the parser sees to it that one of the three is given");
        let config = Config::load_to_ask(&config)?;
        match config.admin_socket {
            Some(socket) => Ok(socket),
            None => Ok(find_socket(&config.data_dir)?),
        }
    }

    /// Why the host could not be reached although it exists: a host that starts locks its data directory before it listens.
    pub(super) fn explained(&self, error: AdminError) -> TargetError {
        if !matches!(error, AdminError::NoHost { .. } | AdminError::Dead { .. }) {
            return error.into();
        }
        let Ok(Place::Directory(data_dir, _)) = self.place() else { return error.into() };
        let check = || default_marks_dir().map_or(Ok(()), |marks| check_path(&data_dir, &marks));
        match found_instead(|| holder_of(&data_dir), check) {
            Instead::Holder(holder) => TargetError::NotAnswering { data_dir, holder },
            Instead::Replaced(replaced) => TargetError::Replaced(replaced),
            Instead::Nothing => error.into(),
        }
    }
}

/// The evidence of a host that does not listen.
#[derive(Debug)]
enum Instead<H, E> {
    /// A process has locked its data directory.
    Holder(H),
    /// Its data directory was removed or replaced while it runs.
    Replaced(E),
    Nothing,
}

/// Looks for a host that does not listen. A host that starts may take its locks between the two looks, and would then seem to have lost its
/// data directory. Therefore the first look is repeated before that is reported.
fn found_instead<H, E>(
    holder: impl Fn() -> Option<H>,
    check: impl FnOnce() -> Result<(), E>,
) -> Instead<H, E> {
    if let Some(holder) = holder() {
        return Instead::Holder(holder);
    }
    match check() {
        Ok(()) => Instead::Nothing,
        Err(replaced) => holder().map_or(Instead::Replaced(replaced), Instead::Holder),
    }
}

/// The host of a command that also works without a running host.
#[derive(Debug)]
pub(super) enum Place {
    /// The host with this data directory, and its configuration if that was given.
    Directory(PathBuf, Option<Box<Config>>),
    /// The host behind this socket.
    Socket(SocketPath),
}

impl TargetArgs {
    /// The selected host, whether it runs or not.
    pub(super) fn place(&self) -> Result<Place, TargetError> {
        if let Some(socket) = &self.socket {
            return Ok(Place::Socket(absolute(socket)?));
        }
        if let Some(config) = &self.config {
            let config = Config::load_to_ask(config)?;
            return Ok(Place::Directory(config.data_dir.clone(), Some(Box::new(config))));
        }
        let data_dir = self.data_dir.clone().expect("the parser sees to it that one of the three is given");
        let failed = |source| AdminError::Connect { path: data_dir.clone(), source };
        Ok(Place::Directory(std::path::absolute(&data_dir).map_err(failed)?, None))
    }
}

/// Makes a path of the user absolute, from the user's working directory.
fn absolute(path: &Path) -> Result<SocketPath, TargetError> {
    let failed = |source| AdminError::Connect { path: path.to_owned(), source };
    let path = std::path::absolute(path).map_err(failed)?;
    Ok(SocketPath::new(path.to_string_lossy()).map_err(AdminError::Path)?)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_host_that_starts_between_both_looks_has_not_lost_its_data_directory() {
        let looks = Cell::new(0);
        let starting = || {
            looks.set(looks.get() + 1);
            (looks.get() > 1).then_some("pid 7")
        };
        assert!(matches!(found_instead(starting, || Err("replaced")), Instead::Holder("pid 7")));
        assert!(matches!(found_instead(|| None::<()>, || Err("replaced")), Instead::Replaced("replaced")));
        assert!(matches!(found_instead(|| None::<()>, || Ok::<_, ()>(())), Instead::Nothing));
    }
}
