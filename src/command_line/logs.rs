//! Prints what tasks, allocations and drivers have written: `callboard logs`.
//!
//! The files are read from disk, whether a host runs or not. A running host is asked only for its data directory, or for the known names if
//! no file has the given name.

mod find;
mod last;
mod write;

use std::io;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use callboard_actors::logmon::LogReader;
use clap::Args;

use self::find::{Found, Names, find};
pub(super) use self::last::{LogName, last_lines};
use self::write::Writer;
use super::report_error;
use super::target::{Place, TargetArgs, TargetError};
use crate::admin::{AdminClient, AdminError, find_socket};
use crate::output::{self, Reader};

/// How many bytes are read at once.
const PIECE_BYTES: usize = 64 * 1_024;
/// The poll interval of a log that is followed.
const FOLLOW_PAUSE: Duration = Duration::from_millis(200);

/// What can be said to `logs`.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// The name of a task, an allocation or a driver; task/NAME, allocation/NAME or driver/NAME if a name is ambiguous
    name: String,

    #[command(flatten)]
    target: TargetArgs,

    /// Follow the log as it grows, over rotations and restarts, until interrupted
    #[arg(short, long)]
    follow: bool,

    /// Print what a task writes to its standard error instead of its standard output; a driver's is always printed
    #[arg(long)]
    stderr: bool,

    /// Begin with this many last lines
    #[arg(long, value_name = "LINES")]
    tail: Option<u64>,

    /// Print each line as a JSON object
    #[arg(long)]
    json: bool,
}

/// Why no log is printed.
#[derive(Debug, thiserror::Error)]
enum LogsError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("cannot read the logs below {data_dir}: {source}")]
    Unreadable { data_dir: String, source: io::Error },
    #[error("cannot read the log of {name}: {source}")]
    Log { name: String, source: io::Error },
    #[error("{0} has no logs yet")]
    NothingYet(String),
    #[error("there is neither a task nor an allocation nor a driver named {name:?}{advice}")]
    Unknown { name: String, advice: String },
    #[error("{name:?} is ambiguous: {choices}; name one of them")]
    Ambiguous { name: String, choices: String },
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl From<AdminError> for LogsError {
    fn from(error: AdminError) -> Self {
        Self::Target(TargetError::Admin(error))
    }
}

impl LogsError {
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Target(error) => error.exit_code(),
            _ => 1,
        }
    }
}

/// `callboard logs NAME`
pub(super) fn logs(args: &LogsArgs) -> ExitCode {
    match print(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_error(&error, error.exit_code()),
    }
}

fn print(args: &LogsArgs) -> Result<(), LogsError> {
    let place = args.target.place()?;
    let data_dir = match &place {
        Place::Directory(data_dir, _) => data_dir.clone(),
        Place::Socket(socket) => {
            let status = asked(async { AdminClient::connect(socket).await?.status().await })?;
            status.host.map(|host| host.data_dir).unwrap_or_default().into()
        }
    };
    let search = || {
        find(&data_dir, &args.name, args.stderr).map_err(|source| {
            let data_dir = data_dir.display().to_string();
            LogsError::Unreadable { data_dir, source }
        })
    };
    let mut found = search()?;
    if found.is_empty() {
        let names = known_names(&place)?;
        let Some(what) = names.what(&args.name) else {
            return Err(LogsError::Unknown { name: args.name.clone(), advice: names.advice(&args.name) });
        };
        if !args.follow {
            return Err(LogsError::NothingYet(what));
        }
        while found.is_empty() {
            sleep(FOLLOW_PAUSE);
            found = search()?;
        }
    }
    let log = match <[Found; 1]>::try_from(found) {
        Ok([log]) => log,
        Err(several) => {
            let choices: Vec<_> = several.iter().map(Found::full_name).collect();
            return Err(LogsError::Ambiguous { name: args.name.clone(), choices: choices.join(", ") });
        }
    };
    copy(args, &log)
}

/// Prints one log, and follows it if requested.
fn copy(args: &LogsArgs, log: &Found) -> Result<(), LogsError> {
    let failed = |source| LogsError::Log { name: log.full_name(), source };
    let place = log.place.clone();
    let reader = match args.tail {
        Some(lines) => LogReader::from_tail(place, lines),
        None => LogReader::from_start(place),
    };
    let mut reader = reader.map_err(failed)?;
    if !reader.is_there() && !args.follow {
        return Err(LogsError::NothingYet(log.full_name()));
    }
    let mut writer = Writer::new(args.json, log);
    let mut piece = vec![0; PIECE_BYTES];
    let mut skipped = 0;
    loop {
        let count = reader.read(&mut piece).map_err(failed)?;
        if reader.skipped() > skipped {
            skipped = reader.skipped();
            output::complain("callboard: a part of this log was removed before it was read");
        }
        let listens = if count > 0 { writer.write(&piece[..count])? } else { writer.pause()? };
        if listens == Reader::HasLeft {
            return Ok(());
        }
        if count == 0 {
            if !args.follow {
                writer.finish()?;
                return Ok(());
            }
            sleep(FOLLOW_PAUSE);
        }
    }
}

/// The known names: those of the configuration, and those of a running host.
fn known_names(place: &Place) -> Result<Names, LogsError> {
    let mut names = Names::default();
    let socket = match place {
        Place::Socket(socket) => Some(socket.clone()),
        Place::Directory(data_dir, config) => {
            if let Some(config) = config {
                names.add_config(config);
            }
            find_socket(data_dir).ok()
        }
    };
    let status = socket.map(|socket| asked(async { AdminClient::connect(&socket).await?.status().await }));
    // The host need not run.
    if let Some(Ok(status)) = status {
        names.add_status(&status);
    }
    Ok(names)
}

/// Waits for an answer of a host.
fn asked<T>(asking: impl Future<Output = Result<T, AdminError>>) -> Result<T, LogsError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(asking)?)
}
