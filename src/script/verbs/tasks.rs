//! The requests of a host to a driver about a task, through the client of every host program, and the ends of tasks.

use std::future::Future;
use std::time::Duration;

use callboard_actors::driver::TaskKey;
use callboard_actors::driver::client::{
    DriverClient, DriverError, StartOutcome, TaskConfig, TaskHandle, TaskId, TaskState, TaskStatus,
};
use callboard_actors::drivers::{DriverNotLeased, Wanted};
use callboard_actors::vocabulary::DriverName;
use callboard_proto::drivers::ExitResult;

use super::super::driver_tasks::TaskEnding;
use super::drivers::{known, name, task};
use super::{Entry, Mistake, Stage, Words};
use crate::picture::{Mark, Sign};

pub(super) const VERBS: &[Entry] = &[
    ("start-task NAME ALLOCATION TASK [within=DURATION]", start),
    ("recover-task NAME ALLOCATION TASK [within=DURATION]", recover),
    ("wait-task NAME ALLOCATION TASK [within=DURATION]", wait),
    ("stop-task NAME ALLOCATION TASK [signal=TEXT] [within=DURATION]", stop),
    ("destroy-task NAME ALLOCATION TASK [force=yes|no] [within=DURATION]", destroy),
    ("inspect-task NAME ALLOCATION TASK [within=DURATION]", inspect),
    ("signal-task NAME ALLOCATION TASK SIGNAL [within=DURATION]", signal),
    ("exec-task NAME ALLOCATION TASK WORD... [within=DURATION]", exec),
    ("figures-of-task NAME ALLOCATION TASK", figures),
    (
        "task-ends NAME ALLOCATION TASK exited|signalled|untold|lost [NUMBER|TEXT] [out-of-memory=yes|no]",
        task_ends,
    ),
];

/// The timeout of a request unless its line sets another.
const WITHIN: Duration = Duration::from_secs(10);
/// How long a task may take to end when it is stopped.
const GRACE: Duration = Duration::from_secs(5);
/// The interval of usage reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// The task and driver of a line, and the timeout of the answer.
pub(super) struct Question {
    pub(super) driver: DriverName,
    pub(super) task: TaskKey,
    pub(super) id: TaskId,
    pub(super) within: Duration,
}

impl Question {
    pub(super) fn read(words: &mut Words<'_>) -> Result<Self, Mistake> {
        let (driver, task) = (name(words)?, task(words)?);
        let id = TaskId::new(task.to_string()).map_err(|error| Mistake::new(error.to_string()))?;
        Ok(Self { driver, task, id, within: within(words)? })
    }

    /// Dispenses a client of the driver, and sends it a request.
    fn ask<T, F>(
        self,
        stage: &mut Stage,
        wanted: Wanted,
        question: impl FnOnce(DriverClient, Self) -> F + 'static,
        tell: impl FnOnce(T) -> String + 'static,
    ) -> Result<(), Mistake>
    where
        F: Future<Output = Result<T, DriverError>> + 'static,
        T: 'static,
    {
        ask_driver(stage, self.driver.clone(), wanted, |client| question(client, self), tell)
    }
}

/// The timeout of an answer, as set by its line.
pub(super) fn within(words: &mut Words<'_>) -> Result<Duration, Mistake> {
    Ok(words.duration("within")?.unwrap_or(WITHIN))
}

/// Dispenses a client of a driver, and sends it a request.
pub(super) fn ask_driver<T, F>(
    stage: &mut Stage,
    driver: DriverName,
    wanted: Wanted,
    question: impl FnOnce(DriverClient) -> F + 'static,
    tell: impl FnOnce(T) -> String + 'static,
) -> Result<(), Mistake>
where
    F: Future<Output = Result<T, DriverError>> + 'static,
    T: 'static,
{
    let of = format!("driver {driver}");
    let leased = stage.host()?.leases().driver(&driver, wanted, Duration::ZERO);
    let asked = async move {
        let client = match leased.await {
            Ok(client) => client,
            Err(DriverNotLeased::NotAnswered(error)) => return Err(error),
            Err(error) => return Ok(format!("no: {error}")),
        };
        Ok(match question(client).await {
            Ok(answer) => tell(answer),
            Err(error) => format!("no: {error}"),
        })
    };
    stage.ask(&of, asked, |text| text);
    Ok(())
}

pub(super) fn done(what: &'static str) -> impl FnOnce(()) -> String {
    move |()| what.to_owned()
}

fn start(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let question = Question::read(words)?;
    let (handles, key) = (stage.handles.clone(), question.task.clone());
    let tell = move |outcome| match outcome {
        StartOutcome::Started { handle, .. } => {
            handles.borrow_mut().insert(key, handle);
            "it runs".to_owned()
        }
        StartOutcome::Retry { reason } => format!("it does not run, and trying again can help: {reason}"),
        StartOutcome::Fatal { reason } => format!("it does not run: {reason}"),
    };
    let ask = |client: DriverClient, question: Question| async move {
        let Question { task, id, within, .. } = question;
        let config = TaskConfig::new(id, task.allocation, task.task, Vec::new());
        client.start_task(&config, within).await
    };
    question.ask(stage, Wanted::Healthy, ask, tell)
}

