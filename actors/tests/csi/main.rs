//! Tests calls to CSI plugins over real Unix sockets: what is read, what is refused, and how each failure is reported.

mod answers;
mod dialling;
mod failures;
mod flooding;

mod garbled;
mod plugin;
