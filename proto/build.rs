//! Compiles the protocol files without `protoc`, into clients, servers and descriptors.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

/// Where the protocol files lie; a file's path below it is the name that its imports use.
const ROOT: &str = "proto";

/// The protocol files that are ours to compile.
const FILES: [&str; 2] = ["csi/v1/csi.proto", "callboard/admin/v1/admin.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    for file in FILES {
        println!("cargo::rerun-if-changed={ROOT}/{file}");
    }

    let mut compiler = protox::Compiler::new([ROOT])?;
    compiler.include_imports(true).open_files(FILES)?;

    // The generated code carries the comments; the descriptors that travel in the binary do without them.
    // They are taken as bytes because the typed form would lose the custom options, and with them the secret
    // and alpha marks.
    let descriptors = compiler.include_source_info(false).encode_file_descriptor_set();
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin"), descriptors)?;

    let documented = compiler.include_source_info(true).file_descriptor_set();
    tonic_prost_build::configure().emit_rerun_if_changed(false).compile_fds(documented)?;
    Ok(())
}
