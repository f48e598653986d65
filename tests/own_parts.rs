//! Tests parts of a host program: supervised, started, stopped and shown beside those of the host.

use std::future::ready;
use std::time::Duration;

use actix::Recipient;
use callboard::actors::conversation;
use callboard::actors::persister::{Disk, Operation, Owner, Record, Settled, Table};
use callboard::actors::shell::{
    Address, AskError, Ending, Input, Ledger, Machine, Never, NoEffectHandler, NoStore, Running, StepContext,
    StopMode, StopStep, Store, Ticket, Written, start,
};
use callboard::actors::supervisor::{RestartChild, StopOutcome, TreeNode};
use callboard::actors::vocabulary::{Moment, RestartBudget};
use callboard::host::{EndingRest, Host, Part, PartContext, PartLifecycle, PartsError, StartError};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// Asks for the list below a part.
#[derive(Debug)]
struct List;

/// Makes it give up.
#[derive(Debug)]
struct GiveUp;

/// Makes it ignore a later request to stop.
#[derive(Debug)]
struct Stay;

conversation! {
    enum SampleAsk -> SampleAnswer {
        List => Vec<&'static str>,
        GiveUp => (),
        Stay => (),
    }
}

/// Answers with a list, or does not answer.
#[derive(Debug)]
struct SampleActor {
    answers: bool,
    stays: bool,
}

impl Machine for SampleActor {
    const KIND: &'static str = "sample";
    type Config = bool;
    type Image = ();
    type Ask = SampleAsk;
    type Answer = SampleAnswer;
    type Call = Never;
    type Outcome = Never;
    type Timer = Never;
    type Change = Never;
    type News = Never;
    type View = ();

    fn restore(answers: &bool, (): (), _: Moment) -> Self {
        Self { answers: *answers, stays: false }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Asked { id, ask: SampleAsk::List(List), .. } if self.answers => {
                cx.reply(*id, SampleAnswer::List(vec!["leaf"]));
            }
            Input::Asked { ask: SampleAsk::GiveUp(GiveUp), .. } => cx.fail("it has had enough"),
            Input::Asked { id, ask: SampleAsk::Stay(Stay), .. } => {
                self.stays = true;
                cx.reply(*id, SampleAnswer::Stay(()));
            }
            Input::StopRequested(_) if self.stays => {}
            Input::StopRequested(_) => cx.stop(),
            Input::Asked { .. } | Input::Resumed => {}
            Input::Returned { call, .. } => match *call {},
            Input::Elapsed(timer) => match *timer {},
        }
    }

    fn view(&self) {}
}

fn sample(name: &str) -> Address<SampleActor> {
    Address::vacant(name, 10)
}

fn part(address: &Address<SampleActor>, answers: bool) -> Part<SampleActor> {
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
    let (directory, first, second) = (data_dir(), sample("first"), sample("second"));
    let builder = Host::builder(directory.path());
    let builder = builder.part(part(&second, true).after("first").ready_when(|| List));
    let host = builder.part(part(&first, true).after("registry")).start().await.expect("it starts");

    let tree = host.tree().await.expect("the root lives");
    let names: Vec<_> = tree.children.iter().map(|child| child.name.as_str()).collect();
    assert_eq!(names[0], "persister");
    assert_eq!(names[names.len() - 2..], ["first", "second"], "behind those of the host");
    let shown = node(&host, "second").await;
    assert_eq!((shown.kind.as_str(), shown.state.as_str()), ("sample", "running"));
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
    let (directory, sample) = (data_dir(), sample("sample"));
    let budget = RestartBudget { limit: 1, window: Duration::from_secs(60) };
    let builder = Host::builder(directory.path()).restart_budget(budget);
    let host = builder.part(part(&sample, true)).start().await.expect("it starts");

    assert!(sample.ask(GiveUp).await.is_err(), "it ends without an answer");
    let began = std::time::Instant::now();
    while sample.ask(List).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not started again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(node(&host, "sample").await.restarts, 1);

    assert!(sample.ask(GiveUp).await.is_err());
    let Ending::Failed(reason) = host.ended().await else { panic!("the host goes on") };
    assert!(reason.contains("sample") && reason.contains("it has had enough"), "{reason}");
}

/// The lifecycle of a sample that leaves a letter.
struct SampleLives(Address<SampleActor>, PartContext);

