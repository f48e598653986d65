//! Tests commands beside a task that have a terminal.

use std::time::Duration;

use callboard_proto::drivers::exec_task_streaming_request::{Setup, TerminalSize};
use callboard_proto::drivers::*;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;

use crate::rig::{LONG, Place, Plugin, lives, until};

/// A person at a terminal.
struct Person {
    said: UnboundedSender<ExecTaskStreamingRequest>,
    answers: Streaming<ExecTaskStreamingResponse>,
    seen: String,
    result: Option<ExitResult>,
}

impl Person {
    async fn sits_down(plugin: &mut Plugin, command: &[&str]) -> Self {
        let (said, requests) = unbounded_channel();
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let setup = Setup { task_id: "t1".to_owned(), command, tty: true };
        let send = |request| said.send(request).expect("it is read");
        send(ExecTaskStreamingRequest { setup: Some(setup), ..Default::default() });
        let size = TerminalSize { height: 33, width: 101 };
        send(ExecTaskStreamingRequest { tty_size: Some(size), ..Default::default() });
        let requests = UnboundedReceiverStream::new(requests);
        let answers = plugin.driver.exec_task_streaming(requests).await.expect("a stream").into_inner();
        Self { said, answers, seen: String::new(), result: None }
    }

    fn sends(&self, request: ExecTaskStreamingRequest) {
        self.said.send(request).expect("it is read");
    }

    fn types(&self, text: &str) {
        let stdin = ExecTaskStreamingIoOperation { data: text.into(), close: false };
        self.sends(ExecTaskStreamingRequest { stdin: Some(stdin), ..Default::default() });
    }

    fn closes(&self) {
        let stdin = ExecTaskStreamingIoOperation { data: Vec::new(), close: true };
        self.sends(ExecTaskStreamingRequest { stdin: Some(stdin), ..Default::default() });
    }

    fn resizes(&self, height: i32, width: i32) {
        let tty_size = Some(TerminalSize { height, width });
        self.sends(ExecTaskStreamingRequest { tty_size, ..Default::default() });
    }

    /// Receives the next answer. Returns whether there was one.
    async fn looks(&mut self) -> bool {
        let answer = tokio::time::timeout(LONG, self.answers.message()).await;
        let answer = answer.unwrap_or_else(|_| panic!("in time, after {:?}", self.seen)).expect("no error");
        let Some(answer) = answer else { return false };
        self.seen.push_str(&String::from_utf8_lossy(&answer.stdout.unwrap_or_default().data));
        assert_eq!(answer.stderr, None, "a terminal has one output");
        self.result = answer.exited.then_some(answer.result).flatten().or(self.result.take());
        true
    }

    async fn sees(&mut self, text: &str) {
        while !self.seen.contains(text) {
            assert!(self.looks().await, "it ended before {text:?} was seen: {:?}", self.seen);
        }
    }

    async fn sees_the_end(mut self) -> (String, ExitResult) {
        while self.looks().await {}
        (self.seen, self.result.expect("how it ended"))
    }
}

async fn with_task(place: &Place) -> Plugin {
    let mut plugin = place.start(&[]).await;
    plugin.start(place.shell("t1", "sleep 1000")).await.expect("it starts");
    plugin
}

#[tokio::test]
async fn a_person_at_a_terminal_types_resizes_interrupts_and_ends_a_shell_t176_th093() {
    let place = Place::new();
    let mut plugin = with_task(&place).await;
    let mut person = Person::sits_down(&mut plugin, &["/bin/sh"]).await;
    // Typed text is echoed, so the expected text must be assembled by the shell.
    person.types("tty > /dev/null && echo is-a-$((1 + 1))-tty; stty size; echo $WORD-$PWD\n");
    person.sees("is-a-2-tty").await;
    person.sees("33 101").await;
    person.sees(&format!("hello-{}", place.path("alloc/t1-task").display())).await;
    person.sends(ExecTaskStreamingRequest::default());
    person.resizes(44, 122);
    person.types("stty size\n");
    person.sees("44 122").await;
    // The interrupt goes to the foreground process, and the shell continues. A process that has printed something is in the foreground.
    person.types("sh -c 'echo begin-$((2 + 3)); exec sleep 1000'\n");
    person.sees("begin-5").await;
    person.types("\u{3}");
    person.types("echo after-$((3 + 4))\n");
    person.sees("after-7").await;
    person.types("exit 6\n");
    let (_, result) = person.sees_the_end().await;
    assert_eq!((result.exit_code, result.signal), (6, 0));
    plugin.destroy("t1", true).await.expect("it is killed");
}

#[tokio::test]
async fn a_terminal_whose_input_is_closed_ends_who_reads_from_it_th093() {
    let place = Place::new();
    let mut plugin = with_task(&place).await;
    for (typed, seen) in [("whole\n", "whole\r\nwhole\r\n"), ("begun", "begunbegun"), ("", "")] {
        let person = Person::sits_down(&mut plugin, &["/bin/cat"]).await;
        person.types(typed);
        person.closes();
        let (all, result) = person.sees_the_end().await;
        assert_eq!((&*all.replace("^D\u{8}\u{8}", ""), result.exit_code), (seen, 0));
    }
    let person = Person::sits_down(&mut plugin, &["/no/such"]).await;
    assert_eq!(person.sees_the_end().await.1.exit_code, 127);
    let person = Person::sits_down(&mut plugin, &["/bin/sh", "-c", "kill -9 $$"]).await;
    let (_, killed) = person.sees_the_end().await;
    assert_eq!((killed.exit_code, killed.signal), (128 + 9, 9));
    plugin.destroy("t1", true).await.expect("it is killed");
}

#[tokio::test]
async fn a_person_who_leaves_leaves_nothing_running_at_the_terminal_prc_03_th093() {
    let place = Place::new();
    let mut plugin = with_task(&place).await;
    let mut person = Person::sits_down(&mut plugin, &["/bin/sh"]).await;
    let out = place.path("pids").display().to_string();
    // A job with its own group that ignores the hangup of its terminal.
    person.types(&format!(
        "set -m; (trap '' HUP; echo $$ >> {out}; exec sleep 1000) & echo $! >> {out}; wait\n"
    ));
    let pids: Vec<i32> =
        place.until_lines("pids", 2).await.iter().filter_map(|line| line.parse().ok()).collect();
    person.sees("wait").await;
    drop(person);
    for pid in pids {
        until("what ran at the terminal ends", || !lives(pid)).await;
    }
    plugin.stop("t1", Duration::from_millis(100), "SIGKILL").await.expect("it ends");
}
