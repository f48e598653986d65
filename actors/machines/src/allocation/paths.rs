//! The paths of an allocation: a pure function of its spec, the same at every start (A1, RES-02).
//!
//! Two allocations never share a path. Below the data directory an allocation's directory has its name, which is one path
//! component. If that would be too long for a Unix socket, it is placed in the runtime directory instead, under names of
//! fixed length made by SHA-256, so that no choice of names makes two of them collide (SEC-01).

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::messages::{AllocationSpec, Isolation, Mount, PrepareError, Propagation, TaskContext};
use crate::vocabulary::text::is_harmless;
use crate::vocabulary::{AllocationId, PluginName, Role, SOCKET_PATH_BYTES_MAX, SocketPath};

/// The environment variable with the listen address of a CSI plugin (C171).
pub const ENDPOINT_VARIABLE: &str = "CSI_ENDPOINT";
/// The default name of the socket file (C171).
pub const SOCKET_FILE: &str = "csi.sock";
/// How many bytes of a data directory's hash are in the name of a runtime directory.
const DATA_DIR_HASH_BYTES: usize = 8;
/// How many bytes of an allocation's hash are in the name of its runtime directory.
const ALLOCATION_HASH_BYTES: usize = 16;
const RUNTIME_PREFIX: &str = "callboard-";
/// The reserved length below a runtime directory: `/callboard-<16 digits>/<32 digits>/csi.sock`.
const RUNTIME_TAIL_BYTES: usize = 1
    + RUNTIME_PREFIX.len()
    + 2 * DATA_DIR_HASH_BYTES
    + 1
    + 2 * ALLOCATION_HASH_BYTES
    + 1
    + SOCKET_FILE.len();

/// Why these directories cannot hold plugin files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It is a relative path, or contains `..`.
    #[error("the {what} {path} must be absolute and hold no '..'")]
    NotAbsolute {
        /// The kind of directory.
        what: &'static str,
        /// The path as given.
        path: PathBuf,
    },
    /// Everything on the machine is below it.
    #[error("the {what} must not be /; give it a directory of its own, such as /var/lib/callboard")]
    Root {
        /// The kind of directory.
        what: &'static str,
    },
    /// Control characters, and characters that change the direction of a text, would make logs and tables unreadable.
    #[error("the {what} {path:?} holds {character:?}; control characters are not allowed")]
    Character {
        /// The kind of directory.
        what: &'static str,
        /// The path as given.
        path: PathBuf,
        /// The first character that is not allowed.
        character: char,
    },
    /// Sockets below it would exceed the path limit of the kernel (SEC-01).
    #[error(
        "the runtime directory {path} has {bytes} bytes; sockets below it have room for {limit}, choose a shorter one"
    )]
    TooLong {
        /// The path as given.
        path: PathBuf,
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// It is not UTF-8, and so cannot be passed in an environment variable.
    #[error("the runtime directory {path} is not readable text; choose another")]
    NotText {
        /// The path as given.
        path: PathBuf,
    },
}

/// The base directories of one host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    data_dir: PathBuf,
    runtime_dir: PathBuf,
    short_name: String,
}

impl Layout {
    /// Takes the data directory of a host, and a short directory for sockets whose path would be too long there.
    ///
    /// # Errors
    /// When one of them is relative or contains `..`, or when the runtime directory is itself too long. So no allocation
    /// fails later because of them (SEC-01).
    pub fn new(data_dir: impl Into<PathBuf>, runtime_dir: impl Into<PathBuf>) -> Result<Self, LayoutError> {
        let data_dir = clean("data directory", data_dir.into())?;
        let runtime_dir = clean("runtime directory", runtime_dir.into())?;
        let limit = SOCKET_PATH_BYTES_MAX - RUNTIME_TAIL_BYTES;
        let Some(text) = runtime_dir.to_str() else {
            return Err(LayoutError::NotText { path: runtime_dir });
        };
        let bytes = text.len();
        if bytes > limit {
            return Err(LayoutError::TooLong { path: runtime_dir, bytes, limit });
        }
        let hash = hashed(data_dir.as_os_str().as_encoded_bytes(), DATA_DIR_HASH_BYTES);
        let short_name = format!("{RUNTIME_PREFIX}{hash}");
        Ok(Self { data_dir, runtime_dir, short_name })
    }

