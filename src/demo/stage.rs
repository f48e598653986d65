//! The stage: chapters act on it and observe the result.

mod processes;
mod requests;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use callboard_proto::admin::v1::watch_response::News;
use callboard_proto::admin::v1::{ChildEnding, Said};
use tokio::time::{Instant, timeout};

use super::check::{Check, Look, Tally};
use super::error::DemoError;
use super::host::{HostProcess, Wire, asked, told};
use super::mounted::Mounted;
use super::namespace::Namespace;
use super::process_watcher::ProcessWatcher;
use super::status_view::StatusView;
use super::workspace::Workspace;
use crate::admin::AdminError;
use crate::output::{Palette, Reader, Tone, print};
use crate::process::Keeper;
use crate::timeline::Page;

/// The timeout for each expected result.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// Before a chapter draws conclusions, the timeline is shown until no line has arrived for this time.
const QUIET: Duration = Duration::from_millis(80);
/// The limit for that.
const QUIET_AT_LAST: Duration = Duration::from_millis(600);
/// The polling interval for files and mounts.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The data that a check can observe.
#[derive(Debug, Default)]
pub(super) struct Scene {
    /// The host's status.
    pub(super) status: StatusView,
    /// The timeline since the step began.
    pub(super) said: Vec<Said>,
}

#[derive(Debug)]
pub(super) struct Stage {
    /// The temporary directory.
    pub(super) workspace: Workspace,
    /// The present observations.
    pub(super) scene: Scene,
    /// All processes of plugins and tasks seen so far.
    pub(super) watchers: Vec<ProcessWatcher>,
    /// The results of the checks so far.
    pub(super) tally: Tally,
    /// Why a part of the demo was not shown.
    pub(super) not_shown: Option<String>,
    keeper: Option<Keeper>,
    namespace: Option<Namespace>,
    host: Option<HostProcess>,
    wire: Option<Wire>,
    page: Page,
    palette: Palette,
    verbose: bool,
    chapters: usize,
}

impl Stage {
    pub(super) fn new(workspace: Workspace, keeper: Keeper, palette: Palette, verbose: bool) -> Self {
        Self {
            workspace,
            scene: Scene::default(),
            watchers: Vec::new(),
            tally: Tally::default(),
            not_shown: None,
            keeper: Some(keeper),
            namespace: None,
            host: None,
            wire: None,
            page: Page::new(palette),
            palette,
            verbose,
            chapters: 0,
        }
    }

    /// Begins a chapter: prints its title and its announcement.
    pub(super) fn chapter(&mut self, title: &str, what: &str) -> Result<(), DemoError> {
        self.chapters += 1;
        let title = self.palette.paint(Tone::Strong, &format!("{}. {title}", self.chapters));
        self.print(&format!("\n{title}\n   {}\n", what.replace('\n', "\n   ")))
    }

    /// Makes the namespace in which all later hosts run. The text is the reason why the system refuses it.
    pub(super) async fn enter_namespace(&mut self) -> Result<Result<(), String>, DemoError> {
        let made = Namespace::make(&self.workspace.program).await?;
        Ok(made.map(|namespace| self.namespace = Some(namespace)))
    }

    /// The mounts of a volume in that namespace.
    pub(super) fn mounted(&self, volume: &str) -> Result<Mounted, DemoError> {
        let table = self.namespace.as_ref().ok_or(DemoError::NoHost)?.mounts()?;
        Ok(Mounted::of(&table, &self.workspace.volumes_dir()?, volume))
    }

    /// Starts the host, and subscribes to its streams.
    pub(super) async fn start_host(&mut self) -> Result<(), DemoError> {
        self.scene = Scene::default();
        let host =
            self.host.insert(HostProcess::start(&self.workspace, self.namespace.as_ref(), self.verbose)?);
        let message = format!("run as process {}", host.watcher().pid);
        self.you("host", &message)?;
        let host = self.host.as_mut().ok_or(DemoError::NoHost)?;
        self.wire = Some(host.connect(&self.workspace).await?);
        Ok(())
    }

    /// Closes the streams of the host, whose end is expected from now on.
    pub(super) fn hang_up(&mut self) -> Result<&mut HostProcess, DemoError> {
        self.wire = None;
        self.host.as_mut().ok_or(DemoError::NoHost)
    }

    /// Begins a step: earlier lines of the timeline no longer count.
    pub(super) fn step(&mut self) {
        self.scene.said.clear();
    }

    /// Kills the host, and checks that it has ended.
    pub(super) async fn kill_host(&mut self) -> Result<(), DemoError> {
        let host = self.hang_up()?;
        host.watcher().kill()?;
        let ended = host.ended().await.map_or("it has not ended".to_owned(), told);
        self.check("the host has ended by SIGKILL", Look::new(ended == "signal 9", ended)).await
    }

    /// Waits for the end of the host after its shutdown.
    pub(super) async fn host_has_ended(&mut self) -> Result<(), DemoError> {
        let host = self.hang_up()?;
        let ended = host.ended().await.map_or("it has not ended".to_owned(), told);
        let look = Look::new(ended == "exit code 0", ended);
        self.check("the host has ended by itself, in good order", look).await
    }

    pub(super) fn show_report(&self, report: &[ChildEnding]) -> Result<(), DemoError> {
        let line = |ending: &ChildEnding| {
            format!("           {:<24} {}  ({} ms)", ending.child, ending.ending, ending.took_ms)
        };
        report.iter().try_for_each(|ending| self.print(&line(ending)))
    }

