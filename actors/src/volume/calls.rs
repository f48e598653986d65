//! Makes one CSI call of a volume, from its admission to its outcome.
//!
//! ```text
//!  turns of all objects of the call, also of its volume ─► secrets
//!       │ not in time, or refused: not made
//!       ▼
//!  directories ─► permit for the half of the plugin ─► call to the generation ─► look ─► directories of ours removed
//!                       │ not in time: not made                 └─► directories of the next step
//! ```
//!
//! Before the call goes to the plugin at most half of its time passes. After the secrets the work continues even if its actor ends. The
//! permit is held for the call alone: a mount of one volume that hangs takes no permit of its plugin's other volumes (V9).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::bulkhead::Permit;
use super::mounting::Mounting;
use super::next_step::NextStep;
use super::plugins::not_made;
use super::shared::Shared;
use super::{
    AttachArgs, Before, CreateArgs, Failure, PublishArgs, Seen, StageArgs, Turn, VolumeCall, VolumeOptions,
    VolumeOutcome, VolumeSpec,
};
use crate::csi::{
    Call, Client, Code, Context, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest,
    DeleteVolumeRequest, FailedCall, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, Secrets, Service, UnaryRequest, UnpublishFrom,
};
use crate::pauses;
use crate::vocabulary::{Generation, PluginKey, PluginType};

/// The time that a call waits for the turns of objects other than its volume. After that it fails, and is retried with backoff.
const OTHERS_WITHIN: Duration = Duration::from_millis(200);

/// The time of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    began: Instant,
    /// The time after which its outcome is ignored.
    whole: Duration,
    /// The time that is reserved for the look after it.
    look: Duration,
}

impl Clock {
    fn start(options: &VolumeOptions) -> Self {
        Self { began: Instant::now(), whole: options.call_deadline, look: options.look_deadline }
    }

    /// The remaining time for admission: at most half of the time, so that the plugin has the other half.
    fn for_admission(&self) -> Duration {
        (self.whole / 2).saturating_sub(self.began.elapsed())
    }

    /// The remaining time for the plugin.
    pub(super) fn for_the_call(&self) -> Duration {
        self.whole.saturating_sub(self.look).saturating_sub(self.began.elapsed())
    }
}

/// A call that may be made now. Other calls with the same turns wait until this is dropped (V2).
pub(super) struct Admitted {
    pub(super) shared: Shared,
    half: PluginKey,
    generation: Generation,
    pub(super) secrets: Secrets,
    pub(super) clock: Clock,
    pub(super) mounting: Mounting,
    _turns: Vec<Permit<Turn>>,
}

/// Makes a call that goes to the plugin. Once it is admitted it continues when this future is dropped: the plugin still works on an aborted
/// call, so that aborting it would let two calls be in flight (V2).
pub(super) async fn make(shared: Shared, options: VolumeOptions, call: VolumeCall) -> VolumeOutcome {
    match admit(&shared, &options, &call).await {
        Ok(admitted) => uncut(admitted.make(call)).await,
        Err(failure) => refused(&call, failure),
    }
}

/// Runs a future to its end, even if this one is dropped before.
async fn uncut<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    match actix_rt::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The outcome of a call that is not made.
fn refused(call: &VolumeCall, failure: Failure) -> VolumeOutcome {
    match call {
        VolumeCall::Create(..) => VolumeOutcome::Created(Err(failure)),
        VolumeCall::Order(..) => VolumeOutcome::Ordered(Err(failure)),
        VolumeCall::Delete(..) | VolumeCall::Attach(..) | VolumeCall::Detach(..) => {
            VolumeOutcome::Controller(Err(failure))
        }
        VolumeCall::Stage(..)
        | VolumeCall::Unstage(..)
        | VolumeCall::Publish(..)
        | VolumeCall::Unpublish(..) => {
            let seen = Seen::Unclear(failure.reason.clone());
            VolumeOutcome::Node(Err(failure), seen)
        }
        VolumeCall::ReadRoute | VolumeCall::Look { .. } | VolumeCall::AwaitAudits(_) => {
            VolumeOutcome::Looked(Seen::Unclear(failure.reason))
        }
    }
}

// === Admission ===

/// The destination of a call.
struct Addressee<'a> {
    spec: &'a VolumeSpec,
    half: PluginKey,
    generation: Generation,
    call: Call,
}

fn addressee(call: &VolumeCall) -> Option<Addressee<'_>> {
    let (spec, generation, csi) = (call.spec()?, call.generation()?, call.csi()?);
    let plugin_type = match csi.service() {
        Service::Node => PluginType::CsiNode,
        _ => PluginType::CsiController,
    };
    let half = PluginKey::new(plugin_type, spec.plugin.clone());
    Some(Addressee { spec, half, generation, call: csi })
}

