//! Task events from a plugin to the handlers of their tasks: through our plugin side, the stream, the eventor and the
//! journals, against a bare tonic stream of the same messages that are read and counted.
//!
//! Both servers are processes of this program, with one thread. Each round is one burst: triggered in the plugin, and timed
//! until the last event has been received.

mod support;

use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use callboard::host::Host;
use callboard::plugin::wire::driver_client::DriverClient as Stub;
use callboard::plugin::wire::{DriverTaskEvent, TaskConfig, TaskEventsRequest};
use callboard::plugin::{
    Driver, Events, InspectedTask, PluginInfo, Refusal, StartedTask, TaskExit, run, schema,
};
use callboard_actors::driver::client::{DriverClient, TaskId};
use callboard_actors::driver::{SEQUENCE_ANNOTATION, STREAM_ANNOTATION, TaskEventItem, TaskKey};
use callboard_actors::drivers::{ForgetTaskHandler, RegisterTaskHandler, Wanted};
use callboard_actors::vocabulary::{AllocationId, TaskName};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Context, Poll, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use support::Pace;
use support::curve::{Curve, Rows, Stretch};
use support::disk::directory;
use support::drivers::{BarePlugin, DriversFeed, TIMEOUT, add, dial, driver, host, name};
use support::figures::{Goal, judge, nanos_each};

/// The argument that makes this program a plugin.
const AS_PLUGIN: &str = "--as-plugin";
/// The argument that makes this program a bare server.
const AS_BARE: &str = "--as-bare";
/// The metadata key for the number of events and tasks of a bare server's burst.
const BURST: &str = "burst";
/// The numbers of tasks in a burst.
const TASKS: [u64; 5] = [1, 10, 100, 1_000, 10_000];
/// The number of events that the plugin keeps: more than in a burst, so that none is missed.
const KEPT: usize = 1 << 16;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == AS_PLUGIN) {
        let events = Events::in_memory(KEPT).expect("there is randomness");
        return run(Announcer { events });
    }
    if arguments.iter().any(|argument| argument == AS_BARE) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(serve_bare());
        return ExitCode::SUCCESS;
    }
    support::run("task events: from the plugin to the handlers, microseconds for each event", measure);
    ExitCode::SUCCESS
}

async fn measure(pace: Pace) {
    let place = directory();
    let this = std::env::current_exe().expect("this program").display().to_string();
    let (bare_plugin, socket) = BarePlugin::spawn(place.path(), &this, &[AS_BARE]).await;
    let mut bare_stub = Stub::new(dial(&socket).await);
    let ours = Ours::start(place.path(), &this).await;
    let events = pace.choose(50_000, 100);
    let mut rows = Rows::begin();
    for tasks in TASKS.into_iter().take(pace.choose(TASKS.len(), 2)) {
        let mut handlers = Handlers::register(&ours.host, tasks).await;
        let curve = Curve { operation: "task-event", store: "none", along: "tasks" };
        let mut stages = [(tasks, ())];
        let points = rows
            .draw(curve, pace.choose(9, 1), &mut stages, async |tasks, ()| {
                let bare = bare_burst(&mut bare_stub, events, tasks).await;
                let through = handlers.burst(&ours.client, events, tasks).await;
                (whole(events, through), whole(events, bare))
            })
            .await;
        judge(
            pace,
            &format!("a bare stream, events of {tasks} tasks"),
            points[0].median(),
            Goal::AtMost(2.0),
        );
        handlers.forget(&ours.host).await;
    }
    drop(bare_plugin);
    ours.host.stop().await;
}

/// A burst as one measurement: each event has the same share of the time.
fn whole(events: u64, took: Duration) -> Stretch {
    Stretch::new(events, took, [nanos_each(events, took)].into_iter().collect())
}

// === Messages ===

