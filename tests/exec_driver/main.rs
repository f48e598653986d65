//! Tests the reference driver in its own process, through the bare generated clients, as a host sees it.

mod commands;
mod control_groups;
mod recovery;
mod restarts;
mod rig;
mod serving;
mod surroundings;
mod tasks;
mod terminals;
