//! Parts of a host program's own: supervised, started, stopped and shown beside those of the host.

use std::time::Duration;

use callboard::actors::conversation;
use callboard::actors::shell::{
    Address, Ending, Input, Machine, Never, NoEffectHandler, NoStore, Running, StepContext, StopMode,
    StopStep, start,
};
use callboard::actors::supervisor::{StopOutcome, TreeNode};
use callboard::actors::vocabulary::{Moment, RestartBudget};
use callboard::host::{EndingRest, Host, Lives, Part, PartContext, PartsError, StartError};
use tempfile::TempDir;

/// Asks for what is below it.
#[derive(Debug)]
struct List;

/// Has it give up.
#[derive(Debug)]
struct GiveUp;

conversation! {
    enum ClerkAsk -> ClerkAnswer {
        List => Vec<&'static str>,
        GiveUp => (),
    }
}

/// Lists what it has, or keeps it to itself.
#[derive(Debug)]
struct Clerk {
    answers: bool,
}

impl Machine for Clerk {
    const KIND: &'static str = "clerk";
    type Config = bool;
    type Image = ();
    type Ask = ClerkAsk;
    type Answer = ClerkAnswer;
    type Call = Never;
    type Outcome = Never;
    type Timer = Never;
    type Change = Never;
    type News = Never;
    type View = ();

    fn restore(answers: &bool, (): (), _: Moment) -> Self {
        Self { answers: *answers }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Asked { id, ask: ClerkAsk::List(List), .. } if self.answers => {
                cx.reply(*id, ClerkAnswer::List(vec!["leaf"]));
            }
            Input::Asked { ask: ClerkAsk::GiveUp(GiveUp), .. } => cx.fail("it has had enough"),
            Input::StopRequested(_) => cx.stop(),
            Input::Asked { .. } | Input::Resumed => {}
            Input::Returned { call, .. } => match *call {},
            Input::Elapsed(timer) => match *timer {},
        }
    }

    fn view(&self) {}
}

fn clerk(name: &str) -> Address<Clerk> {
    Address::vacant(name, 10)
}

fn part(address: &Address<Clerk>, answers: bool) -> Part<Clerk> {
    Part::new(address, move |address, context| {
        start(address, answers, NoEffectHandler, NoStore, context.settings())
    })
    .described_by(|| List, |names| names.into_iter().map(leaf).collect())
}

fn leaf(name: &str) -> TreeNode {
    TreeNode {
        name: name.to_owned(),
        kind: "leaf".to_owned(),
        state: "there".to_owned(),
        ..TreeNode::default()
    }
}

async fn node(host: &Host, name: &str) -> TreeNode {
    let tree = host.tree().await.expect("the root lives");
    tree.children.into_iter().find(|child| child.name == name).expect("it is a part of the host")
}

fn data_dir() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[actix::test]
async fn parts_of_a_hosts_own_are_started_by_what_they_depend_on_and_stopped_in_reverse_s2_s3() {
    let (directory, first, second) = (data_dir(), clerk("first"), clerk("second"));
    let builder = Host::builder(directory.path());
    let builder = builder.part(part(&second, true).after("first").ready_when(|| List));
    let host = builder.part(part(&first, true).after("registry")).start().await.expect("it starts");

    let tree = host.tree().await.expect("the root lives");
    let names: Vec<_> = tree.children.iter().map(|child| child.name.as_str()).collect();
    assert_eq!(names[0], "persister");
    assert_eq!(names[names.len() - 2..], ["first", "second"], "behind those of the host");
    let shown = node(&host, "second").await;
    assert_eq!((shown.kind.as_str(), shown.state.as_str()), ("clerk", "running"));
    assert_eq!((shown.crashes, shown.mailbox_depth), (Some(0), Some(0)));
    assert_eq!(shown.children, [leaf("leaf")]);

    let report = host.stop().await;
    let stopped: Vec<_> = report.children.iter().map(|child| child.name.as_str()).collect();
    assert_eq!(stopped, names.into_iter().rev().collect::<Vec<_>>());
    assert!(report.children.iter().all(|child| child.ending == StopOutcome::Stopped), "{report:?}");
    assert!(first.ask(List).await.is_err(), "no actor is left to answer");
}

