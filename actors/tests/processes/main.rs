//! Tests processes with real children: launched, adopted, stopped, always reaped.

mod control_groups;
mod executors;
mod launching;
mod liveness;
mod programs;
mod reading;
mod recalling;
mod scale;
mod stage;
mod stopping;
