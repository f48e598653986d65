//! Detects the format of a program from the first bytes of its file (D34).

use std::fmt;

/// How many bytes of a file are needed at most.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The length limit for the path of a loader or an interpreter.
const RUNNER_BYTES_MAX: usize = 4096;

/// The type of the program header that names the loader.
const INTERPRETER_HEADER: u64 = 3;

/// Magic bytes of programs of other operating systems.
const FOREIGN: [(&[u8], &str); 6] = [
    (b"MZ", "a Windows program"),
    (b"\xfe\xed\xfa\xce", "a macOS program"),
    (b"\xfe\xed\xfa\xcf", "a macOS program"),
    (b"\xce\xfa\xed\xfe", "a macOS program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a macOS program or Java bytecode"),
];

/// The format of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// An empty file.
    Empty,
    /// A program for Linux or a similar system.
    Elf {
        /// The architecture it was compiled for.
        machine: Machine,
        /// The loader that starts it and finds its libraries; `None`: it needs none, or its name is beyond the bytes read.
        loader: Option<String>,
    },
    /// A script, with its interpreter.
    Script {
        /// The path of the interpreter, as in the script.
        interpreter: String,
    },
    /// A program of another operating system.
    Foreign {
        /// Its format.
        what: &'static str,
    },
    /// Anything else.
    Unknown,
}

/// An architecture, as in ELF headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    number: u64,
    is_64_bit: bool,
    is_little_endian: bool,
}

impl Machine {
    /// Its name, as Rust calls it; `None` if it is unknown.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match (self.number, self.is_64_bit) {
            (3, _) => "x86",
            (62, _) => "x86_64",
            (40, _) => "arm",
            (183, _) => "aarch64",
            (243, true) => "riscv64",
            (243, false) => "riscv32",
            (22, _) => "s390x",
            (20, _) => "powerpc",
            (21, _) => "powerpc64",
            (8, true) => "mips64",
            (8, false) => "mips",
            (258, _) => "loongarch64",
            _ => return None,
        })
    }

    /// Whether a host is expected to run programs of this architecture. True if it is unknown.
    #[must_use]
    pub fn runs_on(self, host: &HostMachine) -> bool {
        let Some(name) = self.name() else { return true };
        let is_kindred = matches!((name, host.name), ("x86", "x86_64") | ("arm", "aarch64"));
        self.is_little_endian == host.is_little_endian && (name == host.name || is_kindred)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "machine {}", self.number)?,
        }
        f.write_str(if self.is_little_endian { "" } else { " (big endian)" })
    }
}

/// The architecture of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostMachine {
    /// Its name, as Rust calls it.
    pub name: &'static str,
    /// Whether it is little-endian.
    pub is_little_endian: bool,
}

impl fmt::Display for HostMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, if self.is_little_endian { "" } else { " (big endian)" })
    }
}

impl Program {
    /// Reads the first bytes of a file, at most [`HEAD_BYTES_MAX`] of them.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        if head.is_empty() {
            return Self::Empty;
        }
        if let Some(line) = head.strip_prefix(b"#!") {
            return script(line).unwrap_or(Self::Unknown);
        }
        if let Some((_, what)) = FOREIGN.iter().find(|(magic, _)| head.starts_with(magic)) {
            return Self::Foreign { what };
        }
        Elf::of(head).map_or(Self::Unknown, |elf| elf.program())
    }

    /// The path of the loader or interpreter that the kernel needs to start it.
    #[must_use]
    pub fn runner(&self) -> Option<&str> {
        match self {
            Self::Elf { loader, .. } => loader.as_deref(),
            Self::Script { interpreter } => Some(interpreter),
            Self::Empty | Self::Foreign { .. } | Self::Unknown => None,
        }
    }
}

fn script(line: &[u8]) -> Option<Program> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let interpreter = std::str::from_utf8(line).ok()?.split_ascii_whitespace().next()?;
    (interpreter.len() <= RUNNER_BYTES_MAX).then(|| Program::Script { interpreter: interpreter.to_owned() })
}

/// The head of an ELF file; its numbers have the width and byte order that it declares.
struct Elf<'a> {
    head: &'a [u8],
    is_64_bit: bool,
    is_little_endian: bool,
}