    /// The directories above those of all allocations: in the data directory, and in the runtime directory.
    #[must_use]
    pub fn socket_parents(&self) -> [Place; 2] {
        let direct = vec![Step::passage("csi"), Step::private("plugins")];
        let short = vec![Step::private(&self.short_name)];
        [
            Place { base: self.data_dir.clone(), steps: direct },
            Place { base: self.runtime_dir.clone(), steps: short },
        ]
    }

    /// The two places that an allocation's socket directory may have.
    #[must_use]
    pub fn socket_places(&self, allocation: &AllocationId) -> [Place; 2] {
        let hash = hashed(allocation.as_str().as_bytes(), ALLOCATION_HASH_BYTES);
        let [direct, short] = self.socket_parents();
        [direct.inner(allocation.as_str()), short.inner(&hash)]
    }

    /// The place of an allocation's socket directory, short enough for a socket at `below` in it.
    fn socket_place(&self, allocation: &AllocationId, below: &Path) -> Place {
        let [direct, short] = self.socket_places(allocation);
        let path = direct.path().join(below);
        if path.to_str().is_some_and(|path| path.len() <= SOCKET_PATH_BYTES_MAX) { direct } else { short }
    }

    /// The place of a plugin's volumes, shared by all its allocations of one role.
    fn volume_place(&self, role: Role, plugin: &PluginName) -> Place {
        Place {
            base: self.data_dir.clone(),
            steps: vec![Step::passage("csi"), Step::passage(role.as_str()), Step::passage(plugin.as_str())],
        }
    }
}

/// Normalizes a path, so that its hash is unique.
fn clean(what: &'static str, path: PathBuf) -> Result<PathBuf, LayoutError> {
    if !is_plain(&path) {
        return Err(LayoutError::NotAbsolute { what, path });
    }
    if path.parent().is_none() {
        return Err(LayoutError::Root { what });
    }
    if let Some(character) = path.to_string_lossy().chars().find(|c| !is_harmless(*c)) {
        return Err(LayoutError::Character { what, path, character });
    }
    Ok(path.components().collect())
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.components().all(|component| component != Component::ParentDir)
}

fn hashed(bytes: &[u8], length: usize) -> String {
    Sha256::digest(bytes).iter().take(length).map(|byte| format!("{byte:02x}")).collect()
}

/// The access rights of a directory of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only our user (0700).
    Private,
    /// All users may traverse it, and only our user may list or write it (0711).
    Passage,
}

/// One directory on the path of a [`Place`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    /// Its name: one path component.
    pub name: String,
    /// Its access rights.
    pub access: Access,
}

impl Step {
    fn private(name: &str) -> Self {
        Self { name: name.to_owned(), access: Access::Private }
    }

    fn passage(name: &str) -> Self {
        Self { name: name.to_owned(), access: Access::Passage }
    }
}

/// A directory of ours: an existing base directory, and the steps below it that we create.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The existing base directory.
    pub base: PathBuf,
    /// The directories that we create, outermost first.
    pub steps: Vec<Step>,
}

impl Place {
    /// A directory in it that only our user may enter.
    #[must_use]
    pub fn inner(mut self, name: &str) -> Self {
        self.steps.push(Step::private(name));
        self
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.base.iter().chain(self.steps.iter().map(|step| step.name.as_ref())).collect()
    }
}

/// All paths of an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The directory of its socket; exclusive, created and removed with it.
    pub socket_place: Place,
    /// The directory of its plugin's volumes; created with it and never removed.
    pub volume_place: Place,
    /// The name of the socket file, if it is in the socket directory. A socket of the user elsewhere is never removed.
    pub socket_file: Option<String>,
    /// The context for the task.
    pub context: TaskContext,
}

