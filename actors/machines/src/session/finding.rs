//! What a session makes of a process of its plugin that was found, and of there being none.

use super::calls::{Step, Trouble, TroubleKind};
use super::service::{Plugin, Service};
use super::state::{Session, Then};
use super::status::SessionHealth;
use crate::kernel::StepContext;
use crate::process::Launched;

/// Why a process is ended that was launched from another spec than the plugin has now.
const FOREIGN_SPEC: &str =
    "its process was found again, but it was started with another configuration; it is ended and replaced";

impl<S: Service> Session<S> {
    /// A process of it runs. It is gone on with, unless another one is to come in its place.
    pub(super) fn found<M: Plugin<S>>(&mut self, launched: &Launched, cx: &mut StepContext<M>) {
        let misfit = self.foreign_version(launched).or_else(|| self.foreign_spec(launched));
        if misfit.is_none() && !self.is_restart_due {
            return self.runs(launched, cx);
        }
        self.hold(launched, cx);
        if let Some(what) = misfit {
            self.troubles.add(cx.now(), &what);
            self.set_health(cx.moment(), SessionHealth::Unhealthy, what);
        }
        self.end_process(Then::Anew, cx);
    }

    /// Nothing of it runs: a process is launched, if one may be.
    pub(super) fn launch<M: Plugin<S>>(&mut self, cx: &mut StepContext<M>) {
        self.is_restart_due = false;
        match &self.config.not_launched {
            None => {
                self.status.launches += 1;
                self.advance(Step::Launch, cx);
            }
            Some(reason) => {
                let what = format!("no process of it runs, and none is launched: {reason}");
                self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx);
            }
        }
    }

    /// What is wrong with the version that a process was launched with, if this host does not speak it (PRC-08).
    fn foreign_version(&self, launched: &Launched) -> Option<String> {
        let offered = &self.config.process.handshake.as_ref()?.versions;
        let spoken = launched.handshake.as_ref()?.app_version;
        let list: Vec<String> = offered.iter().map(ToString::to_string).collect();
        (!offered.contains(&spoken)).then(|| {
            format!(
                "its process was found again, but it speaks version {spoken} of the protocol, and this host offers {}; it is \
                ended and replaced",
                list.join(", ")
            )
        })
    }

    /// What is wrong with the spec that a process was launched from, if it is not what would be launched now.
    fn foreign_spec(&self, launched: &Launched) -> Option<String> {
        let config = &self.config;
        // Of a plugin that is not launched no other process could come.
        let is_kept = config.adopts_any || config.not_launched.is_some();
        (!is_kept && !launched.is_of(&config.process)).then(|| FOREIGN_SPEC.to_owned())
    }
}