/// The `n`th event of a burst, like that of a driver for the end of a task.
fn event(n: u64, tasks: u64) -> DriverTaskEvent {
    let task = n % tasks;
    DriverTaskEvent {
        task_id: format!("allocation-{task}/main/0"),
        alloc_id: format!("allocation-{task}"),
        task_name: "main".to_owned(),
        timestamp: Some(SystemTime::now().into()),
        message: "exited with code 0".to_owned(),
        annotations: [("exit_code".to_owned(), "0".to_owned())].into(),
    }
}

/// The same with the annotations of our plugin side, so that both have the same length.
fn marked_event(n: u64, tasks: u64) -> DriverTaskEvent {
    let mut event = event(n, tasks);
    event.annotations.insert(STREAM_ANNOTATION.to_owned(), "0123456789abcdef0123456789abcdef".to_owned());
    event.annotations.insert(SEQUENCE_ANNOTATION.to_owned(), (n + 1).to_string());
    event
}

fn burst_of(text: &str) -> Option<(u64, u64)> {
    let (events, tasks) = text.split_once('/')?;
    Some((events.parse().ok()?, tasks.parse().ok()?))
}

// === Ours ===

/// A driver that only announces events: the name of a signal sets the number of events and tasks.
struct Announcer {
    events: Events,
}

