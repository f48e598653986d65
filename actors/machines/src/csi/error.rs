//! The error of a call to a CSI plugin (LOG-05).

use std::fmt;

use super::rpc::Rpc;
use crate::rpc;
use crate::vocabulary::SocketPath;

/// The step that failed.
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

/// A failed operation on a CSI plugin.
pub type CallError = rpc::CallError<Step, SocketPath>;

/// The explanation for a plugin that lacks a call of the identity service.
const OLD: &str = "every plugin of CSI v1 has it, so this one may speak only an older version of CSI; use a version of it that \
                   speaks CSI v1";

impl CallError {
    /// The error in words. For a call that every plugin has and this plugin lacks, they include a possible reason (C019).
    #[must_use]
    pub fn told(&self) -> String {
        match (self.step(), self.class()) {
            (
                Step::Call(Rpc::PluginInfo | Rpc::PluginCapabilities | Rpc::Probe),
                rpc::Class::Unimplemented,
            ) => format!("{self}; {OLD}"),
            _ => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rpc::{Cause, Code, Denial, Fault, Problem};

    /// Thirteen faults, each with the keyword of its message, and whether a retry can help.
    fn thirteen_faults() -> [(Cause, &'static str, bool); 13] {
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
            (Cause::Link { to: "/run/q.sock".to_owned() }, "a link to /run/q.sock", false),
            (Cause::SocketLost { found: "nothing is" }, "nothing is in the place of its socket", true),
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
            (Cause::CutOff { detail: "it floods".to_owned() }, "the connection was cut off: it floods", true),
            (status(Code::Unavailable), "UNAVAILABLE \"no pool\"", true),
            (Cause::Fault(fault), "name is empty", false),
        ]
    }

    #[test]
    fn each_of_thirteen_faults_names_itself_and_what_was_tried_on_what_log_05() {
        let endpoint = SocketPath::new("/run/p/csi.sock").expect("a good path");
        for (cause, name, transient) in thirteen_faults() {
            let step = Step::Call(Rpc::NodeInfo);
            let error = CallError::new(step, endpoint.clone(), Duration::from_millis(1500), cause);
            let told = error.to_string();
            assert!(told.starts_with("NodeGetInfo on /run/p/csi.sock failed: "), "{told}");
            assert!(told.contains(name), "{told}");
            assert_eq!(error.is_transient(), transient, "{told}");
        }
    }

    #[test]
    fn a_plugin_without_a_call_that_every_plugin_has_may_be_older_than_csi_v1_c019() {
        let told = |rpc, code| {
            let endpoint = SocketPath::new("/run/p/csi.sock").expect("a good path");
            let cause = Cause::Status { code, message: "unknown service csi.v1.Identity".to_owned() };
            CallError::new(Step::Call(rpc), endpoint, Duration::from_secs(5), cause).told()
        };
        let probe = told(Rpc::Probe, Code::Unimplemented);
        let expected = "Probe on /run/p/csi.sock failed: the plugin answered UNIMPLEMENTED \"unknown service csi.v1.Identity\"; the plugin \
                        does not have this call; every plugin of CSI v1 has it, so this one may speak only an older version of CSI; use a \
                        version of it that speaks CSI v1";
        assert_eq!(probe, expected);
        assert!(told(Rpc::PluginInfo, Code::Unimplemented).ends_with(OLD));
        for other in [told(Rpc::Probe, Code::Internal), told(Rpc::NodeInfo, Code::Unimplemented)] {
            assert!(!other.contains("older"), "{other}");
        }
    }
}
