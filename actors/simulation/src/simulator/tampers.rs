//! The deliberate faults in a host.

use std::rc::Rc;
use std::sync::Arc;

use callboard_actors::allocation::{Allocation, AllocationCall, Task};
use callboard_actors::allocations::{Allocations, AllocationsCall, AllocationsOutcome};
use callboard_actors::driver::TaskEventItem;
use callboard_actors::eventor::EventorCall;
use callboard_actors::process::{Executable, ProcessSpec};
use callboard_actors::processes::{Processes, ProcessesCall, ProcessesChange};
use callboard_actors::registry::{Registry, RegistryAsk, RegistryNews};
use callboard_actors::shell::{Effect, Input};
use callboard_actors::supervisor::{Call, Supervisor, SupervisorNews};
use callboard_machines::volume::{Step, Volume, VolumeChange};

use super::super::database::PersisterFault;
use super::super::drivers::DriversTampers;
use super::super::tamper::{Tamper, TamperEffects, TamperInput};

/// The faults in the machines of a host.
#[derive(Debug, Clone, Default)]
pub struct Tampers {
    /// A fault in the registry.
    pub registry: Option<Rc<dyn Tamper<Registry>>>,
    /// A fault in the persister, if there is a database.
    pub database: Option<PersisterFault>,
    /// Faults in drivers, eventors and their owner.
    pub drivers: DriversTampers,
    /// A fault in the owner of the processes.
    pub processes: Option<Rc<dyn Tamper<Processes>>>,
    /// A fault in the volumes.
    pub volume: Option<Rc<dyn Tamper<Volume>>>,
    /// A fault in the supervisors.
    pub supervisors: Option<Rc<dyn Tamper<Supervisor>>>,
    /// A fault in the supervisors of allocations.
    pub allocation: Option<Rc<dyn Tamper<Allocation>>>,
    /// A fault in their owner.
    pub allocations: Option<Rc<dyn Tamper<Allocations>>>,
}

impl Tampers {
    /// A registry that does not publish updates, for a simulation that must fail.
    #[must_use]
    pub fn drop_updates() -> Self {
        let told = TamperEffects(|input, mut effects: Vec<Effect<Registry>>| {
            if matches!(input, Input::Asked { ask: RegistryAsk::Register(_), .. }) {
                effects.retain(|effect| !matches!(effect, Effect::Publish(RegistryNews::Updated(_))));
            }
            effects
        });
        Self { registry: Some(Rc::new(told)), ..Self::default() }
    }

    /// A registry that is requested to stop and never ends, for a simulation that must fail.
    #[must_use]
    pub fn never_end() -> Self {
        let ended = TamperEffects(|_, mut effects: Vec<Effect<Registry>>| {
            effects.retain(|effect| !matches!(effect, Effect::Stop(_)));
            effects
        });
        Self { registry: Some(Rc::new(ended)), ..Self::default() }
    }

    /// Supervisors of allocations that deregister only one half of a monolith, for a simulation that must fail.
    #[must_use]
    pub fn forget_halves() -> Self {
        let said = TamperEffects(|_, mut effects| {
            for effect in &mut effects {
                if let Effect::Call { call: AllocationCall::Deregister(message), .. } = effect {
                    message.plugins.truncate(1);
                }
            }
            effects
        });
        Self { allocation: Some(Rc::new(said)), ..Self::default() }
    }

    /// Supervisors that deregister no allocation, for a simulation that must fail.
    #[must_use]
    pub fn forget_deregistrations() -> Self {
        let said = TamperEffects(|_, mut effects| {
            effects
                .retain(|effect| !matches!(effect, Effect::Call { call: AllocationCall::Deregister(_), .. }));
            effects
        });
        Self { allocation: Some(Rc::new(said)), ..Self::default() }
    }

    /// An owner of allocations that does not give new supervisors the state of their tasks, for a simulation that must fail.
    #[must_use]
    pub fn forget_tasks() -> Self {
        let born = TamperEffects(|_, mut effects| {
            for effect in &mut effects {
                if let Effect::Call { call: AllocationsCall::Start { config, .. }, .. } = effect {
                    config.task = Task::NotStarted;
                }
            }
            effects
        });
        Self { allocations: Some(Rc::new(born)), ..Self::default() }
    }

    /// An owner of allocations that is not notified of ended supervisors, for a simulation that must fail.
    #[must_use]
    pub fn miss_endings() -> Self {
        let heard = TamperInput(|mut input| {
            if let Input::Returned { outcome: Ok(AllocationsOutcome::Ended(ended)), .. } = &mut input {
                ended.clear();
            }
            Some(input)
        });
        Self { allocations: Some(Rc::new(heard)), ..Self::default() }
    }

    /// Eventors that report no gaps to handlers, for a simulation that must fail.
    #[must_use]
    pub fn hide_gaps() -> Self {
        let handed = TamperEffects(|_, mut effects| {
            for effect in &mut effects {
                if let Effect::Call { call: EventorCall::Hand(items), .. } = effect {
                    Arc::make_mut(items).retain(|(_, item)| matches!(item, TaskEventItem::Event { .. }));
                }
            }
            effects
        });
        let drivers = DriversTampers { eventor: Some(Rc::new(handed)), ..DriversTampers::default() };
        Self { drivers, ..Self::default() }
    }

    /// An owner of the processes that starts them before the intent is written, for a simulation that must fail.
    #[must_use]
    pub fn launch_unwritten() -> Self {
        let launched = TamperEffects(|_, mut effects: Vec<Effect<Processes>>| {
            effects.sort_by_key(|effect| matches!(effect, Effect::Persist(_, ProcessesChange::Keep(_))));
            effects
        });
        Self { processes: Some(Rc::new(launched)), ..Self::default() }
    }

    /// An owner of the processes that launches again instead of looking for a process, for a simulation that must fail.
    #[must_use]
    pub fn launch_beside_what_is_left() -> Self {
        let launched = TamperEffects(|_, mut effects: Vec<Effect<Processes>>| {
            for effect in &mut effects {
                if let Effect::Call { call: ProcessesCall::Start { config, .. }, .. } = effect {
                    config.spec = Some(Arc::new(ProcessSpec::new(Executable::at("/bin/worker"))));
                }
            }
            effects
        });
        Self { processes: Some(Rc::new(launched)), ..Self::default() }
    }

    /// Volumes that call a plugin before the intent is written, for a simulation that must fail.
    #[must_use]
    pub fn write_no_intents() -> Self {
        let written = TamperEffects(|_, mut effects: Vec<Effect<Volume>>| {
            effects.retain(|effect| match effect {
                Effect::Persist(_, VolumeChange::KeepClaim(row)) => !matches!(row.publish, Step::GoingUp(_)),
                _ => true,
            });
            effects
        });
        Self { volume: Some(Rc::new(written)), ..Self::default() }
    }

    /// Supervisors that do not stop the siblings of a child that ended, for a simulation that must fail.
    #[must_use]
    pub fn spare_siblings() -> Self {
        let spared = TamperEffects(|_, mut effects: Vec<Effect<Supervisor>>| {
            let is_fall =
                |effect: &_| matches!(effect, Effect::Publish(SupervisorNews::ChildRestarting { .. }));
            if effects.iter().any(is_fall) {
                effects.retain(|effect| !matches!(effect, Effect::Call { call: Call::StopChild { .. }, .. }));
            }
            effects
        });
        Self { supervisors: Some(Rc::new(spared)), ..Self::default() }
    }
}
