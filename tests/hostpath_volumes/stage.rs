//! Provides the plugin in its own namespace, and the calls of a host.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callboard_proto::csi::v1 as wire;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use wire::controller_client::ControllerClient;
use wire::group_controller_client::GroupControllerClient;
use wire::identity_client::IdentityClient;
use wire::node_client::NodeClient;
use wire::volume_capability::access_mode::Mode;
use wire::volume_capability::{AccessMode, AccessType, MountVolume};

/// More time than any step of these tests takes on the slowest machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);
pub(crate) const NODE: &str = "node-1";
pub(crate) const MIB: i64 = 1 << 20;

/// A shell in its own user and mount namespace, which starts plugins; everything it has started ends with it.
pub(crate) struct Namespace {
    pub(crate) directory: TempDir,
    pub(crate) shell: Child,
    pub(crate) started: u32,
}

impl Namespace {
    /// The namespace; or `None`, after reporting what is skipped: the system may forbid such namespaces.
    pub(crate) fn or_say(what: &str) -> Option<Self> {
        let unshare = |command: &[&str]| {
            let mut unshare = Command::new("unshare");
            unshare.args(["--user", "--map-root-user", "--mount", "--"]).args(command);
            unshare
        };
        let is_permitted =
            unshare(&["true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !is_permitted {
            eprintln!("SKIPPED: {what} is not shown, since `unshare --user --mount` is refused here");
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut shell = unshare(&["sh"]);
        let log = fs::File::create(directory.path().join("log")).expect("room");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).process_group(0);
        Some(Self { shell: shell.spawn().expect("it was there before"), directory, started: 0 })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The path, outside of the namespace, of what its processes see at this path.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        Path::new("/proc")
            .join(self.shell.id().to_string())
            .join("root")
            .join(path.strip_prefix("/").expect("absolute"))
    }

    /// The number of mounts at this path.
    pub(crate) fn mounts_at(&self, path: &Path) -> usize {
        let list = fs::read_to_string(format!("/proc/{}/mountinfo", self.shell.id())).expect("it lives");
        let path = path.to_str().expect("text");
        list.lines().filter(|line| line.split(' ').nth(4) == Some(path)).count()
    }

    /// Starts the plugin, and returns its clients as soon as it listens.
    pub(crate) async fn start(&mut self, arguments: &str) -> Clients {
        self.start_plugin("hostpath", |command| format!("{command} {arguments} &")).await
    }

    /// Starts a plugin by a shell command that is built from its command, and returns its clients as soon as it listens.
    pub(crate) async fn start_plugin(
        &mut self,
        plugin: &str,
        started_by: impl Fn(&str) -> String,
    ) -> Clients {
        self.started += 1;
        // Each plugin has its own socket: a plugin that is about to end may still listen at the earlier one.
        let socket = self.path(&format!("{}.sock", self.started));
        let command = format!(
            "{} plugin {plugin} --endpoint {} --volumes {} --node-id {NODE}",
            env!("CARGO_BIN_EXE_callboard"),
            socket.display(),
            self.path("volumes").display()
        );
        let command = format!("wait\n{}\n", started_by(&command));
        self.shell.stdin.as_mut().expect("a pipe").write_all(command.as_bytes()).expect("it reads");
        let endpoint = Endpoint::try_from(format!("unix://{}", socket.display())).expect("a good path");
        let began = Instant::now();
        let channel = loop {
            match endpoint.connect().await {
                Ok(channel) => break channel,
                Err(error) => {
                    let log = || fs::read_to_string(self.path("log")).unwrap_or_default();
                    assert!(began.elapsed() < LONG, "{error}: {}", log());
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        Clients {
            identity: IdentityClient::new(channel.clone()),
            controller: ControllerClient::new(channel.clone()),
            groups: GroupControllerClient::new(channel.clone()),
            node: NodeClient::new(channel),
        }
    }

    pub(crate) fn volume(&self, id: &str) -> Used<'_> {
        let staging = self.path(&format!("staging-{id}"));
        fs::create_dir_all(&staging).expect("room");
        Used { namespace: self, id: id.to_owned(), staging, capability: mount(Mode::SingleNodeMultiWriter) }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.shell);
        // The shell has already ended if the test has killed it.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.shell.wait();
    }
}

#[derive(Clone)]
pub(crate) struct Clients {
    #[allow(dead_code, reason = "not every test asks who the plugin is")]
    pub(crate) identity: IdentityClient<Channel>,
    pub(crate) controller: ControllerClient<Channel>,
    pub(crate) groups: GroupControllerClient<Channel>,
    pub(crate) node: NodeClient<Channel>,
}

impl Clients {
    pub(crate) async fn create(
        &mut self,
        request: wire::CreateVolumeRequest,
    ) -> Result<wire::Volume, Status> {
        let created = self.controller.create_volume(request).await?;
        Ok(created.into_inner().volume.expect("a volume"))
    }

    pub(crate) async fn created(&mut self, name: &str) -> wire::Volume {
        self.create(request(name)).await.expect("it is made")
    }
}

pub(crate) fn capability(mode: Mode, access_type: AccessType) -> wire::VolumeCapability {
    wire::VolumeCapability {
        access_mode: Some(AccessMode { mode: mode as i32 }),
        access_type: Some(access_type),
    }
}

pub(crate) fn mount(mode: Mode) -> wire::VolumeCapability {
    capability(mode, AccessType::Mount(MountVolume::default()))
}

pub(crate) fn request(name: &str) -> wire::CreateVolumeRequest {
    wire::CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(wire::CapacityRange { required_bytes: MIB, limit_bytes: 0 }),
        volume_capabilities: vec![mount(Mode::SingleNodeMultiWriter)],
        ..wire::CreateVolumeRequest::default()
    }
}

pub(crate) fn code<T: std::fmt::Debug>(answer: Result<T, Status>) -> Code {
    answer.expect_err("it is refused").code()
}

/// The calls on a volume that is used on the node.
pub(crate) struct Used<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) id: String,
    pub(crate) staging: PathBuf,
    pub(crate) capability: wire::VolumeCapability,
}

