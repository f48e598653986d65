//! The program `callboard`; what it does stands in `command_line`.

use std::process::ExitCode;

fn main() -> ExitCode {
    callboard::command_line::main()
}
