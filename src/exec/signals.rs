//! Signals by name.

/// The signals that a host may name, with their numbers on Linux.
const SIGNALS: [(&str, i32); 28] = [
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGUSR1", 10),
    ("SIGSEGV", 11),
    ("SIGUSR2", 12),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGTERM", 15),
    ("SIGCHLD", 17),
    ("SIGCONT", 18),
    ("SIGSTOP", 19),
    ("SIGTSTP", 20),
    ("SIGTTIN", 21),
    ("SIGTTOU", 22),
    ("SIGURG", 23),
    ("SIGXCPU", 24),
    ("SIGXFSZ", 25),
    ("SIGVTALRM", 26),
    ("SIGPROF", 27),
    ("SIGWINCH", 28),
    ("SIGSYS", 31),
];

/// SIGKILL.
pub(super) const KILL: i32 = 9;
/// The default stop signal of tasks, as in the drivers built into Nomad (T145). The operator or the host may name another.
pub(super) const INT: &str = "SIGINT";

/// The number of a signal, given as `SIGTERM`, `sigterm` or `TERM`.
pub(super) fn number(name: &str) -> Option<i32> {
    let name = name.trim().to_ascii_uppercase();
    let is_meant = |known: &&(&str, i32)| known.0 == name || known.0.strip_prefix("SIG") == Some(&*name);
    SIGNALS.iter().find(is_meant).map(|(_, number)| *number)
}

pub(super) fn name(number: i32) -> Option<&'static str> {
    SIGNALS.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
}

/// The full name of a signal, given in any form.
pub(crate) fn named(text: &str) -> Option<&'static str> {
    name(number(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_known_by_each_form_of_their_name() {
        for name in ["SIGTERM", "sigterm", "TERM", " term "] {
            assert_eq!(number(name), Some(15), "{name}");
        }
        assert_eq!(number("SIG"), None);
        assert_eq!(number("15"), None);
        assert_eq!(name(9), Some("SIGKILL"));
        assert_eq!((named("int"), named("SIGFOO")), (Some("SIGINT"), None));
    }
}
