//! Which host is meant.

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

/// The place by which the user named the host.
impl fmt::Display for TargetArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.socket.iter().chain(&self.data_dir).chain(&self.config);
        named.into_iter().try_for_each(|path| write!(f, "{}", path.display()))
    }
}

/// Why no host can be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    /// The configuration that should say where it is cannot be used.
    #[error("{}{}or name the host by --data-dir or --socket", .0, joint(.0))]
    Config(#[from] ConfigError),
    /// It is not there, or did not answer as it was asked to.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// It has not opened its admin socket yet, or has closed it, or that was removed.
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

/// What joins the advice to an error: a list of problems has a line for each, and the advice has the last one.
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
    /// The admin socket of the host that is meant.
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

    /// Why the host could not be asked, where it is there nevertheless: one that starts has locked its data directory before it listens.
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

/// What is found of a host that does not listen.
#[derive(Debug)]
enum Instead<H, E> {
    /// A process has locked its data directory.
    Holder(H),
    /// Its data directory was removed or replaced while it runs.
    Replaced(E),
    Nothing,
}

/// Looks for a host that does not listen. One that starts may take its locks between the two looks, and would then seem to have lost its
/// data directory; so the first look is repeated before that is said.
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

/// Which host is meant by a command that can do without one.
#[derive(Debug)]
pub(super) enum Place {
    /// The one with this data directory, and what its configuration says if that was named.
    Directory(PathBuf, Option<Box<Config>>),
    /// The one behind this socket.
    Socket(SocketPath),
}

impl TargetArgs {
    /// The host that is meant, whether it runs or not.
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

/// A path as the user means it, from where the user is.
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
