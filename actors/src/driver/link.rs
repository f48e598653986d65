//! The one connection to a driver's plugin, and the calls over it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_proto::drivers as wire;
use futures_util::future::LocalBoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tonic::{Response, Status, Streaming};
use wire::driver_client::DriverClient as Stub;

use super::client::{self, DriverConnections, Failure, Line, LineEnd, OpenLine, ServingProcess};
use super::stdio;
use super::{DriverLimits, DriverSpec, DriverStep, DriverTold, Reached, StartStep, Trouble, TroubleKind};
use crate::goplugin::{CallError, Connection, Limits, Listener, PluginConfig, PluginEndpoint};
use crate::rpc::{Cause, Channel, Class, Code, Fault, Problem};
use crate::topology;
use crate::vocabulary::{Generation, PluginType};

/// The rule that a faulty answer of a driver's own service breaks.
const RULE: &str = "D103";

type Fingerprints = Streaming<wire::FingerprintResponse>;
type Opening = LocalBoxFuture<'static, Result<Response<Fingerprints>, Status>>;

/// The stream of fingerprints. A plugin may answer only when it has something to report.
enum Watching {
    Shut,
    Opening(Opening),
    Open(Box<Fingerprints>),
}

/// One connection: a generation of the driver. When it is dropped, its clients are cut off.
pub(super) struct Link {
    connection: Connection,
    line: Rc<OpenLine>,
    watching: Rc<Mutex<Watching>>,
    printed: JoinHandle<()>,
}

impl Link {
    pub(super) async fn dial(
        endpoint: &PluginEndpoint,
        prove: impl AsyncFnOnce(&Listener) -> Result<(), String>,
        (process, generation): (ServingProcess, Generation),
        spec: &DriverSpec,
        limits: &DriverLimits,
        connections: DriverConnections,
    ) -> Result<Self, Trouble> {
        let dialling = Limits { dial_deadline: limits.step_deadline, ..Limits::default() };
        let connection = Connection::dial_proven(endpoint, dialling, prove).await;
        let connection = connection.map_err(|error| trouble(&error))?;
        let line = Line::new(spec.name.clone(), generation, process, &connection, limits);
        let line = Rc::new(connections.open(line));
        let printed = actix_rt::spawn(stdio::log(spec.name.clone(), connection.stdio()));
        let watching = Rc::new(Mutex::new(Watching::Shut));
        if spec.not_launched.is_some() {
            // A plugin that was not launched by us is not configured by us either.
            line.lend();
        }
        Ok(Self { connection, line, watching, printed })
    }

    /// Whether leases of this generation can be had: only after the plugin is configured, since drivers crash on a `RecoverTask`
    /// that comes before the topology (T020).
    pub(super) fn may_lend(&self, generation: Generation) -> bool {
        self.line.generation() == generation && self.line.may_lend()
    }

    pub(super) fn hang_up(
        &self,
        is_worth_retrying: bool,
        reason: String,
        within: Duration,
    ) -> impl Future<Output = ()> + use<> {
        self.line.hang_up(LineEnd { is_worth_retrying, reason }, within)
    }

