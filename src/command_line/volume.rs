//! `callboard volume`: lists volumes of a running host, and creates, expands, deletes, claims and releases them.

mod confirm;
mod ends;
mod expand;
mod group;
mod page;
mod plugin;
mod release;
mod snapshot;
mod stats;

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use callboard_actors::csi::AccessMode;
use callboard_actors::vocabulary::{AllocationId, PluginName, milliseconds};
use callboard_proto::admin::v1 as wire;
use clap::{Args, Subcommand};
use serde_json::json;

use self::ends::{DeleteArgs, ForgetArgs};
use self::expand::ExpandArgs;
use self::plugin::{CapacityArgs, ModifyArgs, OfPluginArgs, ValidateArgs};
use self::release::ReleaseArgs;
use self::snapshot::SnapshotArgs;
use self::stats::StatsArgs;
use super::ask::{AskError, PlainArgs, ask, pretty};
use super::{json, usage, volumes, whole};
use crate::admin::AdminClient;
use crate::config::volume_words;
use crate::duration::parse_duration;
use crate::output::{Palette, harmless, print};

/// What can be said to `volume`.
#[derive(Debug, Args)]
pub(super) struct VolumeArgs {
    #[command(subcommand)]
    command: VolumeCommand,
}

#[derive(Debug, Subcommand)]
enum VolumeCommand {
    /// Show the volumes that a running host knows, uses or has in its configuration, those with problems first
    List(PlainArgs),
    /// Show one volume whole, with its claims and its last events
    Status(StatusArgs),
    /// Create a volume at its plugin, and wait until it exists; the same command again asks for the result, and creates no second one
    Create(CreateArgs),
    /// Delete a volume at its plugin with all its data, and wait until that is confirmed; asks for confirmation first
    Delete(DeleteArgs),
    /// Forget a volume that this host did not create, such as one that an earlier configuration named by its id; it stays
    /// unchanged at its plugin
    Forget(ForgetArgs),
    /// Make a volume larger, at its plugin and where it is mounted here, and wait until that is confirmed
    Expand(ExpandArgs),
    /// Show how full a volume is where it is mounted here, and in what condition its plugin sees it
    Stats(StatsArgs),
    /// Take snapshots of volumes, delete and list them
    Snapshot(SnapshotArgs),
    /// Change mutable parameters of a volume, and wait until that is confirmed
    Modify(ModifyArgs),
    /// Ask the plugin of a volume whether it supports a usage
    Validate(ValidateArgs),
    /// List the volumes that a plugin has, also those that the host does not know
    ListPlugin(OfPluginArgs),
    /// Show how much room a plugin has for new volumes
    Capacity(CapacityArgs),
    /// Claim a volume for an allocation, wait until it is mounted, and print its path
    Claim(ClaimArgs),
    /// Release the claim of an allocation whose last process has ended, and wait until the volume is unmounted
    ///
    /// With this command you confirm that every process of the allocation has ended. The host does not see processes that it
    /// did not start, so it relies on that: a process that is left loses the volume, and may lose data. The release is
    /// recorded and goes on until it is confirmed, also when this command stops waiting and when the host is started again.
    ///
    /// With --force the host gives up waiting for the confirmation of what is released already, and forgets it. What may be left is
    /// printed, and written into the log with your user and the reason. Without --allocation the whole volume is forgotten,
    /// with its pending orders: for them the host neither calls the plugin nor removes a directory. With --allocation only
    /// that claim is forgotten. What is staged or attached for it and others stays until nothing is mounted at its path any
    /// more; the host goes on asking the
    /// plugin to unpublish that path, and you can unmount it. A claim that is held cannot be forced; release it first.
    Release(ReleaseArgs),
}

/// Reads the name of a volume, and returns it with its namespace.
fn volume_name(text: &str) -> Result<String, String> {
    volume_words::volume_key(text).map(|key| key.to_string())
}

fn access_mode(text: &str) -> Result<AccessMode, String> {
    volume_words::access_mode(text)
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
        format!("{text:?} is no parameter; give its key, a = and its value, as in fstype=ext4")
    })?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    #[command(flatten)]
    plain: PlainArgs,
}

#[derive(Debug, Args)]
struct WaitArgs {
    /// How long to wait; the operation goes on afterwards, and the same command again waits for its result
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    within: Duration,
}

/// For a question about no single volume, which holds up none.
#[derive(Debug, Args)]
struct ListWaitArgs {
    /// How long to wait for the plugin, at most 1m
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    within: Duration,
}

impl ListWaitArgs {
    fn milliseconds(&self) -> u64 {
        milliseconds(self.within)
    }
}

