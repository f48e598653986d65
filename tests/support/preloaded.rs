//! Provides libraries that are loaded into a program and intercept its system calls: a disk that can be made sick, and others. They are
//! compiled here by `cc`; if there is none, the tests that need it report so and fail.

#![allow(dead_code, reason = "each test program uses another part of this")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, and the file that controls the state of the disk.
pub(crate) struct Preloaded {
    library: PathBuf,
    wish: PathBuf,
}

impl Preloaded {
    /// Compiles the library into this directory. The disk is sound.
    pub(crate) fn below(directory: &Path) -> Self {
        let (library, wish) = (compiled("sick_disk", directory), directory.join("disk"));
        let preloaded = Self { library, wish };
        preloaded.disk("ok");
        preloaded
    }

    /// Makes the disk `ok`, `full`, `lost` (it refuses syncs), `slow` or `hang`.
    pub(crate) fn disk(&self, state: &str) {
        make(&self.wish, state);
    }

    /// The file that controls the state of the disk.
    pub(crate) fn wish(&self) -> &Path {
        &self.wish
    }

    /// The variables in the environment of a program on this disk.
    pub(crate) fn environment(&self) -> [(&'static str, &str); 2] {
        [("LD_PRELOAD", text(&self.library)), (WISH, text(&self.wish))]
    }
}

/// Compiles the library of this name into a directory.
pub(crate) fn compiled(name: &str, directory: &Path) -> PathBuf {
    let library = directory.join(name).with_extension("so");
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
    match cc.arg(sources.join(name).with_extension("c")).arg("-ldl").output() {
        Ok(output) if output.status.success() => library,
        Ok(output) => panic!("cc fails: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => panic!("a C compiler is needed, as the README says, and cc cannot be run: {error}"),
    }
}

const WISH: &str = "SICK_DISK";

/// A path for an environment.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

/// Makes the disk of this program sick or sound; the program must run on such a disk.
pub(crate) fn own_disk(state: &str) {
    make(Path::new(&std::env::var_os(WISH).expect("this program runs on such a disk")), state);
}

/// Replaces the file in one step: the library never reads a half-written state.
fn make(wish: &Path, state: &str) {
    let next = wish.with_extension("next");
    std::fs::write(&next, state).expect("it can be written");
    std::fs::rename(next, wish).expect("it can be renamed");
}
