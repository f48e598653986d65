//! Message scripts of the registry: the pure machine under virtual time.
//!
//! Each command is an input of the registry; below it come the effects in order. The disk is an image that each write
//! changes; `disk full` makes the next write fail, `crash` rebuilds the machine, `restart` begins a new run of the host.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use goldenscript::{ArgumentConsumer, Command, Context, Runner};

use super::behaviour::RegistryTimer;
use super::messages::*;
use super::state::{CheckIdentity, CheckOutcome, Image, Registry, RegistryOptions, Stored};
use crate::kernel::{AskId, CallKey, Effect, Input, Machine, StepContext, StopMode};
use crate::stage::{Fault, play_all, word};
use crate::vocabulary::*;

#[test]
fn every_story_of_the_registry_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/registry/scripts"), 12, Stage::new);
}

struct Stage {
    registry: Registry,
    rows: BTreeMap<RegistrationNumber, Stored>,
    ceiling: u64,
    run: RunNumber,
    run_began: Timestamp,
    now: Timestamp,
    asked: u64,
    waiting: BTreeMap<AskId, (Timestamp, WaitForPlugin)>,
    timers: Vec<(Timestamp, RegistryTimer)>,
    checks: Vec<(CallKey, CheckIdentity)>,
    is_disk_full: bool,
}

impl Stage {
    fn new() -> Self {
        let options = RegistryOptions { registrations_max: 5, waiting_max: 2, ..RegistryOptions::default() };
        let image = Image { run: RunNumber::new(1), ..Image::default() };
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        Self {
            registry: Registry::restore(&options, image, Moment { now, random: 0 }),
            rows: BTreeMap::new(),
            ceiling: 0,
            run: RunNumber::new(1),
            run_began: now,
            now,
            asked: 0,
            waiting: BTreeMap::new(),
            timers: vec![],
            checks: vec![],
            is_disk_full: false,
        }
    }

    fn moment(&self) -> Moment {
        // The middle of the range of jitter, that is, no jitter.
        Moment { now: self.now, random: 100_000 }
    }

    fn step(&mut self, input: &Input<Registry>, told: &mut String) {
        let mut cx = StepContext::new(self.moment());
        self.registry.step(input, &mut cx);
        let effects: Vec<_> = cx.drain().collect();
        for effect in effects {
            if !self.perform(effect, told) {
                told.push_str("the write failed: nothing of this happened\n");
                self.rebuild(told);
                return;
            }
        }
    }

    fn rebuild(&mut self, told: &mut String) {
        let stored = self.rows.values().cloned().collect();
        let run_age = self.now.since(self.run_began);
        let image = Image::of(stored, self.ceiling, self.run, run_age);
        self.registry = Registry::restore(&self.registry.options.clone(), image, self.moment());
        self.timers.clear();
        self.checks.clear();
        self.step(&Input::Resumed, told);
        for (id, (asked_at, question)) in self.waiting.clone() {
            let ask = RegistryAsk::WaitForPlugin(question);
            self.step(&Input::Asked { id, asked_at, ask }, told);
        }
    }

    fn perform(&mut self, effect: Effect<Registry>, told: &mut String) -> bool {
        match effect {
            Effect::Persist(..) if std::mem::take(&mut self.is_disk_full) => return false,
            Effect::Persist(_, change) => {
                let put: Vec<String> = change.put.iter().map(|row| row.number.to_string()).collect();
                let delete: Vec<String> = change.delete.iter().map(ToString::to_string).collect();
                if !put.is_empty() || !delete.is_empty() {
                    writeln!(told, "write: put [{}] delete [{}]", put.join(" "), delete.join(" ")).unwrap();
                }
                change.delete.iter().for_each(|number| {
                    self.rows.remove(number);
                });
                self.ceiling = self.ceiling.max(change.ceiling());
                self.rows.extend(change.put.into_iter().map(|row| (row.number, row)));
            }
            Effect::Reply(id, answer) => {
                self.waiting.remove(&id);
                writeln!(told, "answer {}: {}", self.name(id), tell_answer(answer)).unwrap();
            }
            Effect::Publish(news) => writeln!(told, "news: {}", tell_news(&news)).unwrap(),
            Effect::Call { key, call, .. } => {
                let registration = &call.registration;
                writeln!(told, "check: {} of {}", registration.allocation, registration.plugin).unwrap();
                self.checks.push((key, call));
            }
            Effect::StartTimer(timer, at) => {
                self.timers.retain(|(_, other)| *other != timer);
                self.timers.push((at, timer));
            }
            Effect::CancelTimer(timer) => self.timers.retain(|(_, other)| *other != timer),
            Effect::Stop(ending) => writeln!(told, "ends: {ending:?}").unwrap(),
        }
        true
    }

    fn name(&self, id: AskId) -> String {
        format!("{id:?}").trim_start_matches("AskId(").trim_end_matches(')').to_owned()
    }

    fn ask(&mut self, ask: RegistryAsk, told: &mut String) {
        self.asked += 1;
        let id = AskId::new(self.asked);
        if let RegistryAsk::WaitForPlugin(question) = &ask {
            self.waiting.insert(id, (self.now, question.clone()));
        }
        self.step(&Input::Asked { id, asked_at: self.now, ask }, told);
    }

