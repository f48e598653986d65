//! What a supervisor promises, told with real actors: S1 to S4, SHD-06, SCL-06.

mod story;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::conversation;
use callboard_actors::shell::{
    Address, AskError, Drill, EffectHandler, Ending, FeedItem, Input, Machine, Never, NoEffectHandler,
    NoStore, Running, Settings, Started, StepContext, StopMode, StopStep, Subscription, start,
};
use callboard_actors::supervisor::{
    self, AwaitStarted, Child, ChildDescription, ChildSpec, DescribeTree, Restart, RestartChild,
    RestartError, Shutdown, ShutdownReport, StartError, Strategy, Supervisor, SupervisorNews, SupervisorSpec,
    TreeNode,
};
use callboard_actors::vocabulary::{Backoff, Moment, RestartBudget};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use story::story;

// === A player: the child of most stories ===

/// Asks for the number of this life.
#[derive(Debug)]
struct WhichLife;
/// Makes the step panic.
#[derive(Debug)]
struct Stumble;
/// Makes the player's effect handler panic, outside of any step.
#[derive(Debug)]
struct DropTheProps;
/// Ends in order, or gives up for this reason.
#[derive(Debug)]
struct Leave(Option<&'static str>);

conversation! {
    enum PlayerAsk -> PlayerAnswer {
        WhichLife => u64,
        Stumble => (),
        DropTheProps => (),
        Leave => (),
    }
}

/// The behaviour of a player.
#[derive(Debug, Clone, Copy)]
struct Manners {
    life: u64,
    is_deaf: bool,
}

#[derive(Debug)]
struct Player(Manners);

impl Machine for Player {
    const KIND: &'static str = "player";
    type Config = Manners;
    type Image = ();
    type Ask = PlayerAsk;
    type Answer = PlayerAnswer;
    type Call = Never;
    type Outcome = Never;
    type Timer = Never;
    type Change = Never;
    type News = &'static str;
    type View = ();

    fn restore(manners: &Manners, (): (), _: Moment) -> Self {
        Self(*manners)
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Asked { id, ask: PlayerAsk::WhichLife(WhichLife), .. } => {
                cx.reply(*id, PlayerAnswer::WhichLife(self.0.life));
            }
            Input::Asked { ask: PlayerAsk::Stumble(Stumble), .. } => panic!("stumbled on purpose"),
            Input::Asked { ask: PlayerAsk::DropTheProps(DropTheProps), .. } => cx.publish("crash, bang"),
            Input::Asked { id, ask: PlayerAsk::Leave(Leave(reason)), .. } => {
                cx.reply(*id, PlayerAnswer::Leave(()));
                match reason {
                    Some(reason) => cx.fail(*reason),
                    None => cx.stop(),
                }
            }
            Input::StopRequested(_) if self.0.is_deaf => {}
            Input::StopRequested(_) => cx.stop(),
            Input::Resumed | Input::Returned { .. } | Input::Elapsed(_) => {}
        }
    }

    fn view(&self) {}
}

/// The effect handler of a player. Handlers are counted, so that a story sees whether a life has really ended.
struct PlayersHands {
    _counted: Rc<()>,
}

impl EffectHandler<Player> for PlayersHands {
    fn call(&mut self, call: Never) -> Started<Never> {
        match call {}
    }

    fn published(&mut self, _: &&'static str) {
        panic!("dropped the props");
    }
}

/// A player in the story: its address stays the same in all its lives.
#[derive(Clone)]
struct Part {
    address: Address<Player>,
    lives: Rc<Cell<u64>>,
    living: Rc<()>,
}

impl Part {
    fn new(name: &str) -> Self {
        Self { address: Address::vacant(name, 16), lives: Rc::default(), living: Rc::default() }
    }

    fn play(&self, is_deaf: bool) -> Running {
        self.lives.set(self.lives.get() + 1);
        let manners = Manners { life: self.lives.get(), is_deaf };
        let budget = RestartBudget { limit: 2, window: Duration::from_secs(60) };
        let settings = Settings { budget, ..Settings::default() };
        let handler = PlayersHands { _counted: Rc::clone(&self.living) };
        start(&self.address, manners, handler, NoStore, settings)
    }

    /// The number of lives at this moment.
    fn living(&self) -> usize {
        // The parts that the story and the child hold share one count among them.
        Rc::strong_count(&self.living) - self.held()
    }