async fn admit(shared: &Shared, options: &VolumeOptions, call: &VolumeCall) -> Result<Admitted, Failure> {
    let clock = Clock::start(options);
    let turns = call.turns();
    let Addressee { spec, half, generation, call } =
        addressee(call).ok_or_else(|| not_made("it is no call to a plugin"))?;
    let turns = take_turns(shared, clock, spec, turns).await?;
    let secrets = match takes_secrets(call) {
        true => {
            let secrets = in_time(clock, "its secrets", shared.secrets_of(&spec.key, call)).await?;
            secrets.map_err(|reason| not_made(format!("cannot read its secrets: {reason}")))?
        }
        false => Secrets::none(),
    };
    let (shared, mounting) = (shared.clone(), Mounting::new(shared));
    Ok(Admitted { shared, half, generation, secrets, clock, mounting, _turns: turns })
}

/// Waits for the turn of its volume, and takes the other turns if they are free by then or soon after: during the wait nothing else is done
/// for its volume, so another volume that hangs must not delay it for long (V9).
async fn take_turns(
    shared: &Shared,
    clock: Clock,
    spec: &VolumeSpec,
    mut turns: BTreeSet<Turn>,
) -> Result<Vec<Permit<Turn>>, Failure> {
    let own = Turn::Volume(spec.key.clone());
    turns.remove(&own);
    let own = in_time(clock, "an earlier call on the same", shared.turns.enter(&own)).await?;
    let others = pauses::within(OTHERS_WITHIN, shared.turns.enter_all(&turns)).await;
    let mut taken =
        others.map_err(|_| waited(clock, "an earlier call on another volume or a snapshot of it"))?;
    taken.push(own);
    Ok(taken)
}

/// Waits for one step of the admission.
async fn in_time<T>(clock: Clock, what: &str, step: impl Future<Output = T>) -> Result<T, Failure> {
    pauses::within(clock.for_admission(), step).await.map_err(|_| waited(clock, what))
}

fn waited(clock: Clock, what: &str) -> Failure {
    not_made(format!("it waited for {what} for {:?}; retrying", clock.began.elapsed()))
}

/// Whether a request has a field for secrets. The undo calls at the node have none.
const fn takes_secrets(call: Call) -> bool {
    !matches!(call, Call::NodeUnstageVolume | Call::NodeUnpublishVolume)
}

// === The call ===

impl Admitted {
    async fn make(self, call: VolumeCall) -> VolumeOutcome {
        self.remove_unused(&call).await;
        match call {
            VolumeCall::Create(spec, _, args) => VolumeOutcome::Created(self.create(&spec, &args).await),
            VolumeCall::Delete(spec, _) => VolumeOutcome::Controller(self.delete(&spec).await),
            VolumeCall::Attach(spec, _, args, next) => {
                VolumeOutcome::Controller(self.attach(&spec, args, next).await)
            }
            VolumeCall::Detach(spec, _, args) => VolumeOutcome::Controller(self.detach(&spec, args).await),
            VolumeCall::Stage(spec, _, args, before, next) => {
                node(self.stage(&spec, args, before, next).await)
            }
            VolumeCall::Unstage(spec, _, args) => node(self.unstage(&spec, &args).await),
            VolumeCall::Publish(spec, _, args, before) => node(self.publish(&spec, args, before).await),
            VolumeCall::Unpublish(spec, _, path) => node(self.unpublish(&spec, &path).await),
            VolumeCall::Order(spec, _, call) => VolumeOutcome::Ordered(self.order(&spec, call).await),
            VolumeCall::ReadRoute | VolumeCall::Look { .. } | VolumeCall::AwaitAudits(_) => {
                refused(&call, not_made("it is no call to a plugin"))
            }
        }
    }

    /// Sends a request when its half of the plugin is below its limit of calls in flight, with the remaining time.
    pub(super) async fn send<R: UnaryRequest>(&self, request: &R) -> Result<R::Answer, Failure> {
        self.try_send(request).await.map_err(|(_, failure)| failure)
    }

    /// [`send`](Self::send), with the status code if the plugin answered a failure.
    pub(super) async fn try_send<R: UnaryRequest>(
        &self,
        request: &R,
    ) -> Result<R::Answer, (Option<Code>, Failure)> {
        let (client, _permit) = self.client().await.map_err(|failure| (None, failure))?;
        let left = self.clock.for_the_call();
        if left.is_zero() {
            let Clock { began, whole, look } = self.clock;
            let reason = format!(
                "of its deadline of {whole:?}, {look:?} are reserved for the check after it, and {:?} had passed before it; retrying",
                began.elapsed()
            );
            return Err((None, not_made(reason)));
        }
        let answer = client.call(request, left).await;
        answer.map_err(|failed: FailedCall| (failed.code(), Failure::from(&failed)))
    }

    /// A client of its half of the plugin, when that is below its limit of calls in flight; the permit is for one call.
    pub(super) async fn client(&self) -> Result<(Client, Permit<PluginKey>), Failure> {
        let Self { shared, half, generation, clock, .. } = self;
        let permit = in_time(*clock, "other calls of its plugin", shared.halves.enter(half)).await?;
        let client = shared.plugins.client(half.clone(), *generation);
        Ok((in_time(*clock, "a client of its plugin", client).await??, permit))
    }

