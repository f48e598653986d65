//! Delivers the effects of the registry and the instances to their receivers.

use callboard_actors::registry::Registry;
use callboard_actors::shell::{FeedItem, Machine};

use super::super::law::Law;
use super::super::law_checker::NO_CALLER_WAITS;
use super::super::observed::{Answer, Observed};
use super::super::stand_in::{Left, Refusal};
use super::event::EventKind;
use super::host_model::{HostModel, Signal};

/// How many notifications may wait for the instances; above that they restart with a snapshot.
const INBOX_MAX: usize = 1_024;

impl HostModel {
    pub(super) fn dispatch_registry(&mut self) {
        let mut left = Vec::new();
        self.registry.take_left(&mut left);
        if let Some(trace) = &mut self.trace {
            trace.extend(Observed::noted("registry", &mut self.registry));
            let is_host = |asker| !self.workloads.has_asked(asker);
            trace.extend(left.iter().map(|left| Observed::left_to("registry", left, is_host)));
        }
        for left in left {
            match left {
                Left::Answer(Some(asker), answer) => {
                    self.answered(asker);
                    if !self.instances_heard(asker, None) {
                        self.registry_told(asker, Ok(&answer));
                    }
                }
                Left::Refused(asker, refusal) => {
                    self.answered(asker);
                    if !self.instances_heard(asker, Some(refusal)) {
                        self.registry_told(asker, Err(refusal));
                    }
                }
                Left::News(number, news) if !self.is_owed => {
                    self.feed(FeedItem::Change { number, news });
                }
                Left::Snapshot(number, view) => {
                    self.is_owed = false;
                    self.registry.store.was_told();
                    self.feed(FeedItem::Snapshot { number, view: (*view).clone() });
                }
                Left::Call { .. } => {
                    self.signals.push(Signal::Ready(EventKind::Checked(true)));
                }
                Left::Ended(_) => self.unanswered.clear(),
                Left::Answer(None, _) => self.violation(Law::Shell7, NO_CALLER_WAITS.to_owned()),
                Left::News(..) => {}
            }
        }
        self.look_at_the_sick_disk();
    }

    /// The supervisor of the instances receives the registry's answer to its report. False if another actor asked.
    fn instances_heard(&mut self, asker: u64, refusal: Option<Refusal>) -> bool {
        let Some(call) = self.registry_calls.remove(&asker) else { return false };
        let answer = refusal.map_or(Ok(()), |refusal| Err(refusal.into_error(Registry::KIND)));
        self.instances_model.registry_answers(self.moment(), call, answer);
        true
    }

    fn feed(&mut self, item: callboard_actors::instances::RegistryItem) {
        self.inbox += 1;
        if self.inbox > INBOX_MAX {
            self.instances_model.forget_inbox();
            self.instances_model.registry_says(FeedItem::Lagged { missed: INBOX_MAX as u64 });
            (self.inbox, self.is_owed) = (1, true);
            self.registry.subscribe();
            return;
        }
        self.instances_model.registry_says(item);
    }

    /// The instances have taken their waiting notifications.
    pub(super) fn feed_was_taken(&mut self) {
        self.inbox = 0;
    }

    pub(super) fn dispatch_instances(&mut self) {
        if let (Some(noted), Some(trace)) = (&mut self.instances_model.noted, &mut self.trace) {
            trace.append(noted);
        }
        if self.instances_model.wants_snapshot() {
            self.instances_model.forget_inbox();
            (self.inbox, self.is_owed) = (0, true);
            self.registry.subscribe();
            self.dispatch_registry();
        }
        let told = std::mem::take(&mut self.instances_model.to_registry);
        if !told.is_empty() {
            told.into_iter().for_each(|(call, ask)| self.instances_tell(call, ask));
            self.dispatch_registry();
        }
        for (asker, answer) in std::mem::take(&mut self.instances_model.answered) {
            let is_host = asker > 1 && !self.workloads.has_asked(asker);
            self.note(|| {
                let given =
                    answer.clone().map_or(Answer::Refused(Refusal::Crashed), |answer| Answer::Given(answer));
                let (actor, code) = ("instances".to_owned(), format!("answer {answer:?}"));
                Observed::Left { actor, code, answer: is_host.then_some(given) }
            });
            if asker > 1 {
                self.answered(asker);
                self.instances_told(asker, answer.as_deref());
            }
        }
        for item in std::mem::take(&mut self.instances_model.told) {
            self.note(|| Observed::left("instances", &item));
            let is_snapshot = matches!(item, FeedItem::Snapshot { .. });
            if self.inventory_is_owed && !is_snapshot {
                continue;
            }
            self.inventory_is_owed = false;
            if self.inventory_inbox.is_empty() {
                self.signals.push(Signal::Ready(EventKind::InventoryFeed));
            }
            self.inventory_inbox.push_back(item);
        }
    }
}
