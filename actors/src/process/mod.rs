//! One process: launched, owned, adopted, stopped, always reaped.

mod name;

mod spec;

mod ending;

mod launch_error;

mod messages;

pub use ending::{EndedBy, Exit, ProcessEnding};
pub use launch_error::{ExecutableError, LaunchError};
pub use messages::*;
pub use name::{MalformedProcessName, PROCESS_NAME_BYTES_MAX, ProcessName, ProcessTag};
pub use spec::{Executable, Lifetime, OUTPUT_KEPT_BYTES, ProcessSpec, Reach, START_TIMEOUT, STOP_GRACE};
