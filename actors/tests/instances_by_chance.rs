//! The supervisor of the instances against chance: whatever the registry tells and however instances end, there is never
//! more than one instance of a plugin, and when things calm down there is exactly the one that is wanted (I1, REG-05, REG-08).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::instance::InstanceConfig;
use callboard_actors::instances::{
    ChildEnded, Dispense, Dispensed, InstanceReport, InstanceReported, Instances, InstancesAnswer,
    InstancesAsk, InstancesCall, InstancesNews, InstancesOptions, InstancesOutcome, InstancesTimer,
};
use callboard_actors::registry::{Active, RegistryNews, RegistryView};
use callboard_actors::shell::{AskId, CallKey, Effect, Effects, Ending, FeedItem, Input, Machine};
use callboard_actors::vocabulary::{
    AllocationId, Attempt, CsiFingerprint, Generation, Health, Identity, Moment, PluginKey, PluginName,
    PluginType, Registration, RestartBudget, SocketPath, Timestamp,
};
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig as Config, Strategy, any, prop_oneof, proptest};

/// Something that happens.
#[derive(Debug, Clone)]
enum Event {
    /// Another registration of this plugin becomes active.
    Activate(usize),
    /// No registration of this plugin is active any more.
    Deactivate(usize),
    /// News were missed, and a new snapshot comes.
    Snapshot,
    /// One of the living instances says this.
    Report(usize, Health),
    /// One that ended long ago says something.
    LateReport(usize),
    /// One of the living instances ends.
    End(usize),
    /// One that ended long ago ends again.
    LateEnd(usize),
    /// Time passes.
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let health = prop_oneof![
        Just(Health::Starting),
        Just(Health::Healthy),
        Just(Health::Unhealthy { reason: "by chance".to_owned() })
    ];
    prop_oneof![
        4 => (0..PLUGINS).prop_map(Event::Activate),
        2 => (0..PLUGINS).prop_map(Event::Deactivate),
        1 => Just(Event::Snapshot),
        4 => (any::<usize>(), health).prop_map(|(which, health)| Event::Report(which, health)),
        1 => any::<usize>().prop_map(Event::LateReport),
        4 => any::<usize>().prop_map(Event::End),
        1 => any::<usize>().prop_map(Event::LateEnd),
        3 => (1_u64..8_000).prop_map(Event::Pass),
    ]
}

const PLUGINS: usize = 3;

fn plugin(number: usize) -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new(format!("p{number}")).expect("a good name"))
}

/// What surrounds the machine.
struct World {
    machine: Instances,
    now: Timestamp,
    timers: Vec<(Timestamp, InstancesTimer)>,
    following: CallKey,
    wanted: BTreeMap<PluginKey, Active>,
    generations: u64,
    alive: BTreeMap<Attempt, InstanceConfig>,
    retiring: BTreeSet<Attempt>,
    ended: Vec<(Attempt, InstanceConfig)>,
    shown: BTreeMap<PluginKey, InstanceReport>,
    answers: Vec<Dispensed>,
}

impl World {
    fn new() -> Self {
        let restart_budget = RestartBudget { limit: 100_000, window: Duration::from_secs(60) };
        let options = InstancesOptions { restart_budget, ..InstancesOptions::default() };
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        let mut world = Self {
            machine: Instances::restore(&options, (), Moment { now, random: 1 << 40 }),
            now,
            timers: vec![],
            following: CallKey::default(),
            wanted: BTreeMap::new(),
            generations: 0,
            alive: BTreeMap::new(),
            retiring: BTreeSet::new(),
            ended: vec![],
            shown: BTreeMap::new(),
            answers: vec![],
        };
        world.step(&Input::Resumed);
        world.snapshot();
        world
    }

    fn step(&mut self, input: &Input<Instances>) {
        let mut effects = Effects::default();
        self.machine.step(Moment { now: self.now, random: 77 }, input, &mut effects);
        let effects: Vec<_> = effects.drain().collect();
        for effect in effects {
            self.perform(effect);
        }
        let view = self.machine.view().reports;
        assert_eq!(view, self.shown.values().cloned().collect::<Vec<_>>(), "the news add up to the view");
    }

