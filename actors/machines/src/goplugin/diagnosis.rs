//! Explains why a plugin's executable did not start: facts about the file, and its output (D34, D36).

use std::fmt;
use std::path::PathBuf;

use super::program::{HostMachine, Program};
use crate::vocabulary::text::quoted;

/// Messages of loaders about missing libraries or versions, and of go-plugin about a wrong start (D36). Our own plugins use
/// other messages.
const TOLD: [(&str, Reading); 6] = [
    ("error while loading shared libraries", |line| Finding::LibraryMissing { line }),
    ("Error loading shared library", |line| Finding::LibraryMissing { line }),
    ("' not found (required by ", |line| Finding::LibraryMissing { line }),
    ("This binary is a plugin", |_| Finding::CookieRefused),
    ("this program is a plugin and is of no use", |_| Finding::CookieRefused),
    ("Misconfigured ServeConfig", |_| Finding::PluginWithoutCookie),
];

type Reading = fn(String) -> Finding;

/// Facts about the path of an executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutableFacts {
    /// The path could not be inspected.
    Unreachable {
        /// The error of the operating system.
        detail: String,
    },
    /// It is not a regular file.
    NoFile {
        /// The file type.
        what: &'static str,
    },
    /// A file.
    File {
        /// Its permission bits.
        mode: u32,
        /// User and group of its owner.
        owner: (u32, u32),
        /// Our own effective user and group.
        ours: (u32, u32),
        /// Whether the kernel permits us to execute it.
        may_be_executed: bool,
        /// The format of the program; `None`: the file is unreadable, which is not an error.
        program: Option<Program>,
        /// Whether its loader or interpreter exists.
        has_runner: bool,
    },
}

/// Why a plugin did not start, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// The file could not be inspected.
    #[error("it cannot be reached ({detail}); check the path and the permissions of its directories")]
    Unreachable {
        /// The error of the operating system.
        detail: String,
    },
    /// The path is not an executable file.
    #[error("it is {what} and no file; check the path")]
    NoFile {
        /// The file type at the path.
        what: &'static str,
    },
    /// We have no execute permission.
    #[error(
        "we ({}:{}) may not execute it: its mode is {mode:04o} and it belongs to {}:{}; \
         give us the right to, and check that its file system is not mounted noexec", ours.0, ours.1, owner.0, owner.1
    )]
    MayNotBeExecuted {
        /// Its permission bits.
        mode: u32,
        /// User and group of its owner.
        owner: (u32, u32),
        /// Our own effective user and group.
        ours: (u32, u32),
    },
    /// The file is empty.
    #[error("it is empty; install it again")]
    Empty,
    /// It was compiled for another architecture.
    #[error("it was compiled for {machine} and this host is {host}; install the one for this host")]
    OtherMachine {
        /// The architecture it was compiled for.
        machine: String,
        /// The architecture of this machine.
        host: String,
    },
    /// It was compiled for another operating system.
    #[error("it is {what}; install the one for this system")]
    OtherSystem {
        /// The format of the program.
        what: &'static str,
    },
    /// It is neither a program nor a script.
    #[error("it is no program that the kernel knows; a script has to begin with #! and its interpreter")]
    NoProgram,
    /// Its loader or interpreter does not exist.
    #[error(
        "\"{runner}\", which has to start it, is not there; install that, or a statically linked build of the plugin"
    )]
    RunnerMissing {
        /// The path of the loader or the interpreter.
        runner: String,
    },
    /// The loader did not find a library, or not the required version (from its output).
    #[error("it lacks a library (\"{line}\"); install that, or a build of the plugin for this system")]
    LibraryMissing {
        /// The message of the loader.
        line: String,
    },
    /// It assumes that a person started it: the cookie is missing or wrong (D36, from its output).
    #[error("it does not accept the cookie of this host; check that it is a plugin for this kind of host")]
    CookieRefused,
    /// It was built without a cookie (D36, from its output).
    #[error("it was built without a handshake cookie; report it to the plugin's vendor")]
    PluginWithoutCookie,
}

/// Why an executable may not have started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The executable.
    pub path: PathBuf,
    /// The findings, the most certain first. Empty: the plugin failed for a reason of its own.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Evaluates the facts about the file, and the output of the plugin on both streams before it ended.
    #[must_use]
    pub fn new<'a>(
        path: PathBuf,
        facts: &ExecutableFacts,
        host: &HostMachine,
        printed: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut findings = of_file(facts, host);
        findings.extend(printed.into_iter().find_map(of_line));
        Self { path, findings }
    }
}

fn of_line(line: &str) -> Option<Finding> {
    let (_, reading) = TOLD.iter().find(|(words, _)| line.contains(words))?;
    Some(reading(quoted(line)))
}