impl PartLifecycle for SampleLives {
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
    let (directory, sample) = (data_dir(), sample("sample"));
    let leaving = || Part::leaving(&sample, |address, context| SampleLives(address.clone(), context.clone()));
    let host = Host::builder(directory.path()).part(leaving()).start().await.expect("it starts");
    let report = host.stop().await;
    assert_eq!(report.children[0].name, "sample");
    assert_eq!(report.children[0].below, [], "one that stops in order has nothing to leave");
    assert_eq!(report.not_in_order().count(), 0, "{report:?}");

    let budget = RestartBudget { limit: 0, window: Duration::from_secs(60) };
    let builder = Host::builder(directory.path()).restart_budget(budget);
    let host = builder.part(leaving()).start().await.expect("it starts");
    assert!(sample.ask(GiveUp).await.is_err(), "it ends without an answer");
    assert!(matches!(host.ended().await, Ending::Failed(_)));
    let report = host.stop().await;
    let told: Vec<_> =
        report.children[0].below.iter().map(|step| format!("{}: {}", step.what, step.ending)).collect();
    assert_eq!(told[0], "letter/1: still there (Detach)");
    assert_eq!(
        told[1],
        "host/sample: had failed before, and was not stopped in order: it gave up: it has had enough"
    );
    assert_eq!(told.last().map(String::as_str), Some("host/persister: stopped in time"));
    assert_eq!(report.not_in_order().count(), 1);
}

#[actix::test]
async fn a_part_that_does_not_say_what_is_below_it_is_shown_as_not_answering() {
    let (directory, silent) = (data_dir(), sample("silent"));
    let host = Host::builder(directory.path()).part(part(&silent, false)).start().await.expect("it starts");
    let shown = node(&host, "silent").await;
    assert_eq!((shown.state.as_str(), shown.message.as_str()), ("not answering", "no answer within 900ms"));
    assert_eq!(node(&host, "registry").await.state, "running", "the others are shown as they are");
    host.stop().await;
}

#[actix::test]
async fn parts_that_cannot_be_put_in_order_are_refused_before_anything_runs() {
    let (directory, sample) = (data_dir(), sample("sample"));
    let builder = Host::builder(directory.path());
    let refused = builder.clone().part(part(&sample, true).after("regitsry")).start().await;
    let Err(StartError::Parts(PartsError::Unknown { after, .. })) = refused else { panic!("{refused:?}") };
    assert_eq!(after, "regitsry");
    let refused = builder.clone().part(part(&sample, true)).part(part(&sample, true)).start().await;
    assert!(matches!(refused, Err(StartError::Parts(PartsError::Duplicate { .. }))), "{refused:?}");
    assert!(sample.ask(List).await.is_err(), "nothing was started");
    builder.part(part(&sample, true)).start().await.expect("nothing is left in its way").stop().await;
}

#[actix::test]
async fn a_part_of_one_host_is_refused_in_another_until_that_has_ended() {
    let (directory, other, sample) = (data_dir(), data_dir(), sample("sample"));
    let builder = Host::builder(directory.path()).part(part(&sample, true));
    let first = builder.start().await.expect("it starts");
    let budget = RestartBudget { limit: 0, window: Duration::from_secs(60) };
    let second = || Host::builder(other.path()).restart_budget(budget).part(part(&sample, true));
    let refused = second().start().await;
    let Err(StartError::Parts(error @ PartsError::InUse { .. })) = refused else { panic!("{refused:?}") };
    assert_eq!(
        error.to_string(),
        "part \"sample\" is a part of another host in this process, which has not ended; give this host a part with an address \
         of its own, or stop the other host first"
    );
    assert_eq!(sample.ask(List).await, Ok(vec!["leaf"]), "the first host goes on");
    assert_eq!(node(&first, "sample").await.state, "running");

    first.stop().await;
    let next = second().start().await.expect("the address is free");
    assert_eq!(sample.ask(List).await, Ok(vec!["leaf"]));
    assert!(sample.ask(GiveUp).await.is_err(), "it ends without an answer");
    assert!(matches!(next.ended().await, Ending::Failed(_)), "its budget is spent");
    let last = second().start().await.expect("the address is free again");
    assert_eq!(sample.ask(List).await, Ok(vec!["leaf"]));
    last.stop().await;
}

