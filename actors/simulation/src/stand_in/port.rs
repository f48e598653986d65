//! The port of a stand-in: it collects effects that leave, and a checker observes every step.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::kernel::{
    self, CallLost, Ending, Input, JournalEntry, Machine, Outgoing, Port, StepContext, Terms, Ticket, Written,
};
use callboard_actors::shell::Recorded;
use callboard_actors::vocabulary::{Moment, Timestamp};

use super::Count;
use super::parts::{Disk, Left, Refusal};
use crate::law_checker::LawChecker;
use crate::tamper::Tamper;

/// The number of the one subscriber.
const READER: u64 = 0;

/// The types that the kernel of a stand-in carries: numbers of askers, and answers that can be copied with it.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct StandInTerms;

impl<M: Machine> Terms<M> for StandInTerms {
    type Asker = u64;
    type Reader = ();
    type Answer = Rc<M::Answer>;
    type View = Rc<M::View>;
}

/// The state of a stand-in beside its kernel, its store and its checker.
#[derive(Debug)]
pub(super) struct Around<M: Machine> {
    pub(super) tamper: Option<Rc<dyn Tamper<M>>>,
    pub(super) left: Vec<Left<M>>,
    /// Calls that are not made, each to be returned as lost.
    pub(super) lost: VecDeque<(u64, CallLost)>,
    written_through: u64,
    pub(super) durable_through: u64,
    /// Effects that a fault holds back until the disk has reached this write.
    held: VecDeque<(u64, Left<M>)>,
    pub(super) crashes_next: bool,
    /// Whether the present step has crashed.
    has_crashed: bool,
    has_reader: bool,
    /// Whether the model of the disk panicked during a write.
    pub(super) broken: bool,
    pub(super) steps: Count,
    /// Its journal entries, if its journal is on.
    pub(super) entries: Option<Vec<Recorded>>,
}

impl<M: Machine> Default for Around<M> {
    fn default() -> Self {
        Self {
            tamper: None,
            left: Vec::new(),
            lost: VecDeque::new(),
            written_through: 0,
            durable_through: 0,
            held: VecDeque::new(),
            crashes_next: false,
            has_crashed: false,
            has_reader: false,
            broken: false,
            steps: Count::default(),
            entries: None,
        }
    }
}

/// Everything except effects that have left and constants. The world waits for effects that are held back, and counts them.
impl<M: Machine> Hash for Around<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { tamper: _, left: _, lost, durable_through, crashes_next, has_crashed, .. } = self;
        (lost, durable_through, crashes_next, has_crashed, self.has_reader, self.broken).hash(state);
        self.held.iter().for_each(|(through, _)| through.hash(state));
    }
}

impl<M: Machine> Around<M> {
    /// A copy without effects that have left and journal entries.
    pub(super) fn without_left(&self) -> Self {
        Self {
            tamper: self.tamper.clone(),
            left: Vec::new(),
            lost: self.lost.clone(),
            written_through: self.written_through,
            durable_through: self.durable_through,
            held: self.held.clone(),
            crashes_next: self.crashes_next,
            has_crashed: self.has_crashed,
            has_reader: self.has_reader,
            broken: self.broken,
            steps: self.steps,
            entries: self.entries.as_ref().map(|_| Vec::new()),
        }
    }

    /// Whether a fault holds this back because earlier writes are not on disk.
    fn holds(&self, left: &Left<M>) -> bool {
        let is_due = self.written_through <= self.durable_through;
        !is_due && self.tamper.as_ref().is_some_and(|tamper| tamper.waits_for_disk(left))
    }

    /// The next effect that was held back and whose write is on disk now.
    pub(super) fn no_longer_held(&mut self) -> Option<Left<M>> {
        let is_due = self.held.front().is_some_and(|(through, _)| *through <= self.durable_through);
        if is_due { self.held.pop_front().map(|(_, left)| left) } else { None }
    }
}

/// The world of the kernel, at one moment.
pub(super) struct StandInPort<'a, M: Machine, S, W> {
    pub(super) moment: Moment,
    pub(super) around: &'a mut Around<M>,
    pub(super) store: &'a mut S,
    pub(super) checker: &'a mut W,
}