    fn pass(&mut self, seconds: u64, told: &mut String) {
        let until = self.now + Duration::from_secs(seconds);
        while let Some(next) = self.timers.iter().filter(|(at, _)| *at <= until).min().cloned() {
            self.timers.retain(|timer| *timer != next);
            self.now = self.now.max(next.0);
            self.step(&Input::Elapsed(next.1), told);
        }
        self.now = until;
    }

    /// `ALLOCATION PLUGIN [generation=N]`: the generation is the present one unless it is given.
    fn read_watched(
        &self,
        args: &mut ArgumentConsumer<'_>,
    ) -> Result<(PluginKey, AllocationId, Generation), Fault> {
        let allocation = AllocationId::new(word(args, "allocation")?)?;
        let plugin = read_plugin(&word(args, "plugin")?)?;
        let is_it =
            |row: &&Stored| row.registration.plugin == plugin && row.registration.allocation == allocation;
        let present = self.rows.values().find(is_it).map(|row| row.generation).unwrap_or_default();
        let generation = args.take_key("generation").map(str::parse).transpose()?.map(Generation::new);
        Ok((plugin, allocation, generation.unwrap_or(present)))
    }

    fn checked(&mut self, allocation: &str, outcome: &CheckOutcome, told: &mut String) {
        let is_of =
            |(_, call): &(CallKey, CheckIdentity)| call.registration.allocation.as_str() == allocation;
        let (these, others) = std::mem::take(&mut self.checks).into_iter().partition(is_of);
        self.checks = others;
        for (key, call) in these {
            self.step(&Input::Returned { key, call, outcome: Ok(outcome.clone()) }, told);
        }
    }
}

impl Runner for Stage {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Result<String, Fault> {
        let mut told = String::new();
        let mut args = command.consume_args();
        match command.name.as_str() {
            "register" => {
                let register = read_register(&mut args)?;
                self.ask(RegistryAsk::Register(register), &mut told);
            }
            "deregister" => {
                let allocation = AllocationId::new(word(&mut args, "allocation")?)?;
                let has_failed = args.take_key("failed").is_some();
                let cause = if has_failed { LeaveCause::Failed } else { LeaveCause::Stopped };
                let plugins = read_plugins(&mut args)?;
                self.ask(RegistryAsk::Deregister(Deregister { plugins, allocation, cause }), &mut told);
            }
            "fit" | "unfit" | "unproven" => {
                let fitness = match command.name.as_str() {
                    "fit" => Fitness::Fit,
                    "unfit" => {
                        Fitness::Unfit { reason: args.take_key("reason").unwrap_or("it hangs").into() }
                    }
                    _ => Fitness::Unproven,
                };
                let (plugin, allocation, generation) = self.read_watched(&mut args)?;
                let report = ReportFitness { plugin, allocation, generation, fitness };
                self.ask(RegistryAsk::ReportFitness(report), &mut told);
            }
            "renew" => {
                let (plugin, allocation, generation) = self.read_watched(&mut args)?;
                self.ask(RegistryAsk::Renew(Renew { plugin, allocation, generation }), &mut told);
            }
            "policy" => {
                self.registry.options.policy = word(&mut args, "policy")?.parse()?;
            }
            "wait" => {
                let plugin = read_plugin(&word(&mut args, "plugin")?)?;
                let within = Duration::from_secs(word(&mut args, "seconds")?.parse()?);
                self.ask(RegistryAsk::WaitForPlugin(WaitForPlugin { plugin, within }), &mut told);
            }
            "list" => self.ask(RegistryAsk::List(List), &mut told),
            "describe-all" => self.ask(RegistryAsk::DescribePlugins(DescribePlugins), &mut told),
            "describe" => {
                let plugin = read_plugin(&word(&mut args, "plugin")?)?;
                self.ask(RegistryAsk::Describe(Describe { plugin }), &mut told);
            }
            "registration-of" => {
                let allocation = AllocationId::new(word(&mut args, "allocation")?)?;
                let plugin = read_plugin(&word(&mut args, "plugin")?)?;
                self.ask(RegistryAsk::RegistrationOf(RegistrationOf { plugin, allocation }), &mut told);
            }
            "view" => {
                let view = self.registry.view();
                view.entries.iter().for_each(|entry| writeln!(told, "{}", tell_entry(entry)).unwrap());
                view.active
                    .iter()
                    .for_each(|active| writeln!(told, "active: {}", tell_active(active)).unwrap());
            }
            "pass" => self.pass(word(&mut args, "seconds")?.parse()?, &mut told),
            "crash" => self.rebuild(&mut told),
            "restart" => {
                self.run = self.run.next();
                self.run_began = self.now;
                self.waiting.clear();
                if let Some(most) = args.take_key("registrations") {
                    self.registry.options.registrations_max = most.parse()?;
                }
                self.rebuild(&mut told);
            }
            "disk-full" => self.is_disk_full = true,
            "proven" => {
                let allocation = word(&mut args, "allocation")?;
                self.checked(&allocation, &CheckOutcome::Proven, &mut told);
            }
            "not-proven" => {
                let allocation = word(&mut args, "allocation")?;
                self.checked(&allocation, &CheckOutcome::NotProven("no listener".into()), &mut told);
            }
            "stop" => self.step(&Input::StopRequested(StopMode::Stop), &mut told),
            unknown => return Err(format!("no such verb: {unknown}").into()),
        }
        args.reject_next()?;
        Ok(told)
    }
}

