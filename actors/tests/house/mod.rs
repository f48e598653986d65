//! A registry with its instances, and plugins that answer as a test wants them to, all in one runtime under virtual time.

#![allow(dead_code, reason = "each test program uses another part of this")]

use std::collections::{BTreeMap, HashMap};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use callboard_actors::instances::{
    self, Dispense, DispenseError, Dispensed, InstanceReport, Instances, InstancesNews, InstancesOptions,
    InstancesView,
};
use callboard_actors::registry::{
    self, Deregister, MemoryStore, Register, Registry, RegistryOptions, SocketCheck,
};
use callboard_actors::shell::{Address, FeedItem, Running, Settings, StopMode, Subscription};
use callboard_actors::vocabulary::{AllocationId, Health, PluginKey, PluginName, PluginType, SocketPath};
use callboard_proto::csi::v1 as wire;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use wire::controller_server::{Controller, ControllerServer};
use wire::identity_server::{Identity, IdentityServer};
use wire::node_server::{Node, NodeServer};

/// Longer than anything in these tests takes, in virtual time.
pub(crate) const LONG: Duration = Duration::from_secs(24 * 3_600);

/// Runs a story on one arbiter under virtual time.
pub(crate) fn story<F: Future<Output = ()>>(tell: impl FnOnce() -> F) {
    let system = actix::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime")
    });
    system.block_on(async { tell().await });
}

pub(crate) fn node(name: &str) -> PluginKey {
    PluginKey::new(PluginType::CsiNode, PluginName::new(name).expect("a good name"))
}

pub(crate) fn controller(name: &str) -> PluginKey {
    PluginKey::new(PluginType::CsiController, PluginName::new(name).expect("a good name"))
}

pub(crate) fn allocation(id: &str) -> AllocationId {
    AllocationId::new(id).expect("a good id")
}

// === Plugins ===

/// What a plugin does when it is called.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Answer,
    NotReady,
    Fail(tonic::Code),
    /// Fails so many times, and answers from then on.
    FailFirst(u32),
    Hang,
}

#[derive(Debug)]
struct Role {
    name: String,
    version: String,
    has_controller: bool,
    publishes: bool,
    manifest_bytes: usize,
    acts: HashMap<&'static str, Act>,
    calls: Vec<&'static str>,
}

/// A plugin whose part is written by the test. Clones are the same plugin.
#[derive(Debug, Clone)]
pub(crate) struct Plugin(Arc<Mutex<Role>>);

impl Plugin {
    /// A monolith that answers everything.
    pub(crate) fn new(name: &str) -> Self {
        Self(Arc::new(Mutex::new(Role {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            has_controller: true,
            publishes: true,
            manifest_bytes: 0,
            acts: HashMap::new(),
            calls: Vec::new(),
        })))
    }

    fn role(&self) -> MutexGuard<'_, Role> {
        self.0.lock().expect("nobody panicked")
    }

    /// What it does from now on when this is called.
    pub(crate) fn on(&self, rpc: &'static str, act: Act) {
        self.role().acts.insert(rpc, act);
    }

    pub(crate) fn calls_itself(&self, name: &str, version: &str) {
        let mut role = self.role();
        (role.name, role.version) = (name.to_owned(), version.to_owned());
    }

    pub(crate) fn has_controller(&self, has_controller: bool) {
        self.role().has_controller = has_controller;
    }

    /// Lets it send a manifest of this size.
    pub(crate) fn has_manifest(&self, bytes: usize) {
        self.role().manifest_bytes = bytes;
    }

    /// All calls since this was last asked.
    pub(crate) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.role().calls)
    }

    async fn play(&self, rpc: &'static str) -> Result<Act, Status> {
        let act = {
            let mut role = self.role();
            role.calls.push(rpc);
            let act = role.acts.get(rpc).cloned().unwrap_or(Act::Answer);
            if let Act::FailFirst(times) = act {
                role.acts.insert(rpc, Act::FailFirst(times.saturating_sub(1)));
            }
            act
        };
        match act {
            Act::FailFirst(0) => Ok(Act::Answer),
            Act::FailFirst(_) => Err(Status::unavailable("as the test wants it")),
            Act::Fail(code) => Err(Status::new(code, "as the test wants it")),
            Act::Hang => std::future::pending().await,
            Act::Answer | Act::NotReady => Ok(act),
        }
    }

    /// Serves from the runtime of the test.
    pub(crate) fn serve(&self, socket: &SocketPath) -> Serving {
        let listener = UnixListener::bind(socket.as_path()).expect("the path is free");
        let streams = Arc::<Mutex<Vec<std::os::unix::net::UnixStream>>>::default();
        let kept = Arc::clone(&streams);
        let incoming = async_stream(listener, kept);
        let server = Server::builder()
            .add_service(IdentityServer::new(self.clone()))
            .add_service(ControllerServer::new(self.clone()))
            .add_service(NodeServer::new(self.clone()))
            .serve_with_incoming(incoming);
        let task = tokio::spawn(async move { server.await.expect("the server serves") });
        Serving { socket: socket.clone(), task, streams }
    }
}

