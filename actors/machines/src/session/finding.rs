//! What a driver makes of a process of it that was found, and of there being none.

use super::DriverHealth;
use super::state::{Driver, StartStep, Then, Trouble, TroubleKind};
use crate::kernel::StepContext;
use crate::process::Launched;

/// Why a process is ended that was launched from another spec than the driver has now.
const FOREIGN_SPEC: &str = "its process was found again and was started with another configuration; it is ended, and another one \
                            comes in its place";

impl Driver {
    /// A process of it runs. It is gone on with, unless another one is to come in its place.
    pub(super) fn found(&mut self, launched: &Launched, cx: &mut StepContext<Self>) {
        let misfit = self.foreign_version(launched).or_else(|| self.foreign_spec(launched));
        if misfit.is_none() && !self.is_restart_due {
            return self.runs(launched, cx);
        }
        self.hold(launched, cx);
        if let Some(what) = misfit {
            self.troubles.add(cx.now(), &what);
            self.set_health(cx.moment(), DriverHealth::Unhealthy, what);
        }
        self.end_process(Then::Anew, cx);
    }

    /// Nothing of it runs: a process is launched, if one may be.
    pub(super) fn launch(&mut self, cx: &mut StepContext<Self>) {
        self.is_restart_due = false;
        match &self.config.spec.not_launched {
            None => {
                self.report.launches += 1;
                self.advance(StartStep::Launch, cx);
            }
            Some(reason) => {
                let what = format!("no process of it runs, and none is launched: {reason}");
                self.failed(&Trouble { kind: TroubleKind::Answered, what }, cx);
            }
        }
    }

    /// What is wrong with the version that a process was launched with, if this host does not speak it (PRC-08).
    fn foreign_version(&self, launched: &Launched) -> Option<String> {
        let offered = &self.config.spec.process.handshake.as_ref()?.versions;
        let spoken = launched.handshake.as_ref()?.app_version;
        let list: Vec<String> = offered.iter().map(ToString::to_string).collect();
        (!offered.contains(&spoken)).then(|| {
            format!(
                "its process was found again and speaks version {spoken} of the protocol, and this host offers {}; it is \
                 ended, and another one comes in its place",
                list.join(", ")
            )
        })
    }

    /// What is wrong with the spec that a process was launched from, if it is not what would be launched now.
    fn foreign_spec(&self, launched: &Launched) -> Option<String> {
        let spec = &self.config.spec;
        // Of a driver that is not launched no other process could come.
        let is_kept = spec.adopts_any || spec.not_launched.is_some();
        (!is_kept && !launched.is_of(&spec.launched_process())).then(|| FOREIGN_SPEC.to_owned())
    }
}
