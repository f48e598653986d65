//! The tasks of a host with their disk, one driver and its copies: small enough to search every order.

use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::shell::StopMode;
use callboard_actors::tasks::{Started, Tasks};
use callboard_actors::vocabulary::Timestamp;

use super::answering::handle;
use super::environment::Standing;
use super::event::{Question, TasksBounds, TasksEvent};
use super::host::Host;
use crate::{Outcome, Play, Tamper, Violation, World};

/// The limit of passages of time until everything must be at rest.
const PAUSES_MAX: u32 = 200;

/// The world, with its remaining bounds.
#[derive(Debug, Clone)]
pub struct TasksWorld {
    host: Host,
    now: Timestamp,
    left: TasksBounds,
}

/// Hashes the debug text: tasks contain floating-point numbers and schemas of drivers, which have no hash.
impl Hash for TasksWorld {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{self:?}").hash(state);
    }
}

impl TasksWorld {
    /// A world with these bounds, and with a fault in the machine if one is given.
    #[must_use]
    pub fn new(bounds: TasksBounds, tamper: Option<Rc<dyn Tamper<Tasks>>>) -> Self {
        let now = Timestamp::from_epoch(Duration::from_secs(1_000));
        let mut host = Host::new(&bounds, tamper);
        host.load(now);
        Self { host, now, left: bounds }
    }

    fn pass(&mut self) {
        self.now = self.host.due().unwrap_or(self.now).max(self.now);
        self.host.time_passes(self.now);
    }

    fn hear(&mut self) -> Result<(), Violation> {
        self.host.broken().cloned().map_or(Ok(()), Err)
    }

    fn writes(&self, events: &mut Vec<TasksEvent>) {
        let waiting = u8::try_from(self.host.actor.store.waiting()).unwrap_or(u8::MAX);
        let is_sick = self.host.actor.is_sick();
        if is_sick {
            events.push(TasksEvent::Disk(false));
        } else if self.left.sicknesses > 0 {
            events.push(TasksEvent::Disk(true));
        }
        if waiting > 0 && !is_sick {
            events.push(TasksEvent::Settle(waiting, Outcome::Written));
        }
        // Without a failure or an end of the host, one commit and two commits of the same writes are equivalent.
        if waiting > 1 && (self.left.failures > 0 || self.left.kills > 0) {
            events.push(TasksEvent::Settle(1, Outcome::Written));
        }
        if waiting > 0 && self.left.failures > 0 {
            let outcomes = [Outcome::Failed, Outcome::FailedButWritten];
            events.extend(outcomes.map(|outcome| TasksEvent::Settle(1, outcome)));
        }
        if self.left.kills > 0 {
            events.extend((0..=waiting).map(TasksEvent::Kill));
        }
    }

    fn driver(&self, events: &mut Vec<TasksEvent>) {
        let environment = &self.host.environment;
        match environment.process.as_ref().map(|process| process.standing) {
            None => {
                events.push(TasksEvent::Launch);
                if self.left.refusals > 0 && !environment.is_refused {
                    events.push(TasksEvent::RefuseLaunch);
                }
            }
            Some(Standing::Left) => events.push(TasksEvent::Found),
            Some(Standing::Doomed) => events.push(TasksEvent::Die),
            Some(Standing::Serves) => {}
        }
        if environment.process.as_ref().is_some_and(|process| process.standing != Standing::Doomed)
            && self.left.deaths > 0
        {
            events.push(TasksEvent::Die);
        }
        for (place, work) in (0..u8::MAX).zip(environment.works()) {
            events.push(if work.has_begun { TasksEvent::Done(place) } else { TasksEvent::Begin(place) });
            if self.left.faults > 0 {
                events.extend([TasksEvent::Fail(place), TasksEvent::Refuse(place)]);
            }
        }
    }

    fn answers(&self, events: &mut Vec<TasksEvent>) {
        for (question, task, is_due) in self.host.questions() {
            if is_due {
                events.push(TasksEvent::Answer(question, task));
            }
            if question == Question::Start {
                if self.left.cuts > 0 && self.host.is_busy_with(task) {
                    events.push(TasksEvent::Cut(task));
                }
            } else if self.left.faults > 0 {
                events.push(TasksEvent::Trouble(question, task));
            }
        }
    }

    fn people(&self, events: &mut Vec<TasksEvent>) {
        for (number, name) in (0..u8::MAX).zip(&self.host.names) {
            if self.left.starts > 0 {
                events.push(TasksEvent::Start(number));
            }
            if self.left.stops > 0 {
                events.push(TasksEvent::Stop(number));
            }
            if self.left.exits > 0 && self.host.environment.living(name) > 0 {
                events.extend([TasksEvent::Exit(number, 0), TasksEvent::Exit(number, 1)]);
            }
        }
        events.extend(self.left.ends.iter().map(|mode| TasksEvent::End(*mode)));
    }

