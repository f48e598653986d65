//! The drivers: their owner, each driver, each eventor; their laws, and a model that contains them.
//!
//! ```text
//!   world ── answers, exits, events, time ──► model: owner ◄── mail ── driver ◄──► environment: process, plugin, its events
//!                                                      ▲                               │
//!                                                      └───── mail ── eventor ◄────────┘
//!                                                                        └──► subscribers: journals and handlers
//! ```
//!
//! The machines are those of production. The environment models the owner of the processes and the plugin, as their contracts require;
//! the subscribers stand for the handlers of tasks, each with a journal of production.

mod known;

mod pauses;

mod pinged;
mod restarts;

mod environment;

mod subscribers;

mod driver;

mod eventor;

mod owner;

mod model;

mod event;

mod world;

pub use driver::DriverLaws;
pub use environment::Environment;
pub use event::{DriversBounds, DriversEvent, Order};
pub use eventor::EventorLaws;
pub use model::{Conduct, DriversModel, DriversTampers};
pub(super) use model::{DriversModelOptions, SetOff};
pub use owner::DriversLaws;
pub use subscribers::Subscribers;
pub use world::DriversWorld;
