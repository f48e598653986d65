//! The database of a host, as a part of the host: opened before the others start, closed when all writers have ended.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::persister::{self, CloseError, OpenError, Persister, WRITE_DEADLINE};
use callboard_actors::shell::{Ending, Running, StopMode, Vitals};
use callboard_actors::supervisor::{Child, ChildDescription};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::options::Options;
use super::part::{AnyPart, spec};
use crate::host::Unwritten;

const NAME: &str = "persister";
/// How long the database may take to write the accepted changes to disk.
const STOP_DEADLINE: Duration = Duration::from_secs(10);
/// How long to wait at the end for a disk that does not respond.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// Opens it at the configured location.
pub(super) async fn open(options: &Options) -> Result<Persister, OpenError> {
    let place = match &options.disk {
        Some(disk) => disk.hold(options.data_dir.clone()),
        None => persister::Options::new(options.data_dir.clone()),
    };
    let options = persister::Options { disk: options.disk_health.clone(), ..place };
    let data_dir = options.data_dir.clone();
    let mut opening = pin!(Persister::open(options));
    if let Ok(opened) = timeout(WRITE_DEADLINE, &mut opening).await {
        return opened;
    }
    tracing::warn!(
        data_dir = %data_dir.display(),
        "the database is not open yet: its disk does not answer, or it is being repaired; what needs it waits"
    );
    opening.await
}

/// Closes the database of a host that does not start after all.
pub(super) async fn close(database: Persister) {
    if let Err(error) = database.close().await {
        tracing::warn!(%error, "cannot close the database of a host that failed to start");
    }
}

/// The database is already open when the supervisor starts, so an error of it is an error of the host's start. It is opened again when it
/// must be restarted, and `tell` notifies all actors that store something which database is open at present.
pub(super) fn part(
    options: &Options,
    database: Persister,
    tell: watch::Sender<Option<Persister>>,
) -> AnyPart {
    let options = options.clone();
    let make = move |_: &_| child(options.clone(), database.clone(), tell.clone());
    AnyPart { name: NAME.to_owned(), after: vec![], make: Arc::new(make), reserve: None }
}

fn child(options: Options, database: Persister, tell: watch::Sender<Option<Persister>>) -> Child {
    let seen = tell.subscribe();
    let mut opened = Some(database);
    let child = Child::new(spec(NAME, NAME, STOP_DEADLINE), move || {
        let (opened, tell, options) = (opened.take(), tell.clone(), options.clone());
        async move {
            let database = match opened {
                Some(database) => database,
                None => open(&options).await.map_err(|error| error.to_string())?,
            };
            Ok(hold_open(database, tell))
        }
    });
    child.described_by(move || {
        let mailbox_depth = seen.borrow().as_ref().map_or(0, Persister::depth);
        let vitals = Vitals { mailbox_depth, ..Vitals::default() };
        std::future::ready(Some(ChildDescription { vitals, ..ChildDescription::default() }))
    })
}

/// The loss comes first, since a long ending is truncated.
fn not_closed(database: &Persister, error: &CloseError) -> String {
    match error {
        CloseError::NotWritten { writes, reason, .. } => {
            format!("{writes} writes{} are lost: {reason}", Unwritten::of(&database.unwritten()).aside())
        }
        CloseError::Ended { .. } => error.to_string(),
    }
}

fn not_answered(database: &Persister) -> String {
    format!(
        "{} writes{} may be lost: the disk of {} has not answered for {CLOSE_DEADLINE:?}",
        database.depth(),
        Unwritten::of(&database.unwritten()).aside(),
        database.path().display()
    )
}

/// Keeps the database open until a stop request, then closes it after all accepted changes. This child ends with the persister itself.
/// persister itself is that of this child.
fn hold_open(database: Persister, present: watch::Sender<Option<Persister>>) -> Running {
    let stop = Rc::new(Notify::new());
    let stopped = Rc::clone(&stop);
    let (tell, ended) = watch::channel(None);
    present.send_replace(Some(database.clone()));
    let task = actix_rt::spawn(async move {
        let has_ended = tokio::select! {
            biased;
            () = stopped.notified() => false,
            () = database.ended() => true,
        };
        // From now on readers wait for the next database.
        present.send_replace(None);
        let ending = if has_ended {
            Ending::Failed("the writer of the database has ended unexpectedly".to_owned())
        } else {
            match timeout(CLOSE_DEADLINE, database.close()).await {
                Ok(Ok(())) => Ending::Normal,
                Ok(Err(error)) => Ending::Failed(not_closed(&database, &error)),
                Err(_) => Ending::Failed(not_answered(&database)),
            }
        };
        tell.send_replace(Some(ending));
    });
    let request_stop = move |_: StopMode| stop.notify_one();
    Running::new(request_stop, task.abort_handle(), ended)
}