    fn perform(&mut self, effect: Effect<Instances>) {
        match effect {
            Effect::Call { key, call, .. } => self.call(key, call),
            Effect::Publish(InstancesNews::Reported(report)) => {
                assert_ne!(self.shown.get(&report.plugin), Some(&report), "told twice (SCL-05)");
                self.shown.insert(report.plugin.clone(), report);
            }
            Effect::Publish(InstancesNews::Left(report)) => {
                assert_eq!(report.health, Health::Gone);
                assert!(self.shown.remove(&report.plugin).is_some(), "what left was there");
            }
            Effect::Publish(InstancesNews::Expected(_) | InstancesNews::Settled) => {}
            Effect::Reply(_, InstancesAnswer::Dispense(answer)) => self.answers.extend(answer),
            Effect::StartTimer(timer, at) => {
                self.timers.retain(|(_, other)| *other != timer);
                self.timers.push((at, timer));
            }
            Effect::CancelTimer(timer) => self.timers.retain(|(_, other)| *other != timer),
            Effect::Reply(..) => {}
            Effect::Stop(ending) => panic!("nobody stops it: {ending:?}"),
            Effect::Persist(never) => match never {},
        }
    }

    fn call(&mut self, key: CallKey, call: InstancesCall) {
        match call {
            InstancesCall::Start { life, config } => {
                let twin = self.alive.values().find(|other| other.plugin == config.plugin);
                assert!(twin.is_none(), "two instances of one plugin at once (I1): {twin:?} and {config:?}");
                self.alive.insert(life, *config);
            }
            InstancesCall::Retire { life } => {
                self.retiring.insert(life);
            }
            InstancesCall::Follow { .. } => self.following = key,
            // A kill is heard of as an ending, which chance brings; the other calls come back when nobody minds.
            InstancesCall::Kill { .. }
            | InstancesCall::Sweep
            | InstancesCall::AwaitEndings
            | InstancesCall::Look { .. }
            | InstancesCall::Describe => {}
        }
    }

    fn hear(&mut self, item: FeedItem<RegistryNews, RegistryView>) {
        let call = InstancesCall::Follow { afresh: false };
        let outcome = Ok(InstancesOutcome::Followed(Ok(vec![item])));
        self.step(&Input::Returned { key: self.following, call, outcome });
    }

    fn snapshot(&mut self) {
        let active = self.wanted.values().cloned().collect();
        self.hear(FeedItem::Snapshot { number: 0, view: RegistryView { entries: vec![], active } });
    }

    fn route(&mut self, plugin: PluginKey, to: Option<Active>) {
        match &to {
            Some(active) => self.wanted.insert(plugin.clone(), active.clone()),
            None => self.wanted.remove(&plugin),
        };
        self.hear(FeedItem::Change {
            number: 1,
            news: RegistryNews::ActiveChanged { plugin, from: None, to },
        });
    }

    fn say(&mut self, life: Attempt, config: &InstanceConfig, health: Health) {
        let fingerprint = CsiFingerprint {
            identity: Identity {
                provider: "p.example".into(),
                version: "1".into(),
                manifest: BTreeMap::new(),
            },
            plugin: vec![],
            expansion: vec![],
            controller: None,
            node: Some(vec![]),
            node_info: None,
        };
        let report = InstanceReport {
            plugin: config.plugin.clone(),
            allocation: config.allocation.clone(),
            socket: config.socket.clone(),
            generation: config.generation,
            since: self.now,
            fingerprint: (health != Health::Starting).then(|| Arc::new(fingerprint)),
            health,
            remarks: vec![],
        };
        let ask = InstancesAsk::InstanceReported(InstanceReported { life, report });
        self.step(&Input::Asked { id: AskId::new(0), asked_at: self.now, ask });
    }

    fn end(&mut self, life: Attempt, plugin: PluginKey) {
        let ending = if self.retiring.remove(&life) { Ending::Normal } else { Ending::Killed };
        let outcome = Ok(InstancesOutcome::Ended(vec![ChildEnded { plugin, life, ending }]));
        self.step(&Input::Returned { key: CallKey::default(), call: InstancesCall::AwaitEndings, outcome });
    }

