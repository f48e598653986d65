//! One step of the stand-in: from an input to what leaves, and what becomes of it when something fails.

use super::*;

impl<M: Machine, S: Books<M>, W: Witness<M>> StandIn<M, S, W> {
    pub(super) fn step(&mut self, moment: Moment, input: Input<M>, asker: Option<u64>) {
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        let input = match &self.tamper {
            Some(tamper) => match tamper.input(input) {
                Some(input) => input,
                None => return,
            },
            None => input,
        };
        self.steps.0 += 1;
        if std::mem::take(&mut self.is_fuse_lit) {
            self.witness.crashed(&input);
            self.crashed(moment, asker);
            return;
        }
        let Phase::Running(machine) = &mut self.phase else { return };
        let (effects, tamper) = (&mut self.effects, &self.tamper);
        let stepped = std::panic::catch_unwind(AssertUnwindSafe(|| {
            machine.step(moment, &input, effects);
            if let Some(tamper) = tamper {
                let tampered = tamper.effects(machine, &input, effects.drain().collect());
                effects.extend(tampered);
            }
        }));
        if stepped.is_err() {
            self.witness.panicked(&input);
            self.crashed(moment, asker);
            return;
        }
        self.witness.stepped(moment, &input, self.effects.as_slice(), machine);
        self.put_out(moment, input, asker);
    }

    fn put_out(&mut self, moment: Moment, input: Input<M>, mut asker: Option<u64>) {
        let mut effects = std::mem::take(&mut self.effects);
        let mut has_failed = false;
        for effect in effects.drain() {
            match effect {
                Effect::Persist(_) if has_failed => {}
                Effect::Persist(change) => has_failed = !self.write(change),
                Effect::Reply(id, answer) => {
                    let is_current = matches!(&input, Input::Asked { id: current, .. } if *current == id);
                    let asker = asker.take_if(|_| is_current).or_else(|| self.waiting_asker(id));
                    self.push(Item::Answer(asker, Rc::new(answer)));
                }
                Effect::Publish(news) => self.push(Item::News(news)),
                Effect::Call { key, deadline, call } => self.push(Item::Call(key, deadline, call)),
                Effect::StartTimer(timer, at) => self.timers.start(timer, at),
                Effect::CancelTimer(timer) => self.timers.cancel(&timer),
                Effect::Stop(ending) => self.push(Item::Stop(ending)),
            }
        }
        self.effects = effects;
        if let (Some(asker), Input::Asked { id, asked_at, ask }) = (asker, input) {
            self.unfinished.insert(id, Said::Question { asker, asked_at, ask });
        }
        if has_failed {
            let behind = self.outbox.take_behind(self.ticket.sequence);
            self.abandon_life(AfterSettling::Pause);
            self.refuse(behind);
            self.flush();
            self.go_on_if_settled(moment);
        }
        self.flush();
    }

    fn waiting_asker(&mut self, id: AskId) -> Option<u64> {
        match self.unfinished.remove(&id)? {
            Said::Question { asker, .. } => Some(asker),
            Said::Stop(_) => None,
        }
    }

    /// Hands a change over. False means that it failed at once.
    fn write(&mut self, change: M::Change) -> bool {
        self.ticket.sequence += 1;
        let is_taken = match self.books.write(self.ticket, change) {
            Written::Now => return true,
            Written::Later => true,
            Written::Failed(_) => false,
        };
        if is_taken {
            self.written_through = self.ticket.sequence;
        }
        self.outbox.close_gate(self.ticket.sequence);
        is_taken
    }

    // === What goes out ===

    pub(super) fn push(&mut self, item: Item<M>) {
        self.outbox.push((self.written_through, item));
    }

    pub(super) fn flush(&mut self) {
        while let Some((behind, item)) = self.outbox.pop_released() {
            let is_durable = behind <= self.durable_through;
            self.release(item, is_durable);
        }
    }

    fn release(&mut self, item: Item<M>, is_durable: bool) {
        let left = match item {
            Item::Answer(asker, answer) => Left::Answer(asker, answer),
            Item::News(news) => {
                self.published += 1;
                Left::News(self.published, news)
            }
            Item::Snapshot(view) => Left::Snapshot(self.published, view),
            Item::Call(key, deadline, call) => {
                self.calls_ever += 1;
                self.calls.insert(self.calls_ever, (key, call.clone()));
                Left::Call { number: self.calls_ever, deadline, call }
            }
            Item::Stop(ending) => {
                self.end(ending);
                return;
            }
        };
        self.witness.left(&left, is_durable);
        self.left.push(left);
    }

    // === What goes wrong ===

    fn crashed(&mut self, moment: Moment, asker: Option<u64>) {
        self.left.extend(asker.map(|asker| Left::Refused(asker, Refusal::Crashed)));
        self.abandon_life(AfterSettling::Load);
        if self.restarts.charge(&self.rules.budget, moment.now) {
            self.go_on_if_settled(moment);
        } else {
            self.end(Ending::BudgetSpent("a step crashed".to_owned()));
        }
    }

    pub(super) fn refuse(&mut self, behind: Vec<(u64, Item<M>)>) {
        for (_, item) in behind {
            match item {
                Item::Answer(Some(asker), _) => self.left.push(Left::Refused(asker, Refusal::NotDurable)),
                Item::Answer(None, _)
                | Item::News(_)
                | Item::Snapshot(_)
                | Item::Call(..)
                | Item::Stop(_) => {}
            }
        }
    }

    pub(super) fn go_on_if_settled(&mut self, moment: Moment) {
        let Phase::Settling(next) = self.phase else { return };
        if self.outbox.is_waiting() {
            return;
        }
        match next {
            AfterSettling::Load => self.phase = Phase::Loading,
            AfterSettling::Pause => self.pause(moment),
        }
    }

    pub(super) fn pause(&mut self, moment: Moment) {
        let pause = self.pauses.failed(&self.rules.pause, moment);
        self.phase = Phase::Pausing(moment.now + pause);
    }

    pub(super) fn abandon_life(&mut self, next: AfterSettling) {
        self.phase = Phase::Settling(next);
        self.effects.clear();
        self.outbox.retain(|(_, item)| !matches!(item, Item::Call(..)));
        self.calls.clear();
        self.timers.clear();
        self.ticket.epoch += 1;
    }

    pub(super) fn end(&mut self, ending: Ending) {
        self.abandon_life(AfterSettling::Load);
        self.phase = Phase::Ended;
        self.unfinished.clear();
        self.again.clear();
        self.outbox.take_all();
        self.deferred.clear();
        self.left.push(Left::Ended(ending));
    }
}
