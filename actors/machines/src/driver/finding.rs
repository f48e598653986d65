//! What a driver makes of a process of it that was found, and of there being none.

use super::DriverHealth;
use super::state::{Driver, Link, StartStep, Then, Trouble, TroubleKind};
use crate::kernel::StepContext;
use crate::process::Launched;

impl Driver {
    /// Nothing of it runs: a process is launched, if one may be.
    pub(super) fn launch(&mut self, cx: &mut StepContext<Self>) {
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
    pub(super) fn foreign_version(&self, launched: &Launched) -> Option<String> {
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

    /// Ends a process that is ours and cannot be spoken to, and brings another one.
    pub(super) fn replace(&mut self, launched: &Launched, what: String, cx: &mut StepContext<Self>) {
        self.process = Some(launched.clone());
        self.report.pid = Some(launched.pid);
        self.link = Link::Down;
        self.await_end(cx);
        self.troubles.add(cx.now(), &what);
        self.set_health(cx.moment(), DriverHealth::Unhealthy, what);
        self.end_process(Then::Anew, cx);
    }
}