fn read_plugin(text: &str) -> Result<PluginKey, Fault> {
    let (plugin_type, name) = text.split_once('/').ok_or("a plugin is written TYPE/NAME")?;
    Ok(PluginKey::new(plugin_type.parse()?, PluginName::new(name)?))
}

fn read_plugins(args: &mut ArgumentConsumer<'_>) -> Result<Vec<PluginKey>, Fault> {
    std::iter::from_fn(|| args.next_pos()).map(read_plugin).collect()
}

fn read_register(args: &mut ArgumentConsumer<'_>) -> Result<Register, Fault> {
    let allocation = AllocationId::new(word(args, "allocation")?)?;
    let socket = args.take_key("socket").map_or_else(|| format!("/run/{allocation}.sock"), str::to_owned);
    let options: usize = args.take_key("options").unwrap_or("0").parse()?;
    let value = "x".repeat(args.take_key("value-bytes").unwrap_or("0").parse()?);
    Ok(Register {
        socket: SocketPath::new(socket)?,
        provider: args.take_key("provider").map(Arc::from),
        version: args.take_key("version").map(Arc::from),
        policy: args.take_key("policy").map(str::parse).transpose()?,
        options: Arc::new((0..options).map(|n| (n.to_string(), value.clone())).collect()),
        plugins: read_plugins(args)?,
        allocation,
    })
}

fn tell_entry(entry: &Entry) -> String {
    let Registration { plugin, allocation, socket, .. } = &*entry.registration;
    let (number, generation) = (entry.number, entry.generation);
    format!("#{number} {allocation}@{generation} for {plugin} at {socket} {:?}", entry.standing)
}

fn tell_standby(standby: &Standby) -> String {
    format!("{} ({:?})", tell_entry(&standby.entry), standby.inactive_because)
}

fn tell_entries(entries: &[Entry]) -> String {
    entries.iter().map(tell_entry).collect::<Vec<_>>().join(", ")
}

fn tell_description(description: &Description) -> String {
    let Description { active, active_because, policy, standby, provisional, .. } = description;
    format!(
        "{policy}: active {} ({}); standby [{}]; provisional [{}]",
        active.as_ref().map_or_else(|| "none".to_owned(), tell_active),
        active_because.map_or_else(|| "none".to_owned(), |active_because| active_because.to_string()),
        standby.iter().map(tell_standby).collect::<Vec<_>>().join(", "),
        tell_entries(provisional)
    )
}

fn tell_active(active: &Active) -> String {
    let Registration { plugin, allocation, .. } = &*active.registration;
    format!("{allocation} for {plugin} generation {}", active.generation)
}

fn tell_news(news: &RegistryNews) -> String {
    let short = |active: &Option<Active>| match active {
        Some(active) => format!("{}@{}", active.registration.allocation, active.generation),
        None => "none".to_owned(),
    };
    match news {
        RegistryNews::Registered(entry) => format!("registered {}", tell_entry(entry)),
        RegistryNews::Updated(entry) => format!("updated {}", tell_entry(entry)),
        RegistryNews::Renewed(entry) => format!("renewed {}", tell_entry(entry)),
        RegistryNews::Deregistered(entry, why) => format!("left {} ({why:?})", tell_entry(entry)),
        RegistryNews::ActiveChanged { plugin, from, to, reason } => {
            format!("active of {plugin}: {} -> {} ({reason:?})", short(from), short(to))
        }
    }
}

fn tell_answer(answer: RegistryAnswer) -> String {
    match answer {
        RegistryAnswer::Register(Ok(registered)) => format!("{registered:?}"),
        RegistryAnswer::Register(Err(error)) => format!("refused: {error}"),
        RegistryAnswer::Deregister(deregistered) => match deregistered {
            Deregistered::NotRegistered => "not registered".to_owned(),
            Deregistered::Removed(plugins) => {
                format!("removed {}", plugins.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            }
        },
        RegistryAnswer::List(list) => format!("[{}]", tell_entries(&list)),
        RegistryAnswer::Describe(description) => tell_description(&description),
        RegistryAnswer::DescribePlugins(all) => {
            all.iter().map(tell_description).collect::<Vec<_>>().join(" | ")
        }
        RegistryAnswer::ReportFitness(()) | RegistryAnswer::Renew(()) => "taken".to_owned(),
        RegistryAnswer::RegistrationOf(entry) => {
            entry.as_ref().map_or_else(|| "not registered".to_owned(), tell_entry)
        }
        RegistryAnswer::WaitForPlugin(Ok(active)) => format!("it is there: {}", tell_active(&active)),
        RegistryAnswer::WaitForPlugin(Err(error)) => format!("in vain: {error}"),
    }
}
