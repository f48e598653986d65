//! What goes wrong between us and a plugin, told apart and told well (LOG-05).

use std::fmt;
use std::time::Duration;

use super::code::Code;
use super::fault::Fault;
use super::rpc::Rpc;
use crate::vocabulary::SocketPath;

/// What was being done when an error came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Connecting to the socket.
    Dial,
    /// A call over the connection.
    Call(Rpc),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dial => f.write_str("Dial"),
            Self::Call(rpc) => f.write_str(rpc.as_str()),
        }
    }
}

/// How to treat an error, whatever exactly it was (table C.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The plugin said no, and the same call would get the same answer.
    Final,
    /// Nobody can say whether the call was carried out: treat it as maybe done, and repeat it with a growing pause.
    Unclear,
    /// Nothing is at the path of the socket: normal while a plugin starts.
    Absent,
    /// A socket is there and nobody listens: a dead process left it, or a live one has not begun to listen (REG-10).
    Refused,
    /// Somebody listens and accepts too slowly.
    Busy,
    /// The file system forbids it to us; waiting does not help (SEC-03).
    Denied,
    /// What is at the path is no socket; waiting does not help.
    NotASocket,
    /// Our own deadline ran out. The call may still be carried out.
    DeadlineExceeded,
    /// The connection broke off, most often since the plugin died. Dial again.
    Disconnected,
    /// The plugin does not have this call (C019).
    Unimplemented,
    /// The answer breaks a rule of the specification (C011).
    Fault,
}

impl Class {
    /// Whether the same thing, tried again after a while with nobody changing anything by hand, may succeed.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        match self {
            Self::Unclear
            | Self::Absent
            | Self::Refused
            | Self::Busy
            | Self::DeadlineExceeded
            | Self::Disconnected => true,
            Self::Final | Self::Denied | Self::NotASocket | Self::Unimplemented | Self::Fault => false,
        }
    }
}

/// Who may use a file that we may not (SEC-03).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The file or directory that keeps us out: the socket itself, or the first directory that we may not search.
    pub path: String,
    /// User id of its owner.
    pub owner_uid: u32,
    /// Group id of its owner.
    pub owner_gid: u32,
    /// Its permission bits.
    pub mode: u32,
    /// Our own effective user id.
    pub our_uid: u32,
    /// Our own effective group id.
    pub our_gid: u32,
}

/// What exactly went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// There is no file at the path.
    Absent,
    /// There is something else at the path.
    NotASocket {
        /// What it is: `a directory`, `a regular file`.
        what: &'static str,
    },
    /// Permission was denied; final until somebody changes owner or mode.
    Denied(Denial),
    /// The socket exists and nobody listens on it.
    Refused,
    /// The queue of connections that wait to be accepted is full.
    Busy,
    /// The operating system refused for a reason of its own, for instance too many open files.
    System {
        /// What it said.
        detail: String,
    },
    /// Our own deadline ran out first; see [`CallError::deadline`].
    DeadlineExceeded,
    /// The connection broke off before an answer came.
    Disconnected {
        /// What the transport said.
        detail: String,
    },
    /// The plugin answered with an error.
    Status {
        /// Its code.
        code: Code,
        /// Its message, cut and escaped (see [`super::quoted`]); may be empty.
        message: String,
    },
    /// The plugin's answer breaks a rule.
    Fault(Fault),
}

impl Cause {
    /// How to treat it.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Absent => Class::Absent,
            Self::NotASocket { .. } => Class::NotASocket,
            Self::Denied(_) => Class::Denied,
            Self::Refused => Class::Refused,
            Self::Busy => Class::Busy,
            Self::System { .. } => Class::Unclear,
            Self::DeadlineExceeded => Class::DeadlineExceeded,
            Self::Disconnected { .. } => Class::Disconnected,
            Self::Status { code, .. } => code.class(),
            Self::Fault(_) => Class::Fault,
        }
    }
}

/// Something that was tried with a plugin and failed: what, where, with which deadline, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    step: Step,
    endpoint: SocketPath,
    deadline: Duration,
    cause: Box<Cause>,
}

impl CallError {
    /// Puts an error together.
    #[must_use]
    pub fn new(step: Step, endpoint: SocketPath, deadline: Duration, cause: Cause) -> Self {
        Self { step, endpoint, deadline, cause: Box::new(cause) }
    }

    /// What was being done.
    #[must_use]
    pub const fn step(&self) -> Step {
        self.step
    }

    /// The socket it was done on.
    #[must_use]
    pub const fn endpoint(&self) -> &SocketPath {
        &self.endpoint
    }

    /// The time we allowed for it.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Why it failed.
    #[must_use]
    pub const fn cause(&self) -> &Cause {
        &self.cause
    }

    /// How to treat it (table C.6).
    #[must_use]
    pub const fn class(&self) -> Class {
        self.cause.class()
    }