impl<'a> Elf<'a> {
    fn of(head: &'a [u8]) -> Option<Self> {
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        let is_64_bit = matches!(head.get(4)?, 2);
        let is_little_endian = matches!(head.get(5)?, 1);
        Some(Self { head, is_64_bit, is_little_endian })
    }

    fn program(&self) -> Program {
        let Some(number) = self.number(18, 2) else { return Program::Unknown };
        let machine = Machine { number, is_64_bit: self.is_64_bit, is_little_endian: self.is_little_endian };
        Program::Elf { machine, loader: self.loader() }
    }

    fn loader(&self) -> Option<String> {
        let wide = self.is_64_bit;
        let (table, size, count) = match wide {
            true => (self.number(32, 8)?, self.number(54, 2)?, self.number(56, 2)?),
            false => (self.number(28, 4)?, self.number(42, 2)?, self.number(44, 2)?),
        };
        let header = (0..count).find_map(|index| {
            let at = usize::try_from(table.checked_add(index.checked_mul(size)?)?).ok()?;
            (self.number(at, 4)? == INTERPRETER_HEADER).then_some(at)
        })?;
        let (begin, length) = match wide {
            true => (self.number(header.checked_add(8)?, 8)?, self.number(header.checked_add(32)?, 8)?),
            false => (self.number(header.checked_add(4)?, 4)?, self.number(header.checked_add(16)?, 4)?),
        };
        let (begin, length) = (usize::try_from(begin).ok()?, usize::try_from(length).ok()?);
        let text = self.head.get(begin..begin.checked_add(length.min(RUNNER_BYTES_MAX))?)?;
        let path = text.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(path).ok().filter(|path| !path.is_empty()).map(str::to_owned)
    }