#[actix::test]
async fn a_part_that_had_to_be_killed_is_started_again_in_its_own_host() {
    let (directory, sample) = (data_dir(), sample("sample"));
    let deaf = part(&sample, true).stops_within(Duration::from_millis(50)).ready_when(|| List);
    let host = Host::builder(directory.path()).part(deaf).start().await.expect("it starts");
    for restarts in [1, 2] {
        assert_eq!(sample.ask(Stay).await, Ok(()));
        let restart = RestartChild { name: "sample".to_owned() };
        assert_eq!(host.supervisor().ask(restart).await, Ok(Ok(())));
        assert_eq!(sample.ask(List).await, Ok(vec!["leaf"]));
        assert_eq!(node(&host, "sample").await.restarts, restarts);
    }
    host.stop().await;
}

// === Parts that store something ===

/// Adds to the sum.
#[derive(Debug)]
struct Add(u64);

/// Asks for the sum.
#[derive(Debug)]
struct Total;

conversation! {
    enum SumAsk -> SumAnswer {
        Add => u64,
        Total => u64,
    }
}

/// Stores a sum, which must not be thirteen at the start.
#[derive(Debug)]
struct Sum(u64);

impl Machine for Sum {
    const KIND: &'static str = "sum";
    type Config = ();
    type Image = u64;
    type Ask = SumAsk;
    type Answer = SumAnswer;
    type Call = Never;
    type Outcome = Never;
    type Timer = Never;
    type Change = u64;
    type News = Never;
    type View = u64;

    fn restore((): &(), sum: u64, _: Moment) -> Self {
        assert!(sum != 13, "thirteen is no sum");
        Self(sum)
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Asked { id, ask: SumAsk::Add(Add(more)), .. } => {
                self.0 += more;
                cx.persist(self.0);
                cx.reply(*id, SumAnswer::Add(self.0));
            }
            Input::Asked { id, ask: SumAsk::Total(Total), .. } => {
                cx.reply(*id, SumAnswer::Total(self.0));
            }
            Input::StopRequested(_) => cx.stop(),
            Input::Resumed => {}
            Input::Returned { call, .. } => match *call {},
            Input::Elapsed(timer) => match *timer {},
        }
    }

    fn view(&self) -> u64 {
        self.0
    }
}

#[derive(Serialize, Deserialize)]
struct SumRow(u64);

impl Record for SumRow {
    const TABLE: Table = Table("sums");
    const SCHEMA: u16 = 1;
}

/// A row in a table that belongs to Callboard.
#[derive(Serialize, Deserialize)]
struct TakenRow(u64);

impl Record for TakenRow {
    const TABLE: Table = Table("registrations");
    const SCHEMA: u16 = 1;
}

#[derive(Serialize, Deserialize)]
struct LargeRow(Vec<u8>);

impl Record for LargeRow {
    const TABLE: Table = Table("sums");
    const SCHEMA: u16 = 1;
}

type Load = fn(Ledger) -> Loading;
type Loading = LocalBoxFuture<'static, Result<u64, String>>;

/// The way in which a sum is stored.
#[derive(Clone, Copy)]
struct Storing {
    owner: &'static str,
    load: Load,
    put: fn(u64) -> Operation,
}

/// The correct way.
const WELL: Storing = Storing { owner: "sums", load, put };

fn load(ledger: Ledger) -> Loading {
    Box::pin(async move {
        ledger.reopen().await?;
        Ok(ledger.rows::<SumRow>().await?.pop().map_or(0, |(_, row)| row.0))
    })
}

fn load_what_is_ours(ledger: Ledger) -> Loading {
    Box::pin(async move {
        ledger.reopen().await?;
        Ok(ledger.rows::<TakenRow>().await?.pop().map_or(0, |(_, row)| row.0))
    })
}

fn load_nothing(_: Ledger) -> Loading {
    Box::pin(ready(Err("the shelf is locked".to_owned())))
}

fn load_and_panic(_: Ledger) -> Loading {
    panic!("the shelf is gone")
}

fn load_thirteen(_: Ledger) -> Loading {
    Box::pin(ready(Ok(13)))
}

fn put(sum: u64) -> Operation {
    Operation::put(*b"sum", &SumRow(sum))
}

fn put_among_ours(sum: u64) -> Operation {
    Operation::put(*b"sum", &TakenRow(sum))
}

fn put_if_possible(sum: u64) -> Operation {
    match sum {
        100 => Operation::put(*b"sum", &LargeRow(vec![0; 2 << 20])),
        200 => panic!("no row has room for it"),
        sum => put(sum),
    }
}

