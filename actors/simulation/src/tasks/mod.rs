//! The tasks of `callboard run` in the simulation: a world small enough to search every order, and random walks through it.
//!
//! ```text
//!   search ── every order ──┐
//!                           ├──► world ──► host: the production machine in the shell's stand-in, with its disk
//!   walk ────── by seed ────┘                │  ▲
//!                                      calls │  │ answers
//!                                            ▼  │
//!                                          environment: one driver's process, what it knows, and the copies that really live
//! ```
//!
//! The machine and its rules of evidence are those of production; the driver and the processes are simple models. After each
//! step the laws T1 to T5 are checked against the copies that really live.

mod disk;
mod environment;

mod laws;

mod answering;
mod born;
mod host;

mod ending;

mod event;
mod walk;
mod world;

pub use event::{Manner, Question, TasksBounds, TasksEvent};
pub use walk::{Walk, Walked, walk};
pub use world::TasksWorld;