fn recover(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let question = Question::read(words)?;
    let handle: Option<TaskHandle> = stage.handles.borrow().get(&question.task).cloned();
    let missing =
        || Mistake::new(format!("the script has no handle of {}; `start-task` it before", question.task));
    let handle = handle.ok_or_else(missing)?;
    let ask = |client: DriverClient, question: Question| async move {
        client.recover_task(&handle, question.within).await
    };
    question.ask(stage, Wanted::Reachable, ask, done("it is known again"))
}

fn wait(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let ask = |client: DriverClient, question: Question| async move {
        client.wait_task(&question.id, question.within).await
    };
    Question::read(words)?.ask(stage, Wanted::Reachable, ask, |exit| {
        format!("{exit}{}", if exit.is_success() { ", a success" } else { ", no success" })
    })
}

fn stop(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let question = Question::read(words)?;
    let signal = words.key("signal").unwrap_or_default().to_owned();
    let ask = |client: DriverClient, question: Question| async move {
        client.stop_task(&question.id, GRACE, &signal, question.within).await
    };
    question.ask(stage, Wanted::Reachable, ask, done("stopped"))
}

fn destroy(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let question = Question::read(words)?;
    let is_forced = words.yes_or_no("force")?.unwrap_or_default();
    let ask = move |client: DriverClient, question: Question| async move {
        client.destroy_task(&question.id, is_forced, question.within).await
    };
    question.ask(stage, Wanted::Reachable, ask, done("forgotten"))
}

fn inspect(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let ask = |client: DriverClient, question: Question| async move {
        client.inspect_task(&question.id, question.within).await
    };
    Question::read(words)?.ask(stage, Wanted::Reachable, ask, |status| told(&status))
}

fn told(status: &TaskStatus) -> String {
    let state = match status.state {
        TaskState::Running => "it runs",
        TaskState::Exited => "it has ended",
        TaskState::Unknown => "it is not known whether it runs",
    };
    let exit = status.exit.as_ref().map(|exit| format!(", it {exit}")).unwrap_or_default();
    let more = status.attributes.iter().map(|(name, value)| format!(", {name} {value}"));
    format!("{state}{exit}{}", more.collect::<String>())
}

fn signal(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let question = Question::read(words)?;
    let signal = words.next("name of the signal")?.to_owned();
    let ask = |client: DriverClient, question: Question| async move {
        client.signal_task(&question.id, &signal, question.within).await
    };
    question.ask(stage, Wanted::Reachable, ask, done("sent"))
}

fn exec(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let question = Question::read(words)?;
    let mut command = vec![words.next("command")?.to_owned()];
    command.extend(std::iter::from_fn(|| words.maybe_next()).map(str::to_owned));
    let ask = |client: DriverClient, question: Question| async move {
        client.exec_task(&question.id, &command, question.within, question.within).await
    };
    question.ask(stage, Wanted::Reachable, ask, |came| {
        format!("{}; it wrote: {}", came.exit, String::from_utf8_lossy(&came.stdout))
    })
}

fn figures(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let ask = |client: DriverClient, question: Question| async move {
        client.task_stats(&question.id, INTERVAL).next().await.transpose()
    };
    Question::read(words)?.ask(stage, Wanted::Reachable, ask, |stats| match stats {
        Some(stats) => format!("{} bytes of memory", stats.total.memory.rss.unwrap_or_default()),
        None => "nothing is told of it".to_owned(),
    })
}

#[derive(Clone, Copy)]
enum How {
    Exited,
    Signalled,
    Untold,
    Lost,
}

/// A task of a driver ends by itself.
fn task_ends(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let (name, task) = (name(words)?, task(words)?);
    let ways = [
        ("exited", How::Exited),
        ("signalled", How::Signalled),
        ("untold", How::Untold),
        ("lost", How::Lost),
    ];
    let how = words.one_of("how it ends", &ways)?;
    let oom_killed = words.yes_or_no("out-of-memory")?.unwrap_or_default();
    let ending = match how {
        How::Exited => {
            let exit_code = whole_number(words.maybe_next().unwrap_or("0"))?;
            TaskEnding::Known(ExitResult { exit_code, oom_killed, ..Default::default() })
        }
        How::Signalled => {
            let signal = whole_number(words.maybe_next().unwrap_or("9"))?;
            TaskEnding::Known(ExitResult { signal, oom_killed, ..Default::default() })
        }
        How::Untold => TaskEnding::Untold,
        How::Lost => TaskEnding::Lost(words.maybe_next().unwrap_or("its exit was not seen").to_owned()),
    };
    if !known(stage, &name)?.end_task(&task.to_string(), ending) {
        return Err(Mistake::new(format!("no task {task} of {name} runs; `start-task` it before")));
    }
    stage.record.draw(Mark::Sign {
        actor: format!("driver {name}"),
        text: "a task ends".to_owned(),
        about: task.to_string(),
        sign: Sign::News,
    });
    Ok(())
}

fn whole_number(text: &str) -> Result<i32, Mistake> {
    text.parse().map_err(|_| Mistake::new(format!("{text:?} is no whole number")))
}