    fn number(&self, at: usize, width: usize) -> Option<u64> {
        let bytes = self.head.get(at..at.checked_add(width)?)?;
        let add = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
        Some(match self.is_little_endian {
            true => bytes.iter().rev().fold(0, add),
            false => bytes.iter().fold(0, add),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The head of a little-endian 64-bit program.
    fn elf(machine: u16, loader: &str) -> Vec<u8> {
        let mut head = vec![0; 64 + 2 * 56];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18..20].copy_from_slice(&machine.to_le_bytes());
        head[32] = 64;
        head[54] = 56;
        head[56] = 2;
        head[64] = 1;
        let second = 64 + 56;
        head[second] = 3;
        let begin = u8::try_from(head.len()).expect("it is short");
        head[second + 8] = begin;
        head[second + 32] = u8::try_from(loader.len() + 1).expect("it is short");
        head.extend(loader.bytes());
        head.push(0);
        head
    }

    const X86_64: HostMachine = HostMachine { name: "x86_64", is_little_endian: true };

    #[test]
    fn machine_and_loader_are_read_from_the_head_of_a_program_d34() {
        let program = Program::of(&elf(183, "/lib/ld-linux-aarch64.so.1"));
        let Program::Elf { machine, loader } = &program else { panic!("{program:?}") };
        assert_eq!((machine.to_string().as_str(), loader.as_deref()), ("aarch64", program.runner()));
        assert_eq!(program.runner(), Some("/lib/ld-linux-aarch64.so.1"));
    }

    #[test]
    fn machines_have_the_names_that_rust_has_for_them_d34() {
        let rows = [
            (3, true, "x86"),
            (62, true, "x86_64"),
            (40, false, "arm"),
            (183, true, "aarch64"),
            (243, true, "riscv64"),
            (243, false, "riscv32"),
            (22, true, "s390x"),
            (20, false, "powerpc"),
            (21, true, "powerpc64"),
            (8, true, "mips64"),
            (8, false, "mips"),
            (258, true, "loongarch64"),
            (9999, true, "machine 9999"),
        ];
        for (number, is_64_bit, name) in rows {
            assert_eq!(Machine { number, is_64_bit, is_little_endian: true }.to_string(), name);
            let other = Machine { number, is_64_bit, is_little_endian: false };
            assert_eq!(other.to_string(), format!("{name} (big endian)"));
        }
    }

    /// The head of a program of any width and byte order; its second program header names the loader.
    fn elf_of(is_64_bit: bool, is_little_endian: bool, loader: &[u8]) -> Vec<u8> {
        let mut head = b"\x7fELF".to_vec();
        head.extend([if is_64_bit { 2 } else { 1 }, if is_little_endian { 1 } else { 2 }]);
        head.resize(300, 0xff);
        let mut put = |at: usize, width: usize, number: u64| {
            let bytes = number.to_be_bytes();
            head.splice(at..at + width, bytes[8 - width..].iter().copied());
            if is_little_endian {
                head[at..at + width].reverse();
            }
        };
        put(18, 2, 22);
        let (table, size) = (80, 70);
        let header = table + size;
        let places = if is_64_bit { [(32, 8), (54, 2), (56, 2)] } else { [(28, 4), (42, 2), (44, 2)] };
        for ((at, width), number) in places.into_iter().zip([table, size, 2]) {
            put(at, width, number);
        }
        put(80, 4, 1);
        put(150, 4, 3);
        let (begin, width) = if is_64_bit { (8, 8) } else { (4, 4) };
        put(usize::try_from(header).unwrap() + begin, width, 300);
        let length_at = if is_64_bit { 32 } else { 16 };
        put(usize::try_from(header).unwrap() + length_at, width, loader.len() as u64);
        head.extend(loader);
        head
    }

    #[test]
    fn a_program_of_any_width_and_order_is_read_d34() {
        for (is_64_bit, is_little_endian) in [(true, true), (true, false), (false, true), (false, false)] {
            let machine = Machine { number: 22, is_64_bit, is_little_endian };
            let of = |loader: &[u8]| Program::of(&elf_of(is_64_bit, is_little_endian, loader));
            let with = |loader: &str| Program::Elf { machine, loader: Some(loader.to_owned()) };
            assert_eq!(of(b"/lib/ld.so\0rest"), with("/lib/ld.so"));
            assert_eq!(of(b"/lib/ld.so"), with("/lib/ld.so"));
            assert_eq!(of(b"\0"), Program::Elf { machine, loader: None });
            assert_eq!(of(b"\xff\0"), Program::Elf { machine, loader: None });
            let long = "x".repeat(RUNNER_BYTES_MAX + 1);
            assert_eq!(of(long.as_bytes()), with(&long[1..]), "no more is read of it than a path may have");
            // The loader's name may be beyond the bytes that were read.
            let mut head = elf_of(is_64_bit, is_little_endian, b"/lib/ld.so\0");
            head.pop();
            assert_eq!(Program::of(&head), Program::Elf { machine, loader: None });
        }
    }

    #[test]
    fn a_script_names_its_interpreter_within_its_first_line_d34() {
        let path = "x".repeat(RUNNER_BYTES_MAX);
        let of = |text: &str| Program::of(text.as_bytes());
        assert_eq!(of(&format!("#!{path} -e")).runner(), Some(&*path));
        assert_eq!(of(&format!("#!{path}x -e")), Program::Unknown);
        assert_eq!(of("#!\n/bin/sh"), Program::Unknown);
    }

    #[test]
    fn a_host_runs_its_own_and_kindred_programs_and_those_it_does_not_know_d34() {
        for (number, runs) in [(62, true), (3, true), (183, false), (40, false), (9999, true)] {
            let Program::Elf { machine, .. } = Program::of(&elf(number, "")) else { panic!("{number}") };
            assert_eq!(machine.runs_on(&X86_64), runs, "{machine}");
        }
    }

    #[test]
    fn other_kinds_of_files_are_told_apart_d34() {
        let script = Program::Script { interpreter: "/usr/bin/env".to_owned() };
        let rows = [
            (&b""[..], Program::Empty),
            (b"#! /usr/bin/env python3\nprint()", script),
            (b"#!\n", Program::Unknown),
            (b"MZ\x90", Program::Foreign { what: "a Windows program" }),
            (b"\xcf\xfa\xed\xfe\x07", Program::Foreign { what: "a macOS program" }),
            (b"\x7fELF", Program::Unknown),
            (b"echo hello", Program::Unknown),
        ];
        for (head, program) in rows {
            assert_eq!(Program::of(head), program);
        }
    }

    proptest! {
        #[test]
        fn no_head_makes_the_reader_panic_d34(head in prop::collection::vec(any::<u8>(), 0..200), wide in 0_u8..3, order in 0_u8..3) {
            let _ = Program::of(&head);
            let mut elf = vec![0x7f, b'E', b'L', b'F', wide, order];
            elf.extend(head);
            let program = Program::of(&elf);
            prop_assert!(program.runner().is_none_or(|runner| runner.len() <= 200));
        }
    }
}
