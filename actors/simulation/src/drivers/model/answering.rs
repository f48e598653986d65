//! Answers the calls of drivers and eventors.

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_actors::driver::client::{Asked, DriverError, DriverRpc, EventBatch};
use callboard_actors::driver::{
    DriverCall, DriverCapabilities, DriverHealth, DriverStep, DriverTold, Fingerprint, FsIsolation,
    MountSupport, Reached, StartStep, Trouble, TroubleKind,
};
use callboard_actors::eventor::EventorOutcome;
use callboard_actors::shell::CallLost;

use super::*;

type Outcome = Result<Result<Reached, Trouble>, CallLost>;

impl DriversModel {
    // === Calls that are made ===

    pub(super) fn driver_calls(&mut self, moment: Moment, life: Attempt, number: u64, call: &DriverCall) {
        match call {
            DriverCall::HangUp { within, .. } => {
                if let Some(link) = self.link_of(life) {
                    link.is_cut = true;
                }
                self.mark_eventor_changed(life);
                // Otherwise calls in flight may take a while to end.
                if within.is_zero() {
                    self.driver_returns(moment, life, number, Ok(Ok(Reached::Done)));
                }
            }
            DriverCall::Advance(StartStep::Launch, _) => {
                self.drop_link(life);
                let name = self.children.get(&life).map(|child| child.name.clone());
                let environment = name.and_then(|name| self.environments.get_mut(&name));
                if environment.is_some_and(|environment| !environment.launch_begins()) {
                    self.violation(Law::Prc4, "a second process is launched beside the first".to_owned());
                }
            }
            DriverCall::Advance(StartStep::Dial, _) => self.drop_link(life),
            DriverCall::Advance(..)
            | DriverCall::ReadOn
            | DriverCall::Ping
            | DriverCall::AwaitEnd(_)
            | DriverCall::AwaitChange
            | DriverCall::ShutdownAnswer
            | DriverCall::StopProcess { .. } => {}
        }
    }

    pub(super) fn eventor_calls(
        &mut self,
        moment: Moment,
        (life, driver): (Attempt, &DriverName),
        number: u64,
        call: EventorCall,
    ) {
        match call {
            EventorCall::Open { generation, after } => {
                self.set_stream(moment, life, Some(Stream { generation, after, cursor: None }), number);
                return;
            }
            EventorCall::Read => return,
            EventorCall::Close => self.set_stream(moment, life, None, number),
            EventorCall::Hand(items) => {
                if let Some(subscribers) = self.audiences.get_mut(driver) {
                    items.iter().for_each(|(sink, item)| subscribers.put(*sink, item.clone()));
                }
            }
            EventorCall::End(sinks) | EventorCall::Finish(sinks) => {
                if let Some(subscribers) = self.audiences.get_mut(driver) {
                    sinks.iter().for_each(|sink| subscribers.end(*sink));
                }
            }
        }
        self.eventor_returns(moment, life, number, EventorOutcome::Done);
    }

    /// Another stream replaces the present one. Readers of the former stream drop it.
    fn set_stream(&mut self, moment: Moment, life: Attempt, stream: Option<Stream>, opening: u64) {
        let Some(Child { actor: Actor::Eventor(child), .. }) = self.children.get_mut(&life) else { return };
        child.stream = stream;
        let is_reading = |(number, call): (u64, &EventorCall)| {
            let reads = matches!(call, EventorCall::Open { .. } | EventorCall::Read);
            (reads && number != opening).then_some(number)
        };
        let former: Vec<u64> = child.actor.calls().filter_map(is_reading).collect();
        for number in former {
            self.eventor_returns(moment, life, number, EventorOutcome::Done);
        }
    }

    fn driver_returns(&mut self, moment: Moment, life: Attempt, number: u64, outcome: Outcome) {
        if let Some(Child { actor: Actor::Driver(child), .. }) = self.children.get_mut(&life) {
            child.actor.returned(moment, number, outcome);
        }
    }

