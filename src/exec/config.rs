//! Builds the order for a task from the host's request.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callboard_actors::users::DynamicUser;
use callboard_actors::vocabulary::hex;
use callboard_proto::drivers::network_isolation_spec::NetworkIsolationMode;
use callboard_proto::drivers::{Mount, TaskConfig};
use callboard_proto::hclspec::Spec;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::record::{BoundMount, TaskContext, TaskOrder, TaskUser};
use crate::plugin::accounts::{self, AccountError};
use crate::plugin::{Refusal, decode, schema};

/// The `PATH` of a task whose environment has none.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The lowest id of a dynamic user (T116).
const DYNAMIC_USER_MIN: u32 = 1_000;
/// The output of a task for which the host names no file.
const NOWHERE: &str = "/dev/null";

/// An operator's configuration of a task.
#[derive(Debug, Deserialize)]
struct Written {
    command: String,
    #[serde(default)]
    args: Option<Vec<String>>,
}

pub(super) fn task_schema() -> Spec {
    schema::object([
        ("command", schema::required("command", "string")),
        ("args", schema::optional("args", "list(string)")),
    ])
}

/// Builds the order for a task.
pub(super) fn order(task: &TaskConfig) -> Result<TaskOrder, Refusal> {
    let written: Written = decode(&task.msgpack_driver_config)?;
    if written.command.is_empty() {
        return Err(Refusal::invalid(format!("task {:?} has no command", task.id)).recoverable(false));
    }
    Ok(TaskOrder {
        command: written.command,
        arguments: written.args.unwrap_or_default(),
        environment: environment(task),
        stdout: output(&task.stdout_path),
        stderr: output(&task.stderr_path),
        context: context(task)?,
    })
}

/// The environment of a task: the host's, with a default `PATH`.
pub(super) fn environment(task: &TaskConfig) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> =
        task.env.iter().chain(&task.device_env).map(|(name, value)| (name.clone(), value.clone())).collect();
    environment.entry("PATH".to_owned()).or_insert_with(|| USUAL_PATH.to_owned());
    environment
}

/// The directory, user, network and mounts of a task. The operator's configuration is not needed for this.
pub(super) fn context(task: &TaskConfig) -> Result<TaskContext, Refusal> {
    Ok(TaskContext {
        directory: task_directory(task)?,
        user: user(&task.user)?,
        network: network(task)?,
        mounts: mounts(task)?,
    })
}

pub(super) fn task_directory(task: &TaskConfig) -> Result<PathBuf, Refusal> {
    let refused = |why: &str| Refusal::invalid(format!("task {:?}: {why}", task.id)).recoverable(false);
    let allocation = Path::new(&task.alloc_dir);
    if !allocation.is_absolute() {
        return Err(refused("alloc_dir is not an absolute path, so there is no place for its state"));
    }
    if task.name.is_empty() || task.name.contains('/') || task.name == "." || task.name == ".." {
        return Err(refused("its name cannot be the name of a directory"));
    }
    Ok(allocation.join(&task.name))
}

fn output(path: &str) -> PathBuf {
    PathBuf::from(if path.is_empty() { NOWHERE } else { path })
}

fn user(name: &str) -> Result<Option<TaskUser>, Refusal> {
    if name.is_empty() {
        return Ok(None);
    }
    let refused = |why: String| Refusal::invalid(why).recoverable(false);
    let account = accounts::user(name).map_err(|error| refused(error.to_string()))?;
    let made_up = DynamicUser::of_name(name).filter(|user| user.number() == account.uid);
    if made_up.is_some_and(|user| user.number() < DYNAMIC_USER_MIN) {
        let told =
            format!("{name:?} would be a user of the system; hosts allocate none below {DYNAMIC_USER_MIN}");
        return Err(refused(told));
    }
    let groups = match accounts::groups(name) {
        Ok(groups) => groups,
        // If no file lists groups, the user has only its own group.
        Err(AccountError::Unreadable { .. }) => vec![account.gid],
        Err(error) => return Err(refused(error.to_string())),
    };
    Ok(Some(TaskUser { uid: account.uid, gid: account.gid, groups }))
}

