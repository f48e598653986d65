//! The face of Callboard.

pub mod config;

pub mod process;

pub mod command_line;
pub mod duration;
pub mod hostpath;