    fn eventor_returns(&mut self, moment: Moment, life: Attempt, number: u64, outcome: EventorOutcome) {
        if let Some(Child { actor: Actor::Eventor(child), .. }) = self.children.get_mut(&life) {
            child.actor.returned(moment, number, Ok(outcome));
        }
    }

    // === Calls that return ===

    /// The calls in flight of all actors: the life and the number of each.
    pub(in super::super::super) fn calls(&self) -> Vec<(Attempt, u64)> {
        self.children.iter().flat_map(|(life, child)| numbers(child).map(|number| (*life, number))).collect()
    }

    /// Whether a call can return in this way.
    pub(in super::super::super) fn can_answer(&self, life: Attempt, number: u64, conduct: Conduct) -> bool {
        let Some(child) = self.children.get(&life) else { return false };
        let Some(environment) = self.environments.get(&child.name) else { return false };
        match &child.actor {
            Actor::Driver(driver) => {
                let is_over_it = driver.link.as_ref().is_some_and(|link| number > link.dialed);
                let is_linked = is_over_it && is_linked(driver, environment);
                driver.actor.calls().find(|(other, _)| *other == number).is_some_and(|(_, call)| {
                    is_possible(call, conduct, (is_linked, driver.is_unwell), environment)
                })
            }
            Actor::Eventor(eventor) => {
                let call = eventor.actor.calls().find(|(other, _)| *other == number);
                call.is_some_and(|(_, call)| self.can_hear(&child.name, eventor, call, conduct))
            }
        }
    }

    fn can_hear(
        &self,
        driver: &DriverName,
        eventor: &EventorChild,
        call: &EventorCall,
        conduct: Conduct,
    ) -> bool {
        let Some(stream) = &eventor.stream else { return conduct == Conduct::Well };
        let Some(environment) = self.environments.get(driver) else { return false };
        match conduct {
            Conduct::Well if !self.is_held(driver, stream) => true,
            Conduct::Well => match (call, stream.cursor) {
                (EventorCall::Open { .. }, _) => true,
                (_, Some(cursor)) => environment.has_more(cursor),
                (_, None) => false,
            },
            Conduct::Refuses | Conduct::IsSilent => true,
            Conduct::Declines | Conduct::Hangs | Conduct::IsUnwell | Conduct::Lingers => false,
        }
    }

    /// Whether a stream's connection is held by its driver and leads to a process.
    fn is_held(&self, driver: &DriverName, stream: &Stream) -> bool {
        let Some(environment) = self.environments.get(driver) else { return false };
        self.children.values().any(|child| match &child.actor {
            Actor::Driver(held) if child.name == *driver => {
                let is_same = |link: &Link| !link.is_cut && link.generation == stream.generation;
                held.link.as_ref().is_some_and(|link| is_same(link) && environment.runs(link.tag))
            }
            Actor::Driver(_) | Actor::Eventor(_) => false,
        })
    }

    /// A call returns in this way. Does nothing if that is impossible.
    pub(in super::super::super) fn answer(
        &mut self,
        moment: Moment,
        life: Attempt,
        number: u64,
        conduct: Conduct,
    ) {
        if !self.can_answer(life, number, conduct) {
            return;
        }
        match self.children.get(&life).map(Child::kind) {
            Some(ChildKind::Driver) => {
                if let Some(outcome) = self.driver_outcome(life, number, conduct) {
                    self.driver_returns(moment, life, number, outcome);
                }
            }
            Some(ChildKind::Eventor) => {
                if let Some(outcome) = self.eventor_outcome(life, conduct) {
                    self.eventor_returns(moment, life, number, outcome);
                }
            }
            None => return,
        }
        self.carry_child(moment, life);
        self.carry(moment);
    }

