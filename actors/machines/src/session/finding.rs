//! Decides how a session continues when a process of its plugin was found, or none.

use super::calls::{Step, Trouble, TroubleKind};
use super::service::{Plugin, Service};
use super::state::{Session, Then};
use super::status::SessionHealth;
use crate::kernel::StepContext;
use crate::process::Launched;

/// The reason for ending a process that was launched from another spec than the plugin's present one.
const FOREIGN_SPEC: &str =
    "its process was found again, but it was started with another configuration; it is ended and replaced";

impl<S: Service> Session<S> {
    /// One of its processes runs. The session continues with it, unless another process must replace it.
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

    /// None of its processes runs: a process is launched, if that is allowed.
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

    /// The problem of the protocol version that a process was launched with, if this host does not support it (PRC-08).
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

    /// The problem of the spec that a process was launched from, if it is not the spec that would be launched now.
    fn foreign_spec(&self, launched: &Launched) -> Option<String> {
        let config = &self.config;
        // For a plugin that is not launched no other process could be started.
        let is_kept = config.adopts_any || config.not_launched.is_some();
        (!is_kept && !launched.is_of(&config.process)).then(|| FOREIGN_SPEC.to_owned())
    }
}