#[actix::test]
async fn a_part_of_a_hosts_own_that_gives_up_is_started_again_until_the_budget_of_the_host_is_spent_s1() {
    let (directory, clerk) = (data_dir(), clerk("clerk"));
    let budget = RestartBudget { limit: 1, window: Duration::from_secs(60) };
    let builder = Host::builder(directory.path()).restart_budget(budget);
    let host = builder.part(part(&clerk, true)).start().await.expect("it starts");

    assert!(clerk.ask(GiveUp).await.is_err(), "it ends without an answer");
    let began = std::time::Instant::now();
    while clerk.ask(List).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not started again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(node(&host, "clerk").await.restarts, 1);

    assert!(clerk.ask(GiveUp).await.is_err());
    let Ending::Failed(reason) = host.ended().await else { panic!("the host goes on") };
    assert!(reason.contains("clerk") && reason.contains("it has had enough"), "{reason}");
}

/// The lives of a clerk, who leaves a letter.
struct Clerks(Address<Clerk>, PartContext);

impl Lives for Clerks {
    fn start(&mut self) -> Result<Running, String> {
        Ok(start(&self.0, true, NoEffectHandler, NoStore, self.1.settings()))
    }

    fn end_rest(&self, mode: StopMode) -> EndingRest {
        let (what, ending) = ("letter/1".to_owned(), format!("still there ({mode:?})"));
        Box::pin(async { vec![StopStep { what, ending, took: Duration::ZERO, is_left: true }] })
    }
}

#[actix::test]
async fn what_is_left_of_a_part_that_has_fallen_is_named_also_by_a_host_that_gave_up_s3_s4() {
    let (directory, clerk) = (data_dir(), clerk("clerk"));
    let leaving = || Part::leaving(&clerk, |address, context| Clerks(address.clone(), context.clone()));
    let host = Host::builder(directory.path()).part(leaving()).start().await.expect("it starts");
    let report = host.stop().await;
    assert_eq!(report.children[0].name, "clerk");
    assert_eq!(report.children[0].below, [], "one that stops in order has nothing to leave");
    assert_eq!(report.not_in_order().count(), 0, "{report:?}");

    let budget = RestartBudget { limit: 0, window: Duration::from_secs(60) };
    let builder = Host::builder(directory.path()).restart_budget(budget);
    let host = builder.part(leaving()).start().await.expect("it starts");
    assert!(clerk.ask(GiveUp).await.is_err(), "it ends without an answer");
    assert!(matches!(host.ended().await, Ending::Failed(_)));
    let report = host.stop().await;
    let told: Vec<_> =
        report.children[0].below.iter().map(|step| format!("{}: {}", step.what, step.ending)).collect();
    assert_eq!(told[0], "letter/1: still there (Detach)");
    assert_eq!(
        told[1],
        "host/clerk: had fallen before, and was not stopped in order: it gave up: it has had enough"
    );
    assert_eq!(told.last().map(String::as_str), Some("host/persister: stopped in time"));
    assert_eq!(report.not_in_order().count(), 1);
}

#[actix::test]
async fn a_part_that_does_not_say_what_is_below_it_is_shown_as_not_answering() {
    let (directory, silent) = (data_dir(), clerk("silent"));
    let host = Host::builder(directory.path()).part(part(&silent, false)).start().await.expect("it starts");
    let shown = node(&host, "silent").await;
    assert_eq!((shown.state.as_str(), shown.message.as_str()), ("not answering", "no answer within 900ms"));
    assert_eq!(node(&host, "registry").await.state, "running", "the others are shown as they are");
    host.stop().await;
}

#[actix::test]
async fn parts_that_cannot_be_put_in_order_are_refused_before_anything_runs() {
    let (directory, clerk) = (data_dir(), clerk("clerk"));
    let builder = Host::builder(directory.path());
    let refused = builder.clone().part(part(&clerk, true).after("regitsry")).start().await;
    let Err(StartError::Parts(PartsError::Unknown { after, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!(after, "regitsry");
    let refused = builder.clone().part(part(&clerk, true)).part(part(&clerk, true)).start().await;
    assert!(matches!(refused, Err(StartError::Parts(PartsError::Duplicate { .. }))), "{refused:?}");
    assert!(clerk.ask(List).await.is_err(), "nothing was started");
    builder.part(part(&clerk, true)).start().await.expect("nothing is left in its way").stop().await;
}