/// For a question about one volume: no call of that volume waits longer for it.
#[derive(Debug, Args)]
struct ReadWaitArgs {
    /// How long to wait for the plugin, at most 10s
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    within: Duration,
}

impl ReadWaitArgs {
    fn milliseconds(&self) -> u64 {
        milliseconds(self.within)
    }
}

impl WaitArgs {
    fn milliseconds(&self) -> u64 {
        milliseconds(self.within)
    }
}

/// How a volume is used.
#[derive(Debug, Args)]
struct UsageArgs {
    /// Who may use it at the same time: single-node-writer, multi-node-multi-writer and so on, as in the configuration
    ///
    /// The default is single-node-writer. A claim or a validation without any of these options uses those of the
    /// configuration, if it has the volume
    #[arg(long, value_name = "MODE", value_parser = access_mode)]
    access_mode: Option<AccessMode>,

    /// Use it as a block device instead of a file system
    #[arg(long, conflicts_with_all = ["fs_type", "mount_flags", "mount_group"])]
    block: bool,

    /// Its file system; the plugin chooses if it is not given
    #[arg(long, value_name = "TYPE")]
    fs_type: Option<String>,

    /// A flag for its mount; may be given several times. Other users of this machine can read it in the list of processes
    #[arg(long = "mount-flag", value_name = "FLAG")]
    mount_flags: Vec<String>,

    /// The group that owns its files
    #[arg(long, value_name = "GROUP")]
    mount_group: Option<String>,
}

impl UsageArgs {
    fn usage(&self) -> wire::VolumeUsage {
        wire::VolumeUsage {
            access_mode: self.access_mode.unwrap_or(AccessMode::SingleNodeWriter).word(),
            block: self.block,
            fs_type: self.fs_type.clone().unwrap_or_default(),
            mount_flags: self.mount_flags.clone(),
            mount_group: self.mount_group.clone().unwrap_or_default(),
        }
    }

    /// The usage, if any part of it is given.
    fn given(&self) -> Option<wire::VolumeUsage> {
        let Self { access_mode, block, fs_type, mount_flags, mount_group } = self;
        let is_given = access_mode.is_some()
            || *block
            || fs_type.is_some()
            || !mount_flags.is_empty()
            || mount_group.is_some();
        is_given.then(|| self.usage())
    }
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    /// The plugin that creates it
    #[arg(long, value_name = "NAME")]
    plugin: PluginName,

    /// Its size: a number of bytes, or one with KiB, MiB, GiB or TiB, as in 1GiB; the plugin chooses if it is not given
    #[arg(long, value_name = "SIZE", value_parser = volume_words::volume_size, allow_hyphen_values = true)]
    capacity: Option<u64>,

    /// How large it may be at most [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = volume_words::volume_size, allow_hyphen_values = true)]
    limit: Option<u64>,

    #[command(flatten)]
    parameters: ParameterArgs,

    /// The id, with the plugin, of the snapshot whose content it gets
    #[arg(long, value_name = "ID", conflicts_with = "from_volume")]
    from_snapshot: Option<String>,

    /// The id, with the plugin, of the volume whose content it gets
    #[arg(long, value_name = "ID")]
    from_volume: Option<String>,

    #[command(flatten)]
    usage: UsageArgs,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

/// Parameters of a plugin.
#[derive(Debug, Args)]
struct ParameterArgs {
    /// A parameter for the plugin; may be given several times
    #[arg(long = "parameter", value_name = "KEY=VALUE", value_parser = parameter)]
    parameters: Vec<(String, String)>,
}

impl ParameterArgs {
    fn read(&self) -> Result<HashMap<String, String>, AskError> {
        let mut parameters = HashMap::new();
        for (key, value) in &self.parameters {
            if parameters.insert(key.clone(), value.clone()).is_some() {
                let message = format!("the parameter {key:?} is given twice; give each parameter once");
                return Err(AskError::Invalid(message));
            }
        }
        Ok(parameters)
    }
}

#[derive(Debug, Args)]
struct ClaimArgs {
    /// The volume: its name, or its namespace, a slash and its name
    #[arg(value_parser = volume_name)]
    name: String,

    /// The allocation that will own the claim
    #[arg(long, value_name = "ID")]
    allocation: AllocationId,

    /// Whether this allocation only reads
    #[arg(long)]
    read_only: bool,

    #[command(flatten)]
    usage: UsageArgs,

    #[command(flatten)]
    wait: WaitArgs,

