//! Checks the effects of an allocation's supervisor against its inputs.

use callboard_actors::allocation::{
    Allocation, AllocationAnswer, AllocationCall, AllocationNews, AllocationOutcome, AllocationPhase,
    AllocationStatus, AllocationStopped, PrepareError, RestartWhen, Task, TaskContext, TaskEventKind,
};
use callboard_actors::csi::Rpc;
use callboard_actors::registry::Register;
use callboard_actors::shell::{Effect, Input};
use callboard_actors::vocabulary::{Attempt, Health, Moment, Timestamp};

use super::super::law::Law;
use super::laws::{AllocationLaws, Entry};

impl AllocationLaws {
    pub(super) fn did(&mut self, moment: Moment, input: &Input<Allocation>, effect: &Effect<Allocation>) {
        match effect {
            Effect::Call { key, call, .. } => self.called(moment, key.attempt, call),
            Effect::Reply(_, AllocationAnswer::MakeReady(made)) => self.prepared(input, made),
            Effect::Reply(_, AllocationAnswer::StopSupervision(report)) => self.signed_off(report),
            Effect::Publish(AllocationNews::Changed(status)) => self.shows(status),
            Effect::Publish(AllocationNews::Task(event)) => self.told_of(moment, event.kind, &event.message),
            Effect::Publish(AllocationNews::RestartRequested { reason }) => self.restarts(moment, reason),
            Effect::Stop(_) => self.ends(),
            Effect::Reply(..) | Effect::StartTimer(..) | Effect::CancelTimer(_) => {}
            Effect::Persist(_, never) => match *never {},
        }
    }

    fn violation(&mut self, law: Law, what: &str) {
        self.verdict.violation(law, || what.to_owned());
    }

    /// A plugin that is not ready before its timeout is reported.
    pub(super) fn check_time(&mut self, moment: Moment) {
        let is_waited_for = self.is_looked_after() && self.course.identity.is_none();
        if is_waited_for && moment.now > self.ready_until() {
            self.violation(Law::A2, "the time of the plugin is over, and its owner is not notified");
        }
        if self.is_unhealthy_for_too_long(moment) {
            self.violation(
                Law::A2,
                "the plugin has been unhealthy for too long, and no restart is asked for",
            );
        }
    }

    /// A notification of its instance is followed by a question at once, or when the question in flight is answered.
    pub(super) fn check_news(&mut self, is_late: impl Fn(Timestamp) -> bool) {
        let asks = self.questions.values().any(|start| *start == self.starts);
        if self.course.question_due.is_some_and(is_late) && self.has_rounds() && !asks {
            self.violation(Law::A3, "its instance has news, and it is not asked");
        }
    }

    // === Its calls ===

    fn called(&mut self, moment: Moment, attempt: Attempt, call: &AllocationCall) {
        match call {
            AllocationCall::MakeDirectories(_) => {
                if !self.is_in_service() {
                    self.violation(Law::A4, "directories are made on the way out");
                }
                self.making = Some(attempt);
            }
            AllocationCall::FindSocket | AllocationCall::Ask(_) | AllocationCall::AskHealth => {
                self.asks(call);
                self.questions.insert(attempt, self.starts);
            }
            AllocationCall::Register(message) => self.registers(attempt, message),
            AllocationCall::Deregister(_) => self.deregisters(attempt),
            AllocationCall::AwaitRetired => self.awaits_calls(attempt),
            AllocationCall::RemoveDirectory => self.removes(moment, attempt),
        }
    }

    fn asks(&mut self, call: &AllocationCall) {
        if !self.is_in_service() {
            return self.violation(Law::A4, "something is asked of the plugin on the way out");
        }
        if !self.is_looked_after() {
            return self
                .violation(Law::A2, "something is asked of a plugin that does not run, or was given up");
        }
        if self.questions.values().any(|start| *start == self.starts) {
            return self.violation(Law::A3, "two questions are under way at once");
        }
        let is_ready = self.course.identity.is_some();
        let is_due = match call {
            AllocationCall::Ask(Rpc::Probe) => !is_ready || std::mem::take(&mut self.course.is_unwatched),
            AllocationCall::Ask(_) => !is_ready && self.course.says_ready,
            AllocationCall::AskHealth => {
                self.course.asks_for_news = self.course.question_due.take().is_some();
                is_ready
            }
            _ => !is_ready,
        };
        if !is_due {
            self.verdict.violation(Law::A3, || format!("{call:?} is asked, and it is not the time for that"));
        }
    }

    fn registers(&mut self, attempt: Attempt, message: &Register) {
        let version = self.course.identity.as_ref().map(|identity| identity.version.clone());
        if !self.is_in_service() {
            self.violation(Law::A4, "a plugin is registered on the way out");
        }
        if !self.is_looked_after() || version.is_none() || message.version != version {
            self.violation(Law::A3, "a plugin is registered that is not ready since its present start");
        }
        if message.plugins != self.config.spec.plugins() {
            self.violation(Law::A3, "a monolith is registered in part");
        }
        if self.entry == Entry::In(version) {
            self.violation(Law::A3, "a plugin is registered twice");
        }
        self.sends(attempt);
    }

    fn deregisters(&mut self, attempt: Attempt) {
        if self.entry == Entry::Out {
            self.violation(Law::A4, "what was deregistered is deregistered again");
        }
        if self.task == Task::NotStarted && self.is_in_service() {
            self.violation(Law::A3, "what an earlier run left is not left alone");
        }
        if self.is_looked_after() && self.course.identity.is_some() {
            self.violation(Law::A3, "a plugin that is ready is deregistered");
        }
        self.sends(attempt);
    }

