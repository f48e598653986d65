//! A part of a host: one actor with its name, its dependencies, how it starts, when it is ready, how it is described, and its stop
//! deadline.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::shell::{
    Address, Machine, Message, Reservation, Running, Settings, StopMode, StopStep,
};
use callboard_actors::supervisor::{Child, ChildDescription, ChildSpec, TreeNode};

use super::order::PartsError;
use crate::host::Host;

/// How long a start may take: a large database is read in this time.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// The stop deadline of a part that does not report its own ([`Machine::stops_within`]).
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// How long a part may take to describe itself: less than the supervisor waits for all of them.
const DESCRIBE_DEADLINE: Duration = Duration::from_millis(900);

/// The context of a part's start.
#[derive(Debug, Clone)]
pub struct PartContext {
    pub(super) host: Host,
    pub(super) settings: Settings,
}

impl PartContext {
    /// The host of the part: its database, its owner mark, and the addresses of its other parts. All addresses exist before anything
    /// starts; the parts that a part starts [after](Part::after) answer.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The settings of every actor of the host: its clock, its notices, its journal.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings.clone()
    }
}

/// The report about the ended remains of a part ([`PartLifecycle::end_rest`]).
pub type EndingRest = Pin<Box<dyn Future<Output = Vec<StopStep>>>>;

/// The incarnations of an actor, and the state that outlives each of them. Made once for each host; dropped with its supervisor.
pub trait PartLifecycle: 'static {
    /// Starts the next incarnation.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn start(&mut self) -> Result<Running, String>;

    /// Ends everything that the last incarnation left, in a bounded time, and reports each item, also what could not be ended. With
    /// [`StopMode::Detach`] it leaves what the next run of the host takes over.
    fn end_rest(&self, mode: StopMode) -> EndingRest;
}

type Make = Arc<dyn Fn(&PartContext) -> Child + Send + Sync>;
type Reserve = Arc<dyn Fn() -> Option<Reservation> + Send + Sync>;
type MakeOf = Arc<dyn Fn(ChildSpec, &PartContext) -> Child + Send + Sync>;

/// One actor of a host, as the host's supervisor receives it.
///
/// A host program adds parts of its own by [`HostBuilder::part`](crate::host::HostBuilder::part). They are started after their dependencies
/// and stopped before them, restarted when they end by themselves, within the host's restart budget, and shown in its tree, in its journal
/// and in its stop report like all others.
///
/// A part belongs to one host at a time. Until that host has ended, another host that receives the part, or another part at its address,
/// does not start ([`PartsError::InUse`]).
///
/// `examples/own_part` is an example.
#[must_use = "a part does nothing before it is given to a host"]
pub struct Part<M: Machine> {
    address: Address<M>,
    after: Vec<String>,
    stop_deadline: Duration,
    make: MakeOf,
}

impl<M: Machine> Clone for Part<M> {
    fn clone(&self) -> Self {
        Self {
            address: self.address.clone(),
            after: self.after.clone(),
            stop_deadline: self.stop_deadline,
            make: Arc::clone(&self.make),
        }
    }
}