    #[command(flatten)]
    plain: PlainArgs,
}

/// `callboard volume`
pub(super) fn volume(args: &VolumeArgs) -> ExitCode {
    match &args.command {
        VolumeCommand::List(plain) => ask(plain, async |client| list(client, plain.json).await),
        VolumeCommand::Status(args) => ask(&args.plain, async |client| status(client, args).await),
        VolumeCommand::Create(args) => ask(&args.plain, async |client| create(client, args).await),
        VolumeCommand::Delete(args) => ask(&args.plain, async |client| ends::delete(client, args).await),
        VolumeCommand::Forget(args) => ask(&args.plain, async |client| ends::forget(client, args).await),
        VolumeCommand::Expand(args) => ask(&args.plain, async |client| expand::expand(client, args).await),
        VolumeCommand::Stats(args) => ask(&args.plain, async |client| stats::stats(client, args).await),
        VolumeCommand::Snapshot(args) => snapshot::snapshot(args),
        VolumeCommand::Modify(args) => ask(&args.plain, async |client| plugin::modify(client, args).await),
        VolumeCommand::Validate(args) => {
            ask(&args.plain, async |client| plugin::validate(client, args).await)
        }
        VolumeCommand::ListPlugin(args) => ask(&args.plain, async |client| plugin::list(client, args).await),
        VolumeCommand::Capacity(args) => {
            ask(&args.plain, async |client| plugin::capacity(client, args).await)
        }
        VolumeCommand::Claim(args) => ask(&args.plain, async |client| claim(client, args).await),
        VolumeCommand::Release(args) => release::release(args),
    }
}

/// The status of a host whose volumes actor answers.
async fn answered(client: &mut AdminClient, name: &str) -> Result<wire::GetStatusResponse, AskError> {
    let status = client.status_with_events_of(name).await?;
    match status.gone.iter().find(|gone| gone.name == "volumes") {
        Some(gone) => Err(AskError::NoVolumes(gone.reason.clone())),
        None => Ok(status),
    }
}

async fn list(mut client: AdminClient, is_json: bool) -> Result<(), AskError> {
    let status = answered(&mut client, "").await?;
    let text = match is_json {
        true => pretty(&json!({ "volumes": json::status(&status)["volumes"] })),
        false if status.volumes.is_empty() => "no volumes\n".to_owned(),
        false => volumes::table(&status.volumes).lines(Palette::of_stdout()),
    };
    print(&text)?;
    Ok(())
}

async fn status(mut client: AdminClient, args: &StatusArgs) -> Result<(), AskError> {
    let StatusArgs { name, plain } = args;
    let status = answered(&mut client, name).await?;
    let of_it = volumes::volume_of_name(&status, name);
    let found = json::status(&of_it.ok_or_else(|| AskError::UnknownVolume(name.clone()))?);
    print(&if plain.json {
        pretty(&found["volumes"][0])
    } else {
        whole::text(&found, Palette::of_stdout())
    })?;
    Ok(())
}

async fn create(mut client: AdminClient, args: &CreateArgs) -> Result<(), AskError> {
    let request = wire::CreateVolumeRequest {
        name: args.name.clone(),
        plugin: args.plugin.to_string(),
        capacity_bytes: args.capacity.unwrap_or_default(),
        limit_bytes: args.limit.unwrap_or_default(),
        parameters: args.parameters.read()?,
        usage: Some(args.usage.usage()),
        within_ms: args.wait.milliseconds(),
        from_snapshot: args.from_snapshot.clone().unwrap_or_default(),
        from_volume: args.from_volume.clone().unwrap_or_default(),
    };
    let created = client.create_volume(request).await?;
    let size = match created.capacity_bytes {
        0 => String::new(),
        bytes => format!(", {}", usage::bytes(bytes)),
    };
    let text = match args.plain.json {
        true => pretty(&json::volume_created(&created)),
        false => format!("{} exists: id {}{size}\n", created.name, harmless(&created.volume_id)),
    };
    print(&text)?;
    Ok(())
}

async fn claim(mut client: AdminClient, args: &ClaimArgs) -> Result<(), AskError> {
    let request = wire::ClaimVolumeRequest {
        name: args.name.clone(),
        allocation: args.allocation.to_string(),
        usage: args.usage.given(),
        read_only: args.read_only,
        within_ms: args.wait.milliseconds(),
    };
    let wire::ClaimVolumeResponse { name, path, block, read_only, generation } =
        client.claim_volume(request).await?;
    let allocation = args.allocation.as_str();
    let text = match args.plain.json {
        true => pretty(
            &json!({ "claimed": name, "allocation": allocation, "path": path, "block": block, "read_only": read_only, "generation": generation }),
        ),
        false => format!("{path}\n"),
    };
    print(&text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        volume: VolumeArgs,
    }

    fn parsed(line: &str) -> Result<VolumeCommand, String> {
        let words = ["volume"].into_iter().chain(line.split(' ')).chain(["--socket", "/admin.sock"]);
        Line::try_parse_from(words).map(|line| line.volume.command).map_err(|error| error.to_string())
    }

    fn refused(line: &str) -> String {
        parsed(line).expect_err(line)
    }

    #[test]
    fn a_creation_is_read_whole_v10() {
        let line = "create blue/data --plugin zfs --capacity 1GiB --parameter pool=tank --parameter a=b=c --access-mode multi-node-single-writer --fs-type ext4 --mount-flag noatime --mount-group 7 --within 5s";
        let Ok(VolumeCommand::Create(args)) = parsed(line) else { panic!("{line}") };
        assert_eq!((&*args.name, args.plugin.as_str(), args.capacity), ("blue/data", "zfs", Some(1 << 30)));
        let parameters = args.parameters.read().expect("they differ");
        assert_eq!((&*parameters["pool"], &*parameters["a"]), ("tank", "b=c"));
        let usage = wire::VolumeUsage {
            access_mode: "multi-node-single-writer".to_owned(),
            block: false,
            fs_type: "ext4".to_owned(),
            mount_flags: vec!["noatime".to_owned()],
            mount_group: "7".to_owned(),
        };
        assert_eq!(args.usage.usage(), usage);
        assert_eq!(args.wait.milliseconds(), 5_000);
    }

    #[test]
    fn without_further_words_one_node_writes_a_file_system_for_two_minutes() {
        let Ok(VolumeCommand::Claim(args)) = parsed("claim data --allocation web") else {
            panic!("it is valid")
        };
        assert_eq!((&*args.name, args.read_only, args.wait.milliseconds()), ("default/data", false, 120_000));
        let usual = wire::VolumeUsage { access_mode: "single-node-writer".to_owned(), ..Default::default() };
        assert_eq!((args.usage.usage(), args.usage.given()), (usual, None));
        let Ok(VolumeCommand::Claim(args)) = parsed("claim data --allocation web --fs-type ext4") else {
            panic!("it is valid")
        };
        assert_eq!(args.usage.given().expect("it is said").fs_type, "ext4");
    }

    #[test]
    fn what_is_wrong_with_a_command_is_said_with_what_to_do() {
        for (line, part) in [
            ("create a/b/c --plugin zfs", "has one slash at most"),
            ("create data --plugin zfs --capacity -5", "give a whole number of bytes from 1 to 2^63 - 1"),
            ("create data", "--plugin <NAME>"),
            ("create data --plugin zfs --capacity 1GB", "as in \"512MiB\" or \"10GiB\""),
            ("create data --plugin zfs --parameter pool", "give its key, a = and its value"),
            (
                "create data --plugin zfs --access-mode single-node-writter",
                "did you mean `single-node-writer`?",
            ),
            ("create data --plugin zfs --block --fs-type ext4", "cannot be used with"),
            ("create data --plugin zfs --from-snapshot a --from-volume b", "cannot be used with"),
            ("snapshot create data", "--name <NAME>"),
            ("snapshot delete data", "--id <ID>"),
            ("snapshot list", "--plugin <NAME>"),
            ("snapshot group create --name weekly", "<VOLUME>"),
            ("snapshot group create data", "--name <NAME>"),
            ("snapshot group delete data", "--id <ID>"),
            ("snapshot group show data", "--id <ID>"),
            ("expand data", "--capacity <SIZE>"),
            ("expand data --capacity 2GB", "as in \"512MiB\" or \"10GiB\""),
            ("claim data", "--allocation <ID>"),
            ("claim data --allocation a/b", "would leave its directory"),
            ("claim data --allocation web --within 2", "as in 1500ms, 2s"),
            ("release data", "--allocation <ID>"),
            ("release data --allocation web --force", "--reason <TEXT>"),
            ("release data --allocation web --reason x", "--force"),
            ("release data --allocation web --yes", "--force"),
        ] {
            let error = refused(line);
            assert!(error.contains(part), "{line}: {error}");
        }
        let line = "create data --plugin zfs --parameter a=1 --parameter a=2";
        let Ok(VolumeCommand::Create(args)) = parsed(line) else { panic!("{line}") };
        let error = args.parameters.read().expect_err("twice");
        assert_eq!(
            (error.to_string(), error.exit_code()),
            ("the parameter \"a\" is given twice; give each parameter once".to_owned(), 2)
        );
    }

    #[test]
    fn the_help_of_a_release_says_what_the_operator_answers_for_v8() {
        let help = Line::try_parse_from(["volume", "release", "--help"]).expect_err("help").to_string();
        assert!(help.contains("you confirm that every process of the allocation has ended"), "{help}");
    }
}