#[tonic::async_trait]
impl Driver for Announcer {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("announcer", "1.0.0")
    }

    fn task_config_schema(&self) -> callboard_proto::hclspec::Spec {
        schema::object([])
    }

    fn events(&self) -> Result<Events, Refusal> {
        Ok(self.events.clone())
    }

    async fn start_task(&self, _: TaskConfig) -> Result<StartedTask, Refusal> {
        Err(Refusal::unsupported("StartTask"))
    }

    async fn wait_task(&self, _: &str) -> Result<TaskExit, Refusal> {
        Err(Refusal::unsupported("WaitTask"))
    }

    async fn stop_task(&self, _: &str, _: Duration, _: &str) -> Result<(), Refusal> {
        Err(Refusal::unsupported("StopTask"))
    }

    async fn destroy_task(&self, _: &str, _: bool) -> Result<(), Refusal> {
        Err(Refusal::unsupported("DestroyTask"))
    }

    async fn inspect_task(&self, _: &str) -> Result<InspectedTask, Refusal> {
        Err(Refusal::unsupported("InspectTask"))
    }

    async fn signal_task(&self, _: &str, burst: &str) -> Result<(), Refusal> {
        let (events, tasks) = burst_of(burst).ok_or_else(|| Refusal::invalid("no burst"))?;
        for n in 0..events {
            self.events.announce(event(n, tasks));
            // The stream is served on the same thread, like the tasks of a real driver.
            if n % 64 == 63 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

/// A host with that driver.
struct Ours {
    host: Host,
    client: DriverClient,
}

impl Ours {
    async fn start(place: &Path, program: &str) -> Self {
        let host = host(place).await;
        let mut feed = DriversFeed::of(host.drivers());
        add(host.drivers(), driver(place, "announcer", program, &[AS_PLUGIN])).await;
        feed.healthy().await;
        let leased = host.leases().driver(&name("announcer"), Wanted::Healthy, TIMEOUT).await;
        let client = leased.expect("it is healthy");
        Self { host, client }
    }
}

/// The handlers of all tasks: each counts its events, and notifies when it has its share of the burst.
struct Handlers {
    keys: Vec<TaskKey>,
    finished: mpsc::UnboundedReceiver<()>,
    share: Rc<std::cell::Cell<u64>>,
}

impl Handlers {
    async fn register(host: &Host, tasks: u64) -> Self {
        let (tell, finished) = mpsc::unbounded_channel();
        let share = Rc::new(std::cell::Cell::new(u64::MAX));
        let mut keys = Vec::new();
        for task in 0..tasks {
            let allocation = AllocationId::new(format!("allocation-{task}")).expect("a good id");
            let key = TaskKey::new(allocation, TaskName::new("main").expect("a good name"));
            let (sink, mut events) = host.task_journals().open(KEPT, None);
            let register = RegisterTaskHandler { driver: name("announcer"), task: key.clone(), sink };
            host.drivers().ask(register).await.expect("it runs").expect("not too many");
            keys.push(key);
            let (tell, share) = (tell.clone(), Rc::clone(&share));
            actix_rt::spawn(async move {
                let mut had = 0;
                while let Some(item) = events.next().await {
                    let TaskEventItem::Event { .. } = item else { panic!("nothing is missing: {item:?}") };
                    had += 1;
                    if had == share.get() {
                        had = 0;
                        // The receiver is gone when the bench is over.
                        let _ = tell.send(());
                    }
                }
            });
        }
        Self { keys, finished, share }
    }

    /// Triggers a burst, and waits until each handler has its share.
    async fn burst(&mut self, client: &DriverClient, events: u64, tasks: u64) -> Duration {
        self.share.set(events / tasks);
        let all = TaskId::new("all").expect("a good id");
        let burst = format!("{events}/{tasks}");
        let begun = Instant::now();
        let told = client.signal_task(&all, &burst, TIMEOUT);
        let had = async {
            for _ in 0..tasks {
                self.finished.recv().await.expect("the handlers run");
            }
        };
        let (told, ()) = tokio::join!(told, had);
        told.expect("it is taken");
        begun.elapsed()
    }

    async fn forget(self, host: &Host) {
        for task in self.keys {
            host.drivers().ask(ForgetTaskHandler { driver: name("announcer"), task }).await.expect("it runs");
        }
    }
}

// === Bare ===

/// Requests a burst over its own stream, and reads it to its end.
async fn bare_burst(stub: &mut Stub<Channel>, events: u64, tasks: u64) -> Duration {
    let begun = Instant::now();
    let mut question = Request::new(TaskEventsRequest {});
    question.metadata_mut().insert(BURST, format!("{events}/{tasks}").parse().expect("it is ASCII"));
    let mut stream = stub.task_events(question).await.expect("it answers").into_inner();
    let mut had = 0;
    while let Some(event) = stream.message().await.expect("no error") {
        had += u64::from(!std::hint::black_box(event).task_id.is_empty());
    }
    assert_eq!(had, events);
    begun.elapsed()
}

/// A server with one call, without our code.
#[derive(Debug, Clone)]
struct BareServer;

impl NamedService for BareServer {
    const NAME: &'static str = "hashicorp.nomad.plugins.drivers.proto.Driver";
}

impl Service<http::Request<Body>> for BareServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<DriverTaskEvent, TaskEventsRequest>::default());
            Ok(grpc.server_streaming(BareEvents, request).await)
        })
    }
}

struct BareEvents;

impl ServerStreamingService<TaskEventsRequest> for BareEvents {
    type Response = DriverTaskEvent;
    type ResponseStream = Pin<Box<dyn tokio_stream::Stream<Item = Result<DriverTaskEvent, Status>> + Send>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<TaskEventsRequest>) -> Self::Future {
        let said = request.metadata().get(BURST).and_then(|burst| burst_of(burst.to_str().ok()?));
        Box::pin(async move {
            let (events, tasks) = said.ok_or_else(|| Status::invalid_argument("no burst"))?;
            let stream = tokio_stream::iter((0..events).map(move |n| Ok(marked_event(n, tasks))));
            Ok(Response::new(Box::pin(stream) as Self::ResponseStream))
        })
    }
}

async fn serve_bare() {
    let directory = std::env::var("PLUGIN_UNIX_SOCKET_DIR").expect("its caller says where");
    let socket = Path::new(&directory).join("bare.sock");
    let listener = UnixListener::bind(&socket).expect("the path is free");
    println!("1|2|unix|{}|grpc|", socket.display());
    let incoming = UnixListenerStream::new(listener);
    Server::builder().add_service(BareServer).serve_with_incoming(incoming).await.expect("it serves");
}