impl Plan {
    /// Computes the paths of an allocation. Deterministic in the spec.
    ///
    /// # Errors
    /// [`PrepareError::Endpoint`] or [`PrepareError::Directory`] when the spec names an invalid path.
    pub fn new(layout: &Layout, spec: &AllocationSpec) -> Result<Self, PrepareError> {
        check_mount_dirs(spec)?;
        let volume_place = layout.volume_place(spec.role, &spec.plugin);
        let Some(own) = spec.environment.get(ENDPOINT_VARIABLE) else {
            let socket_place = layout.socket_place(&spec.allocation, Path::new(SOCKET_FILE));
            let mounts = mounts(spec, &socket_place, &volume_place);
            let endpoint = Endpoint::ours(spec, &mounts[0])?;
            return Ok(Self::put_together(socket_place, volume_place, mounts, endpoint));
        };
        let told = SocketPath::from_endpoint(own).map_err(|error| refused(spec, error.to_string()))?;
        let below = told.as_path().strip_prefix(&spec.socket_mount_dir).ok();
        let below = below.filter(|_| spec.isolation != Isolation::None);
        let socket_place = layout.socket_place(&spec.allocation, below.unwrap_or(Path::new(SOCKET_FILE)));
        let mounts = mounts(spec, &socket_place, &volume_place);
        let endpoint = Endpoint::of_user(spec, told, &mounts)?;
        Ok(Self::put_together(socket_place, volume_place, mounts, endpoint))
    }

    fn put_together(
        socket_place: Place,
        volume_place: Place,
        mounts: Vec<Mount>,
        endpoint: Endpoint,
    ) -> Self {
        let Endpoint { socket, environment } = endpoint;
        let directory = socket_place.path();
        let socket_file = match (socket.as_path().parent(), socket.as_path().file_name()) {
            (Some(parent), Some(name)) if parent == directory => name.to_str().map(str::to_owned),
            (_, _) => None,
        };
        let context = TaskContext { environment, mounts, socket };
        Self { socket_place, volume_place, socket_file, context }
    }
}

/// The socket path on the host, and the value that is passed to the task.
struct Endpoint {
    socket: SocketPath,
    environment: BTreeMap<String, String>,
}

impl Endpoint {
    /// A socket in the directory of the first mount.
    fn ours(spec: &AllocationSpec, directory: &Mount) -> Result<Self, PrepareError> {
        let socket = socket_at(spec, &directory.host_path.join(SOCKET_FILE))?;
        let told = socket_at(spec, &directory.task_path.join(SOCKET_FILE))?;
        let environment = BTreeMap::from([(ENDPOINT_VARIABLE.to_owned(), told.to_endpoint())]);
        Ok(Self { socket, environment })
    }

    /// A socket of the user's choice, mapped to the host through the mounts (SEC-04). The task knows it already.
    fn of_user(spec: &AllocationSpec, told: SocketPath, mounts: &[Mount]) -> Result<Self, PrepareError> {
        let environment = BTreeMap::new();
        if spec.isolation == Isolation::None {
            return Ok(Self { socket: told, environment });
        }
        let below = |mount: &&Mount| told.as_path().starts_with(&mount.task_path);
        let nearest = mounts.iter().filter(below).max_by_key(|mount| mount.task_path.components().count());
        let Some(mount) = nearest else {
            let reason = format!(
                "{told} lies in none of the directories that are mounted into the task; choose a path below {}",
                spec.socket_mount_dir.display()
            );
            return Err(refused(spec, reason));
        };
        let below = told.as_path().strip_prefix(&mount.task_path).unwrap_or(told.as_path());
        let socket = socket_at(spec, &mount.host_path.join(below))?;
        Ok(Self { socket, environment })
    }
}

fn socket_at(spec: &AllocationSpec, path: &Path) -> Result<SocketPath, PrepareError> {
    let Some(text) = path.to_str() else {
        return Err(refused(spec, format!("{} is not readable text", path.display())));
    };
    SocketPath::new(text).map_err(|error| refused(spec, error.to_string()))
}

fn refused(spec: &AllocationSpec, reason: String) -> PrepareError {
    PrepareError::Endpoint { allocation: spec.allocation.clone(), reason }
}

fn check_mount_dirs(spec: &AllocationSpec) -> Result<(), PrepareError> {
    if spec.isolation == Isolation::None {
        return Ok(());
    }
    for path in [&spec.socket_mount_dir, &spec.volume_mount_dir] {
        if !is_plain(path) {
            return Err(PrepareError::Directory {
                allocation: spec.allocation.clone(),
                path: path.clone(),
                reason: "a directory inside the task must be absolute and hold no '..'".to_owned(),
            });
        }
    }
    Ok(())
}

