//! The supervisors of a simulated host: a tree of four levels with leaves that start, fail, hang and end.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use callboard_actors::shell::{Ending, Message, StopMode};
use callboard_actors::supervisor::{
    AwaitStarted, ChildSpec, DescribeTree, Plan, Restart, RestartChild, Strategy, Supervisor, SupervisorSpec,
};
use callboard_actors::vocabulary::{Backoff, RestartBudget};

use super::super::allocation::Reply;
use super::super::supervision::{Branch, Family, FamilyChange, Task, TaskEnd};
use super::super::tamper::Tamper;
use super::event::EventKind;
use super::host_model::{HostModel, HostPhase, Signal};

/// An event of one supervisor of the tree. Children are named by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FamilyDoing {
    /// The root is started, if it does not live.
    Begin,
    /// A child that is being started lives.
    Make(u8),
    /// A call returns.
    Return(Task, Reply),
    /// A child ends by itself.
    End(u8, TaskEnd),
    /// The restart of a child is requested.
    Restart(u8),
    /// A client waits until all children are up.
    Await,
    /// A client asks for the tree.
    Describe,
    /// Its due timers run.
    Timers,
    /// Its next step will crash.
    Crash,
}

/// As a line of a history, for the supervisor with this number.
pub(super) fn write_family(f: &mut fmt::Formatter<'_>, number: u8, doing: FamilyDoing) -> fmt::Result {
    match doing {
        FamilyDoing::Begin => f.write_str("start s0"),
        FamilyDoing::Make(child) => write!(f, "made s{number} c{child}"),
        FamilyDoing::Return(task, reply) => {
            let reply = reply.as_str();
            match task {
                Task::Found => write!(f, "answer s{number} found {reply}"),
                Task::Start(child) => write!(f, "answer s{number} start c{child} {reply}"),
                Task::Watch(child) => write!(f, "answer s{number} watch c{child} {reply}"),
                Task::Stop(child) => write!(f, "answer s{number} stop c{child} {reply}"),
                Task::Describe => write!(f, "answer s{number} describe {reply}"),
            }
        }
        FamilyDoing::End(child, end) => write!(f, "{} s{number} c{child}", end.as_str()),
        FamilyDoing::Restart(child) => write!(f, "restart s{number} c{child}"),
        FamilyDoing::Await => write!(f, "await-started s{number}"),
        FamilyDoing::Describe => write!(f, "tree s{number}"),
        FamilyDoing::Timers => write!(f, "due s{number}"),
        FamilyDoing::Crash => write!(f, "crash s{number}"),
    }
}

const P: Restart = Restart::Permanent;
const T: Restart = Restart::Transient;
const Y: Restart = Restart::Temporary;

/// A supervisor of the tree: its strategy, its children, and which of these is the supervisor with which number.
type Shape = (Strategy, &'static [Restart], &'static [(usize, usize)]);

const TREE: [Shape; 5] = [
    (Strategy::OneForOne, &[P, P, P, T, Y], &[(1, 1), (2, 2)]),
    (Strategy::RestForOne, &[P, P, T, Y, P], &[(2, 3)]),
    (Strategy::OneForAll, &[P, T, Y, P], &[]),
    (Strategy::OneForOne, &[P, P, T, Y, P, P], &[(1, 4)]),
    (Strategy::OneForAll, &[P, P, T], &[]),
];

/// How long a leaf may take to end, and each level above additionally the time of all below it.
const STOP_DEADLINES: [Duration; TREE.len()] = [
    Duration::from_secs(300),
    Duration::from_secs(100),
    Duration::from_secs(40),
    Duration::from_secs(50),
    Duration::from_secs(20),
];
const LEAF_STOP_DEADLINE: Duration = Duration::from_secs(1);

/// The tree, with a fault in its supervisors if one is given.
pub(super) fn family(tamper: Option<Rc<dyn Tamper<Supervisor>>>) -> Family {
    Family::new((0..TREE.len()).map(branch).collect(), tamper)
}

fn branch(number: usize) -> Branch {
    let (strategy, restarts, below) = TREE[number];
    let backoff = Backoff {
        first: Duration::from_millis(20),
        longest: Duration::from_millis(300),
        jitter_percent: 10,
        reset_after: Duration::from_secs(2),
    };
    let children = restarts.iter().enumerate().map(|(child, restart)| {
        let supervisor = below.iter().find(|(place, _)| *place == child).map(|(_, below)| *below);
        ChildSpec {
            restart: *restart,
            start_deadline: Duration::from_secs(if supervisor.is_some() { 60 } else { 2 }),
            stop_deadline: supervisor.map_or(LEAF_STOP_DEADLINE, |below| STOP_DEADLINES[below]),
            backoff,
            ..ChildSpec::new(format!("c{child}"), "actor")
        }
    });
    let budget = RestartBudget { limit: 4, window: Duration::from_secs(2) };
    let spec = SupervisorSpec { strategy, budget, ..SupervisorSpec::default() };
    let plan = Plan { name: format!("s{number}"), spec, children: children.collect() };
    Branch { plan, below: below.to_vec() }
}

