//! Examines an orchestrator from a CSI plugin: every call that it makes is judged by the rules for orchestrators.
//!
//! The plugin (`callboard plugin examiner`) observes its calls, and the [`Judge`] decides. The judge knows only what came over
//! the socket: requests, the answers that were given, and callers that left before their answer.
//!
//! ```text
//!   rule      every rule for orchestrators, and whether calls can show that it is broken
//!   request   a request of any call, as received: also values that no well-formed type can hold
//!   event     the observations: a call begins, is answered, loses its caller; the plugin starts
//!   surface   the capabilities that the plugin claims to its callers
//!   judge/    the state machine of table C.4 for each volume, and the rules
//!   report    each rule: how often it was tried and broken, with the calls; and open steps
//!   render    the report as text and as JSON
//! ```
//!
//! The judge reasons from what the orchestrator can know. A step whose answer was unclear, or whose caller left, is *unknown*: it counts
//! as up for calls that undo, and as down for calls that set up (V4).

mod rule;

mod request;

mod event;

mod surface;

mod judge;

mod report;

mod render;

pub use event::{Answer, Event, Outcome};
pub use judge::Judge;
pub use report::{Breach, Open, Report, RuleReport};
pub use request::{
    AccessMode, Capability, CapacityRange, Map, Request, SecretDigests, SeenPaths, Source, TopologyWish,
    Withheld,
};
pub use rule::{Coverage, Rule, Strength};
pub use surface::Surface;
