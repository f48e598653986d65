//! The registry's own machine, with a fuse: when the fuse has burnt down, the present step panics after all of its
//! work is done and before any effect has left.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use callboard_actors::registry::{
    CheckIdentity, CheckOutcome, IdentityCheck, Image, Registry, RegistryAnswer, RegistryAsk, RegistryNews,
    RegistryOptions, RegistryTimer, RegistryView, StoredChange,
};
use callboard_actors::shell::{Effect, EffectHandler, Ending, Input, Machine, Started, StepContext};
use callboard_actors::vocabulary::Moment;

use crate::stage::Living;

/// The configuration of a fragile registry.
#[derive(Debug, Clone)]
pub(crate) struct Birth {
    pub(crate) options: RegistryOptions,
    /// How many steps are left; 0 for no fuse.
    pub(crate) fuse: Rc<Cell<u32>>,
}

#[derive(Debug)]
pub(crate) struct Fragile {
    registry: Registry,
    fuse: Rc<Cell<u32>>,
}

impl Machine for Fragile {
    const KIND: &'static str = "fragile registry";
    type Config = Birth;
    type Image = Image;
    type Ask = RegistryAsk;
    type Answer = RegistryAnswer;
    type Call = CheckIdentity;
    type Outcome = CheckOutcome;
    type Timer = RegistryTimer;
    type Change = StoredChange;
    type News = RegistryNews;
    type View = RegistryView;

    fn restore(birth: &Birth, image: Image, moment: Moment) -> Self {
        Self { registry: Registry::restore(&birth.options, image, moment), fuse: Rc::clone(&birth.fuse) }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        let mut inner = StepContext::new(cx.moment());
        self.registry.step(&same(input), &mut inner);
        inner.drain().for_each(|effect| pass_on(effect, cx));
        let left = self.fuse.get();
        self.fuse.set(left.saturating_sub(1));
        assert_ne!(left, 1, "the fuse has burnt down, on purpose");
    }

    fn view(&self) -> RegistryView {
        self.registry.view()
    }

    fn is_promise(ask: &RegistryAsk) -> bool {
        Registry::is_promise(ask)
    }

    fn is_new_promise(&self, ask: &RegistryAsk) -> bool {
        self.registry.is_new_promise(ask)
    }

    fn awaits_disk(call: &CheckIdentity) -> bool {
        Registry::awaits_disk(call)
    }

    fn reads_ahead() -> bool {
        Registry::reads_ahead()
    }

    fn merge(earlier: &mut StoredChange, later: &StoredChange) -> bool {
        Registry::merge(earlier, later)
    }
}

fn same(input: &Input<Fragile>) -> Input<Registry> {
    match input {
        Input::Resumed => Input::Resumed,
        Input::Asked { id, asked_at, ask } => {
            let ask = match ask {
                RegistryAsk::Register(message) => RegistryAsk::Register(message.clone()),
                RegistryAsk::Deregister(message) => RegistryAsk::Deregister(message.clone()),
                RegistryAsk::ReportFitness(message) => RegistryAsk::ReportFitness(message.clone()),
                RegistryAsk::Renew(message) => RegistryAsk::Renew(message.clone()),
                RegistryAsk::List(message) => RegistryAsk::List(*message),
                RegistryAsk::Describe(message) => RegistryAsk::Describe(message.clone()),
                RegistryAsk::DescribePlugins(message) => RegistryAsk::DescribePlugins(*message),
                RegistryAsk::RegistrationOf(message) => RegistryAsk::RegistrationOf(message.clone()),
                RegistryAsk::WaitForPlugin(message) => RegistryAsk::WaitForPlugin(message.clone()),
            };
            Input::Asked { id: *id, asked_at: *asked_at, ask }
        }
        Input::Returned { key, call, outcome } => {
            Input::Returned { key: *key, call: call.clone(), outcome: outcome.clone() }
        }
        Input::Elapsed(timer) => Input::Elapsed(timer.clone()),
        Input::StopRequested(mode) => Input::StopRequested(*mode),
    }
}

fn pass_on(effect: Effect<Registry>, cx: &mut StepContext<Fragile>) {
    match effect {
        Effect::Persist(gate, change) => cx.write(gate, change),
        Effect::Reply(id, answer) => cx.reply(id, answer),
        Effect::Publish(news) => cx.publish(news),
        Effect::Call { key, deadline, call } => cx.call(key, deadline, call),
        Effect::StartTimer(timer, at) => cx.start_timer(timer, at),
        Effect::CancelTimer(timer) => cx.cancel_timer(timer),
        Effect::Stop(Ending::Normal) => cx.stop(),
        Effect::Stop(ending) => cx.fail(format!("{ending:?}")),
    }
}

/// Checks the identity of the plugins that live on the stage.
pub(crate) struct Handler(pub(crate) Living);

impl EffectHandler<Fragile> for Handler {
    fn call(&mut self, call: CheckIdentity) -> Started<CheckOutcome> {
        Started::Running(self.0.check(Arc::clone(&call.registration)))
    }
}