    fn held(&self) -> usize {
        Rc::strong_count(&self.lives)
    }
}

// === An owner: a child whose end takes as long as that of what it owns ===

/// The longest time that an owner announces for its end, and the time that it takes.
#[derive(Debug, Clone, Copy)]
struct OwnerConfig {
    said: Option<Duration>,
    takes: Duration,
}

#[derive(Debug)]
struct Owner(OwnerConfig);

impl Machine for Owner {
    const KIND: &'static str = "owner";
    type Config = OwnerConfig;
    type Image = ();
    type Ask = Never;
    type Answer = Never;
    type Call = Never;
    type Outcome = Never;
    type Timer = ();
    type Change = Never;
    type News = Never;
    type View = ();

    fn restore(config: &OwnerConfig, (): (), _: Moment) -> Self {
        Self(*config)
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::StopRequested(_) => cx.start_timer((), cx.now() + self.0.takes),
            Input::Elapsed(()) => cx.stop(),
            Input::Resumed | Input::Asked { .. } | Input::Returned { .. } => {}
        }
    }

    fn view(&self) {}

    fn stops_within(&self) -> Option<Duration> {
        self.0.said
    }
}

/// A supervisor of an owner that may take five seconds to end, or as long as it announces up to `longest`.
async fn supervise_owner(
    longest: Duration,
    config: OwnerConfig,
) -> (Address<Supervisor>, Address<Owner>, Running) {
    let spec = ChildSpec { stop_longest: longest, ..spec("owner") };
    let address = Address::<Owner>::vacant("owner", 16);
    let at = address.clone();
    let child = Child::new(spec, move || {
        std::future::ready(Ok(start(&at, config, NoEffectHandler, NoStore, Settings::default())))
    });
    let (root, running) = supervise(SupervisorSpec::default(), vec![child]);
    assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
    (root, address, running)
}

/// How a supervisor reports the end of such an owner.
async fn end_of_owner(longest: Duration, config: OwnerConfig) -> (String, Duration) {
    let (root, _address, _running) = supervise_owner(longest, config).await;
    let report = shut_down(&root).await;
    (endings(&report).join(", "), report.took)
}

fn brief() -> Backoff {
    Backoff {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(8),
        jitter_percent: 0,
        reset_after: Duration::from_secs(60),
    }
}

fn spec(name: &str) -> ChildSpec {
    ChildSpec { backoff: brief(), ..ChildSpec::new(name, "player") }
}

/// A player as a child.
fn player(spec: ChildSpec) -> (Child, Part) {
    player_who(spec, false)
}

fn player_who(spec: ChildSpec, is_deaf: bool) -> (Child, Part) {
    let part = Part::new(&spec.name);
    let role = part.clone();
    let child = Child::new(spec, move || std::future::ready(Ok(role.play(is_deaf))));
    (child.seen_at(&part.address), part)
}

fn supervise(spec: SupervisorSpec, children: Vec<Child>) -> (Address<Supervisor>, Running) {
    let address = Address::vacant("root", 64);
    let running = supervisor::start(&address, spec, children, Settings::default());
    (address, running)
}