    /// Adds a line about the demo's own action to the timeline.
    pub(super) fn you(&mut self, to: &str, message: &str) -> Result<(), DemoError> {
        self.heard(Said {
            at_unix_ms: now_unix_ms(),
            from: "you".to_owned(),
            to: to.to_owned(),
            message: message.to_owned(),
            ..Said::default()
        })
    }

    /// Waits until an observation is as expected, and records the check. Later steps depend on it: a timeout ends the demo.
    pub(super) async fn until(
        &mut self,
        expected: &str,
        look: impl Fn(&Scene) -> Look,
    ) -> Result<(), DemoError> {
        let given_up = Instant::now() + TIMEOUT;
        while !look(&self.scene).holds {
            match tokio::time::timeout_at(given_up, self.next()).await {
                Ok(next) => next?,
                Err(_elapsed) => break,
            }
        }
        let look = look(&self.scene);
        let holds = look.holds;
        self.check(expected, look).await?;
        if holds { Ok(()) } else { Err(DemoError::StepFailed) }
    }

    /// As [`until`](Self::until), for data that the host does not report: files and mounts.
    pub(super) async fn until_seen(
        &mut self,
        expected: &str,
        look: impl Fn(&Self) -> Result<Look, DemoError>,
    ) -> Result<(), DemoError> {
        let given_up = Instant::now() + TIMEOUT;
        let look = loop {
            let seen = look(self)?;
            if seen.holds || Instant::now() >= given_up {
                break seen;
            }
            self.pass(LOOK_PAUSE).await?;
        };
        let holds = look.holds;
        self.check(expected, look).await?;
        if holds { Ok(()) } else { Err(DemoError::StepFailed) }
    }

    /// Prints the timeline for a while, if there is a host.
    async fn pass(&mut self, time: Duration) -> Result<(), DemoError> {
        let end = Instant::now() + time;
        while self.wire.is_some() {
            match tokio::time::timeout_at(end, self.next()).await {
                Ok(next) => next?,
                Err(_elapsed) => return Ok(()),
            }
        }
        tokio::time::sleep_until(end).await;
        Ok(())
    }

    /// Records a check, after the rest of the timeline has been printed.
    pub(super) async fn check(&mut self, expected: &str, look: Look) -> Result<(), DemoError> {
        self.settle().await?;
        let check = Check { expected: expected.to_owned(), look };
        self.tally.count(&check);
        let shown = check.shown(self.palette);
        self.print(&shown)
    }

    /// Prints the timeline until no more lines arrive.
    pub(super) async fn settle(&mut self) -> Result<(), DemoError> {
        let at_last = Instant::now() + QUIET_AT_LAST;
        while self.wire.is_some() && Instant::now() < at_last {
            match timeout(QUIET, self.next()).await {
                Ok(next) => next?,
                Err(_elapsed) => break,
            }
        }
        self.release()
    }

    /// Handles the next message of the host.
    async fn next(&mut self) -> Result<(), DemoError> {
        let Some(wire) = &mut self.wire else { return Err(DemoError::NoHost) };
        tokio::select! {
            biased;
            line = wire.timeline.next() => match line {
                Ok(Some(said)) => self.heard(said)?,
                Ok(None) => return Err(self.lost("timeline").await),
                Err(error) => return Err(self.broken("follow the timeline of the host", error).await),
            },
            news = wire.watch.next() => match news {
                Ok(Some(response)) => self.shown(response.news)?,
                Ok(None) => return Err(self.lost("news").await),
                Err(error) => return Err(self.broken("watch the host", error).await),
            },
        }
        Ok(())
    }

    fn shown(&mut self, news: Option<News>) -> Result<(), DemoError> {
        if let Some(news) = news {
            self.scene.status.hear(news);
            self.watch_all()?;
        }
        Ok(())
    }

    fn heard(&mut self, said: Said) -> Result<(), DemoError> {
        self.scene.said.push(said.clone());
        match self.page.say(said) {
            Some(text) => self.print(&text),
            None => Ok(()),
        }
    }

    fn release(&mut self) -> Result<(), DemoError> {
        match self.page.release() {
            Some(text) => self.print(&text),
            None => Ok(()),
        }
    }

    /// Why a stream has ended: usually the host has, too.
    async fn lost(&mut self, stream: &'static str) -> DemoError {
        match self.post_mortem().await {
            Some(error) => error,
            None => DemoError::StreamEnded { stream },
        }
    }

    async fn broken(&mut self, what: &str, error: AdminError) -> DemoError {
        match self.post_mortem().await {
            Some(error) => error,
            None => asked(what)(error),
        }
    }

    async fn post_mortem(&mut self) -> Option<DemoError> {
        let host = self.hang_up().ok()?;
        let status = timeout(Duration::from_secs(1), host.ended()).await.ok()??;
        Some(DemoError::HostEnded { how: told(status), log: self.workspace.log_end() })
    }

    /// Ends all processes, and waits for their end. The workspace removes the directory.
    pub(super) async fn clear(mut self) {
        if let Ok(host) = self.hang_up() {
            // Fails only if it has ended.
            let _ = host.watcher().kill();
            host.ended().await;
        }
        if let Some(keeper) = self.keeper.take() {
            // It kills the processes that outlive a host; if that fails, the next line notices.
            let _ = tokio::task::spawn_blocking(move || keeper.release()).await;
        }
        self.all_ended().await;
        if let Some(namespace) = self.namespace.take() {
            namespace.release().await;
        }
    }

    /// Prints a line. If the reader is gone, the demo ends.
    pub(super) fn print(&self, text: &str) -> Result<(), DemoError> {
        match print(&format!("{text}\n")).map_err(DemoError::Output)? {
            Reader::Listens => Ok(()),
            Reader::HasLeft => Err(DemoError::ReaderLeft),
        }
    }
}

fn now_unix_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
