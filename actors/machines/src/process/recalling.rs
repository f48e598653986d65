//! Decides about a process of an earlier host run: adopt it, end it, or leave a foreign one alone (PRC-01, PRC-09, RES-07).

use std::time::Duration;

use super::behaviour::{CLEAR_DEADLINE, SHORT};
use super::ending::EndedBy;
use super::identity::{Findings, Seen, Verdict, judge, ours};
use super::spec::Lifetime;
use super::state::{Phase, Process, ProcessCall, Why};
use crate::kernel::StepContext;

impl Process {
    pub(super) fn found(&mut self, found: &Result<Findings, String>, cx: &mut StepContext<Self>) {
        if !matches!(self.phase, Phase::Recalled { .. }) {
            return;
        }
        let findings = match found {
            Ok(findings) => findings,
            Err(reason) => {
                // A process that cannot be inspected is not touched; the owner of this actor retries.
                cx.fail(format!("cannot look for process {}: {reason}", self.record.name));
                return;
            }
        };
        let Some(identity) = &self.record.identity else {
            let why = left("the host died while it was being launched");
            return self.end_left(why, ours(self.record.tag, None, findings), cx);
        };
        let proven = ours(self.record.tag, Some(identity), findings);
        match judge(self.record.tag, identity, findings) {
            Verdict::Proven if self.is_adoptable(findings) => self.call(SHORT, ProcessCall::Adopt, cx),
            Verdict::Proven => {
                let why = match self.record.lifetime {
                    Lifetime::Bound => left("it was bound to a host that died"),
                    Lifetime::Surviving => left("the host died before it was ready"),
                };
                self.end_left(why, findings.at_pid.iter().cloned().collect(), cx);
            }
            Verdict::Ended => self.end_left(left("it ended while no host was there"), proven, cx),
            Verdict::NotProven(reason) => self.end_left(Why::NotProven(reason), proven, cx),
        }
    }

    /// A child of this same host process is always taken back, to be ended or not: only its parent can reap it.
    fn is_adoptable(&self, findings: &Findings) -> bool {
        findings.is_child || (self.record.lifetime == Lifetime::Surviving && self.record.is_ready)
    }

    pub(super) fn adopted(&mut self, adopted: &Result<bool, String>, cx: &mut StepContext<Self>) {
        let Phase::Recalled { end } = self.phase else { return };
        let (is_running, identity) = match (adopted, self.record.identity.clone()) {
            (Ok(is_running), Some(identity)) => (*is_running, identity),
            // It ended between check and adoption (race), or the system gave no file descriptor: the owner searches again.
            (Ok(_), None) | (Err(_), _) => {
                let reason = adopted.as_ref().err().cloned().unwrap_or_default();
                cx.fail(format!("cannot adopt process {}: {reason}", self.record.name));
                return;
            }
        };
        self.attach(cx);
        if !is_running {
            // The kernel reports its exit next.
            self.phase = Phase::Spawned;
            return;
        }
        if !self.record.is_ready {
            self.phase = Phase::Spawned;
            let why = left("its launch was given up before it was ready");
            return self.terminate(why, Duration::ZERO, cx);
        }
        self.ready(identity, self.record.handshake.clone(), true, cx);
        if let Some(grace) = end {
            self.terminate(Why::Asked, grace, cx);
        }
    }

    /// Ends the processes that are proven to be ours, reads the unread output, and finishes.
    fn end_left(&mut self, why: Why, proven: Vec<Seen>, cx: &mut StepContext<Self>) {
        if !proven.is_empty() {
            self.by = EndedBy::Force;
        }
        self.phase = Phase::EndingLeft { why, proven: proven.clone() };
        self.call(CLEAR_DEADLINE, ProcessCall::EndLeft(proven), cx);
    }
}

fn left(state: &str) -> Why {
    Why::Left(state.to_owned())
}