/// The bind mounts; the socket directory comes first (C178).
fn mounts(spec: &AllocationSpec, sockets: &Place, volumes: &Place) -> Vec<Mount> {
    let mount = |host_path: PathBuf, task_path: &Path, propagation| {
        let task_path = match spec.isolation {
            Isolation::None => host_path.clone(),
            Isolation::Chroot | Isolation::Image => task_path.to_owned(),
        };
        Mount { host_path, task_path, propagation }
    };
    vec![
        mount(sockets.path(), &spec.socket_mount_dir, Propagation::Bidirectional),
        mount(volumes.path(), &spec.volume_mount_dir, Propagation::Bidirectional),
        mount(PathBuf::from("/dev"), Path::new("/dev"), Propagation::Private),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vocabulary::{NAME_BYTES_MAX, TaskName};

    fn layout(data_dir: &str) -> Layout {
        Layout::new(data_dir, "/run/callboard").expect("good directories")
    }

    fn spec(allocation: &str, plugin: &str, role: Role) -> AllocationSpec {
        let name = |text| PluginName::new(text).expect("a good name");
        let allocation = AllocationId::new(allocation).expect("a good id");
        AllocationSpec::new(allocation, TaskName::new("plugin").expect("a good name"), name(plugin), role)
    }

    fn isolated(endpoint: &str) -> AllocationSpec {
        let mut spec = spec("a1", "zfs", Role::Node);
        spec.isolation = Isolation::Chroot;
        spec.environment.insert(ENDPOINT_VARIABLE.to_owned(), endpoint.to_owned());
        spec
    }

    fn plan(data_dir: &str, spec: &AllocationSpec) -> Plan {
        Plan::new(&layout(data_dir), spec).expect("it can be planned")
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof!["[a-c]{1,3}", "[a-z0-9._-]{1,40}x", "[a-b]{180,255}"]
    }

    fn data_dirs() -> impl Strategy<Value = String> {
        prop_oneof!["/[a-b]{1,2}", "/[a-b]{1,2}/[a-b]{1,2}", "/[a-b]{150,250}", "/csi/plugins/[a-b]{1,2}"]
    }

    #[test]
    fn the_root_and_paths_that_would_turn_a_line_around_are_no_directories_of_a_host_r9() {
        let told = |data_dir: &str| Layout::new(data_dir, "/run").unwrap_err().to_string();
        assert!(told("/").starts_with("the data directory must not be /"), "{}", told("/"));
        assert!(told("//").starts_with("the data directory must not be /"), "{}", told("//"));
        assert_eq!(
            told("/a\u{202e}b"),
            "the data directory \"/a\\u{202e}b\" holds '\\u{202e}'; control characters are not allowed"
        );
    }

    #[test]
    fn a_directory_inside_an_isolated_task_is_plain_sec_01() {
        let planned = |sockets: &str, volumes: &str, isolation| {
            let mut spec = spec("a1", "zfs", Role::Node);
            spec.isolation = isolation;
            (spec.socket_mount_dir, spec.volume_mount_dir) = (sockets.into(), volumes.into());
            Plan::new(&layout("/data"), &spec).map(drop)
        };
        assert_eq!(planned("/csi", "/local/csi", Isolation::Chroot), Ok(()));
        for (sockets, volumes) in [("csi", "/local"), ("/csi", "/local/../..")] {
            let error = planned(sockets, volumes, Isolation::Chroot).unwrap_err();
            assert!(error.to_string().contains("absolute and hold no '..'"), "{error}");
            // It does not matter if nothing is mounted.
            assert_eq!(planned(sockets, volumes, Isolation::None), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn different_allocations_never_share_a_socket_sec_01(
            one in (data_dirs(), names()),
            other in (data_dirs(), names()),
        ) {
            let socket = |(data_dir, allocation): &(String, String)| {
                plan(data_dir, &spec(allocation, "zfs", Role::Node)).context.socket
            };
            prop_assert_eq!(one == other, socket(&one) == socket(&other), "{:?} and {:?}", one, other);
        }

        #[test]
        fn different_plugins_and_roles_never_share_their_volumes(
            one in (names(), 0_usize..3),
            other in (names(), 0_usize..3),
        ) {
            let volumes = |(plugin, role): &(String, usize)| {
                plan("/data", &spec("a1", plugin, Role::ALL[*role])).volume_place.path()
            };
            prop_assert_eq!(one == other, volumes(&one) == volumes(&other), "{:?} and {:?}", one, other);
        }

        #[test]
        fn the_same_spec_has_the_same_plan_and_it_always_fits_res_02(
            data_dir in data_dirs(),
            allocation in names(),
            plugin in names(),
        ) {
            let spec = spec(&allocation, &plugin, Role::Monolith);
            let once = plan(&data_dir, &spec);
            prop_assert_eq!(&once, &plan(&data_dir, &spec));
            prop_assert!(once.context.socket.as_str().len() <= SOCKET_PATH_BYTES_MAX);
            prop_assert_eq!(once.socket_file.as_deref(), Some(SOCKET_FILE));
        }
    }

    #[test]
    fn the_longest_names_fit_into_the_longest_runtime_directory_sec_01() {
        let longest = format!("/{}", "r".repeat(SOCKET_PATH_BYTES_MAX - RUNTIME_TAIL_BYTES - 1));
        let name = "n".repeat(NAME_BYTES_MAX);
        let layout = Layout::new("/data", &longest).expect("it just fits");
        let planned = Plan::new(&layout, &spec(&name, &name, Role::Node)).expect("it fits");
        assert_eq!(planned.context.socket.as_str().len(), SOCKET_PATH_BYTES_MAX);
        assert!(matches!(Layout::new("/data", longest + "r"), Err(LayoutError::TooLong { .. })));
    }

    #[test]
    fn directories_that_depend_on_where_one_stands_are_refused_r9() {
        for path in ["data", "/data/../etc", ""] {
            assert!(matches!(Layout::new(path, "/run"), Err(LayoutError::NotAbsolute { .. })), "{path:?}");
            assert!(matches!(Layout::new("/data", path), Err(LayoutError::NotAbsolute { .. })), "{path:?}");
        }
        assert_eq!(layout("/data"), layout("/data//./"), "one directory has one spelling");
    }

    #[test]
    fn an_endpoint_of_the_users_own_is_found_again_through_the_mounts_sec_04() {
        for (endpoint, socket, file) in [
            ("unix:///csi/own.sock", "/data/csi/plugins/a1/own.sock", Some("own.sock")),
            ("unix:///csi/deep/own.sock", "/data/csi/plugins/a1/deep/own.sock", None),
            ("unix:///local/csi/own.sock", "/data/csi/node/zfs/own.sock", None),
        ] {
            let planned = plan("/data", &isolated(endpoint));
            assert_eq!(planned.context.socket.as_str(), socket);
            assert_eq!(planned.socket_file.as_deref(), file, "{endpoint}");
            assert!(planned.context.environment.is_empty(), "the user's value wins");
        }
    }

    #[test]
    fn an_endpoint_that_leads_nowhere_is_refused_with_a_way_out() {
        for (endpoint, named) in [
            ("unix:///elsewhere/own.sock", "choose a path below /csi"),
            ("unix:///csix/own.sock", "choose a path below /csi"),
            ("unix:///csi/../own.sock", "'..'"),
            ("tcp://127.0.0.1:7", "no Unix socket"),
            ("", "empty"),
        ] {
            let error = Plan::new(&layout("/data"), &isolated(endpoint)).expect_err(endpoint);
            assert!(matches!(error, PrepareError::Endpoint { .. }), "{error:?}");
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn a_long_name_of_the_users_own_moves_the_socket_to_the_runtime_directory_sec_01() {
        let endpoint = format!("unix:///csi/{}.sock", "s".repeat(20));
        let data_dir = format!("/{}", "d".repeat(70));
        let planned = plan(&data_dir, &isolated(&endpoint));
        assert!(planned.context.socket.as_str().starts_with("/run/callboard/callboard-"));
        assert!(planned.context.socket.as_str().ends_with(".sock"));
        assert!(plan(&data_dir, &spec("a1", "zfs", Role::Node)).socket_place.base.starts_with(&data_dir));
    }
}