    async fn create(self, spec: &VolumeSpec, args: &CreateArgs) -> Result<crate::csi::Volume, Failure> {
        self.check_size(spec, args).await?;
        self.send(&args.request(self.secrets.clone())).await
    }

    async fn delete(self, spec: &VolumeSpec) -> Result<Context, Failure> {
        let secrets = self.secrets.clone();
        let request = DeleteVolumeRequest { volume_id: spec.volume_id.clone(), secrets };
        self.send(&request).await.map(|()| Context::new())
    }

    async fn attach(
        self,
        spec: &VolumeSpec,
        args: AttachArgs,
        next: Option<PathBuf>,
    ) -> Result<Context, Failure> {
        let request = ControllerPublishVolumeRequest {
            volume_id: spec.volume_id.clone(),
            node_id: args.node_id,
            volume_capability: args.capability,
            // Claims that write and claims that only read share it; each of them sets this when it is published.
            readonly: false,
            secrets: self.secrets.clone(),
            volume_context: spec.volume_context.clone(),
        };
        self.send_and_prepare(&spec.key, &request, next.map(NextStep::Stage)).await
    }

    async fn detach(self, spec: &VolumeSpec, args: AttachArgs) -> Result<Context, Failure> {
        let request = ControllerUnpublishVolumeRequest {
            volume_id: spec.volume_id.clone(),
            from: UnpublishFrom::Node(args.node_id),
            secrets: self.secrets.clone(),
        };
        self.send(&request).await.map(|()| Context::new())
    }

    async fn stage(
        self,
        spec: &VolumeSpec,
        args: StageArgs,
        before: Before,
        next: Option<PathBuf>,
    ) -> Result<NodeResult, Failure> {
        let StageArgs { staging_path, publish_context, capability } = args;
        let staging_target_path = text(&staging_path)?;
        let made = self.directories_for(&spec.key, &NextStep::Stage(staging_path.clone())).await?;
        before.admit(&staging_path, made)?;
        let request = NodeStageVolumeRequest {
            volume_id: spec.volume_id.clone(),
            publish_context,
            staging_target_path,
            volume_capability: capability,
            secrets: self.secrets.clone(),
            volume_context: spec.volume_context.clone(),
        };
        let result = self.send_and_prepare(&spec.key, &request, next.map(NextStep::Publish)).await;
        Ok(self.mounting.after_set_up((&staging_path, None), made, result).await)
    }

    async fn unstage(self, spec: &VolumeSpec, args: &StageArgs) -> Result<NodeResult, Failure> {
        let staging_target_path = text(&args.staging_path)?;
        self.mounting.check(&args.staging_path).await?;
        let request = NodeUnstageVolumeRequest { volume_id: spec.volume_id.clone(), staging_target_path };
        let result = self.try_send(&request).await;
        Ok(self.mounting.after_undo(&args.staging_path, result).await)
    }

    async fn publish(
        self,
        spec: &VolumeSpec,
        args: PublishArgs,
        before: Before,
    ) -> Result<NodeResult, Failure> {
        let PublishArgs { target_path, staging_path, publish_context, usage } = args;
        let target = text(&target_path)?;
        let staging_target_path = staging_path.as_deref().map(text).transpose()?;
        let made = self.directories_for(&spec.key, &NextStep::Publish(target_path.clone())).await?;
        before.admit(&target_path, made)?;
        let request = NodePublishVolumeRequest {
            volume_id: spec.volume_id.clone(),
            publish_context,
            staging_target_path,
            target_path: target,
            volume_capability: usage.capability,
            readonly: usage.read_only,
            secrets: self.secrets.clone(),
            volume_context: spec.volume_context.clone(),
        };
        let result = self.send(&request).await;
        let target = (&*target_path, staging_path.as_deref());
        match self.mounting.after_set_up(target, made, result).await {
            (Ok(()), Seen::Nothing) => {
                let left = self.clock.for_the_call();
                Ok((Ok(()), self.mounting.look_for_late_mount(target, left).await))
            }
            result => Ok(result),
        }
    }

    async fn unpublish(self, spec: &VolumeSpec, path: &Path) -> Result<NodeResult, Failure> {
        let target_path = text(path)?;
        self.mounting.check(path).await?;
        let request = NodeUnpublishVolumeRequest { volume_id: spec.volume_id.clone(), target_path };
        let result = self.try_send(&request).await;
        Ok(self.mounting.after_undo(path, result).await)
    }
}

/// The result of a call to the node service, and the observation of the kernel after it.
pub(super) type NodeResult = (Result<(), Failure>, Seen);

/// The outcome of a call to the node service; after a call that was not made there is no look.
fn node(came: Result<NodeResult, Failure>) -> VolumeOutcome {
    let (result, seen) = came.unwrap_or_else(|failure| {
        let seen = Seen::Unclear(failure.reason.clone());
        (Err(failure), seen)
    });
    VolumeOutcome::Node(result, seen)
}

/// A path as text for a request.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        not_made(format!("the path {} is not UTF-8, and a request can only carry UTF-8", path.display()))
    })
}