type Streams = Arc<Mutex<Vec<std::os::unix::net::UnixStream>>>;

fn async_stream(
    listener: UnixListener,
    streams: Streams,
) -> impl tokio_stream::Stream<Item = std::io::Result<UnixStream>> {
    use tokio_stream::StreamExt;
    tokio_stream::wrappers::UnixListenerStream::new(listener).map(move |stream| {
        let stream = stream?.into_std()?;
        streams.lock().expect("nobody panicked").push(stream.try_clone()?);
        UnixStream::from_std(stream)
    })
}

/// A plugin that listens.
pub(crate) struct Serving {
    socket: SocketPath,
    task: tokio::task::JoinHandle<()>,
    streams: Streams,
}

impl Serving {
    /// Ends it as SIGKILL would: every connection closes at once. The socket file goes too, as the next start would see to.
    pub(crate) fn kill(self) {
        self.task.abort();
        for stream in self.streams.lock().expect("nobody panicked").drain(..) {
            // One that is closed already needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
        std::fs::remove_file(self.socket.as_path()).expect("it is there");
    }
}

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(
        &self,
        _: Request<wire::GetPluginInfoRequest>,
    ) -> Result<Response<wire::GetPluginInfoResponse>, Status> {
        self.play("GetPluginInfo").await?;
        let role = self.role();
        let value = "v".repeat(role.manifest_bytes.saturating_sub(1));
        let entry = (role.manifest_bytes > 0).then(|| ("k".to_owned(), value));
        Ok(Response::new(wire::GetPluginInfoResponse {
            name: role.name.clone(),
            vendor_version: role.version.clone(),
            manifest: entry.into_iter().collect(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<wire::GetPluginCapabilitiesRequest>,
    ) -> Result<Response<wire::GetPluginCapabilitiesResponse>, Status> {
        use wire::plugin_capability::{Service, Type, service};
        self.play("GetPluginCapabilities").await?;
        let service = Service { r#type: service::Type::ControllerService.into() };
        let controller = wire::PluginCapability { r#type: Some(Type::Service(service)) };
        let capabilities = self.role().has_controller.then_some(controller).into_iter().collect();
        Ok(Response::new(wire::GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _: Request<wire::ProbeRequest>) -> Result<Response<wire::ProbeResponse>, Status> {
        let act = self.play("Probe").await?;
        Ok(Response::new(wire::ProbeResponse { ready: Some(!matches!(act, Act::NotReady)) }))
    }
}

#[tonic::async_trait]
impl Controller for Plugin {
    async fn controller_get_capabilities(
        &self,
        _: Request<wire::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<wire::ControllerGetCapabilitiesResponse>, Status> {
        use wire::controller_service_capability::{Rpc, Type, rpc};
        self.play("ControllerGetCapabilities").await?;
        let rpc = Rpc { r#type: rpc::Type::PublishUnpublishVolume.into() };
        let publishes = wire::ControllerServiceCapability { r#type: Some(Type::Rpc(rpc)) };
        let capabilities = self.role().publishes.then_some(publishes).into_iter().collect();
        Ok(Response::new(wire::ControllerGetCapabilitiesResponse { capabilities }))
    }
}

#[tonic::async_trait]
impl Node for Plugin {
    async fn node_get_capabilities(
        &self,
        _: Request<wire::NodeGetCapabilitiesRequest>,
    ) -> Result<Response<wire::NodeGetCapabilitiesResponse>, Status> {
        self.play("NodeGetCapabilities").await?;
        Ok(Response::new(wire::NodeGetCapabilitiesResponse::default()))
    }

    async fn node_get_info(
        &self,
        _: Request<wire::NodeGetInfoRequest>,
    ) -> Result<Response<wire::NodeGetInfoResponse>, Status> {
        self.play("NodeGetInfo").await?;
        Ok(Response::new(wire::NodeGetInfoResponse { node_id: "node-1".to_owned(), ..Default::default() }))
    }
}

// === The house ===

/// A registry and its instances.
pub(crate) struct House {
    pub(crate) directory: TempDir,
    pub(crate) registry: Address<Registry>,
    pub(crate) instances: Address<Instances>,
    pub(crate) registry_running: Running,
    pub(crate) instances_running: Running,
    pub(crate) settings: Settings,
}

impl House {
    pub(crate) fn open() -> Self {
        Self::open_with(InstancesOptions::default(), &MemoryStore::default())
    }

    pub(crate) fn open_with(options: InstancesOptions, store: &MemoryStore) -> Self {
        let settings = Settings { seed: Some(7), ..Settings::default() };
        let registry = Address::vacant("registry", 4_096);
        let instances = Address::vacant("instances", 4_096);
        store.begin_run();
        let check = SocketCheck { deadline: Duration::from_secs(5) };
        let registry_running =
            registry::start(&registry, RegistryOptions::default(), check, store.clone(), settings.clone());
        let instances_running = instances::start(&instances, registry.clone(), options, settings.clone());
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { directory, registry, instances, registry_running, instances_running, settings }
    }

    pub(crate) fn socket(&self, name: &str) -> SocketPath {
        let path = self.directory.path().join(name);
        SocketPath::new(path.to_str().expect("a readable path")).expect("a short path")
    }

    pub(crate) async fn register(&self, plugin: &PluginKey, id: &str, socket: &SocketPath) {
        let register = Register {
            plugins: vec![plugin.clone()],
            allocation: allocation(id),
            socket: socket.clone(),
            provider: None,
            version: None,
            options: Arc::new(BTreeMap::new()),
        };
        self.registry.ask(register).await.expect("it runs").expect("it is well formed");
    }

    pub(crate) async fn deregister(&self, plugin: &PluginKey, id: &str) {
        let deregister = Deregister { plugins: vec![plugin.clone()], allocation: allocation(id) };
        self.registry.ask(deregister).await.expect("it runs");
    }

    pub(crate) async fn dispense(
        &self,
        plugin: &PluginKey,
        within: Duration,
    ) -> Result<Dispensed, DispenseError> {
        self.instances.ask(Dispense { plugin: plugin.clone(), within }).await.expect("it runs")
    }

    pub(crate) fn watch(&self) -> Watch {
        Watch(self.instances.subscribe("test", 1_024).expect("it runs"))
    }

    pub(crate) async fn stop_instances(&self) {
        self.instances_running.request_stop(StopMode::Stop);
        tokio::time::timeout(LONG, self.instances_running.ended()).await.expect("it ends");
    }
}

/// Reads the news of the instances.
pub(crate) struct Watch(Subscription<InstancesNews, InstancesView>);

impl Watch {
    pub(crate) async fn next(&mut self) -> InstancesNews {
        loop {
            let item = tokio::time::timeout(LONG, self.0.next()).await.expect("news come");
            if let FeedItem::Change { news, .. } = item.expect("the instances live") {
                return news;
            }
        }
    }

    /// Everything that has been told of plugins and not been read.
    pub(crate) fn rest(&mut self) -> Vec<InstancesNews> {
        let mut all = Vec::new();
        while let Some(item) = self.0.try_next() {
            if let FeedItem::Change {
                news: news @ (InstancesNews::Reported(_) | InstancesNews::Left(_)),
                ..
            } = item
            {
                all.push(news);
            }
        }
        all
    }

    /// Waits for a report of a plugin with this health, and gives it.
    pub(crate) async fn until(&mut self, plugin: &PluginKey, health: &str) -> InstanceReport {
        loop {
            match self.next().await {
                InstancesNews::Reported(report) | InstancesNews::Left(report)
                    if report.plugin == *plugin && report.health.as_str() == health =>
                {
                    return report;
                }
                InstancesNews::Reported(_)
                | InstancesNews::Left(_)
                | InstancesNews::Expected(_)
                | InstancesNews::Settled => {}
            }
        }
    }
}

/// The words for the healths in some news, in order.
pub(crate) fn healths(news: &[InstancesNews]) -> Vec<&'static str> {
    let words = news.iter().map(|news| match news {
        InstancesNews::Reported(InstanceReport { health, .. }) => Health::as_str(health),
        InstancesNews::Left(_) => "left",
        InstancesNews::Expected(_) => "awaited",
        InstancesNews::Settled => "settled",
    });
    words.collect()
}
