//! The third part of the demo: volumes, the tasks that use them, and the locations of their files.

use std::path::PathBuf;
use std::{fs, io};

use super::{DRIVER, PLUGIN, Part, Workspace, quoted, quoted_path};
use crate::demo::error::DemoError;
use crate::demo::lines::{PAGE, View};

/// The allocation with the first version of the plugin.
pub(in crate::demo) const STORAGE_1: &str = "storage-1";
/// The allocation with the second version.
pub(in crate::demo) const STORAGE_2: &str = "storage-2";
/// A task that writes the page, and line after line.
pub(in crate::demo) const LEFT: &str = "left";
/// A task that writes line after line into the same file.
pub(in crate::demo) const RIGHT: &str = "right";
/// A task that copies the page from one volume to another.
pub(in crate::demo) const COPIER: &str = "copier";
/// The volume that the tasks share.
pub(in crate::demo) const DATA: &str = "default/data";
/// The volume with the copy.
pub(in crate::demo) const COPY: &str = "default/copy";
/// The file that is written once.
pub(in crate::demo) const PAGE_FILE: &str = "page";
/// The file that grows.
pub(in crate::demo) const LEDGER: &str = "ledger";

/// The data directory of the host of this part.
const DATA_DIR: &str = "data-of-volumes";
/// Where the plugin keeps the content of its volumes.
const STORAGE: &str = "storage";

/// Each task with each of its volumes.
const USES: [(&str, &str); 4] = [(LEFT, DATA), (RIGHT, DATA), (COPIER, DATA), (COPIER, COPY)];

/// A call that the plugin never answers while a file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::demo) enum Hold {
    /// The volume is mounted, and the plugin does not answer.
    Stage,
    /// The plugin has received the call and done nothing.
    Unstage,
}

impl Hold {
    const ALL: [Self; 2] = [Self::Stage, Self::Unstage];

    const fn file(self) -> &'static str {
        match self {
            Self::Stage => "hold-stage",
            Self::Unstage => "hold-unstage",
        }
    }

    const fn fault(self) -> &'static str {
        match self {
            Self::Stage => "NodeStageVolume=hang,after",
            Self::Unstage => "NodeUnstageVolume=hang,before",
        }
    }
}

/// An observer of the files of a volume.
#[derive(Debug, Clone, Copy)]
pub(in crate::demo) enum FileObserver<'a> {
    /// A task, by its name, in the mount namespace of its process, and the volume that it has mounted.
    Task(&'static str, u32, &'a str),
    /// The plugin, in the directory in which it keeps the volume of this id.
    Plugin(&'a str),
}

impl Workspace {
    /// Switches to the third part.
    pub(in crate::demo) fn open_third_part(&mut self) -> Result<(), DemoError> {
        self.part = Part::Volumes;
        for (task, volume) in USES {
            let path = self.mount_point(task, volume);
            fs::create_dir_all(&path).map_err(|source| DemoError::File { what: "make", path, source })?;
        }
        self.write_config(&self.config_text_of_volumes())
    }

    pub(super) fn data_dir_of_volumes(&self) -> PathBuf {
        self.path().join(DATA_DIR)
    }

    /// The directory for the mounts of the plugin's volumes, without links.
    pub(in crate::demo) fn volumes_dir(&self) -> Result<PathBuf, DemoError> {
        let path = self.data_dir_of_volumes();
        let failed = |source| DemoError::File { what: "look at", path: path.clone(), source };
        Ok(path.canonicalize().map_err(failed)?.join("csi/node").join(PLUGIN))
    }

    /// The mount point of a volume in a task.
    fn mount_point(&self, task: &str, volume: &str) -> PathBuf {
        self.path().join("mounts").join(task).join(name(volume))
    }

