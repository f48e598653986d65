//! Who is registered, who is active, who is told.

mod messages;

pub use messages::*;
