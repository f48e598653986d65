//! A disk that can be made sick: a library that is loaded into a program and stands before its system calls. It is compiled here by `cc`;
//! where there is none, the tests that need it say so and fail.

#![allow(dead_code, reason = "each test program uses another part of this")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, and the file by which the disk is made sick.
pub(crate) struct Preloaded {
    library: PathBuf,
    wish: PathBuf,
}

impl Preloaded {
    /// Compiles it into this directory. The disk is sound.
    pub(crate) fn below(directory: &Path) -> Self {
        let (library, wish) = (directory.join("sick_disk.so"), directory.join("disk"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/sick_disk.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&library)
            .args([source, "-ldl"])
            .output();
        match compiled {
            Ok(output) if output.status.success() => {}
            Ok(output) => panic!("cc fails: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("a C compiler is needed, as the README says, and cc cannot be run: {error}"),
        }
        let preloaded = Self { library, wish };
        preloaded.disk("ok");
        preloaded
    }

    /// Makes the disk `ok`, `full`, `lost` (it refuses syncs), `slow` or `hang`.
    pub(crate) fn disk(&self, state: &str) {
        make(&self.wish, state);
    }

    /// The file by which the disk is made sick.
    pub(crate) fn wish(&self) -> &Path {
        &self.wish
    }

    /// What a program on this disk has in its environment.
    pub(crate) fn environment(&self) -> [(&'static str, &str); 2] {
        [("LD_PRELOAD", text(&self.library)), (WISH, text(&self.wish))]
    }
}

const WISH: &str = "SICK_DISK";

fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

/// Makes the disk of this program sick or sound, if it runs on such a disk.
pub(crate) fn own_disk(state: &str) {
    make(Path::new(&std::env::var_os(WISH).expect("this program runs on such a disk")), state);
}

/// In one step: the library never reads half a wish.
fn make(wish: &Path, state: &str) {
    let next = wish.with_extension("next");
    std::fs::write(&next, state).expect("it can be written");
    std::fs::rename(next, wish).expect("it can be renamed");
}