    /// The code, if the plugin itself answered with an error.
    #[must_use]
    pub const fn code(&self) -> Option<Code> {
        match &*self.cause {
            Cause::Status { code, .. } => Some(*code),
            Cause::Absent
            | Cause::NotASocket { .. }
            | Cause::Denied(_)
            | Cause::Refused
            | Cause::Busy
            | Cause::System { .. }
            | Cause::DeadlineExceeded
            | Cause::Disconnected { .. }
            | Cause::Fault(_) => None,
        }
    }

    /// Whether the same thing, tried again after a while, may succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        self.class().is_transient()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} failed: ", self.step, self.endpoint)?;
        match &*self.cause {
            Cause::DeadlineExceeded => write!(
                f,
                "no answer within our own deadline of {:?}; the plugin is slow or hangs, and the call may still be carried out",
                self.deadline
            ),
            cause => cause.fmt(f),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str(
                "no socket is there (file absent); the plugin has not created it yet, or listens elsewhere",
            ),
            Self::NotASocket { what } => {
                write!(f, "{what} is there, not a socket; check the endpoint that the plugin was given")
            }
            Self::Denied(denial) => denial.fmt(f),
            Self::Refused => f.write_str(
                "connection refused, nobody listens on the socket; a dead process left it, start the plugin again",
            ),
            Self::Busy => f.write_str(
                "busy, its queue of waiting connections is full; the plugin lives but does not accept",
            ),
            Self::System { detail } => write!(f, "the operating system refused: {detail}"),
            Self::DeadlineExceeded => f.write_str("our own deadline was exceeded"),
            Self::Disconnected { detail } => {
                write!(f, "disconnected before an answer came ({detail}); the plugin died or hung up, dial again")
            }
            Self::Status { code, message } if message.is_empty() => {
                write!(f, "the plugin answered {code} and no more; {}", code.hint())
            }
            Self::Status { code, message } => {
                write!(f, "the plugin answered {code} \"{message}\"; {}", code.hint())
            }
            Self::Fault(fault) => write!(f, "faulty answer, {fault}; report it to the plugin's vendor"),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, owner_uid, owner_gid, mode, our_uid, our_gid } = self;
        write!(
            f,
            "permission denied by {path}, which belongs to {owner_uid}:{owner_gid} with mode {mode:04o}; \
             we are {our_uid}:{our_gid}, give us the right to search its directories and to write to the socket"
        )
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.cause {
            Cause::Fault(fault) => Some(fault),
            Cause::Absent
            | Cause::NotASocket { .. }
            | Cause::Denied(_)
            | Cause::Refused
            | Cause::Busy
            | Cause::System { .. }
            | Cause::DeadlineExceeded
            | Cause::Disconnected { .. }
            | Cause::Status { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::Problem;
    use super::*;

    /// Ten faults, each with the word by which a person recognises it, and whether trying again can help.
    fn ten_faults() -> [(Cause, &'static str, bool); 10] {
        let denial = Denial {
            path: "/run/p".to_owned(),
            owner_uid: 1,
            owner_gid: 2,
            mode: 0o700,
            our_uid: 3,
            our_gid: 4,
        };
        let fault = Fault { rule: "C030", field: "name", problem: Problem::Empty };
        let status = |code| Cause::Status { code, message: "no pool".to_owned() };
        [
            (Cause::Absent, "absent", true),
            (Cause::NotASocket { what: "a directory" }, "a directory", false),
            (
                Cause::Denied(denial),
                "denied by /run/p, which belongs to 1:2 with mode 0700; we are 3:4",
                false,
            ),
            (Cause::Refused, "refused", true),
            (Cause::Busy, "busy", true),
            (Cause::System { detail: "too many open files".to_owned() }, "too many open files", true),
            (Cause::DeadlineExceeded, "own deadline of 1.5s", true),
            (Cause::Disconnected { detail: "broken pipe".to_owned() }, "disconnected", true),
            (status(Code::Unavailable), "UNAVAILABLE \"no pool\"", true),
            (Cause::Fault(fault), "name is empty (rule C030)", false),
        ]
    }

    #[test]
    fn each_of_ten_faults_names_itself_and_what_was_tried_on_what_log_05() {
        let endpoint = SocketPath::new("/run/p/csi.sock").expect("a good path");
        for (cause, name, transient) in ten_faults() {
            let step = Step::Call(Rpc::NodeInfo);
            let error = CallError::new(step, endpoint.clone(), Duration::from_millis(1500), cause);
            let told = error.to_string();
            assert!(told.starts_with("NodeGetInfo on /run/p/csi.sock failed: "), "{told}");
            assert!(told.contains(name), "{told}");
            assert_eq!(error.is_transient(), transient, "{told}");
        }
    }
}
