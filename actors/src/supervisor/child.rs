//! The description of a child: its specification, and how it is created, awaited and described.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;

use super::{ChildDescription, ChildSpec};
use crate::shell::{Address, Machine, Running, StopMode, StopStep};

pub(super) type Start = Box<dyn FnMut() -> LocalBoxFuture<'static, Result<Running, String>>>;
pub(super) type Ready = Box<dyn Fn() -> LocalBoxFuture<'static, Result<(), String>>>;
pub(super) type EndRest = Rc<dyn Fn(StopMode) -> LocalBoxFuture<'static, Vec<StopStep>>>;
pub(super) type Describe = Box<dyn Fn() -> LocalBoxFuture<'static, Option<ChildDescription>>>;

/// One child: its specification, and factory closures that are called for each of its lives.
pub struct Child {
    pub(super) spec: ChildSpec,
    pub(super) start: Rc<RefCell<Start>>,
    pub(super) ready: Option<Ready>,
    pub(super) describe: Option<Describe>,
    pub(super) end_rest: Option<EndRest>,
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Child {
    /// A child that `start` creates. Its future is dropped when the start deadline passes or the supervisor stops, and must
    /// then clean up. Slow work after the actor exists belongs into [`ready_when`](Self::ready_when), since from then on the
    /// supervisor takes care of it.
    pub fn new<F>(spec: ChildSpec, mut start: impl FnMut() -> F + 'static) -> Self
    where
        F: Future<Output = Result<Running, String>> + 'static,
    {
        let start: Start = Box::new(move || Box::pin(start()));
        Self { spec, start: Rc::new(RefCell::new(start)), ready: None, describe: None, end_rest: None }
    }

    /// The child counts as started when this future succeeds; its error is the error of the start.
    #[must_use]
    pub fn ready_when<F>(mut self, ready: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + 'static,
    {
        self.ready = Some(Box::new(move || Box::pin(ready())));
        self
    }

    /// The callback that describes the child for the tree. `None` or a timeout of the future means that it cannot do so now.
    #[must_use]
    pub fn described_by<F>(mut self, describe: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = Option<ChildDescription>> + 'static,
    {
        self.describe = Some(Box::new(move || Box::pin(describe())));
        self
    }

    /// What the child started can outlive it. `end_rest` ends what is left of a child that was killed, gave up or had crashed when no
    /// further life follows. It reports each thing, also those that it could not end. It is called at most once for each stop,
    /// and must be bounded.
    #[must_use]
    pub fn leaving<F>(mut self, end_rest: impl Fn(StopMode) -> F + 'static) -> Self
    where
        F: Future<Output = Vec<StopStep>> + 'static,
    {
        self.spec.may_leave = true;
        self.end_rest = Some(Rc::new(move |mode| Box::pin(end_rest(mode))));
        self
    }

    /// Shows the vitals of the actor at this address in the tree.
    #[must_use]
    pub fn seen_at<M: Machine>(self, address: &Address<M>) -> Self {
        let address = address.clone();
        self.described_by(move || {
            let description = ChildDescription { vitals: address.vitals(), ..ChildDescription::default() };
            std::future::ready(Some(description))
        })
    }
}