    /// The remains of volumes: directories for their mounts, and files that tasks wrote to the mount point and not to the volume.
    pub(in crate::demo) fn left_of_volumes(&self) -> Result<Vec<PathBuf>, DemoError> {
        // These two stay for each plugin.
        let of_plugin = self.data_dir_of_volumes().join("csi/node").join(PLUGIN);
        let mut directories = vec![of_plugin.join("staging"), of_plugin.join("per-alloc")];
        directories.extend(USES.map(|(task, volume)| self.mount_point(task, volume)));
        let mut left = Vec::new();
        for path in directories {
            match fs::read_dir(&path) {
                Ok(entries) => left.extend(entries.filter_map(|entry| Some(entry.ok()?.path()))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(DemoError::File { what: "look through", path, source }),
            }
        }
        Ok(left)
    }

    /// Makes the plugin hang in a call that arrives from now on, or no longer.
    pub(in crate::demo) fn hold(&self, call: Hold, is_held: bool) -> Result<(), DemoError> {
        let path = self.path().join(call.file());
        let done = if is_held { fs::write(&path, "") } else { fs::remove_file(&path) };
        done.map_err(|source| DemoError::File { what: "make or remove", path, source })
    }

    /// A file in a volume, as one observer sees it.
    pub(in crate::demo) fn view(&self, seer: FileObserver<'_>, file: &str) -> View {
        let (by, directory) = match seer {
            FileObserver::Task(task, pid, volume) => {
                let root = PathBuf::from(format!("/proc/{pid}/root"));
                let point = self.mount_point(task, volume);
                (task, root.join(point.strip_prefix("/").unwrap_or(&point)))
            }
            FileObserver::Plugin(id) => (PLUGIN, self.path().join(STORAGE).join("content").join(id)),
        };
        let path = directory.join(file);
        let content = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()));
        View { by, content }
    }

    fn config_text_of_volumes(&self) -> String {
        let mut text = self.config_head(DATA_DIR);
        text += &self.config_of_storage(STORAGE_1, "1.0.0", &[]);
        text += &self.config_of_storage(STORAGE_2, "2.0.0", &Hold::ALL);
        for volume in [DATA, COPY] {
            text += &format!(
                "\n[[volume]]\nname = \"{}\"\nplugin = \"{PLUGIN}\"\ncreate = {{}}\n\
                 access_mode = \"single-node-multi-writer\"\n",
                name(volume),
            );
        }
        text += &self.config_of_driver();
        let page = format!("printf %s \"$PAGE\" > \"$DATA/{PAGE_FILE}\"; ");
        let write = format!(
            "n=0; while n=$((n + 1)); do echo \"$TASK $n\" >> \"$DATA/{LEDGER}\" || exit 1; sleep 0.05; done"
        );
        let copy = format!("cp \"$DATA/{PAGE_FILE}\" \"$COPY/{PAGE_FILE}\" && exec sleep 600");
        text += &self.config_of_user(LEFT, &[DATA], &(page + &write));
        text += &self.config_of_user(RIGHT, &[DATA], &write);
        text += &self.config_of_user(COPIER, &[DATA, COPY], &copy);
        text
    }

    fn config_of_storage(&self, allocation: &str, version: &str, holds: &[Hold]) -> String {
        let mut command = vec![quoted_path(&self.program)];
        let storage = self.path().join(STORAGE).to_string_lossy().into_owned();
        let arguments =
            ["plugin", "hostpath", "--node-id", "node-1", "--plugin-version", version, "--volumes", &storage];
        command.extend(arguments.map(quoted));
        for hold in holds {
            let file = self.path().join(hold.file());
            command
                .extend([quoted("--fault"), quoted(&format!("{},while:{}", hold.fault(), file.display()))]);
        }
        format!(
            "\n[[allocation]]\nname = \"{allocation}\"\nplugin = \"{PLUGIN}\"\ntype = \"monolith\"\nstart = false\n\
             command = [{}]\n",
            command.join(", "),
        )
    }

    /// A task with volumes: a shell with the path of each in its environment.
    fn config_of_user(&self, task: &str, volumes: &[&str], script: &str) -> String {
        let (variable, value) = &self.host_mark;
        let points =
            || volumes.iter().map(|volume| (name(volume), quoted_path(&self.mount_point(task, volume))));
        let paths: String =
            points().map(|(name, path)| format!(", {} = {path}", name.to_uppercase())).collect();
        let used: Vec<_> =
            points().map(|(name, path)| format!("{{ name = \"{name}\", destination = {path} }}")).collect();
        format!(
            "\n[[task]]\nname = \"{task}\"\ndriver = \"{DRIVER}\"\nstart = false\n\
             env = {{ {variable} = {}, TASK = \"{task}\", PAGE = {}{paths} }}\nvolumes = [{}]\n\
             config = {{ command = \"/bin/sh\", args = [\"-c\", {}] }}\n",
            quoted(value),
            quoted(PAGE),
            used.join(", "),
            quoted(script),
        )
    }
}

/// The name of a volume without its namespace.
fn name(volume: &str) -> &str {
    volume.rsplit('/').next().unwrap_or(volume)
}
