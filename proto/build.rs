//! Compiles the protocol files without `protoc`, into clients, servers, descriptors and debug output that
//! keeps secrets.

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use prost_reflect::{DescriptorPool, FieldDescriptor, MessageDescriptor};
use prost_types::FileDescriptorSet;

/// Where the protocol files lie; a file's path below it is the name that its imports use.
const ROOT: &str = "proto";

/// The protocol files that are ours to compile.
const FILES: [&str; 2] = ["csi/v1/csi.proto", "callboard/admin/v1/admin.proto"];

/// The package whose messages can hold secrets, and the mark of the fields that do.
const SECRETIVE_PACKAGE: &str = "csi.v1";
const SECRET_MARK: &str = "csi.v1.csi_secret";

/// A field without that mark which the specification wants kept all the same (C025).
const SECRET_BY_TEXT: &str = "csi.v1.VolumeCapability.MountVolume.mount_flags";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    for file in FILES {
        println!("cargo::rerun-if-changed={ROOT}/{file}");
    }
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new([ROOT])?;
    compiler.include_imports(true).open_files(FILES)?;

    // The generated code carries the comments; the descriptors that travel in the binary do without them.
    // They are taken as bytes because the typed form would lose the custom options, and with them the secret
    // and alpha marks.
    let descriptors = compiler.include_source_info(false).encode_file_descriptor_set();
    fs::write(out_dir.join("descriptors.bin"), descriptors)?;

    let pool = compiler.descriptor_pool();
    let secretive: Vec<_> =
        pool.all_messages().filter(|message| message.fields().any(|f| is_secret(&f))).collect();
    fs::write(out_dir.join("secretive.rs"), debug_output_of(&secretive)?)?;

    let documented = compiler.include_source_info(true).file_descriptor_set();
    let (csi, admin): (Vec<_>, Vec<_>) =
        documented.file.into_iter().partition(|file| file.name() != FILES[1]);

    // A CSI plugin serves a few of many calls: those it leaves out answer UNIMPLEMENTED. Our own service has no such gaps,
    // so a call forgotten there shall not compile.
    let configured = || tonic_prost_build::configure().emit_rerun_if_changed(false);
    configured()
        .generate_default_stubs(true)
        .skip_debug(secretive.iter().map(|message| format!(".{}", message.full_name())))
        .compile_fds(FileDescriptorSet { file: csi })?;
    configured().compile_fds(FileDescriptorSet { file: admin })?;
    Ok(())
}

fn is_secret(field: &FieldDescriptor) -> bool {
    let pool: &DescriptorPool = field.parent_pool();
    let mark = pool.get_extension_by_name(SECRET_MARK);
    field.full_name() == SECRET_BY_TEXT
        || mark.is_some_and(|mark| field.options().get_extension(&mark).as_bool() == Some(true))
}

/// Writes a `Debug` for each of these messages that shows every field but the secret ones.
fn debug_output_of(messages: &[MessageDescriptor]) -> Result<String, Box<dyn Error>> {
    let mut code = String::new();
    for message in messages {
        if message.oneofs().len() > 0 {
            return Err(format!(
                "{} has a oneof, which debug_output_of cannot write yet",
                message.full_name()
            )
            .into());
        }
        writeln!(code, "impl ::core::fmt::Debug for {} {{", rust_path(message))?;
        writeln!(code, "    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{")?;
        writeln!(code, "        f.debug_struct({:?})", message.name())?;
        for field in message.fields() {
            let name = field.name();
            if is_secret(&field) {
                writeln!(
                    code,
                    "            .field({name:?}, &crate::withheld::Withheld(self.{name}.len()))"
                )?;
            } else {
                writeln!(code, "            .field({name:?}, &self.{name})")?;
            }
        }
        writeln!(code, "            .finish()\n    }}\n}}")?;
    }
    Ok(code)
}

/// The path of a message's type as seen from its package's module: messages within messages lie in a module
/// of their own.
fn rust_path(message: &MessageDescriptor) -> String {
    let name = message.full_name().trim_start_matches(SECRETIVE_PACKAGE).trim_start_matches('.');
    match name.split_once('.') {
        Some((outer, inner)) => format!("{}::{inner}", snake_case(outer)),
        None => name.to_owned(),
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}