/// Retries the question until a player answers, since it may be between two lives.
async fn life_of(part: &Part) -> u64 {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        match part.address.ask(WhichLife).await {
            Ok(life) => return life,
            Err(AskError::NotRunning { .. }) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn shut_down(address: &Address<Supervisor>) -> ShutdownReport {
    address.ask(Shutdown { mode: StopMode::Stop }).await.expect("it runs").expect("few ask")
}

fn endings(report: &ShutdownReport) -> Vec<String> {
    report.children.iter().map(|child| format!("{}: {}", child.name, child.ending)).collect()
}

async fn tree_of(address: &Address<Supervisor>) -> TreeNode {
    address.ask(DescribeTree).await.expect("it runs")
}

/// The news of a supervisor, from now on.
struct Programme(Subscription<SupervisorNews, TreeNode>);

impl Programme {
    fn of(address: &Address<Supervisor>) -> Self {
        Self(address.subscribe("test", 64).expect("it runs"))
    }

    async fn next(&mut self) -> SupervisorNews {
        loop {
            let item = tokio::time::timeout(Duration::from_secs(60), self.0.next()).await;
            match item.expect("news within a minute").expect("the supervisor lives") {
                FeedItem::Change { news, .. } => return news,
                FeedItem::Snapshot { .. } | FeedItem::Lagged { .. } => {}
            }
        }
    }

    /// Waits for the next end of this child that was not requested.
    async fn end_of(&mut self, awaited: &str) -> Ending {
        loop {
            match self.next().await {
                SupervisorNews::ChildEnded { name, ending } if name == awaited => return ending,
                _ => {}
            }
        }
    }

    /// Waits until this child runs again.
    async fn return_of(&mut self, awaited: &str) {
        while !matches!(self.next().await, SupervisorNews::ChildStarted { name, .. } if name == awaited) {}
    }
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Lets everything that is ready now run.
async fn settle_down() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

// === S1: falls and restarts ===

#[test]
fn a_child_whose_steps_panic_until_its_budget_is_spent_is_started_again_at_the_same_address_s1() {
    story(|| async {
        let (child, part) = player(spec("player"));
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let mut programme = Programme::of(&root);
        for _ in 0..3 {
            assert!(matches!(part.address.ask(Stumble).await, Err(AskError::Crashed { .. })));
        }
        let ending = programme.end_of("player").await;
        assert!(matches!(ending, Ending::BudgetSpent(message) if message.contains("on purpose")));
        assert_eq!(life_of(&part).await, 2);
        let tree = tree_of(&root).await;
        assert_eq!((tree.children[0].restarts, tree.children[0].crashes), (1, Some(3)), "{tree:?}");
    });
}

#[test]
fn a_panic_outside_of_any_step_is_told_from_a_normal_end_s1() {
    story(|| async {
        let transient = ChildSpec { restart: Restart::Transient, ..spec("player") };
        let (child, part) = player(transient);
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let mut programme = Programme::of(&root);
        assert!(part.address.ask(DropTheProps).await.is_err());
        assert_eq!(programme.end_of("player").await, Ending::Panicked("dropped the props".into()));
        assert_eq!(life_of(&part).await, 2, "a panic brings a transient child back");

        assert_eq!(part.address.ask(Leave(None)).await, Ok(()));
        assert_eq!(programme.end_of("player").await, Ending::Normal);
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!((part.lives.get(), part.living()), (2, 0), "a normal end does not");
        assert_eq!(tree_of(&root).await.children[0].state, "ended");
    });
}

#[test]
fn a_child_that_is_killed_from_outside_is_started_again_s1() {
    story(|| async {
        let task: Rc<Cell<Option<AbortHandle>>> = Rc::default();
        let last = Rc::clone(&task);
        // A child need not be run by the shell: any task will do.
        let child = Child::new(spec("task"), move || {
            let (tell, ended) = watch::channel(None);
            let task = actix_rt::spawn(async move {
                std::future::pending::<()>().await;
                tell.send_replace(Some(Ending::Normal));
            });
            last.set(Some(task.abort_handle()));
            std::future::ready(Ok(Running::new(|_| {}, task.abort_handle(), ended)))
        });
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let mut programme = Programme::of(&root);
        task.take().expect("it was started").abort();
        assert_eq!(programme.end_of("task").await, Ending::Killed);
        programme.return_of("task").await;
        assert_eq!(tree_of(&root).await.children[0].restarts, 1);
    });
}

#[test]
fn with_one_for_all_the_others_go_down_in_reverse_and_all_come_up_in_order_s1() {
    story(|| async {
        let (children, parts): (Vec<Child>, Vec<Part>) =
            ["a", "b", "c"].map(spec).map(player).into_iter().unzip();
        let together = SupervisorSpec { strategy: Strategy::OneForAll, ..SupervisorSpec::default() };
        let (root, _running) = supervise(together, children);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let mut programme = Programme::of(&root);
        assert_eq!(parts[1].address.ask(Leave(Some("stage fright"))).await, Ok(()));
        let mut told = Vec::new();
        while told.len() < 7 {
            told.push(match programme.next().await {
                SupervisorNews::ChildEnded { name, .. } => format!("{name} ended"),
                SupervisorNews::ChildRestarting { name, pause } => format!("{name} fell, pause {pause:?}"),
                SupervisorNews::ChildStopped(ending) => format!("{} stopped", ending.name),
                SupervisorNews::ChildStarted { name, .. } => format!("{name} runs"),
                other => format!("{other:?}"),
            });
        }
        let expected =
            ["b ended", "b fell, pause 1s", "c stopped", "a stopped", "a runs", "b runs", "c runs"];
        assert_eq!(told, expected);
        assert!(parts.iter().all(|part| (part.lives.get(), part.living()) == (2, 1)));
    });
}

#[test]
fn a_child_is_restarted_on_request_s1() {
    story(|| async {
        let (child, part) = player(spec("player"));
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        assert_eq!(root.ask(RestartChild { name: "player".into() }).await, Ok(Ok(())));
        assert_eq!(part.address.ask(WhichLife).await, Ok(2), "it runs when the answer comes");
        let unknown = root.ask(RestartChild { name: "unknown".into() }).await;
        assert_eq!(unknown, Ok(Err(RestartError::Unknown { name: "unknown".into() })));
    });
}

// === S1: escalation ===

/// A supervisor with one player, as a child of another supervisor.
fn nested(spec: SupervisorSpec, stop_deadline: Duration, is_deaf: bool) -> (Child, Part) {
    let part = Part::new("player");
    let address = Address::vacant("nested", 64);
    let (role, at) = (part.clone(), address.clone());
    let child_spec = ChildSpec { stop_deadline, backoff: brief(), ..ChildSpec::new("nested", "supervisor") };
    let child = Child::new(child_spec, move || {
        let role = role.clone();
        let seen_at = role.address.clone();
        let patient = ChildSpec { stop_deadline: Duration::from_secs(100), ..self::spec("player") };
        let player =
            Child::new(patient, move || std::future::ready(Ok(role.play(is_deaf)))).seen_at(&seen_at);
        let running = supervisor::start(&at, spec, vec![player], Settings::default());
        std::future::ready(Ok(running))
    });
    (supervising_at(child, &address), part)
}

/// A child that is a supervisor at this address: it is ready when all its children are, and its tree is included.
fn supervising_at(child: Child, address: &Address<Supervisor>) -> Child {
    let (started, described) = (address.clone(), address.clone());
    child
        .ready_when(move || {
            let started = started.clone();
            async move {
                let outcome = started.ask(AwaitStarted).await.map_err(|error| error.to_string())?;
                outcome.map_err(|error| error.to_string())
            }
        })
        .described_by(move || {
            let described = described.clone();
            async move {
                let children = described.ask(DescribeTree).await.ok()?.children;
                let vitals = described.vitals();
                Some(ChildDescription { vitals, children, ..ChildDescription::default() })
            }
        })
}

#[test]
fn a_supervisor_that_gives_up_is_started_again_by_its_own_and_its_children_with_it_s1() {
    story(|| async {
        let budget = RestartBudget { limit: 1, window: Duration::from_secs(60) };
        let impatient = SupervisorSpec { budget, ..SupervisorSpec::default() };
        let (child, part) = nested(impatient, Duration::from_secs(5), false);
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let tree = tree_of(&root).await;
        assert_eq!(
            (tree.state.as_str(), tree.children[0].children[0].state.as_str()),
            ("running", "running")
        );
        assert_eq!(tree.children[0].children[0].crashes, Some(0), "the tree reaches to the leaves");

        let mut programme = Programme::of(&root);
        for life in 1..=2 {
            assert_eq!(life_of(&part).await, life);
            assert_eq!(part.address.ask(Leave(Some("no audience"))).await, Ok(()));
        }
        let Ending::Failed(reason) = programme.end_of("nested").await else { panic!("it gives up") };
        assert_eq!(
            reason,
            "children failed more than 1 times within 60s; the last was player: it gave up: no audience"
        );
        programme.return_of("nested").await;
        assert_eq!(part.address.ask(WhichLife).await, Ok(3), "when it counts as started, its children run");
        let tree = tree_of(&root).await;
        assert_eq!((tree.children[0].restarts, tree.children[0].children[0].restarts), (1, 0));
    });
}

#[test]
fn the_root_gives_up_when_its_budget_is_spent_and_says_why_s1() {
    story(|| async {
        let (first, steady) = player(spec("steady"));
        let (second, part) = player(spec("player"));
        let budget = RestartBudget { limit: 0, window: Duration::from_secs(60) };
        let (root, running) =
            supervise(SupervisorSpec { budget, ..SupervisorSpec::default() }, vec![first, second]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        assert_eq!(part.address.ask(Leave(Some("no audience"))).await, Ok(()));
        assert!(matches!(running.ended().await, Ending::Failed(reason) if reason.ends_with("no audience")));
        assert_eq!(steady.living(), 0);
    });
}

// === S2: starts that fail ===

#[test]
fn a_half_done_start_is_undone_and_the_cause_is_told_s2_shd_06() {
    story(|| async {
        let before = alive_tasks();
        let (first, first_part) = player(spec("first"));
        let (second, second_part) = player(spec("second"));
        let third = Child::new(spec("third"), || std::future::ready(Err("the stage is gone".to_owned())));
        let (fourth, fourth_part) = player(spec("fourth"));
        let (root, running) = supervise(SupervisorSpec::default(), vec![first, second, third, fourth]);
        let error = StartError::Child { child: "third".into(), reason: "the stage is gone".into() };
        assert_eq!(root.ask(AwaitStarted).await, Ok(Err(error)));
        assert_eq!(running.ended().await, Ending::Failed("third did not start: the stage is gone".into()));
        let living = [first_part.living(), second_part.living(), fourth_part.living()];
        assert_eq!((living, fourth_part.lives.get()), ([0, 0, 0], 0));
        settle_down().await;
        assert_eq!(alive_tasks(), before, "S4: no task is left");
    });
}

#[test]
fn a_child_that_does_not_get_ready_within_its_deadline_is_stopped_again_s2() {
    story(|| async {
        let hurried = ChildSpec { start_deadline: Duration::from_secs(3), ..spec("player") };
        let (child, part) = player(hurried);
        let child = child.ready_when(std::future::pending);
        let (root, running) = supervise(SupervisorSpec::default(), vec![child]);
        let error = root.ask(AwaitStarted).await.expect("it runs").expect_err("it does not get ready");
        assert_eq!(
            error.to_string(),
            "player did not start, so everything before it was stopped again: no answer within 3s"
        );
        assert!(matches!(running.ended().await, Ending::Failed(_)));
        assert_eq!((part.lives.get(), part.living()), (1, 0));
    });
}

#[test]
fn a_child_that_ends_before_it_is_ready_has_not_started_s2() {
    story(|| async {
        let (child, part) = player(spec("player"));
        let child = child.ready_when(std::future::pending);
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        let started = root.ask(AwaitStarted);
        settle_down().await;
        assert_eq!(part.address.ask(Leave(Some("stage fright"))).await, Ok(()));
        let error = started.await.expect("it runs").expect_err("it has left");
        assert!(error.to_string().ends_with("it gave up: stage fright"), "{error}");
    });
}

#[test]
fn a_start_that_panics_is_a_start_that_failed_s2() {
    story(|| async {
        let child = Child::new(spec("player"), || async { panic!("no script") });
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        let error = root.ask(AwaitStarted).await.expect("it runs").expect_err("it panics");
        assert!(error.to_string().ends_with("the call crashed: no script"), "{error}");
    });
}

// === S3, S4: the end ===

#[test]
fn a_shutdown_stops_in_reverse_and_kills_at_the_deadline_s2_s3() {
    story(|| async {
        let before = alive_tasks();
        let patient = ChildSpec { stop_deadline: Duration::from_secs(7), ..spec("deaf") };
        let (first, _) = player(spec("first"));
        let (second, deaf) = player_who(patient, true);
        let temporary = ChildSpec { restart: Restart::Temporary, ..spec("third") };
        let (third, gone) = player(temporary);
        let (fourth, _) = player(spec("fourth"));
        let (root, running) = supervise(SupervisorSpec::default(), vec![first, second, third, fourth]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        assert_eq!(gone.address.ask(Leave(None)).await, Ok(()));
        settle_down().await;
        let report = shut_down(&root).await;
        let expected = [
            "fourth: stopped in time",
            "third: had ended before: it ended normally",
            "deaf: killed, since it had not ended within 7s",
            "first: stopped in time",
        ];
        assert_eq!((endings(&report), report.took.as_secs()), (expected.map(str::to_owned).to_vec(), 7));
        assert_eq!(running.ended().await, Ending::Normal);
        assert_eq!(deaf.living(), 0);
        settle_down().await;
        assert_eq!(alive_tasks(), before, "S4: no task is left");
    });
}

#[test]
fn a_child_has_the_time_to_stop_that_it_needs_for_what_is_below_it_s3() {
    const SECONDS: fn(u64) -> Duration = Duration::from_secs;
    story(|| async {
        let slow = OwnerConfig { said: Some(SECONDS(200)), takes: SECONDS(199) };
        let (told, took) = end_of_owner(Duration::MAX, slow).await;
        assert_eq!((told.as_str(), took.as_secs()), ("owner: stopped in time", 199));

        // It is waited for no longer than it has announced, with a margin.
        for (said, waited) in [(200, 205), (1, 6)] {
            let deaf = OwnerConfig { said: Some(SECONDS(said)), takes: Duration::MAX };
            let (told, took) = end_of_owner(Duration::MAX, deaf).await;
            let killed = format!("owner: killed, since it had not ended within {waited}s");
            assert_eq!((told, took.as_secs()), (killed, waited));
        }

        // It is waited for no longer than its specification allows.
        for (longest, waited) in [(0, 5), (60, 60)] {
            let (told, took) = end_of_owner(SECONDS(longest), slow).await;
            let killed = format!("owner: killed, since it had not ended within {waited}s");
            assert_eq!((told, took.as_secs()), (killed, waited));
        }

        let silent = OwnerConfig { said: None, takes: SECONDS(7) };
        let (told, _) = end_of_owner(Duration::MAX, silent).await;
        assert_eq!(told, "owner: killed, since it had not ended within 5s");
    });
}

#[test]
fn a_bound_that_is_given_again_during_a_stop_counts_from_then_s3() {
    const SECONDS: fn(u64) -> Duration = Duration::from_secs;
    let slow = OwnerConfig { said: Some(SECONDS(200)), takes: SECONDS(199) };
    story(|| async {
        // It crashes in the middle of its stop, and begins the stop again.
        let (root, owner, _running) = supervise_owner(Duration::MAX, slow).await;
        let stopping = root.ask(Shutdown { mode: StopMode::Stop });
        tokio::time::sleep(SECONDS(150)).await;
        owner.drill(Drill::Crash).expect("it runs");
        let report = stopping.await.expect("it runs").expect("few ask");
        assert_eq!(endings(&report), ["owner: stopped in time"]);
        assert_eq!(report.took.as_secs(), 349);
    });
    story(|| async {
        // A shutdown arrives during its restart.
        let (root, _owner, _running) = supervise_owner(Duration::MAX, slow).await;
        let restarting = root.ask(RestartChild { name: "owner".into() });
        tokio::time::sleep(SECONDS(150)).await;
        let report = shut_down(&root).await;
        assert_eq!(endings(&report), ["owner: stopped in time"]);
        assert_eq!(report.took.as_secs(), 199);
        assert_eq!(restarting.await, Ok(Err(RestartError::Stopping)));
    });
}

#[test]
fn a_child_that_has_fallen_before_a_shutdown_was_not_stopped_in_order_s3() {
    story(|| async {
        let temporary = |name| ChildSpec { restart: Restart::Temporary, ..spec(name) };
        let ((waits, waiting), (gone, going), (done, finished)) =
            (player(spec("waits")), player(temporary("gone")), player(temporary("done")));
        let (root, _running) = supervise(SupervisorSpec::default(), vec![waits, gone, done]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        for (part, how) in [(&waiting, Some("tired")), (&going, Some("bored")), (&finished, None)] {
            assert_eq!(part.address.ask(Leave(how)).await, Ok(()));
        }
        settle_down().await;
        let report = shut_down(&root).await;
        let expected = [
            "done: had ended before: it ended normally",
            "gone: had failed before, and was not stopped in order: it gave up: bored",
            "waits: had failed before, and was not stopped in order: it gave up: tired",
        ];
        assert_eq!(endings(&report), expected);
        let fallen: Vec<_> = report.not_in_order().map(|child| child.name.as_str()).collect();
        assert_eq!(fallen, ["gone", "waits"]);
    });
}

#[test]
fn what_a_child_left_is_ended_once_no_life_follows_s3_s4() {
    for (how, is_asked) in [("stopped in order", false), ("fallen", true), ("deaf", true)] {
        story(|| async {
            let asked = Rc::new(Cell::new(0));
            let (child, part) = player_who(spec("a"), how == "deaf");
            let counted = Rc::clone(&asked);
            let child = child.leaving(move |mode| {
                counted.set(counted.get() + 1);
                std::future::ready(vec![step(mode)])
            });
            let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
            assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
            // The leftovers of a child serve its next life.
            assert_eq!(root.ask(RestartChild { name: "a".into() }).await, Ok(Ok(())));
            assert_eq!(asked.get(), 0);
            if how == "fallen" {
                assert!(part.address.ask(Leave(Some("no luck"))).await.is_ok());
                settle_down().await;
            }
            let report = shut_down(&root).await;
            assert_eq!((how, asked.get()), (how, u32::from(is_asked)));
            let below = if is_asked { vec![step(StopMode::Stop)] } else { vec![] };
            assert_eq!((how, &report.children[0].below), (how, &below));
        });
    }
}

fn step(mode: StopMode) -> StopStep {
    StopStep { what: "props".into(), ending: format!("{mode:?}"), took: Duration::ZERO, is_left: true }
}

#[test]
fn a_child_that_was_killed_in_its_restart_was_not_stopped_in_order_s3() {
    story(|| async {
        let slow = ChildSpec { backoff: brief(), ..spec("deaf") };
        let (deaf, _part) = player_who(slow, true);
        let (first, _) = player(spec("first"));
        let everyone = SupervisorSpec { strategy: Strategy::OneForAll, ..SupervisorSpec::default() };
        let (second, part) = player(spec("second"));
        let (root, _running) = supervise(everyone, vec![first, deaf, second]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        assert_eq!(part.address.ask(Leave(Some("tired"))).await, Ok(()));
        // The deaf player is killed at its deadline; the others are stopped, and all wait until the pause is over.
        tokio::time::sleep(Duration::from_millis(5_500)).await;
        let report = shut_down(&root).await;
        let expected = [
            "second: had failed before, and was not stopped in order: it gave up: tired",
            "deaf: had failed before, and was not stopped in order: a sibling fell, and killed, since it had not ended within 5s",
            "first: had ended before: a sibling fell",
        ];
        assert_eq!(endings(&report), expected);
    });
}

#[test]
fn a_start_that_hangs_is_called_back_when_the_supervisor_stops_s3() {
    story(|| async {
        let (first, _) = player(spec("first"));
        let hanging = Child::new(spec("hanging"), std::future::pending);
        let (root, _running) = supervise(SupervisorSpec::default(), vec![first, hanging]);
        settle_down().await;
        let report = shut_down(&root).await;
        assert_eq!(endings(&report), ["hanging: had not been started", "first: stopped in time"]);
        assert!(report.took < Duration::from_secs(1), "{report:?}");
    });
}

#[test]
fn a_child_that_falls_while_everything_stops_stays_down_s3() {
    story(|| async {
        let patient = ChildSpec { stop_deadline: Duration::from_secs(7), ..spec("deaf") };
        let (first, part) = player(spec("first"));
        let (second, _) = player_who(patient, true);
        let (root, _running) = supervise(SupervisorSpec::default(), vec![first, second]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let stopping = root.ask(Shutdown { mode: StopMode::Stop });
        assert_eq!(part.address.ask(Leave(Some("a test asked for it"))).await, Ok(()));
        let report = stopping.await.expect("it runs").expect("few ask");
        let expected = [
            "deaf: killed, since it had not ended within 7s",
            "first: had failed before, and was not stopped in order: it gave up: a test asked for it",
        ];
        assert_eq!(endings(&report), expected);
        assert_eq!(part.lives.get(), 1);
    });
}

#[test]
fn when_a_supervisor_is_killed_its_children_do_not_outlive_it_s4_scl_06() {
    story(|| async {
        let before = alive_tasks();
        let (child, part) = nested(SupervisorSpec::default(), Duration::from_secs(2), true);
        let (root, running) = supervise(SupervisorSpec::default(), vec![child]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        assert_eq!(part.living(), 1);
        let report = shut_down(&root).await;
        assert_eq!(endings(&report), ["nested: killed, since it had not ended within 2s"]);
        running.ended().await;
        settle_down().await;
        assert_eq!((part.living(), alive_tasks()), (0, before));
    });
}

// === The tree ===

#[test]
fn a_child_that_cannot_describe_itself_does_not_keep_the_tree_from_being_shown() {
    story(|| async {
        let (first, _) = player(spec("first"));
        let (second, _) = player(spec("second"));
        let (third, _) = player(spec("third"));
        let stuck = second.described_by(std::future::pending);
        let broken = third.described_by(|| async { panic!("lost for words") });
        let (root, _running) = supervise(SupervisorSpec::default(), vec![first, stuck, broken]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let before = tokio::time::Instant::now();
        let tree = tree_of(&root).await;
        assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
        let shown: Vec<_> =
            tree.children.iter().map(|node| (node.state.as_str(), node.mailbox_depth)).collect();
        assert_eq!(shown, [("running", Some(0)), ("running", None), ("running", None)]);
        assert_eq!(tree.crashes, Some(0));
    });
}

#[test]
fn a_child_that_cannot_describe_itself_while_it_stops_is_shown_with_how_long_that_may_take_s3() {
    story(|| async {
        let patient = ChildSpec { stop_deadline: Duration::from_secs(7), ..spec("deaf") };
        let (deaf, _) = player_who(patient, true);
        let deaf = deaf.described_by(std::future::pending);
        let (root, _running) = supervise(SupervisorSpec::default(), vec![deaf]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let stopping = root.ask(Shutdown { mode: StopMode::Stop });
        let node = tree_of(&root).await.children.remove(0);
        assert_eq!((node.state.as_str(), node.mailbox_depth), ("stopping", None));
        let left = node.stops_within.expect("it is being stopped");
        assert!(left > Duration::from_secs(4) && left < Duration::from_secs(7), "{left:?}");
        stopping.await.expect("it runs").expect("few ask");
    });
}

#[test]
fn the_tree_says_who_waits_to_be_restarted_and_why() {
    story(|| async {
        let (child, part) = player(spec("player"));
        let (root, _running) = supervise(SupervisorSpec::default(), vec![child]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        assert_eq!(part.address.ask(Leave(Some("stage fright"))).await, Ok(()));
        settle_down().await;
        let tree = tree_of(&root).await;
        let node = &tree.children[0];
        assert_eq!(
            (node.state.as_str(), node.message.as_str()),
            ("waiting to be restarted", "it gave up: stage fright")
        );
        assert!(
            root.ask(AwaitStarted).now_or_never().is_none(),
            "a caller that waits for the start waits for the restart"
        );
    });
}

// === SCL-06 ===

#[test]
fn a_thousand_restarts_leave_nothing_behind_scl_06() {
    story(|| async {
        let before = alive_tasks();
        let budget = RestartBudget { limit: 10_000, window: Duration::from_secs(60) };
        let patient = SupervisorSpec { budget, ..SupervisorSpec::default() };
        let hasty = Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(1), ..brief() };
        let (child, part) = player(ChildSpec { backoff: hasty, ..spec("player") });
        let (nested, nested_part) = nested(patient, Duration::from_secs(5), false);
        let (root, running) = supervise(patient, vec![child, nested]);
        assert_eq!(root.ask(AwaitStarted).await, Ok(Ok(())));
        let started = alive_tasks();
        for cycle in 1..=1_000 {
            assert_eq!(life_of(&part).await, cycle);
            match cycle % 3 {
                0 => assert_eq!(part.address.ask(Leave(Some("off I go"))).await, Ok(())),
                1 => assert!(part.address.ask(DropTheProps).await.is_err()),
                _ => assert_eq!(root.ask(RestartChild { name: "player".into() }).await, Ok(Ok(()))),
            }
            if cycle % 100 == 0 {
                assert_eq!(root.ask(RestartChild { name: "nested".into() }).await, Ok(Ok(())));
                assert_eq!(tree_of(&root).await.children.len(), 2);
            }
        }
        assert_eq!((life_of(&part).await, life_of(&nested_part).await), (1_001, 11));
        settle_down().await;
        assert_eq!((alive_tasks(), part.living(), nested_part.living()), (started, 1, 1));
        shut_down(&root).await;
        running.ended().await;
        settle_down().await;
        assert_eq!((alive_tasks(), part.living(), nested_part.living()), (before, 0, 0));
    });
}
