//! Talking to go-plugin's plugins over real sockets: what is asked, what is read, and how each failure is reported.

mod asking;
mod diagnosing;
mod dialling;
mod ending;
mod printing;

mod plugin;
