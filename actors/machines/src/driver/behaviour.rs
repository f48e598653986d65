//! Handles the requests and notifications of a driver; its session decides the rest.

use super::messages::{DescribeTroubles, DriverAnswer, DriverAsk, RestartNow};
use super::service::DriverService;
use super::state::{Driver, DriverCall, DriverConfig, Reached};
use super::{DriverReport, DriverTimer, Trouble};
use crate::kernel::{Input, LastNews, Machine, Never, StepContext};
use crate::session::Session;
use crate::vocabulary::Moment;

impl Machine for Driver {
    const KIND: &'static str = "driver";
    type Config = DriverConfig;
    type Image = ();
    type Ask = DriverAsk;
    type Answer = DriverAnswer;
    type Call = DriverCall;
    type Outcome = Result<Reached, Trouble>;
    type Timer = DriverTimer;
    type Change = Never;
    type News = DriverReport;
    type View = DriverReport;

    fn restore(config: &DriverConfig, (): (), moment: Moment) -> Self {
        let service = DriverService::new(config.spec.name.clone());
        Self { session: Session::new(config.session(), service, moment), told: LastNews::default() }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        let was_over = self.session.is_over();
        match input {
            Input::Asked { id, ask: DriverAsk::RestartNow(RestartNow { number }), .. } => {
                self.session.restart_now(*number, cx);
                cx.reply(*id, DriverAnswer::RestartNow(()));
            }
            Input::Asked { id, ask: DriverAsk::DescribeTroubles(DescribeTroubles), .. } => {
                cx.reply(*id, DriverAnswer::DescribeTroubles(self.session.troubles().to_vec()));
            }
            Input::Resumed | Input::Returned { .. } | Input::Elapsed(_) | Input::StopRequested(_) => {
                self.session.step(input, cx);
            }
        }
        self.told.publish(&self.view(), cx);
        if self.session.is_over() && !was_over {
            cx.stop();
        }
    }

    fn view(&self) -> DriverReport {
        DriverReport::of(&self.session)
    }
}