impl<M: Machine> fmt::Debug for Part<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("name", &self.address.name())
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> Part<M> {
    /// A part at this vacant address, with its name. `start` is called for the first start and for each restart.
    pub fn new(
        address: &Address<M>,
        start: impl Fn(&Address<M>, &PartContext) -> Running + Send + Sync + 'static,
    ) -> Self {
        let start = Arc::new(start);
        Self::remembering(address, move |address, context| {
            let (start, address, context) = (Arc::clone(&start), address.clone(), context.clone());
            move || Ok(start(&address, &context))
        })
    }

    /// The same for an actor with state that survives restarts. `make` is called once for each host; its result is called for each start of
    /// the actor, and returns the reason if it cannot be started.
    pub fn remembering<L>(
        address: &Address<M>,
        make: impl Fn(&Address<M>, &PartContext) -> L + Send + Sync + 'static,
    ) -> Self
    where
        L: FnMut() -> Result<Running, String> + 'static,
    {
        let seen = address.clone();
        let make = move |spec: ChildSpec, context: &PartContext| {
            let mut start = make(&seen, context);
            Child::new(spec, move || std::future::ready(start())).seen_at(&seen)
        };
        Self { address: address.clone(), after: vec![], stop_deadline: STOP_DEADLINE, make: Arc::new(make) }
    }

    /// The same for an actor whose resources, such as processes, can outlive it. If the actor was killed, gave up or failed, and is not
    /// restarted, they are ended at its place in the stop order, and reported with it.
    pub fn leaving<L: PartLifecycle>(
        address: &Address<M>,
        make: impl Fn(&Address<M>, &PartContext) -> L + Send + Sync + 'static,
    ) -> Self {
        let seen = address.clone();
        let make = move |spec: ChildSpec, context: &PartContext| {
            let lives = Rc::new(RefCell::new(make(&seen, context)));
            let start = Rc::clone(&lives);
            Child::new(spec, move || std::future::ready(start.borrow_mut().start()))
                .seen_at(&seen)
                .leaving(move |mode| lives.borrow().end_rest(mode))
        };
        Self { address: address.clone(), after: vec![], stop_deadline: STOP_DEADLINE, make: Arc::new(make) }
    }

    /// This part is started when that part is ready, and has ended before that part is stopped. The host's database needs no such
    /// dependency: it is opened before all parts of a host program, and closed after them.
    pub fn after(mut self, part: impl Into<String>) -> Self {
        self.after.push(part.into());
        self
    }

    /// The part counts as started when it has answered this request: by then it has read its data. If it ends before, for example because
    /// its store is unreadable, the host does not start, and the error reports how it ended. A part without such a request counts as
    /// started at once.
    pub fn ready_when<Q: Message<M>>(self, question: impl Fn() -> Q + Send + Sync + 'static) -> Self {
        let (address, question) = (self.address.clone(), Arc::new(question));
        self.refined(move |child| {
            let (address, question) = (address.clone(), Arc::clone(&question));
            child.ready_when(move || {
                let answer = address.ask(question());
                async move { answer.await.map(drop).map_err(|error| error.to_string()) }
            })
        })
    }

    /// The nodes below the part in the tree are made of its answer to this request. If it does not answer in time, the tree shows that.
    pub fn described_by<Q: Message<M>>(
        self,
        question: impl Fn() -> Q + Send + Sync + 'static,
        below: impl Fn(Q::Reply) -> Vec<TreeNode> + Send + Sync + 'static,
    ) -> Self {
        let (address, describe) = (self.address.clone(), Arc::new((question, below)));
        self.refined(move |child| {
            let (address, describe) = (address.clone(), Arc::clone(&describe));
            child.described_by(move || {
                let (question, _) = &*describe;
                let (vitals, describe) = (address.vitals(), Arc::clone(&describe));
                let answer = tokio::time::timeout(DESCRIBE_DEADLINE, address.ask(question()));
                async move {
                    let (children, silence) = match answer.await {
                        Ok(Ok(reply)) => ((describe.1)(reply), None),
                        Ok(Err(error)) => (vec![], Some(error.to_string())),
                        Err(_) => (vec![], Some(format!("no answer within {DESCRIBE_DEADLINE:?}"))),
                    };
                    Some(ChildDescription { vitals, children, silence })
                }
            })
        })
    }

    /// The stop deadline of the part, if its machine does not report its own ([`Machine::stops_within`]). Five seconds by default; then it
    /// is killed.
    pub const fn stops_within(mut self, deadline: Duration) -> Self {
        self.stop_deadline = deadline;
        self
    }

    fn refined(self, refine: impl Fn(Child) -> Child + Send + Sync + 'static) -> Self {
        let make = Arc::clone(&self.make);
        Self { make: Arc::new(move |spec, context| refine(make(spec, context))), ..self }
    }
}

/// A part with any type of machine.
#[derive(Clone)]
pub(crate) struct AnyPart {
    pub(super) name: String,
    pub(super) after: Vec<String>,
    pub(super) make: Make,
    /// Reserves its address, if it has one.
    pub(super) reserve: Option<Reserve>,
}

impl AnyPart {
    /// Reserves its address for one host.
    pub(super) fn reserve(&self) -> Result<Option<Reservation>, PartsError> {
        let Some(reserve) = &self.reserve else { return Ok(None) };
        reserve().map(Some).ok_or_else(|| PartsError::InUse { part: self.name.clone() })
    }

    /// Its name.
    #[cfg(feature = "cli")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for AnyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyPart")
            .field("name", &self.name)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

impl<M: Machine> From<Part<M>> for AnyPart {
    fn from(part: Part<M>) -> Self {
        let Part { address, after, stop_deadline, make } = part;
        let name = address.name().to_owned();
        let spec = spec(&name, M::KIND, stop_deadline);
        let make: Make = Arc::new(move |context| make(spec.clone(), context));
        Self { name, after, make, reserve: Some(Arc::new(move || address.reserve())) }
    }
}

/// The supervisor's spec of a part. Only the part itself knows the grace periods of its children, so it may take as long to end as it
/// reports.
pub(super) fn spec(name: &str, kind: &str, stop_deadline: Duration) -> ChildSpec {
    ChildSpec {
        start_deadline: START_DEADLINE,
        stop_deadline,
        stop_longest: Duration::MAX,
        ..ChildSpec::new(name, kind)
    }
}
