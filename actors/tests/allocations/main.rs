//! Tests the owner of the allocations and their supervisors, with real directories and sockets and plugins that listen on them,
//! under virtual time.

#[path = "../fixture/mod.rs"]
mod fixture;

mod stage;

mod places;
mod restarts;
mod starting;
mod stopping;
