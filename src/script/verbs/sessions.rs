//! Commands inside of tasks with streamed input and output.

use callboard_actors::driver::client::{DriverClient, ExecInput, ExecOutput, ExecSession};
use callboard_actors::drivers::Wanted;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::super::record::Record;
use super::tasks::{Question, ask_driver};
use super::{Entry, Mistake, Stage, Words};

pub(super) const VERBS: &[Entry] = &[
    ("session NAME ALLOCATION TASK SESSION WORD... [terminal=yes|no]", session),
    ("session-input SESSION TEXT", input),
    ("session-size SESSION LINES COLUMNS", size),
    ("session-end SESSION", end),
    ("session-drop SESSION", drop_session),
];

/// Starts a command; its output is shown when it arrives.
fn session(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let question = Question::read(words)?;
    let name = words.next("name of the session")?.to_owned();
    let mut command = vec![words.next("command")?.to_owned()];
    command.extend(std::iter::from_fn(|| words.maybe_next()).map(str::to_owned));
    let has_terminal = words.yes_or_no("terminal")?.unwrap_or_default();
    let (tell, inputs) = mpsc::unbounded_channel();
    stage.sessions.insert(name.clone(), tell);
    let record = stage.record.clone();
    let Question { driver, id, .. } = question;
    let open = move |client: DriverClient| {
        std::future::ready(Ok(client.exec_task_streaming(&id, &command, has_terminal)))
    };
    ask_driver(stage, driver, Wanted::Reachable, open, move |session| {
        tokio::task::spawn_local(converse(name, session, inputs, record));
        "begun".to_owned()
    })
}

/// Passes on the script's input, and shows the output, until one side ends the session.
async fn converse(
    name: String,
    mut session: ExecSession,
    mut inputs: UnboundedReceiver<ExecInput>,
    record: Record,
) {
    let say = |text: String| record.say("drivers", &format!("session {name}: {text}"));
    loop {
        tokio::select! {
            biased;
            input = inputs.recv() => match input {
                Some(input) => {
                    if let Err(refused) = session.give(input).await {
                        say(refused.to_string());
                    }
                }
                None => return,
            },
            output = session.next() => match output {
                Some(Ok(output)) => say(told(&output)),
                Some(Err(error)) => say(format!("no: {error}")),
                None => return say("over".to_owned()),
            },
        }
    }
}

fn told(output: &ExecOutput) -> String {
    match output {
        ExecOutput::Stdout(bytes) => format!("output {:?}", String::from_utf8_lossy(bytes)),
        ExecOutput::Stderr(bytes) => format!("error output {:?}", String::from_utf8_lossy(bytes)),
        ExecOutput::StdoutClosed => "no more output".to_owned(),
        ExecOutput::StderrClosed => "no more error output".to_owned(),
        ExecOutput::Exited(exit) => {
            format!("{exit}{}", if exit.is_success() { ", a success" } else { ", no success" })
        }
    }
}

/// Sends input to the command of a session.
fn give(stage: &Stage, name: &str, input: ExecInput) -> Result<(), Mistake> {
    let session = stage.sessions.get(name).filter(|session| !session.is_closed());
    let given = session.is_some_and(|session| session.send(input).is_ok());
    if given { Ok(()) } else { Err(missing(name)) }
}

fn missing(name: &str) -> Mistake {
    Mistake::new(format!("there is no session {name:?}, or it is over; begin one with `session`"))
}

fn input(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the session")?;
    let text = words.next("text")?;
    give(stage, name, ExecInput::Stdin(text.as_bytes().to_vec()))
}

fn size(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the session")?;
    let height = length(words.next("number of lines")?)?;
    let width = length(words.next("number of columns")?)?;
    give(stage, name, ExecInput::Resize { height, width })
}

fn length(text: &str) -> Result<u16, Mistake> {
    text.parse().map_err(|_| Mistake::new(format!("{text:?} is no whole number up to {}", u16::MAX)))
}

fn end(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the session")?;
    give(stage, name, ExecInput::CloseStdin)
}

/// Disconnects, whatever the state of the command.
fn drop_session(stage: &mut Stage, words: &mut Words<'_>) -> Result<(), Mistake> {
    let name = words.next("name of the session")?;
    stage.sessions.remove(name).map(drop).ok_or_else(|| missing(name))
}
