//! Opens a program once, verifies the opened file, and determines the path under which it is run (SEC-05, SEC-07).
//!
//! A program is executed by path, so that a script's interpreter, the process list and the program itself find it under its
//! own name and can run it again: task drivers start their executors from their own file (T004, TH033). Without a pinned
//! digest, that is the path that the operator chose; if the file must be in a directory of allowed programs, it is checked
//! again after the start. With a pinned digest, the hashed bytes must be the executed bytes: the program is copied while it
//! is hashed, into a directory that only this user can enter, and the copy is run. It is kept while it is pinned.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::{Executable, ExecutableError, FileId};
use crate::datadir;
use crate::vocabulary::hex;
use crate::vocabulary::text::is_harmless;

/// The directory of the copies of pinned programs, below the directory of a process.
const COPIES: &str = "program";
const CHUNK_BYTES: usize = 256 * 1_024;

#[derive(Debug)]
pub(super) struct Opened {
    file: File,
    executable: Executable,
    path: PathBuf,
}

/// Opens and verifies a program. `directory` is that of its process: a copy of a pinned program is created below it. If a
/// digest is pinned, this reads the whole file, which may take a while.
pub(super) fn open_program(executable: &Executable, directory: &Path) -> Result<Opened, ExecutableError> {
    let mut file = open_file(executable)?;
    check(executable, &file)?;
    let path = match executable.sha256 {
        Some(pinned) => copied(executable, &mut file, pinned, &directory.join(COPIES))?,
        None => executable.place(),
    };
    Ok(Opened { file, executable: executable.clone(), path })
}

/// Removes the copies of a process without kept data.
pub(super) fn remove_copies(directory: &Path) -> io::Result<()> {
    remove_copies_but(&directory.join(COPIES), None)
}

impl Opened {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The original path, if it is run under another one.
    pub(super) fn origin(&self) -> Option<PathBuf> {
        Some(self.executable.place()).filter(|place| *place != self.path)
    }

    /// Whether the file is still the verified one; called after the start. Other users cannot change a copy.
    pub(super) fn check_unchanged(&self) -> Result<(), ExecutableError> {
        if self.executable.sha256.is_some() || self.executable.root.is_none() {
            return Ok(());
        }
        let id = |file: &File| {
            let metadata = file.metadata().map_err(|error| system(&self.executable, "look at", &error))?;
            Ok(FileId { device: metadata.dev(), inode: metadata.ino() })
        };
        if id(&open_file(&self.executable)?)? == id(&self.file)? {
            return Ok(());
        }
        Err(ExecutableError::Changed { path: self.executable.place() })
    }

    /// Facts about the file, for the error of a failed launch (D34).
    pub(super) fn diagnosis(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Ok(metadata) = self.file.metadata() {
            let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            notes.push(format!(
                "path {}, mode {:04o}, owner {} and group {} (the host's are {user} and {group})",
                self.executable.place().display(),
                metadata.mode() & 0o7777,
                metadata.uid(),
                metadata.gid()
            ));
        }
        let mut head = [0; 20];
        let is_read =
            std::os::unix::fs::FileExt::read_at(&self.file, &mut head, 0).is_ok_and(|n| n == head.len());
        notes.extend(is_read.then(|| machine_note(&head)).flatten());
        notes
    }
}

fn open_file(executable: &Executable) -> Result<File, ExecutableError> {
    // Non-blocking, because opening a FIFO would block until its other end is opened. Regular files ignore it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let path = &executable.path;
    let opened = match &executable.root {
        None if !path.is_absolute() => return Err(ExecutableError::NotAbsolute { path: path.clone() }),
        None => open(path, flags, Mode::empty()),
        Some(root) if !is_name(path) => {
            return Err(ExecutableError::NotAName { path: path.clone(), root: root.clone() });
        }
        Some(root) => {
            let directory = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
            directory.and_then(|directory| open_beneath(&directory, path, flags))
        }
    };
    match opened {
        Ok(descriptor) => Ok(File::from(descriptor)),
        Err(Errno::LOOP | Errno::XDEV) => Err(ExecutableError::Escapes { path: executable.place() }),
        Err(error) => Err(system(executable, "open", &error.into())),
    }
}

fn open_beneath(
    directory: &impl std::os::fd::AsFd,
    name: &Path,
    flags: OFlags,
) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(directory, name, flags, Mode::empty(), resolve) {
        // Rejected by an old kernel or a seccomp filter. For a single name, O_NOFOLLOW is equivalent.
        Err(Errno::NOSYS | Errno::PERM) => openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        outcome => outcome,
    }
}

/// Whether this is a plain file name: no separator, no `..`, no special bytes.
fn is_name(path: &Path) -> bool {
    let mut components = path.components();
    let Some(Component::Normal(name)) = components.next() else { return false };
    let Some(text) = path.to_str() else { return false };
    components.next().is_none() && name == path.as_os_str() && text.chars().all(is_harmless)
}