    fn driver_outcome(&mut self, life: Attempt, number: u64, conduct: Conduct) -> Option<Outcome> {
        let child = self.children.get_mut(&life)?;
        let name = child.name.clone();
        let Actor::Driver(driver) = &mut child.actor else { return None };
        let call = driver.actor.calls().find(|(other, _)| *other == number)?.1.clone();
        let environment = self.environments.get_mut(&name)?;
        if conduct != Conduct::Well && conduct != Conduct::IsUnwell && conduct != Conduct::Lingers {
            if matches!(call, DriverCall::Advance(StartStep::Launch, _)) {
                let refusal = match conduct {
                    Conduct::Refuses => Some((TroubleKind::NotBegun, "nothing was begun")),
                    Conduct::Declines => Some((TroubleKind::Refused, "its digest is another")),
                    _ => None,
                };
                if let Some((kind, what)) = refusal {
                    environment.launch_fails();
                    return Some(Ok(Err(Trouble { kind, what: what.to_owned() })));
                }
            }
            self.is_excused |=
                matches!(call, DriverCall::StopProcess { .. } | DriverCall::Advance(StartStep::Recall, _));
            return Some(trouble(conduct));
        }
        let reached = match call {
            DriverCall::Advance(StartStep::Recall, _) => Reached::Recalled(environment.recalled()),
            DriverCall::Advance(StartStep::Launch, _) => match environment.launch_succeeds() {
                Some(launched) => Reached::Launched(launched),
                None => return Some(trouble(Conduct::Refuses)),
            },
            DriverCall::Advance(StartStep::Dial, Some(launched)) => {
                self.generations = self.generations.next();
                driver.link = Some(Link {
                    generation: self.generations,
                    tag: launched.tag,
                    dialed: number,
                    is_cut: false,
                });
                Reached::Connected(self.generations)
            }
            DriverCall::Advance(StartStep::Identify, _) => Reached::Identified { version: "1.0".into() },
            DriverCall::Advance(StartStep::Own(DriverStep::Capabilities), _) => {
                Reached::Told(DriverTold::Capable(capabilities()))
            }
            DriverCall::Advance(StartStep::Watch, _) | DriverCall::ReadOn => {
                driver.is_unwell = conduct == Conduct::IsUnwell;
                Reached::Told(DriverTold::Fingerprinted(fingerprint(conduct == Conduct::Well)))
            }
            DriverCall::Advance(
                StartStep::Dial
                | StartStep::Ping
                | StartStep::Configure
                | StartStep::Own(DriverStep::Initialise),
                _,
            )
            | DriverCall::Ping
            | DriverCall::AwaitChange
            | DriverCall::HangUp { .. } => Reached::Done,
            DriverCall::AwaitEnd(_) => Reached::Ended("exit code 1".to_owned()),
            DriverCall::ShutdownAnswer => {
                if conduct == Conduct::Well {
                    environment.exits();
                }
                Reached::Done
            }
            DriverCall::StopProcess { tag, .. } => {
                if environment.stopped(tag) {
                    Reached::Ended("ended".to_owned())
                } else {
                    Reached::Done
                }
            }
        };
        self.mark_changed(&self.children.get(&life)?.name.clone());
        Some(Ok(Ok(reached)))
    }

    fn eventor_outcome(&mut self, life: Attempt, conduct: Conduct) -> Option<EventorOutcome> {
        let Child { name, actor: Actor::Eventor(eventor), .. } = self.children.get(&life)? else {
            return None;
        };
        let Some(stream) = &eventor.stream else { return Some(EventorOutcome::Heard(Ok(EventBatch::Ended))) };
        let asked = Asked { driver: name.clone(), rpc: DriverRpc::TaskEvents };
        let environment = self.environments.get(name)?;
        let heard = match conduct {
            _ if !self.is_held(name, stream) => {
                let reason = "its process ended".to_owned();
                Err(DriverError::PluginGone { asked, is_worth_retrying: true, reason })
            }
            Conduct::Refuses => Ok(EventBatch::Ended),
            Conduct::IsSilent => {
                Err(DriverError::Disconnected { asked, detail: "the connection broke off".to_owned() })
            }
            _ => {
                let (batch, next) = match stream.cursor {
                    None => (
                        EventBatch::Opened(environment.stream()),
                        environment.cursor_after(stream.after.as_ref()),
                    ),
                    Some(cursor) => {
                        let (events, next) = environment.read(cursor);
                        (EventBatch::Events(events), next)
                    }
                };
                self.moves_on(life, next);
                Ok(batch)
            }
        };
        Some(EventorOutcome::Heard(heard))
    }