/// The network namespace of a task, if its host has created one.
fn network(task: &TaskConfig) -> Result<Option<PathBuf>, Refusal> {
    let Some(spec) = &task.network_isolation_spec else { return Ok(None) };
    let path = Path::new(&spec.path);
    match (spec.path.is_empty(), path.is_absolute()) {
        (true, _) if spec.mode() == NetworkIsolationMode::None => Err(Refusal::invalid(format!(
            "task {:?} is to have no network, and its host has made no namespace for that; this driver makes none",
            task.id
        ))
        .recoverable(false)),
        (true, _) => Ok(None),
        (false, true) => Ok(Some(path.to_owned())),
        (false, false) => Err(Refusal::invalid(format!(
            "task {:?}: the network namespace {:?} is not an absolute path",
            task.id, spec.path
        ))
        .recoverable(false)),
    }
}

/// The mounts that the host requests for this task alone.
fn mounts(task: &TaskConfig) -> Result<Vec<BoundMount>, Refusal> {
    let bound = |mount: &Mount| {
        let Mount { task_path, host_path, readonly, propagation_mode, .. } = mount;
        let refused = |why: &str| {
            let told = format!("task {:?}: the mount of {host_path:?} at {task_path:?} {why}", task.id);
            Err(Refusal::invalid(told).recoverable(false))
        };
        if !Path::new(host_path).is_absolute() || task_path.is_empty() {
            return refused("needs an absolute path of the host, and a path in the task");
        }
        if !matches!(propagation_mode.as_str(), "" | "private") {
            return refused("cannot spread; this driver mounts privately: leave its propagation out");
        }
        let (host_path, task_path) = (host_path.into(), task_path.into());
        Ok(BoundMount { host_path, task_path, read_only: *readonly })
    };
    task.mounts.iter().map(bound).collect()
}

/// The digest by which equal orders are recognised.
pub(super) fn digest(order: &TaskOrder) -> String {
    let text =
        serde_json::to_vec(order).expect("paths that came as text are text, and nothing else can fail");
    hex(&Sha256::digest(text))
}

/// A short file name for any text.
pub(super) fn short_name(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskConfig {
        // A map with one field, `command`, of the value `true`.
        let msgpack = b"\x81\xa7command\xa4true".to_vec();
        TaskConfig {
            id: "t".to_owned(),
            name: "main".to_owned(),
            alloc_dir: "/allocs/a".to_owned(),
            msgpack_driver_config: msgpack,
            ..Default::default()
        }
    }

    #[test]
    fn a_task_gets_what_its_host_says_and_a_path_to_find_programs_in() {
        let order = order(&task()).expect("well formed");
        assert_eq!((&*order.command, &order.arguments[..]), ("true", &[][..]));
        assert_eq!(order.environment, [("PATH".to_owned(), USUAL_PATH.to_owned())].into());
        assert_eq!(order.context.directory, Path::new("/allocs/a/main"));
        assert_eq!(order.stdout, Path::new("/dev/null"));
    }

    #[test]
    fn what_cannot_be_a_task_is_refused_for_good() {
        let wrong = |change: fn(&mut TaskConfig)| {
            let mut task = task();
            change(&mut task);
            order(&task).expect_err("refused").to_string()
        };
        assert!(wrong(|task| task.msgpack_driver_config = vec![0x80]).contains("command"));
        assert!(
            wrong(|task| task.msgpack_driver_config = b"\x81\xa7command\xa0".to_vec()).contains("no command")
        );
        assert!(wrong(|task| task.alloc_dir = "relative".to_owned()).contains("absolute"));
        assert!(wrong(|task| task.name = "../up".to_owned()).contains("name of a directory"));
        let relative =
            wrong(|task| task.mounts = vec![Mount { host_path: "data".to_owned(), ..Default::default() }]);
        assert!(relative.contains("an absolute path of the host"), "{relative}");
        let spreads = wrong(|task| {
            let (host_path, task_path) = ("/srv".to_owned(), "/data".to_owned());
            let propagation_mode = "bidirectional".to_owned();
            task.mounts = vec![Mount { host_path, task_path, propagation_mode, ..Default::default() }];
        });
        assert!(spreads.contains("mounts privately"), "{spreads}");
        assert!(wrong(|task| task.user = "no-such-user".to_owned()).contains("/etc/passwd"));
    }

    #[test]
    fn the_digest_of_an_order_tells_one_task_from_another_prc_09() {
        let first = order(&task()).expect("well formed");
        let mut second = first.clone();
        assert_eq!(digest(&first), digest(&second));
        second.environment.insert("A".to_owned(), "b".to_owned());
        assert_ne!(digest(&first), digest(&second));
    }
}