    fn happen(&mut self, event: &TasksEvent) {
        let (host, now) = (&mut self.host, self.now);
        match *event {
            TasksEvent::Start(task) => host.say_start(now, task),
            TasksEvent::Stop(task) => host.say_stop(now, task),
            TasksEvent::Launch => host.environment.launch(),
            TasksEvent::RefuseLaunch => host.refuse_launch(now),
            TasksEvent::Found => host.environment.find(),
            TasksEvent::Die => host.environment.die(),
            TasksEvent::Begin(place) => host.begin(place),
            TasksEvent::Done(place) => host.finish(now, place, |run| Started::Runs(handle(run))),
            TasksEvent::Fail(place) => host.finish(now, place, |_| Started::Retry("not now".to_owned())),
            TasksEvent::Refuse(place) => host.finish(now, place, |_| Started::Refused("never".to_owned())),
            TasksEvent::Cut(task) => host.trouble(now, Question::Start, task),
            TasksEvent::Answer(question, task) => host.answer(now, question, task),
            TasksEvent::Trouble(question, task) => host.trouble(now, question, task),
            TasksEvent::Exit(task, code) => {
                if let Some(name) = host.name(task).cloned() {
                    host.environment.exit(&name, code);
                }
            }
            TasksEvent::Disk(is_sick) => host.disk(now, is_sick),
            TasksEvent::Settle(count, outcome) => host.settle(now, usize::from(count), outcome),
            TasksEvent::Load => host.load(now),
            TasksEvent::Pass => self.pass(),
            TasksEvent::Crash => host.actor.crash_next_step(),
            TasksEvent::Kill(reached) => {
                host.next_run(usize::from(reached));
                host.load(now);
            }
            TasksEvent::End(mode) => host.end(now, mode),
        }
        self.host.carry(self.now);
    }

    /// Counts the event against the bounds.
    fn spend(&mut self, event: &TasksEvent) {
        let left = &mut self.left;
        if let TasksEvent::End(mode) = event {
            left.ends = other(left.ends, *mode);
        }
        let is_doomed = self
            .host
            .environment
            .process
            .as_ref()
            .is_some_and(|process| process.standing == Standing::Doomed);
        let of = match event {
            TasksEvent::Start(_) => &mut left.starts,
            TasksEvent::Stop(_) => &mut left.stops,
            TasksEvent::Die if !is_doomed => &mut left.deaths,
            TasksEvent::RefuseLaunch => &mut left.refusals,
            TasksEvent::Fail(_) | TasksEvent::Refuse(_) | TasksEvent::Trouble(..) => &mut left.faults,
            TasksEvent::Cut(_) => &mut left.cuts,
            TasksEvent::Exit(..) => &mut left.exits,
            TasksEvent::Settle(_, Outcome::Failed | Outcome::FailedButWritten) => &mut left.failures,
            TasksEvent::Pass => &mut left.pauses,
            TasksEvent::Disk(true) => &mut left.sicknesses,
            TasksEvent::Crash => &mut left.crashes,
            TasksEvent::Kill(_) => &mut left.kills,
            TasksEvent::Launch
            | TasksEvent::Found
            | TasksEvent::Die
            | TasksEvent::Begin(_)
            | TasksEvent::Done(_)
            | TasksEvent::Answer(..)
            | TasksEvent::Settle(_, Outcome::Written)
            | TasksEvent::Disk(false)
            | TasksEvent::Load
            | TasksEvent::End(_) => return,
        };
        *of = of.saturating_sub(1);
    }
}

/// The modes in which a host that was asked to end may be asked again: the other mode.
fn other(ends: &'static [StopMode], mode: StopMode) -> &'static [StopMode] {
    match mode {
        StopMode::Stop if ends.contains(&StopMode::Detach) => &[StopMode::Detach],
        StopMode::Detach if ends.contains(&StopMode::Stop) => &[StopMode::Stop],
        StopMode::Stop | StopMode::Detach => &[],
    }
}

impl World for TasksWorld {
    fn events(&self) -> Vec<TasksEvent> {
        let mut events = Vec::new();
        if self.host.actor.has_ended() {
            return events;
        }
        self.writes(&mut events);
        // If nothing can fail, pending writes settle first.
        let faults = [self.left.failures, self.left.kills, self.left.crashes, self.left.sicknesses];
        if !events.is_empty() && faults.iter().all(|left| *left == 0) && !self.host.actor.is_sick() {
            return events;
        }
        self.driver(&mut events);
        self.answers(&mut events);
        self.people(&mut events);
        let mut maybe = |is_possible: bool, event| is_possible.then(|| events.push(event));
        maybe(self.host.actor.is_loading(), TasksEvent::Load);
        maybe(self.left.pauses > 0 && self.host.due().is_some(), TasksEvent::Pass);
        maybe(self.left.crashes > 0 && !self.host.actor.crashes_next(), TasksEvent::Crash);
        events
    }
}

impl Play for TasksWorld {
    type Event = TasksEvent;

    fn can(&self, event: &TasksEvent) -> bool {
        self.events().contains(event)
    }

    fn take(&mut self, event: &TasksEvent) -> Result<(), Violation> {
        self.spend(event);
        self.happen(event);
        self.hear()
    }

    fn settle(&mut self) -> Result<(), Violation> {
        if self.host.actor.is_sick() {
            self.come_to_rest()?;
            self.host.check_sick();
            self.host.disk(self.now, false);
        }
        self.come_to_rest()?;
        self.host.check_end();
        self.hear()
    }
}

impl TasksWorld {
    fn come_to_rest(&mut self) -> Result<(), Violation> {
        for _ in 0..PAUSES_MAX {
            while self.host.go_on(self.now) {
                self.hear()?;
            }
            if self.host.is_calm() {
                if !self.host.go_on_alone(self.now) {
                    break;
                }
            } else if self.host.due().is_some() {
                self.pass();
            } else {
                break;
            }
            self.hear()?;
        }
        Ok(())
    }
}
