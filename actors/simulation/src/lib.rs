//! Model checking: the laws of the machines, every small interleaving, and a simulator.
//!
//! ```text
//!   search ── every order ──┐                       ┌── checker: each step and whatever leaves ──► laws ──► violation
//!                           ├──► world ──► stand-in ┤
//!   simulator ── by seed ───┘      ▲                └── what left ──┐
//!                                  └────────────────────────────────┘
//! ```
//!
//! The machines are those of production, and so are the rules around them: the [stand-in](StandIn) is a port of the
//! [kernel](callboard_actors::kernel) without a runtime. A [`LawChecker`] compares every step with a plain reference model; it reports a
//! [`Violation`] of a [`Law`]. A [`Tamper`] adds a deliberate fault to a machine, to show which law detects it.

mod law;
mod law_checker;

mod tamper;

mod stand_in;

mod writes;

mod random;

mod search;

mod observed;

mod registry;

mod instances;

mod inventory;

mod drivers;

mod processes;

mod allocation;

mod allocations;

mod volume;

mod volumes;

mod supervision;

mod database;

mod simulator;

pub mod agent;

pub mod tasks;

pub use allocation::{AllocationBounds, AllocationEvent, AllocationLaws, AllocationWorld, Receipt, Reply};
pub use allocations::{
    AllocationsBounds, AllocationsEvent, AllocationsLaws, AllocationsWorld, HostOrder, Memory, SupervisorAct,
    VolumesWord,
};
pub use database::{DatabaseBounds, DatabaseEvent, DatabaseWorld, PersisterFault, Trouble};
pub use drivers::{
    Conduct, DriverLaws, DriversBounds, DriversEvent, DriversLaws, DriversModel, DriversTampers,
    DriversWorld, Environment, EventorLaws, Order, Subscribers,
};
pub use instances::{
    Behaviour, InFlight, InstanceLaws, InstancesBounds, InstancesEvent, InstancesLaws, InstancesModel,
    InstancesWorld, NoDisk,
};
pub use inventory::{InventoryBounds, InventoryEvent, InventoryLaws, InventoryScene, InventoryWorld, Word};
pub use law::Law;
pub use law_checker::{LawChecker, Verdict, Violation};
pub use observed::{Answer, Observed};
pub use processes::{ProcessesBounds, ProcessesEvent, ProcessesLaws, ProcessesWorld};
pub use random::Random;
pub use registry::{
    Question, RegistryBounds, RegistryDisk, RegistryEvent, RegistryLaws, RegistryWorld, Rows,
};
pub use search::{
    Actor, Counterexample, Play, Scene, SceneEvent, SceneFault, SceneWorld, Searched, Stage, World, play,
    search, shorten, wander,
};
pub use simulator::{
    DatabaseDoing, DiskTrouble, DriverDoing, Event, EventKind, FamilyDoing, Fault, Faults, HistoryScript,
    ProcessDoing, ProcessesDoing, ScriptText, Simulation, Summary, Tampers, UnknownFault, Unwatched,
    VolumeDoing, Watch, WorkloadDoing, WorkloadOrder, WorkloadsDoing, replay, replay_watched, simulate,
    simulate_tampered,
};
pub use stand_in::{Disk, Left, Refusal, Rules, Settlement, StandIn};
pub use supervision::{
    SupervisionBounds, SupervisionEvent, SupervisionLaws, SupervisionWorld, Task, TaskEnd,
};
pub use tamper::{AlterEffects, Tamper, TamperEffects, TamperGates, TamperImage, TamperInput};
pub use volume::{Answered, VolumeBounds, VolumeEvent, VolumeLaws, VolumeWorld};
pub use volumes::{
    PluginWord, VolumeAct, VolumesBounds, VolumesEvent, VolumesLaws, VolumesRequest, VolumesScene,
    VolumesWorld,
};
pub use writes::{Outcome, Writes};
