//! The program `callboard`; `command_line` implements it.

use std::process::ExitCode;

fn main() -> ExitCode {
    callboard::command_line::main()
}