    fn pass(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(at) = self.timers.iter().map(|(at, _)| *at).filter(|at| *at <= until).min() {
            let place = self.timers.iter().position(|(due, _)| *due == at).expect("it was just there");
            let (_, timer) = self.timers.remove(place);
            self.now = self.now.max(at);
            self.step(&Input::Elapsed(timer));
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Activate(number) => {
                self.generations += 1;
                let active = active(number, self.generations);
                self.route(plugin(number), Some(active));
            }
            Event::Deactivate(number) => self.route(plugin(number), None),
            Event::Snapshot => self.snapshot(),
            Event::Report(which, health) => {
                if let Some((life, config)) = pick(&self.alive, which) {
                    self.say(life, &config, health);
                }
            }
            Event::End(which) => {
                if let Some((life, config)) = pick(&self.alive, which) {
                    self.alive.remove(&life);
                    self.ended.push((life, config.clone()));
                    self.end(life, config.plugin);
                }
            }
            Event::LateReport(which) if !self.ended.is_empty() => {
                let (life, config) = self.ended[which % self.ended.len()].clone();
                let before = self.shown.clone();
                self.say(life, &config, Health::Healthy);
                assert_eq!(self.shown, before, "a late word changes nothing (REG-08)");
            }
            Event::LateEnd(which) if !self.ended.is_empty() => {
                let (life, config) = self.ended[which % self.ended.len()].clone();
                let before = self.shown.clone();
                self.end(life, config.plugin);
                assert_eq!(self.shown, before, "a late end changes nothing (REG-08)");
            }
            Event::LateReport(_) | Event::LateEnd(_) => {}
            Event::Pass(millis) => self.pass(millis),
        }
    }

    /// Lets everything that is under way come to its end.
    fn calm_down(&mut self) {
        for _ in 0..4 {
            for life in self.retiring.clone() {
                if let Some(config) = self.alive.remove(&life) {
                    self.end(life, config.plugin);
                }
            }
            self.pass(60_000);
        }
        for (life, config) in self.alive.clone() {
            self.say(life, &config, Health::Healthy);
        }
    }
}

fn active(number: usize, generation: u64) -> Active {
    let allocation = AllocationId::new(format!("a{generation}")).expect("a good id");
    let registration = Registration {
        plugin: plugin(number),
        socket: SocketPath::new(format!("/run/{allocation}.sock")).expect("a good path"),
        allocation,
        provider: None,
        version: None,
        options: Arc::default(),
    };
    Active {
        generation: Generation::new(generation),
        registration: Arc::new(registration),
        since: Timestamp::default(),
    }
}

fn pick(alive: &BTreeMap<Attempt, InstanceConfig>, which: usize) -> Option<(Attempt, InstanceConfig)> {
    let place = which.checked_rem(alive.len())?;
    alive.iter().nth(place).map(|(life, config)| (*life, config.clone()))
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn there_is_never_more_than_one_instance_of_a_plugin_and_in_the_end_the_right_one(events in vec(event(), 1..120)) {
        let mut world = World::new();
        for event in events {
            world.happen(event);
        }
        world.calm_down();
        let alive: BTreeMap<_, _> =
            world.alive.values().map(|config| (config.plugin.clone(), config.generation)).collect();
        let wanted: BTreeMap<_, _> =
            world.wanted.iter().map(|(plugin, active)| (plugin.clone(), active.generation)).collect();
        assert_eq!(alive, wanted);
        for plugin in wanted.keys() {
            let ask = InstancesAsk::Dispense(Dispense { plugin: plugin.clone(), within: Duration::ZERO });
            world.step(&Input::Asked { id: AskId::new(1), asked_at: world.now, ask });
        }
        let dispensed: BTreeMap<_, _> =
            world.answers.iter().map(|dispensed| (dispensed.plugin.clone(), dispensed.generation)).collect();
        assert_eq!(dispensed, wanted, "what is wanted and healthy is handed out");
    }
}