struct SumStore {
    ledger: Ledger,
    storing: Storing,
}

impl Store<Sum> for SumStore {
    fn open(&mut self, settled: Recipient<Settled>) {
        self.ledger.open(settled);
    }

    fn disk(&self) -> Option<Disk> {
        Some(self.ledger.disk())
    }

    fn write(&mut self, ticket: Ticket, sum: u64) -> Written {
        self.ledger.write(ticket, vec![(self.storing.put)(sum)])
    }

    fn load(&mut self) -> Loading {
        (self.storing.load)(self.ledger.clone())
    }
}

fn sum_part(address: &Address<Sum>, storing: Storing) -> Part<Sum> {
    Part::new(address, move |address, context| {
        let ledger = context.host().database().ledger(Owner::new(storing.owner));
        start(address, (), NoEffectHandler, SumStore { ledger, storing }, context.settings())
    })
    .ready_when(|| Total)
}

fn sum() -> Address<Sum> {
    Address::vacant("sum", 10)
}

/// The error of a host that does not start because a part stores its sum in this way.
async fn refused(directory: &TempDir, storing: Storing) -> String {
    let started = Host::builder(directory.path()).part(sum_part(&sum(), storing)).start().await;
    started.expect_err("it does not start").to_string()
}

#[actix::test]
async fn a_start_that_fails_names_what_the_store_or_the_machine_of_a_part_said_last() {
    let directory = data_dir();
    let cases: [(Load, &str); 3] = [
        (load_nothing, "the shelf is locked"),
        (load_and_panic, "the store crashed: the shelf is gone"),
        (load_thirteen, "thirteen is no sum"),
    ];
    for (load, cause) in cases {
        let said = refused(&directory, Storing { load, ..WELL }).await;
        let expected = format!(
            "the host did not start: sum did not start, so everything before it was stopped again: it crashed too often: \
             {cause}"
        );
        assert_eq!(said, expected);
    }
}

#[actix::test]
async fn a_part_that_stores_under_a_name_of_our_own_actors_is_refused_and_nothing_is_written() {
    let (directory, sum) = (data_dir(), sum());
    let no_owner = "cannot open a ledger of owner \"registry\": an actor of Callboard has this name; give the owner another name";
    let no_table = "cannot use table \"registrations\": it belongs to an actor of Callboard; give the table of these records \
                    another name";
    for (storing, why) in [
        (Storing { owner: "registry", ..WELL }, no_owner),
        (Storing { load: load_what_is_ours, ..WELL }, no_table),
    ] {
        let said = refused(&directory, storing).await;
        assert!(
            said.starts_with("the host did not start: sum did not start") && said.ends_with(why),
            "{said}"
        );
    }
    // A part that writes to a table of Callboard without reading it first is refused at the write.
    let writes_elsewhere = sum_part(&sum, Storing { put: put_among_ours, ..WELL });
    let host = Host::builder(directory.path()).part(writes_elsewhere).start().await.expect("it starts");
    let error = sum.ask(Add(1)).await.expect_err("it is refused");
    assert!(error.to_string().contains(no_table) && !error.is_transient(), "{error}");
    host.stop().await;

    for run in [1, 2] {
        let builder = Host::builder(directory.path()).part(sum_part(&sum, WELL));
        let host = builder.start().await.expect("nothing is left in its way");
        assert_eq!(sum.ask(Add(1)).await, Ok(run));
        host.stop().await;
    }
}

#[actix::test]
async fn a_write_that_is_never_made_is_refused_for_good_and_has_no_effect() {
    let (directory, sum) = (data_dir(), sum());
    let part = sum_part(&sum, Storing { put: put_if_possible, ..WELL });
    let host = Host::builder(directory.path()).part(part).start().await.expect("it starts");
    for (more, why) in [
        (100, "more than the 1048576 that are allowed; it is never written"),
        (200, "the store crashed: no row has room for it; it is never written"),
    ] {
        let error = sum.ask(Add(more)).await.expect_err("it is refused");
        assert!(matches!(error, AskError::NotWritten { .. }) && !error.is_transient(), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(sum.ask(Total).await, Ok(0), "it had no effect");
    }
    assert_eq!(sum.ask(Add(1)).await, Ok(1), "others are written");
    host.stop().await;
}
