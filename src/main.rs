//! The command line of Callboard.
fn main() {}
