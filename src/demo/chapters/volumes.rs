//! Follows files, their tasks and the mounts through all chapters with volumes.

use crate::demo::check::Look;
use crate::demo::error::DemoError;
use crate::demo::lines::{self, PAGE};
use crate::demo::mounted::Mounted;
use crate::demo::stage::Stage;
use crate::demo::workspace::{DATA, FileObserver, LEDGER, LEFT, PAGE_FILE, RIGHT};

/// The volume that two tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    /// The process ids of the tasks.
    tasks: [u32; 2],
    /// Its id with the plugin.
    id: String,
    /// Its mounts, which are never made again.
    mounted: Mounted,
    /// The ledger at the last check.
    ledger: String,
}

impl Shared {
    pub(super) fn begin(stage: &Stage) -> Result<Self, DemoError> {
        let process = |task| stage.scene.status.task_process(task).ok_or(DemoError::StepFailed);
        let id = stage.scene.status.volume_id(DATA).ok_or(DemoError::StepFailed)?;
        Ok(Self {
            tasks: [process(LEFT)?, process(RIGHT)?],
            id: id.to_owned(),
            mounted: stage.mounted(DATA)?,
            ledger: String::new(),
        })
    }

    pub(super) fn print_page(&self, stage: &Stage) -> Result<(), DemoError> {
        PAGE.lines().try_for_each(|line| stage.print(&format!("           page: {line}")))
    }

    fn seers(&self) -> [FileObserver<'_>; 3] {
        let [left, right] = self.tasks;
        [
            FileObserver::Task(LEFT, left, DATA),
            FileObserver::Task(RIGHT, right, DATA),
            FileObserver::Plugin(&self.id),
        ]
    }

    /// Checks that the tasks are still the same processes with the same mounts, that the page is as written, and that no line is missing
    /// while both tasks continue to write.
    pub(super) async fn check(&mut self, stage: &mut Stage, when: &str) -> Result<(), DemoError> {
        let look = stage.go_on(&self.tasks).await;
        let look = look.and(stage.mounted(DATA)?.has_still(&self.mounted));
        stage.check(&format!("{when}: the tasks and their mounts are those that they were"), look).await?;
        let page = |stage: &Stage| {
            let views = self.seers().map(|seer| stage.workspace.view(seer, PAGE_FILE));
            Ok(lines::is_page(&views))
        };
        stage.until_seen("left, right and the plugin find the page as it was written", page).await?;
        let ledger = |stage: &Stage| {
            let views = self.seers().map(|seer| stage.workspace.view(seer, LEDGER));
            Ok(lines::goes_on(&self.ledger, &views, &[LEFT, RIGHT]))
        };
        stage.until_seen("both write on, and none of their lines is missing or changed", ledger).await?;
        self.remember(stage);
        Ok(())
    }

    /// Checks the files where the plugin keeps them, after the tasks have ended.
    pub(super) fn kept(&self, stage: &Stage) -> Look {
        let view = |file| [stage.workspace.view(FileObserver::Plugin(&self.id), file)];
        lines::is_page(&view(PAGE_FILE)).and(lines::stays(&self.ledger, &view(LEDGER)))
    }

    fn remember(&mut self, stage: &Stage) {
        // If it cannot be read now, the next check reports it.
        if let Ok(content) = stage.workspace.view(FileObserver::Plugin(&self.id), LEDGER).content {
            self.ledger = content;
        }
    }
}