impl HostModel {
    pub(super) fn family_does(&mut self, number: u8, doing: FamilyDoing) {
        let moment = self.moment();
        let supervisor = usize::from(number);
        if supervisor >= self.family.len() {
            return;
        }
        let is_child = |child: u8| usize::from(child) < TREE[supervisor].1.len();
        match doing {
            FamilyDoing::Begin if self.phase == HostPhase::Running => self.family.begin(moment),
            FamilyDoing::Make(child) if is_child(child) => {
                self.family.make(moment, supervisor, child.into());
            }
            FamilyDoing::Return(task, Reply::Late) => self.family_hangs(supervisor, task),
            FamilyDoing::Return(task, reply) => self.family.returns(moment, supervisor, task, reply),
            FamilyDoing::End(child, end) if is_child(child) => {
                let ending = match end {
                    TaskEnd::Finishes => Ending::Normal,
                    TaskEnd::Falls => Ending::Killed,
                };
                self.family.end(supervisor, child.into(), ending);
            }
            FamilyDoing::Restart(child) => {
                self.ask_family(supervisor, RestartChild { name: format!("c{child}") });
            }
            FamilyDoing::Await => self.ask_family(supervisor, AwaitStarted),
            FamilyDoing::Describe => self.ask_family(supervisor, DescribeTree),
            FamilyDoing::Timers => self.family.timers_due(moment, supervisor),
            FamilyDoing::Crash => self.family.crash(supervisor),
            // There is no such child, or no host.
            FamilyDoing::Begin | FamilyDoing::Make(_) | FamilyDoing::End(..) => {}
        }
    }

    /// A call returns at its deadline. The plan may have been for an earlier call, or for an equal call that has no deadline.
    fn family_hangs(&mut self, number: usize, task: Task) {
        let moment = self.moment();
        if self.family.deadline_of(number, task).is_none_or(|at| at <= moment.now) {
            self.family.returns(moment, number, task, Reply::Late);
            // A child that has ended meanwhile was not killed at the deadline: its call returns normally.
            self.family.returns(moment, number, task, Reply::Good);
        }
        let again = |reply| of(number, FamilyDoing::Return(task, reply));
        if let Some(at) = self.family.deadline_of(number, task) {
            self.signals.push(Signal::Due(again(Reply::Late), at));
        } else if self.family.can_return(moment, number, task, Reply::Good) {
            // An equal call without a deadline was taken for the hanging one.
            self.signals.push(Signal::Ready(again(Reply::Good)));
        }
    }

    fn ask_family<Q: Message<Supervisor>>(&mut self, number: usize, message: Q) {
        if self.phase == HostPhase::Running {
            let (moment, asker) = (self.moment(), self.next_asker());
            self.family.ask(moment, number, asker, message.into_ask());
        }
    }

    pub(super) fn start_family(&mut self) {
        let moment = self.moment();
        self.family.begin(moment);
    }

    pub(super) fn stop_family(&mut self, mode: StopMode) {
        let moment = self.moment();
        self.family.request_stop(moment, mode);
    }

    /// Carries out the effects that have left the supervisors, and plans the following events.
    pub(super) fn dispatch_family(&mut self) {
        let moment = self.moment();
        self.family.hear(moment);
        for asker in std::mem::take(&mut self.family.answered) {
            self.answered(asker);
        }
        if let (Some(told), Some(trace)) = (&mut self.family.told, &mut self.trace) {
            trace.append(told);
        }
        self.verdict.heard_of(self.family.verdict.broken());
        self.plan_family();
    }

    /// Plans the possible and the due events of the supervisors.
    fn plan_family(&mut self) {
        for change in std::mem::take(&mut self.family.changed) {
            match change {
                FamilyChange::Call(number, task) => {
                    let late = self.family.deadline_of(number, task);
                    let due =
                        late.map(|at| Signal::Due(of(number, FamilyDoing::Return(task, Reply::Late)), at));
                    self.signals.extend(due);
                    self.signals.push(Signal::Ready(of(number, FamilyDoing::Return(task, Reply::Good))));
                }
                FamilyChange::Make(number, child) => {
                    self.signals.push(Signal::Ready(of(number, FamilyDoing::Make(small(child)))));
                }
                FamilyChange::Due(number) => {
                    if let Some(at) = self.family.next_timer(number) {
                        self.signals.push(Signal::Due(of(number, FamilyDoing::Timers), at));
                    }
                }
                FamilyChange::Begin => self.signals.push(Signal::Ready(of(0, FamilyDoing::Begin))),
            }
        }
    }

    /// One second without faults among the supervisors.
    pub(super) fn calm_family(&mut self) {
        let moment = self.moment();
        if self.phase == HostPhase::Running {
            self.family.begin(moment);
        }
        self.family.calm_down(moment);
    }
}

fn of(number: usize, doing: FamilyDoing) -> EventKind {
    EventKind::Family(small(number), doing)
}

fn small(place: usize) -> u8 {
    u8::try_from(place).unwrap_or(u8::MAX)
}
