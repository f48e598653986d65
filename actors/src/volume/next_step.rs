//! Makes the directories of the next step of a claim while the plugin works on the step before it.
//!
//! They are removed again if that step fails, or if the next call of the volume is another one. The ledger has the intent of the next step
//! already (V5), so that after a crash its undo removes them. When they are made, it is recorded what is at the path of the step.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use futures_util::future::join;

use super::calls::Admitted;
use super::{Failure, VolumeCall, VolumeKey};
use crate::csi::UnaryRequest;
use crate::mounts::Made;

/// A step of a claim, by the path that it sets up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextStep {
    /// It needs the directory itself (C125).
    Stage(PathBuf),
    /// It needs the directory above it (C136).
    Publish(PathBuf),
}

impl NextStep {
    /// The step that a call makes, if it needs directories.
    fn of(call: &VolumeCall) -> Option<Self> {
        match call {
            VolumeCall::Stage(_, _, args, ..) => Some(Self::Stage(args.staging_path.clone())),
            VolumeCall::Publish(_, _, args, _) => Some(Self::Publish(args.target_path.clone())),
            _ => None,
        }
    }

    const fn path(&self) -> &PathBuf {
        match self {
            Self::Stage(path) | Self::Publish(path) => path,
        }
    }
}

/// The step of each volume for which directories have been made, and whether they are new. Only the call that has the turn of the volume
/// asks.
#[derive(Debug, Clone, Default)]
pub(super) struct Prepared(Rc<RefCell<HashMap<VolumeKey, (NextStep, Made)>>>);

impl Prepared {
    fn take(&self, volume: &VolumeKey) -> Option<(NextStep, Made)> {
        self.0.borrow_mut().remove(volume)
    }

    fn keep(&self, volume: &VolumeKey, step: NextStep, made: Made) {
        self.0.borrow_mut().insert(volume.clone(), (step, made));
    }
}

impl Admitted {
    /// Sends a request, and meanwhile makes the directories of the next step.
    pub(super) async fn send_and_prepare<R: UnaryRequest>(
        &self,
        volume: &VolumeKey,
        request: &R,
        next: Option<NextStep>,
    ) -> Result<R::Answer, Failure> {
        let Some(next) = next else { return self.send(request).await };
        let (answer, made) = join(self.send(request), self.directories_for(volume, &next)).await;
        match (&answer, made) {
            (Ok(_), Ok(made)) => self.shared.prepared.keep(volume, next, made),
            (Err(_), Ok(made)) => self.remove_new(&next, made).await,
            // The next step tries it again, and reports the error.
            (_, Err(_)) => {}
        }
        answer
    }

    /// The directories of this step, which are made if they have not been made before.
    pub(super) async fn directories_for(&self, volume: &VolumeKey, step: &NextStep) -> Result<Made, Failure> {
        match self.shared.prepared.take(volume) {
            Some((prepared, made)) if prepared == *step => Ok(made),
            _ => match step {
                NextStep::Stage(path) => self.mounting.make_mount_point(path).await,
                NextStep::Publish(path) => self.mounting.make_parent(path).await,
            },
        }
    }

    /// Removes the directories of a step if this call does not need them.
    pub(super) async fn remove_unused(&self, call: &VolumeCall) {
        let Some(volume) = call.spec().map(|spec| &spec.key) else { return };
        let Some((step, made)) = self.shared.prepared.take(volume) else { return };
        if NextStep::of(call).as_ref() == Some(&step) {
            self.shared.prepared.keep(volume, step, made);
        } else {
            self.remove_new(&step, made).await;
        }
    }

    async fn remove_new(&self, step: &NextStep, made: Made) {
        if made == Made::New {
            self.mounting.remove(step.path()).await;
        }
    }
}
