//! The reference driver in a process of its own, through the bare generated clients: what a host sees of it.

mod commands;
mod control_groups;
mod recovery;
mod restarts;
mod rig;
mod serving;
mod surroundings;
mod tasks;
mod terminals;