    fn moves_on(&mut self, life: Attempt, next: u64) {
        if let Some(Child { actor: Actor::Eventor(eventor), .. }) = self.children.get_mut(&life)
            && let Some(stream) = &mut eventor.stream
        {
            stream.cursor = Some(next);
        }
    }
}

fn numbers(child: &Child) -> impl Iterator<Item = u64> + use<> {
    let numbers: Vec<u64> = match &child.actor {
        Actor::Driver(child) => child.actor.calls().map(|(number, _)| number).collect(),
        Actor::Eventor(child) => child.actor.calls().map(|(number, _)| number).collect(),
    };
    numbers.into_iter()
}

/// Whether a driver is connected to the running process.
pub(super) fn is_linked(driver: &DriverChild, environment: &Environment) -> bool {
    driver.link.as_ref().is_some_and(|link| environment.runs(link.tag))
}

fn is_possible(
    call: &DriverCall,
    conduct: Conduct,
    (is_linked, is_unwell): (bool, bool),
    environment: &Environment,
) -> bool {
    match (call, conduct) {
        (DriverCall::AwaitEnd(tag), Conduct::Well) => !environment.runs(*tag),
        (DriverCall::Advance(StartStep::Dial, Some(launched)), Conduct::Well) => {
            environment.runs(launched.tag)
        }
        (
            DriverCall::Advance(StartStep::Recall | StartStep::Launch, _)
            | DriverCall::StopProcess { .. }
            | DriverCall::HangUp { .. },
            Conduct::Well | Conduct::Refuses,
        ) => true,
        (DriverCall::Advance(StartStep::Launch, _), Conduct::Hangs | Conduct::Declines)
        | (DriverCall::AwaitChange, Conduct::Well) => true,
        (
            DriverCall::AwaitEnd(_)
            | DriverCall::AwaitChange
            | DriverCall::Advance(StartStep::Recall | StartStep::Launch, _)
            | DriverCall::StopProcess { .. }
            | DriverCall::HangUp { .. },
            _,
        ) => false,
        (DriverCall::ReadOn, Conduct::Well) => is_linked && is_unwell,
        (DriverCall::Advance(StartStep::Watch, _) | DriverCall::ReadOn, Conduct::IsUnwell) => is_linked,
        (DriverCall::ShutdownAnswer, Conduct::Lingers | Conduct::Well) => is_linked,
        (_, Conduct::Lingers | Conduct::IsUnwell) => false,
        (DriverCall::Advance(..) | DriverCall::Ping, Conduct::Well) => is_linked,
        (_, Conduct::Refuses | Conduct::Declines) => is_linked,
        (DriverCall::ReadOn, Conduct::Hangs) => false,
        (_, Conduct::IsSilent | Conduct::Hangs) => true,
    }
}

fn trouble(conduct: Conduct) -> Outcome {
    let (kind, what) = match conduct {
        Conduct::Hangs => return Err(CallLost::DeadlineExceeded(Duration::from_secs(12))),
        Conduct::IsSilent => (TroubleKind::Silent, "no answer"),
        Conduct::Declines => (TroubleKind::Unimplemented, "it does not have this call"),
        Conduct::Refuses | Conduct::Well | Conduct::IsUnwell | Conduct::Lingers => {
            (TroubleKind::Answered, "it said no")
        }
    };
    Ok(Err(Trouble { kind, what: what.to_owned() }))
}

fn fingerprint(is_well: bool) -> Fingerprint {
    let (health, description) =
        if is_well { (DriverHealth::Healthy, "") } else { (DriverHealth::Unhealthy, "it is unwell") };
    Fingerprint { health, description: description.to_owned(), attributes: BTreeMap::new() }
}

fn capabilities() -> DriverCapabilities {
    DriverCapabilities {
        send_signals: true,
        exec: true,
        fs_isolation: FsIsolation::None,
        network_modes: Vec::new(),
        must_create_network: false,
        mounts: MountSupport::None,
        disable_log_collection: false,
        dynamic_workload_users: false,
    }
}