impl Used<'_> {
    pub(crate) fn target(&self, name: &str) -> PathBuf {
        self.namespace.path(&format!("{name}-{}", self.id))
    }

    pub(crate) fn context() -> HashMap<String, String> {
        [("attached".to_owned(), NODE.to_owned())].into()
    }

    pub(crate) async fn attach(&self, clients: &mut Clients) -> Result<(), Status> {
        let request = wire::ControllerPublishVolumeRequest {
            volume_id: self.id.clone(),
            node_id: NODE.to_owned(),
            volume_capability: Some(self.capability.clone()),
            ..wire::ControllerPublishVolumeRequest::default()
        };
        let attached = clients.controller.controller_publish_volume(request).await?;
        assert_eq!(attached.into_inner().publish_context, Self::context());
        Ok(())
    }

    pub(crate) async fn detach(&self, clients: &mut Clients) -> Result<(), Status> {
        let request = wire::ControllerUnpublishVolumeRequest {
            volume_id: self.id.clone(),
            node_id: NODE.to_owned(),
            ..wire::ControllerUnpublishVolumeRequest::default()
        };
        clients.controller.controller_unpublish_volume(request).await.map(drop)
    }

    pub(crate) async fn stage(&self, clients: &mut Clients) -> Result<(), Status> {
        let request = wire::NodeStageVolumeRequest {
            volume_id: self.id.clone(),
            publish_context: Self::context(),
            staging_target_path: self.staging.display().to_string(),
            volume_capability: Some(self.capability.clone()),
            ..wire::NodeStageVolumeRequest::default()
        };
        clients.node.node_stage_volume(request).await.map(drop)
    }

    pub(crate) async fn unstage(&self, clients: &mut Clients) -> Result<(), Status> {
        let request = wire::NodeUnstageVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.display().to_string(),
        };
        clients.node.node_unstage_volume(request).await.map(drop)
    }

    pub(crate) async fn publish(
        &self,
        clients: &mut Clients,
        target: &str,
        readonly: bool,
    ) -> Result<(), Status> {
        let request = wire::NodePublishVolumeRequest {
            volume_id: self.id.clone(),
            publish_context: Self::context(),
            staging_target_path: self.staging.display().to_string(),
            target_path: self.target(target).display().to_string(),
            volume_capability: Some(self.capability.clone()),
            readonly,
            ..wire::NodePublishVolumeRequest::default()
        };
        clients.node.node_publish_volume(request).await.map(drop)
    }

    pub(crate) async fn unpublish(&self, clients: &mut Clients, target: &str) -> Result<(), Status> {
        let request = wire::NodeUnpublishVolumeRequest {
            volume_id: self.id.clone(),
            target_path: self.target(target).display().to_string(),
        };
        clients.node.node_unpublish_volume(request).await.map(drop)
    }

    pub(crate) async fn delete(&self, clients: &mut Clients) -> Result<(), Status> {
        let request =
            wire::DeleteVolumeRequest { volume_id: self.id.clone(), ..wire::DeleteVolumeRequest::default() };
        clients.controller.delete_volume(request).await.map(drop)
    }

    /// From a volume that only exists to one that is published.
    pub(crate) async fn up(&self, clients: &mut Clients) {
        self.attach(clients).await.expect("it is attached");
        self.stage(clients).await.expect("it is staged");
        self.publish(clients, "target", false).await.expect("it is published");
    }

    pub(crate) async fn down(&self, clients: &mut Clients) {
        self.unpublish(clients, "target").await.expect("it is unpublished");
        self.unstage(clients).await.expect("it is unstaged");
        self.detach(clients).await.expect("it is detached");
    }

    pub(crate) fn file(&self, target: &str) -> PathBuf {
        self.namespace.inside(&self.target(target)).join("file")
    }
}