    /// Performs a step that is a call over the connection.
    pub(super) fn advance(
        &self,
        start_step: StartStep,
        spec: &DriverSpec,
        deadline: Duration,
    ) -> LocalBoxFuture<'static, Result<Reached, Trouble>> {
        let connection = self.connection.clone();
        match start_step {
            StartStep::Ping => Box::pin(async move {
                connection.ping(deadline).await.map(|()| Reached::Done).map_err(|error| trouble(&error))
            }),
            StartStep::Identify => {
                let (name, api_version) = (spec.said_name.clone(), spec.api_version.clone());
                Box::pin(async move { identify(&connection, name.as_deref(), &api_version, deadline).await })
            }
            StartStep::Configure => {
                let (config, line) = (configuration(spec), Rc::downgrade(&self.line));
                Box::pin(async move {
                    connection.set_config(config, deadline).await.map_err(|error| trouble(&error))?;
                    if let Some(line) = line.upgrade() {
                        line.lend();
                    }
                    Ok(Reached::Done)
                })
            }
            StartStep::Own(DriverStep::Initialise) => Box::pin(async move {
                let mut stub = Stub::new(connection.channel());
                let answer = stub.init(wire::InitRequest {});
                let done = connection.within("Init", deadline, answer, |_| Ok(Reached::Done)).await;
                done.map_err(|error| trouble(&error))
            }),
            StartStep::Own(DriverStep::Capabilities) => Box::pin(async move {
                let mut stub = Stub::new(connection.channel());
                let answer = stub.capabilities(wire::CapabilitiesRequest {});
                let read = |answer| {
                    client::capabilities(answer).map(DriverTold::Capable).map(Reached::Told).map_err(fault)
                };
                let told = connection.within("Capabilities", deadline, answer, read).await;
                told.map_err(|error| trouble(&error))
            }),
            StartStep::Watch => self.watch(),
            StartStep::Recall | StartStep::Launch | StartStep::Dial => {
                Box::pin(std::future::ready(Err(Trouble {
                    kind: TroubleKind::Answered,
                    what: format!("{start_step}: this is no call over a connection"),
                })))
            }
        }
    }

    /// Opens the stream of fingerprints again, and reads the first.
    fn watch(&self) -> LocalBoxFuture<'static, Result<Reached, Trouble>> {
        let mut stub = stub(&self.connection);
        let opening: Opening = Box::pin(async move { stub.fingerprint(wire::FingerprintRequest {}).await });
        let watching = Rc::clone(&self.watching);
        let read = self.read_on();
        Box::pin(async move {
            *watching.lock().await = Watching::Opening(opening);
            read.await
        })
    }

    /// Reads the next fingerprint. Dropping the future loses nothing.
    pub(super) fn read_on(&self) -> LocalBoxFuture<'static, Result<Reached, Trouble>> {
        let watching = Rc::clone(&self.watching);
        Box::pin(async move {
            let mut watching = watching.lock().await;
            let told = next_of(&mut watching).await;
            match told {
                Ok(Some(answer)) => {
                    let told = client::fingerprint(answer).map(DriverTold::Fingerprinted);
                    told.map(Reached::Told).map_err(|fault| Trouble {
                        kind: TroubleKind::Answered,
                        what: format!("{}: {fault}", StartStep::Watch),
                    })
                }
                Ok(None) => Err(Trouble {
                    kind: TroubleKind::Answered,
                    what: "the driver ended its stream of fingerprints".to_owned(),
                }),
                Err(status) => {
                    *watching = Watching::Shut;
                    let failure = Failure::of(&status);
                    let kind = if failure.may_be_the_end(true) {
                        TroubleKind::Silent
                    } else {
                        TroubleKind::Answered
                    };
                    Err(Trouble { kind, what: format!("{}: {}", StartStep::Watch, failure.into_words()) })
                }
            }
        })
    }

    /// Requests the plugin to end. If it does not agree, signals follow.
    pub(super) fn shutdown(&self, deadline: Duration) -> LocalBoxFuture<'static, Result<Reached, Trouble>> {
        let connection = self.connection.clone();
        Box::pin(async move {
            match connection.shutdown(deadline).await {
                Ok(_answered_or_hung_up) => Ok(Reached::Done),
                Err(error) => Err(Trouble { kind: TroubleKind::Answered, what: error.to_string() }),
            }
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.printed.abort();
    }
}

async fn next_of(watching: &mut Watching) -> Result<Option<wire::FingerprintResponse>, Status> {
    loop {
        match watching {
            Watching::Shut => return Ok(None),
            Watching::Opening(opening) => {
                let stream = opening.await?.into_inner();
                *watching = Watching::Open(Box::new(stream));
            }
            Watching::Open(stream) => return stream.message().await,
        }
    }
}

fn stub(connection: &Connection) -> Stub<Channel> {
    Stub::new(connection.channel()).max_decoding_message_size(connection.limits().message_bytes_max)
}

async fn identify(
    connection: &Connection,
    name: Option<&str>,
    api_version: &str,
    deadline: Duration,
) -> Result<Reached, Trouble> {
    let info = connection.plugin_info(deadline).await.map_err(|error| trouble(&error))?;
    let refused = |what: String| Err(Trouble { kind: TroubleKind::Answered, what });
    if info.plugin_type != PluginType::Driver {
        return refused(format!("it is a {} plugin and no driver", info.plugin_type));
    }
    if let Some(name) = name.filter(|name| *name != info.name.as_str()) {
        return refused(format!(
            "it calls itself {}, but {name} is expected; name the driver as its plugin names itself, or have the plugin \
             take that name",
            info.name
        ));
    }
    if !api_version.is_empty() && !info.api_versions.iter().any(|offered| offered == api_version) {
        let offered = info.api_versions.join(", ");
        return refused(format!("it must speak API version {api_version}, but offers {offered}"));
    }
    Ok(Reached::Identified { version: Arc::from(info.version) })
}

fn configuration(spec: &DriverSpec) -> PluginConfig {
    let topology = spec.node.topology.clone().unwrap_or_else(topology::of_this_machine);
    PluginConfig {
        msgpack: spec.config.clone(),
        nomad: Some(client::node_to_wire(&spec.node, &topology)),
        api_version: spec.api_version.clone(),
    }
}

fn fault(detail: String) -> Fault {
    Fault { rule: RULE, field: "answer", problem: Problem::Unreadable { detail } }
}

fn trouble(error: &CallError) -> Trouble {
    let kind = match (error.class(), error.cause()) {
        (Class::Unimplemented, _) => TroubleKind::Unimplemented,
        (_, Cause::Status { code: Code::Unavailable, .. }) => TroubleKind::Silent,
        (
            Class::Absent
            | Class::Refused
            | Class::Busy
            | Class::Denied
            | Class::NotASocket
            | Class::DeadlineExceeded
            | Class::Disconnected,
            _,
        ) => TroubleKind::Silent,
        (Class::Final | Class::Unclear | Class::Fault, _) => TroubleKind::Answered,
    };
    Trouble { kind, what: error.to_string() }
}
