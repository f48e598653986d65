//! The owner of the drivers: keeps exactly one of each name, gives clients out, and says who hears of which task.

mod messages;

pub use messages::*;
