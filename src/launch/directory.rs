//! The data directory of a host: checked before anything is opened in it, and monitored while the host runs.

use std::sync::Arc;
use std::time::Duration;

use actix_rt::task::spawn_blocking;
use callboard_actors::datadir::{DataDir, DataDirError, Lost, reach};
use callboard_actors::ownership::{check_path, default_marks_dir};
use callboard_actors::persister::LOCK_FILE;
use tokio::sync::watch;
use tokio::time::sleep;

use super::options::Options;
use crate::host::{HostEnd, StartError};

/// How often it is checked that the directory is still there.
const PAUSE: Duration = Duration::from_secs(2);

/// Opens the directory, unless the database is in memory, and checks the runtime directory. A refusal of the system is returned inside: in
/// most cases the database cannot be opened either, and its error explains the consequences.
pub(super) async fn open(options: &Options) -> Result<Result<Option<DataDir>, DataDirError>, StartError> {
    if options.disk.is_some() {
        return Ok(Ok(None));
    }
    let (data_dir, runtime_dir) = (options.data_dir.clone(), options.runtime_dir());
    let opened = spawn_blocking(move || {
        // The directory of a running host is locked, unless it was removed or replaced.
        let marks = (!data_dir.join(LOCK_FILE).exists()).then(default_marks_dir).flatten();
        if let Some(marks) = marks {
            check_path(&data_dir, &marks)?;
        }
        // Few hosts need a missing runtime directory, and they check it again.
        if let Err(error) = reach(&runtime_dir)
            && !matches!(error, DataDirError::System { .. })
        {
            return Err(StartError::from(error));
        }
        match DataDir::open(&data_dir) {
            Err(error @ DataDirError::System { .. }) => Ok(Err(error)),
            opened => Ok(Ok(Some(opened?))),
        }
    });
    opened.await.map_err(|error| StartError::Ended(error.to_string()))?
}

/// Reports whether the directory is lost, from now until the host has ended.
pub(super) fn watch(
    directory: Option<DataDir>,
    mut ended: watch::Receiver<Option<HostEnd>>,
) -> watch::Receiver<Option<Lost>> {
    let (tell, lost) = watch::channel(None);
    let Some(directory) = directory.map(Arc::new) else { return lost };
    actix_rt::spawn(async move {
        tokio::select! {
            // An error means that the host did not start.
            _ = ended.wait_for(Option::is_some) => {}
            () = look_after(directory, tell) => {}
        }
    });
    lost
}

async fn look_after(directory: Arc<DataDir>, tell: watch::Sender<Option<Lost>>) {
    loop {
        sleep(PAUSE).await;
        let looked = Arc::clone(&directory);
        let Ok(found) = spawn_blocking(move || looked.check()).await else { return };
        let found = found.err();
        if tell.send_if_modified(|known| std::mem::replace(known, found) != found) {
            match found {
                Some(lost) => tracing::error!(error = lost.told(), "the data directory is lost"),
                None => tracing::info!("the data directory is in its place again"),
            }
        }
    }
}
