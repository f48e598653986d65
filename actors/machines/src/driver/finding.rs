//! What a driver makes of a process of it that was found, and of there being none.

use super::DriverHealth;
use super::state::{Driver, Link, StartStep, Then, Trouble, TroubleKind};
use crate::kernel::Effects;
use crate::process::Launched;
use crate::vocabulary::Moment;

impl Driver {
    /// Nothing of it runs: a process is launched, if one may be.
    pub(super) fn launch(&mut self, moment: Moment, effects: &mut Effects<Self>) {
        match &self.config.spec.not_launched {
            None => {
                self.report.launches += 1;
                self.advance(StartStep::Launch, effects);
            }
            Some(reason) => {
                let what = format!("no process of it runs, and none is launched: {reason}");
                self.failed(moment, &Trouble { kind: TroubleKind::Answered, what }, effects);
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
    pub(super) fn replace(
        &mut self,
        moment: Moment,
        launched: &Launched,
        what: String,
        effects: &mut Effects<Self>,
    ) {
        self.process = Some(launched.clone());
        self.report.pid = Some(launched.pid);
        self.link = Link::Down;
        self.await_end(effects);
        self.troubles.add(moment.now, &what);
        self.set_health(moment, DriverHealth::Unhealthy, what);
        self.end_process(moment, Then::Anew, effects);
    }
}
