//! Tests calls to go-plugin plugins over real sockets: what is requested, what is read, and how each failure is reported.

mod asking;
mod diagnosing;
mod dialling;
mod ending;
mod printing;

mod plugin;
