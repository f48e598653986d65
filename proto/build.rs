//! Compiles the protocol files without `protoc`, into clients, servers, descriptors and debug output that
//! keeps secrets.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use prost_reflect::{DescriptorPool, FieldDescriptor, MessageDescriptor};
use prost_types::FileDescriptorSet;

/// Where the protocol files lie; a file's path below it is the name that its imports use.
const ROOT: &str = "proto";

/// The protocol files that are ours to compile.
const FILES: [&str; 7] = [
    "csi/v1/csi.proto",
    "goplugin/plugin.proto",
    "nomad/base.proto",
    "nomad/device.proto",
    "nomad/drivers.proto",
    "nomad/hclspec.proto",
    "nomad/structs.proto",
];

/// The protocol file whose service is served by us alone.
const ADMIN: &str = "callboard/admin/v1/admin.proto";

/// The mark of fields that hold secrets.
const SECRET_MARK: &str = "csi.v1.csi_secret";

/// Fields without that mark which are kept all the same: the specification of CSI wants it for one (C025), which our own
/// protocol passes on, and nothing in Nomad's protocols is marked, although it carries the environment and the input of tasks
/// and the configuration of drivers.
const SECRET_BY_NAME: [&str; 11] = [
    "callboard.admin.v1.VolumeUsage.mount_flags",
    "csi.v1.VolumeCapability.MountVolume.mount_flags",
    "hashicorp.nomad.plugins.base.proto.SetConfigRequest.msgpack_config",
    "hashicorp.nomad.plugins.device.ContainerReservation.envs",
    "hashicorp.nomad.plugins.drivers.proto.ExecTaskResponse.stderr",
    "hashicorp.nomad.plugins.drivers.proto.ExecTaskResponse.stdout",
    "hashicorp.nomad.plugins.drivers.proto.ExecTaskStreamingIOOperation.data",
    "hashicorp.nomad.plugins.drivers.proto.TaskConfig.device_env",
    "hashicorp.nomad.plugins.drivers.proto.TaskConfig.env",
    "hashicorp.nomad.plugins.drivers.proto.TaskConfig.msgpack_driver_config",
    "hashicorp.nomad.plugins.drivers.proto.TaskHandle.driver_state",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    for file in FILES.into_iter().chain([ADMIN]) {
        println!("cargo::rerun-if-changed={ROOT}/{file}");
    }
    let out_dir = PathBuf::from(env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new([ROOT])?;
    compiler.include_imports(true).open_files(FILES.into_iter().chain([ADMIN]))?;

    // The generated code carries the comments; the descriptors that travel in the binary do without them.
    // They are taken as bytes because the typed form would lose the custom options, and with them the secret
    // and alpha marks.
    let descriptors = compiler.include_source_info(false).encode_file_descriptor_set();
    fs::write(out_dir.join("descriptors.bin"), descriptors)?;

    let pool = compiler.descriptor_pool();
    if let Some(unknown) = SECRET_BY_NAME.iter().find(|name| !has_field(&pool, name)) {
        return Err(format!("{unknown} is to be kept secret, and there is no such field").into());
    }
    let secretive: Vec<_> =
        pool.all_messages().filter(|message| message.fields().any(|f| is_secret(&f))).collect();
    for package in secretive.iter().map(MessageDescriptor::package_name).collect::<BTreeSet<_>>() {
        let messages = secretive.iter().filter(|message| message.package_name() == package);
        fs::write(out_dir.join(format!("{package}.secretive.rs")), debug_output_of(messages)?)?;
    }

    let documented = compiler.include_source_info(true).file_descriptor_set();
    let (plugins, admin): (Vec<_>, Vec<_>) =
        documented.file.into_iter().partition(|file| file.name() != ADMIN);

    // A plugin serves a few of many calls: those it leaves out answer UNIMPLEMENTED. Our own service has no such gaps,
    // so a call forgotten there shall not compile.
    let configured = || {
        tonic_prost_build::configure()
            .emit_rerun_if_changed(false)
            .skip_debug(secretive.iter().map(|message| format!(".{}", message.full_name())))
    };
    configured().generate_default_stubs(true).compile_fds(FileDescriptorSet { file: plugins })?;
    configured().compile_fds(FileDescriptorSet { file: admin })?;
    Ok(())
}

fn has_field(pool: &DescriptorPool, full_name: &str) -> bool {
    let found = full_name
        .rsplit_once('.')
        .and_then(|(message, field)| pool.get_message_by_name(message)?.get_field_by_name(field));
    found.is_some()
}

fn is_secret(field: &FieldDescriptor) -> bool {
    let pool: &DescriptorPool = field.parent_pool();
    let mark = pool.get_extension_by_name(SECRET_MARK);
    SECRET_BY_NAME.contains(&field.full_name())
        || mark.is_some_and(|mark| field.options().get_extension(&mark).as_bool() == Some(true))
}

/// Writes a `Debug` for each of these messages that shows every field but the secret ones.
fn debug_output_of<'a>(
    messages: impl Iterator<Item = &'a MessageDescriptor>,
) -> Result<String, Box<dyn Error>> {
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
    let name = &message.full_name()[message.package_name().len() + 1..];
    match name.split_once('.') {
        Some((outer, inner)) => format!("{}::{}", snake_case(outer), upper_camel_case(inner)),
        None => upper_camel_case(name),
    }
}

/// The name of a type as prost writes it: of several capitals in a row only those stay that begin a word.
fn upper_camel_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let begins_a_word = |at: usize| {
        let follows_a_capital = at > 0 && letters[at - 1].is_uppercase();
        !follows_a_capital || letters.get(at + 1).is_some_and(|next| next.is_lowercase())
    };
    let letter = |(at, letter): (usize, &char)| match begins_a_word(at) {
        true => *letter,
        false => letter.to_ascii_lowercase(),
    };
    letters.iter().enumerate().map(letter).collect()
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