fn check(executable: &Executable, file: &File) -> Result<(), ExecutableError> {
    let path = || executable.place();
    let metadata = file.metadata().map_err(|error| system(executable, "look at", &error))?;
    if !metadata.is_file() {
        return Err(ExecutableError::NotAFile { path: path() });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o111 == 0 {
        return Err(ExecutableError::NotExecutable { path: path(), mode });
    }
    if !is_program(file).map_err(|error| system(executable, "read", &error))? {
        return Err(ExecutableError::NotAProgram { path: path() });
    }
    Ok(())
}

/// Whether it is an ELF program or a script with an interpreter line. The C library would pass anything else to a shell, so
/// that a damaged program would be run as commands.
fn is_program(file: &File) -> io::Result<bool> {
    let mut head = [0; 4];
    let length = std::os::unix::fs::FileExt::read_at(file, &mut head, 0)?;
    Ok(head[..length].starts_with(b"#!") || head[..length] == *b"\x7fELF")
}

/// Copies a program into a directory of ours while it is hashed, unless it exists; removes copies of other programs.
fn copied(
    executable: &Executable,
    file: &mut File,
    pinned: [u8; 32],
    copies: &Path,
) -> Result<PathBuf, ExecutableError> {
    let failed = |attempted| move |error: io::Error| system(executable, attempted, &error);
    let directory = copies.join(hex(&pinned[..8]));
    let name = executable.path.file_name().unwrap_or_default();
    let (path, fresh) = (directory.join(name), directory.join(".new"));
    remove_copies_but(copies, Some(&directory)).map_err(failed("remove an older copy of"))?;
    datadir::enter_or_make(&directory, 0o700).map_err(failed("make room for a copy of"))?;
    let is_there = File::open(&path).and_then(|mut copy| digest_of(&mut copy, &mut io::sink()));
    let is_there = is_there.is_ok_and(|found| found == pinned);
    let found = if is_there { digest_of(file, &mut io::sink()) } else { write_copy(file, &fresh) };
    let found = found.map_err(failed("read and copy"))?;
    if found != pinned {
        let _ = fs::remove_file(&fresh);
        let path = executable.place();
        return Err(ExecutableError::Digest { path, found: hex(&found), pinned: hex(&pinned) });
    }
    if !is_there {
        datadir::rename(&fresh, &path).map_err(failed("put a copy in place of"))?;
    }
    Ok(path)
}

fn write_copy(file: &mut File, fresh: &Path) -> io::Result<[u8; 32]> {
    match datadir::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut copy = datadir::open_file(fresh, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, 0o500)?;
    let found = digest_of(file, &mut copy)?;
    copy.sync_all()?;
    Ok(found)
}

fn remove_copies_but(copies: &Path, kept: Option<&Path>) -> io::Result<()> {
    datadir::check(copies).map_err(io::Error::other)?;
    let entries = match fs::read_dir(copies) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for directory in entries {
        let directory = directory?.path();
        if kept == Some(directory.as_path()) {
            continue;
        }
        for copy in fs::read_dir(&directory)? {
            fs::remove_file(copy?.path())?;
        }
        fs::remove_dir(&directory)?;
    }
    if kept.is_none() { fs::remove_dir(copies) } else { Ok(()) }
}

/// Reads a file to its end, copies it, and returns its digest.
fn digest_of(file: &mut File, copy: &mut impl Write) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(length) => {
                hasher.update(&chunk[..length]);
                copy.write_all(&chunk[..length])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn system(executable: &Executable, attempted: &'static str, error: &io::Error) -> ExecutableError {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let is_transient = !matches!(error.kind(), NotFound | PermissionDenied | NotADirectory);
    ExecutableError::System { attempted, path: executable.place(), message: error.to_string(), is_transient }
}

/// The machine type in an ELF header, for messages.
fn machine_note(head: &[u8; 20]) -> Option<String> {
    if head.starts_with(b"#!") {
        return Some("it is a script".to_owned());
    }
    if !head.starts_with(b"\x7fELF") {
        return Some("it is no ELF program and no script".to_owned());
    }
    let machine = match head[5] {
        2 => u16::from_be_bytes([head[18], head[19]]),
        _ => u16::from_le_bytes([head[18], head[19]]),
    };
    let name = match machine {
        3 => "x86",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        22 => "s390x",
        21 => "powerpc64",
        _ => return Some(format!("built for machine {machine}")),
    };
    Some(format!("built for {name} (the host is {})", std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_sec_05() {
        for path in ["", ".", "..", "a/b", "/a", "a/", "./a", "../a", "a/..", "a\nb", "a\0b"] {
            assert!(!is_name(Path::new(path)), "{path:?}");
        }
        for path in ["a", "plugin-v1.2", "..a", "ünïcode"] {
            assert!(is_name(Path::new(path)), "{path:?}");
        }
    }
}
