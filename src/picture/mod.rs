//! Pictures of a run: the messages between actors, from top to bottom, as a sequence diagram.
//!
//! ```text
//!   running host   ─► journal ─► lines over the admin socket ─┐
//!   message script ─► journal ─────────┬► lines ──────────────┼─► timeline::Drawer ─► picture: columns and marks ─┬─► svg: for eyes
//!   simulation     ─► journal ─────────┘                      │                                                   └─► mermaid
//!                     messages and actions of the player ─────┘
//! ```
//!
//! A picture does not depend on actors: it has columns and marks, which the timeline adds.

mod model;

mod label;
mod layout;
mod spans;

mod mermaid;
mod svg;

pub use mermaid::mermaid;
pub use model::{Arrow, Mark, Picture, Sign};
pub use svg::svg;