fn of_file(facts: &ExecutableFacts, host: &HostMachine) -> Vec<Finding> {
    match facts {
        ExecutableFacts::Unreachable { detail } => vec![Finding::Unreachable { detail: detail.clone() }],
        ExecutableFacts::NoFile { what } => vec![Finding::NoFile { what }],
        ExecutableFacts::File { mode, owner, ours, may_be_executed, program, has_runner } => {
            let refused = Finding::MayNotBeExecuted { mode: *mode, owner: *owner, ours: *ours };
            let mut findings: Vec<Finding> = (!may_be_executed).then_some(refused).into_iter().collect();
            findings.extend(program.as_ref().and_then(|program| of_program(program, host)));
            let runner = program.as_ref().and_then(Program::runner).filter(|_| !has_runner);
            findings.extend(runner.map(|runner| Finding::RunnerMissing { runner: quoted(runner) }));
            findings
        }
    }
}

fn of_program(program: &Program, host: &HostMachine) -> Option<Finding> {
    match program {
        Program::Empty => Some(Finding::Empty),
        Program::Unknown => Some(Finding::NoProgram),
        Program::Foreign { what } => Some(Finding::OtherSystem { what }),
        Program::Elf { machine, .. } if !machine.runs_on(host) => {
            Some(Finding::OtherMachine { machine: machine.to_string(), host: host.to_string() })
        }
        Program::Elf { .. } | Program::Script { .. } => None,
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", quoted(&self.path.to_string_lossy()))?;
        if self.findings.is_empty() {
            return f.write_str("nothing is wrong with the file; the plugin failed in a way of its own");
        }
        for (at, finding) in self.findings.iter().enumerate() {
            write!(f, "{}{finding}", if at == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostMachine = HostMachine { name: "x86_64", is_little_endian: true };

    fn file(program: Option<Program>, may_be_executed: bool, has_runner: bool) -> ExecutableFacts {
        let (owner, ours) = ((1, 2), (3, 4));
        ExecutableFacts::File { mode: 0o640, owner, ours, may_be_executed, program, has_runner }
    }

    fn told(facts: &ExecutableFacts, printed: &[&str]) -> String {
        Diagnosis::new("/opt/p".into(), facts, &HOST, printed.iter().copied()).to_string()
    }

    #[test]
    fn every_reason_that_the_file_can_give_is_told_with_what_to_do_d34() {
        let script = Program::Script { interpreter: "/usr/bin/python9".to_owned() };
        let rows = [
            (
                ExecutableFacts::Unreachable { detail: "No such file".into() },
                "cannot be reached (No such file)",
            ),
            (ExecutableFacts::NoFile { what: "a directory" }, "a directory and no file"),
            (file(None, false, true), "we (3:4) may not execute it: its mode is 0640 and it belongs to 1:2"),
            (file(Some(Program::Empty), true, true), "empty; install it again"),
            (file(Some(Program::Unknown), true, true), "no program that the kernel knows"),
            (
                file(Some(Program::Foreign { what: "a Windows program" }), true, true),
                "it is a Windows program",
            ),
            (
                file(Some(script.clone()), true, false),
                "\"/usr/bin/python9\", which has to start it, is not there",
            ),
            (file(Some(script), true, true), "nothing is wrong with the file"),
            (file(None, true, true), "nothing is wrong with the file"),
        ];
        for (facts, words) in rows {
            let told = told(&facts, &[]);
            assert!(told.starts_with("/opt/p: ") && told.contains(words), "{told}");
        }
    }

    #[test]
    fn a_program_for_another_machine_is_told_with_both_and_one_for_this_machine_is_not_d34() {
        let compiled_for = |machine: u8| {
            let mut head = b"\x7fELF\x02\x01".to_vec();
            head.resize(64, 0);
            head[18] = machine;
            file(Some(Program::of(&head)), true, true)
        };
        let (x86_64, aarch64) = (compiled_for(62), compiled_for(183));
        assert!(told(&aarch64, &[]).contains("compiled for aarch64 and this host is x86_64; install"));
        assert!(told(&x86_64, &[]).contains("nothing is wrong with the file"));
        let host = HostMachine { name: "s390x", is_little_endian: false };
        let there = Diagnosis::new("/opt/p".into(), &x86_64, &host, None).to_string();
        assert!(there.contains("compiled for x86_64 and this host is s390x (big endian)"), "{there}");
    }

    #[test]
    fn what_the_loader_or_go_plugin_said_is_the_reason_where_the_file_gives_none_d34_d36() {
        let good = file(None, true, true);
        for (line, words) in [
            (
                "p: error while loading shared libraries: libx.so.1: cannot open",
                "lacks a library (\"p: error",
            ),
            ("Error loading shared library libx.so: No such file (needed by p)", "lacks a library"),
            ("p: /lib/libc.so.6: version `GLIBC_9.99' not found (required by p)", "lacks a library"),
            ("This binary is a plugin. These are not meant to be executed directly.", "accept the cookie"),
            ("Misconfigured ServeConfig given to serve this plugin: no magic", "without a handshake cookie"),
        ] {
            let told = told(&good, &["starting", line, line]);
            assert!(told.contains(words), "{told}");
        }
        assert!(told(&good, &["panic: no room"]).contains("in a way of its own"));
    }
}
