//! Checks the registry while its disk is sick (SHELL-1A).

use std::collections::BTreeSet;

use callboard_actors::registry::Registry;

use super::super::law::Law;
use super::super::stand_in::{Left, Refusal};
use super::world::RegistryWorld;

impl RegistryWorld {
    /// While its disk is sick no caller waits for a promise or for an answer, no identity check is delayed, and the registry ends when it
    /// is requested to.
    pub(super) fn look_at_the_sick_disk(&mut self) {
        for of_them in [&mut self.promises, &mut self.questions] {
            of_them.retain(|asker| self.unanswered.contains(asker));
        }
        if !self.registry.is_sick() {
            return;
        }
        if self.registry.machine().is_none() {
            let is_on_its_way = self.registry.is_loading() || self.registry.pauses_until().is_some();
            if !is_on_its_way && !self.registry.has_ended() {
                self.disk_holds_up("the registry, which is to be built again");
            }
            return;
        }
        let first = |askers: &BTreeSet<u64>| askers.first().copied();
        if let Some(asker) = first(&self.promises) {
            self.disk_holds_up(&format!("promise {asker}, which is neither refused nor given"));
        }
        if let Some(asker) = first(&self.questions) {
            self.disk_holds_up(&format!("the answer to question {asker}"));
        }
        if self.registry.checker.checks_held() > 0 {
            self.disk_holds_up("an identity check");
        }
        if self.is_stopped {
            self.disk_holds_up("the end");
        }
    }

    /// The disk refuses promises, and no question: a question depends on no write.
    pub(super) fn look_at_refusal(&mut self, left: &Left<Registry>) {
        if let Left::Refused(asker, Refusal::NotDurable | Refusal::NotWritten | Refusal::NotBegun) = left
            && self.questions.contains(asker)
        {
            let refused = || format!("question {asker} is refused for the disk");
            self.verdict.violation(Law::Shell1a, refused);
        }
    }

    fn disk_holds_up(&mut self, what: &str) {
        self.verdict.violation(Law::Shell1a, || format!("the disk is sick, and holds up {what}"));
    }
}
