//! Answers calls on volumes: one at a time for each volume, with its faults, and with its effect beside the other calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_actors::csi::Call;
use tonic::{Response, Status};

use super::serve::Plugin;
use super::volumes::Work;

/// The volumes, and other objects with an id, on which a call is in flight.
#[derive(Debug, Default)]
pub(super) struct InFlight(Arc<Mutex<HashSet<String>>>);

/// A call in flight on one object.
struct Turn {
    all: Arc<Mutex<HashSet<String>>>,
    key: String,
}

impl InFlight {
    /// Takes the turn of a volume. A host that sends a second call meanwhile has lost its state, or breaks a rule (C001, C003).
    fn take(&self, key: &str) -> Result<Turn, Status> {
        if !locked(&self.0).insert(key.to_owned()) {
            let problem = format!("another call on {key} is in flight; wait for its end and try again");
            return Err(Status::aborted(problem));
        }
        Ok(Turn { all: Arc::clone(&self.0), key: key.to_owned() })
    }
}

fn locked(all: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
    // No code panics while it holds this lock.
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Turn {
    fn drop(&mut self) {
        locked(&self.all).remove(&self.key);
    }
}

impl Plugin {
    /// Answers a call on a volume, snapshot or group, which the key names; other calls have no key. `is_claimed` is whether the plugin
    /// claims the capability for the call.
    ///
    /// It is executed to its end even if its caller gives up (C015).
    pub(super) async fn answer<T: Send + 'static>(
        &self,
        call: Call,
        is_claimed: bool,
        key: &str,
        effect: impl FnOnce(&Work<'_>) -> Result<T, Status> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let volumes = self.volumes.clone().filter(|_| is_claimed).ok_or_else(|| {
            let problem =
                format!("{call} is not supported; volumes need --volumes, and the capability of the call");
            Status::unimplemented(problem)
        })?;
        let turn = if key.is_empty() { None } else { Some(self.in_flight.take(key)?) };
        let plan = self.faults.plan(call);
        let carried_out = tokio::spawn(async move {
            let _turn = turn;
            plan.before().await?;
            let carried_out = tokio::task::spawn_blocking(move || {
                let answer = volumes.carry_out(&plan, effect);
                (answer, plan)
            });
            let (answer, plan) = carried_out
                .await
                .map_err(|error| Status::internal(format!("{call} ended early: {error}")))?;
            let answer = answer?;
            plan.after().await?;
            Ok(Response::new(answer))
        });
        carried_out.await.map_err(|error| Status::internal(format!("{call} ended early: {error}")))?
    }
}

/// Implements a service: for each call its name, request and response, its name in the specification, whether it is claimed, its subject,
/// and its effect; then the calls that have no effect.
macro_rules! service {
    (
        $service:ident for $plugin:ident {
            $($name:ident($request:ident) -> $response:ident {
                $call:ident if $is_claimed:expr, on |$it:ident| $key:expr, do $effect:path
            })*
        }
        $($rest:tt)*
    ) => {
        #[tonic::async_trait]
        impl $service for Plugin {
            $(async fn $name(
                &self,
                request: Request<wire::$request>,
            ) -> Result<Response<wire::$response>, Status> {
                let $plugin = self;
                let is_claimed = $is_claimed;
                let $it = request.into_inner();
                let key: String = $key;
                self.answer(Call::$call, is_claimed, &key, move |work| $effect(work, &$it)).await
            })*

            $($rest)*
        }
    };
}

pub(super) use service;
