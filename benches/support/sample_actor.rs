//! An actor on our shell that only answers: a round trip without the registry's decisions, state and notifications.

use callboard_actors::registry::{Deregister, Deregistered, Register, RegisterError, Registered};
use callboard_actors::shell::{
    Address, Input, Machine, Never, NoEffectHandler, NoStore, Running, Settings, StepContext, start,
};
use callboard_actors::vocabulary::Moment;

use super::clients::RegistryClient;

callboard_actors::conversation! {
    /// The registry's requests.
    pub(crate) enum SampleAsk -> SampleAnswer for SampleActor {
        Register => Result<Registered, RegisterError>,
        Deregister => Deregistered,
    }
}

/// Accepts everything.
#[derive(Debug)]
pub(crate) struct SampleActor;

impl Machine for SampleActor {
    const KIND: &'static str = "sample";
    type Config = ();
    type Image = ();
    type Ask = SampleAsk;
    type Answer = SampleAnswer;
    type Call = Never;
    type Outcome = Never;
    type Timer = Never;
    type Change = Never;
    type News = Never;
    type View = ();

    fn restore((): &(), (): (), _: Moment) -> Self {
        Self
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        match input {
            Input::Resumed => {}
            Input::Asked { id, ask: SampleAsk::Register(_), .. } => {
                cx.reply(*id, SampleAnswer::Register(Ok(Registered::New)));
            }
            Input::Asked { id, ask: SampleAsk::Deregister(message), .. } => {
                cx.reply(*id, SampleAnswer::Deregister(Deregistered::Removed(message.plugins.clone())));
            }
            Input::StopRequested(_) => cx.stop(),
            Input::Returned { call: never, .. } | Input::Elapsed(never) => match *never {},
        }
    }

    fn view(&self) {}
}

impl SampleActor {
    pub(crate) fn begin() -> (Address<Self>, Running) {
        let address = Address::vacant("sample", 4_096);
        let running = start(&address, (), NoEffectHandler, NoStore, Settings::default());
        (address, running)
    }
}

impl RegistryClient for Address<SampleActor> {
    async fn register(&self, message: Register) {
        let answer = self.ask(message).await.expect("the sample actor runs");
        assert_eq!(answer, Ok(Registered::New));
    }

    async fn deregister(&self, message: Deregister) {
        let answer = self.ask(message).await.expect("the sample actor runs");
        assert!(matches!(answer, Deregistered::Removed(_)));
    }
}