    fn sends(&mut self, attempt: Attempt) {
        if self.message.replace(attempt).is_some() {
            self.violation(Law::A3, "two messages to the registry are under way at once");
        }
        self.entry = Entry::Unknown;
    }

    fn awaits_calls(&mut self, attempt: Attempt) {
        match &mut self.way_out {
            Some(way_out) if self.entry == Entry::Out && way_out.removing.is_none() => {
                way_out.waiting = Some(attempt);
            }
            Some(_) | None => {
                self.violation(Law::A4, "the end of calls is waited for before it is deregistered")
            }
        }
    }

    fn removes(&mut self, moment: Moment, attempt: Attempt) {
        let timeout = self.config.options.stop_deadline;
        let is_out = self.entry == Entry::Out;
        let Some(way_out) = &mut self.way_out else {
            return self.violation(Law::A4, "the files of one that does not leave are removed");
        };
        let is_in_order = is_out && way_out.are_calls_over;
        way_out.owes_remark |= !is_in_order;
        let may = is_in_order || way_out.is_stop_deadline_passed(moment, timeout);
        if way_out.removing.replace(attempt).is_some() {
            self.violation(Law::A4, "files are removed twice");
        }
        if !may {
            self.violation(Law::A4, "files are removed before it is deregistered and calls have ended");
        }
    }

    // === Its answers ===

    fn prepared(&mut self, input: &Input<Allocation>, made: &Result<TaskContext, PrepareError>) {
        let Ok(context) = made else { return };
        let Input::Returned { key, outcome: Ok(AllocationOutcome::Made(Ok(()))), .. } = input else {
            return self.violation(Law::A1, "a task is prepared before its directories are made");
        };
        if self.making != Some(key.attempt) {
            self.violation(Law::A1, "a task is prepared by what an earlier question made");
        }
        if *context != self.config.plan.context {
            self.violation(Law::A1, "another start of the task is told something else");
        }
    }

    fn signed_off(&mut self, report: &AllocationStopped) {
        let Some(way_out) = self.way_out.as_ref().filter(|way| way.is_removed) else {
            return self.violation(Law::A4, "it is called stopped before its files are removed");
        };
        let is_honest = report.deregistered == way_out.was_registered;
        if !is_honest || way_out.owes_remark && report.remarks.is_empty() {
            self.verdict.violation(Law::A4, || format!("the report does not say how it was: {report:?}"));
        }
    }

    fn ends(&mut self) {
        let is_done = match &self.way_out {
            Some(way_out) => way_out.is_removed && (way_out.is_last || self.entry == Entry::Out),
            None => false,
        };
        if !self.is_detached && !is_done {
            self.violation(Law::A4, "it ends before everything is put away");
        }
    }

    // === Its notifications ===

    fn shows(&mut self, status: &AllocationStatus) {
        let is_registered = matches!(self.entry, Entry::In(_));
        self.shown = Some(status.phase);
        if status.phase == AllocationPhase::Registered && !(is_registered && self.is_looked_after()) {
            self.violation(Law::A3, "it is shown as registered, and is not");
        }
        if status.health == Health::Gone && is_registered {
            self.violation(Law::A4, "the end of a task is published, and it is not deregistered");
        }
    }

    fn told_of(&mut self, moment: Moment, kind: TaskEventKind, message: &str) {
        match kind {
            TaskEventKind::Healthy | TaskEventKind::Unhealthy => {
                if self.course.told.replace(kind) == Some(kind) {
                    self.violation(Law::A3, "the same health is told twice");
                }
                if self.course.identity.is_none() || !self.is_looked_after() {
                    self.violation(Law::A3, "the health is told of one that is not registered");
                }
            }
            TaskEventKind::NotReadyInTime => self.must_name_cause(message),
            TaskEventKind::SocketRefused => {
                let timeout = self.config.options.denial_timeout;
                if self.course.denied_since.is_none_or(|since| moment.now.since(since) < timeout) {
                    self.violation(Law::A2, "a socket is called refused that was not, or not for long");
                }
                self.must_name_cause(message);
                self.course.is_given_up = true;
            }
            // The remarks are checked in the report.
            TaskEventKind::StoppedWithRemarks => {}
        }
    }

    /// Whether it was ready, is found unhealthy in this step, and has been unhealthy for the permitted time.
    fn is_unhealthy_for_too_long(&self, moment: Moment) -> bool {
        let RestartWhen::UnhealthyFor(time) = self.config.spec.restart_when else { return false };
        let is_over = |since: Timestamp| moment.now.since(since) >= time;
        self.is_looked_after() && self.course.is_unwell && self.course.unhealthy_since.is_some_and(is_over)
    }

    fn must_name_cause(&mut self, message: &str) {
        if self.course.cause.as_ref().is_some_and(|cause| !message.contains(cause)) {
            let cause = self.course.cause.clone();
            self.verdict.violation(Law::A2, || format!("{message:?} does not name the cause, {cause:?}"));
        }
    }

    fn restarts(&mut self, moment: Moment, reason: &str) {
        if self.is_unhealthy_for_too_long(moment) {
            self.course.unhealthy_since = Some(moment.now);
            return;
        }
        if !self.is_looked_after() || self.course.identity.is_some() {
            self.violation(Law::A2, "a restart is requested that is not needed, or a second time");
        }
        if moment.now != self.ready_until() {
            self.violation(Law::A2, "a restart is asked for before the time is up, or too late");
        }
        self.must_name_cause(reason);
        self.course.is_given_up = true;
    }
}