impl<M: Machine, S: Disk<M>, W: LawChecker<M>> Port<M, StandInTerms> for StandInPort<'_, M, S, W> {
    fn now(&mut self) -> Timestamp {
        self.moment.now
    }

    fn random(&mut self) -> u64 {
        self.moment.random
    }

    fn hear(&mut self, input: Input<M>) -> Option<Input<M>> {
        match &self.around.tamper {
            Some(tamper) => tamper.input(input),
            None => Some(input),
        }
    }

    fn step(&mut self, machine: &mut M, input: &Input<M>, cx: &mut StepContext<M>) -> Result<(), String> {
        self.around.steps.0 += 1;
        if std::mem::take(&mut self.around.crashes_next) {
            self.checker.crashed(input);
            self.around.has_crashed = true;
            return Err("a step is made to crash".to_owned());
        }
        let tamper = &self.around.tamper;
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            machine.step(input, cx);
            if let Some(tamper) = tamper {
                let tampered = tamper.effects(machine, input, cx.drain().collect());
                cx.extend(tampered);
            }
        }));
        if stepped.is_err() {
            self.checker.panicked(input);
            self.around.has_crashed = true;
            return Err("a step crashed".to_owned());
        }
        self.checker.stepped(cx.moment(), input, cx.as_slice(), machine);
        Ok(())
    }

    fn built(&mut self, moment: Moment, machine: &M) {
        self.checker.rebuilt(moment, machine);
    }

    fn write(&mut self, ticket: Ticket, change: M::Change) -> Written {
        // The kernel would treat a panic of the model as a failed write, which is an ordinary fault.
        let store = &mut *self.store;
        let written = catch_unwind(AssertUnwindSafe(|| store.write(ticket, change)));
        self.around.broken = written.is_err();
        self.around.written_through = ticket.sequence;
        written.unwrap_or_else(|_| Written::Failed("the model of the disk crashed".to_owned()))
    }

    /// The world sees that the store is to be read.
    fn load(&mut self) {}

    /// The world sees the end of the pause.
    fn pause(&mut self, _pause: Duration) {}

    fn send(&mut self, outgoing: Outgoing<M, StandInTerms>, behind: u64) {
        let left = match outgoing {
            Outgoing::Answer { asker, answer } => Left::Answer(asker, answer),
            Outgoing::News { number, news } => Left::News(number, news),
            Outgoing::Attach { reader: (), number, view } => {
                self.around.has_reader = true;
                Left::Snapshot(number, view)
            }
            Outgoing::Snapshot { number, view, .. } => Left::Snapshot(number, view),
            // No reader of a journal exists here.
            Outgoing::Described { .. } => return,
            Outgoing::Call { number, deadline, call } => Left::Call { number, deadline, call },
            Outgoing::Lost { number, lost } => {
                self.around.lost.push_back((number, lost));
                return;
            }
        };
        if self.around.holds(&left) {
            self.around.held.push_back((self.around.written_through, left));
            return;
        }
        self.checker.left(&left, behind <= self.around.durable_through);
        self.around.left.push(left);
    }

    fn refuse(&mut self, asker: u64, refusal: kernel::Refusal<'_>) {
        let refusal = match refusal {
            kernel::Refusal::Crashed(_) => Refusal::Crashed,
            kernel::Refusal::NotDurable(_) => Refusal::NotDurable,
            kernel::Refusal::NotWritten(_) => Refusal::NotWritten,
            kernel::Refusal::NotBegun(_) => Refusal::NotBegun,
        };
        self.around.left.push(Left::Refused(asker, refusal));
    }

    fn due(&mut self, _everyone: bool) -> Vec<u64> {
        self.around.has_reader.then_some(READER).into_iter().collect()
    }

    /// The world asks which calls are in flight.
    fn abandon_calls(&mut self) {}

    /// Only steps may crash, and only when the world requests it: a panic elsewhere is a mistake of a model.
    fn note(&mut self, entry: JournalEntry<'_, M>) {
        if let JournalEntry::Crashed { input, message } = &entry {
            let is_of_step = std::mem::take(&mut self.around.has_crashed);
            assert!(is_of_step, "{} crashed over {input:?}: {message}", M::KIND);
        }
        let is_inner = matches!(entry, JournalEntry::Stepped { .. } | JournalEntry::Called { .. });
        if let Some(entries) = self.around.entries.as_mut().filter(|_| !is_inner) {
            entries.push(Recorded::from(&entry));
        }
    }

    fn end(&mut self, ending: Ending) {
        self.around.left.push(Left::Ended(ending));
    }
}
