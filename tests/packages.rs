//! What those who embed the packages find in them.

use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// That a panic costs one message (rule 4 of the shell) rests on panics that unwind.
#[test]
fn a_build_in_which_panics_abort_is_refused_with_what_to_do_shell_4() {
    let library = std::fs::read_to_string(root().join("actors/src/lib.rs")).unwrap();
    assert!(library.contains("\nmod unwinding;\n"));
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let directory = tempfile::tempdir().unwrap();
    let compile = |panic: &str| {
        let mut command = Command::new(&compiler);
        command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-C", panic]);
        command.arg("--out-dir").arg(directory.path()).arg(root().join("actors/src/unwinding.rs"));
        command.output().unwrap()
    };
    let unwinding = compile("panic=unwind");
    assert!(unwinding.status.success(), "{}", String::from_utf8_lossy(&unwinding.stderr));
    let aborting = compile("panic=abort");
    let said = String::from_utf8_lossy(&aborting.stderr);
    assert!(
        !aborting.status.success() && said.contains("Take panic = \"abort\" out of the profile"),
        "{said}"
    );
}
