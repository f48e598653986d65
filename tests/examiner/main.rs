//! Tests the examiner: orchestrators that follow the rules pass under faults, and those that break rules are detected.

#[path = "../hostpath_volumes/stage.rs"]
#[allow(dead_code, reason = "only what starts plugins is used here")]
mod stage;

#[path = "../program/mod.rs"]
mod program;

mod exam;
mod orchestrator;

mod broken;
mod heeded;
mod host;
mod volumes;

mod arguments;

mod page;
