//! The host of the demo: a real `callboard run` in a process of its own.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use callboard_proto::admin::v1::{Said, WatchResponse};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::error::DemoError;
use super::namespace::Namespace;
use super::process_watcher::ProcessWatcher;
use super::workspace::Workspace;
use crate::admin::{AdminClient, AdminError, Told};

/// The timeout for a host to serve its admin socket.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The polling interval meanwhile.
const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// The timeout for the end of a host after a kill or a shutdown.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// A process of `callboard run`. It is killed on drop, and by the kernel when the demo dies.
#[derive(Debug)]
pub(super) struct HostProcess {
    child: Child,
    watcher: ProcessWatcher,
}

impl HostProcess {
    /// Starts it, in a namespace if there is one. Its log goes to standard error if `verbose`, else to a file.
    pub(super) fn start(
        workspace: &Workspace,
        namespace: Option<&Namespace>,
        verbose: bool,
    ) -> Result<Self, DemoError> {
        let failed = |source| DemoError::Start { program: workspace.program.clone(), source };
        let child = command(workspace, namespace, verbose)?.spawn().map_err(failed)?;
        let watcher = ProcessWatcher::of("host", child.id().unwrap_or_default())?;
        Ok(Self { child, watcher })
    }

    pub(super) const fn watcher(&self) -> &ProcessWatcher {
        &self.watcher
    }

    /// Waits for its end, with a timeout.
    pub(super) async fn ended(&mut self) -> Option<ExitStatus> {
        timeout(END_TIMEOUT, self.child.wait()).await.ok()?.ok()
    }

    /// Polls the admin socket until it is served, or the host has ended.
    pub(super) async fn connect(&mut self, workspace: &Workspace) -> Result<Wire, DemoError> {
        let given_up = Instant::now() + START_TIMEOUT;
        loop {
            match AdminClient::connect(workspace.socket()).await {
                Ok(client) => return Wire::open(client).await,
                Err(AdminError::NoHost { .. } | AdminError::Dead { .. }) => {}
                Err(error) => return Err(asked("connect to the host")(error)),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let (log, directory) = (workspace.log_end(), workspace.path().to_owned());
                return Err(DemoError::HostNotStarted { how: told(status), log, directory });
            }
            if Instant::now() >= given_up {
                let (log, directory) = (workspace.log_end(), workspace.path().to_owned());
                return Err(DemoError::HostSilent { timeout: START_TIMEOUT, log, directory });
            }
            sleep(LOOK_PAUSE).await;
        }
    }
}

/// The streams from the host.
#[derive(Debug)]
pub(super) struct Wire {
    /// Its status and all changes.
    pub(super) watch: Told<WatchResponse>,
    /// Its timeline of messages.
    pub(super) timeline: Told<Said>,
}

impl Wire {
    async fn open(mut client: AdminClient) -> Result<Self, DemoError> {
        let watch = client.watch().await.map_err(asked("watch the host"))?;
        let timeline = client.timeline(false).await.map_err(asked("follow the timeline of the host"))?;
        Ok(Self { watch, timeline })
    }
}

fn command(
    workspace: &Workspace,
    namespace: Option<&Namespace>,
    verbose: bool,
) -> Result<Command, DemoError> {
    let log = if verbose {
        Stdio::inherit()
    } else {
        let failed = |source| DemoError::File { what: "write", path: workspace.log(), source };
        File::options().create(true).append(true).open(workspace.log()).map_err(failed)?.into()
    };
    let mut command = Command::new(&workspace.program);
    if let Some(namespace) = namespace {
        command.args(namespace.arguments()).arg(&workspace.program);
    }
    // The kernel kills the host when the demo dies, and the plugins when the host dies.
    command.arg("bound").arg("--parent").arg(std::process::id().to_string()).arg("--");
    command.arg(&workspace.program).arg("run").arg("--config").arg(workspace.config());
    // In a process group of its own: Ctrl-C reaches only the demo, which then ends the host.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0).kill_on_drop(true);
    // The log writer outlives the host by design, and must not outlive the demo.
    let (variable, value) = workspace.host_mark();
    command.env(variable, value);
    Ok(command)
}

/// The exit status in words.
pub(super) fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Converts the error of a request.
pub(super) fn asked(what: &str) -> impl FnOnce(AdminError) -> DemoError {
    let what = what.to_owned();
    move |source| DemoError::Asked { what, source }
}
