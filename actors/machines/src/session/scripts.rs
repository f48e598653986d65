//! Message scripts of the session, with a plugin that has only the base service and one stream, as a device plugin has: the pure
//! machine under virtual time.
//!
//! A script contains the outcomes from the plugin and from the owner of the processes; below each come, in order, the effects.

use goldenscript::ArgumentConsumer;

use super::*;
use crate::conversation;
use crate::kernel::{Effect, Input, LastNews, Machine, Never, StepContext};
use crate::process::{Executable, Lifetime, ProcessName, ProcessSpec};
use crate::processes::Recalled;
use crate::stage::{Fault, Player, Stage, parse_span, play_all, word};
use crate::vocabulary::*;

#[test]
fn every_story_of_a_session_goes_as_it_is_told() {
    play_all(concat!(env!("CARGO_MANIFEST_DIR"), "/src/session/scripts"), 6, || Player::new(begin, say));
}

// === A plugin of devices ===

/// A device plugin has no step of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NoStep {}

impl ServiceStep for NoStep {
    fn as_str(self) -> &'static str {
        match self {}
    }
}

/// The result of its stream: the whole list of devices each time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum DevicesTold {
    Devices(Vec<String>),
    /// A result that no stream of devices has.
    Figures,
}

#[derive(Debug, Clone, Hash, Default)]
struct Devices {
    devices: Vec<String>,
}

impl Service for Devices {
    type Step = NoStep;
    type Told = DevicesTold;

    const NOUN: &'static str = "device plugin";
    const STEPS: &'static [NoStep] = &[];

    fn may_lack(step: NoStep) -> bool {
        match step {}
    }

    fn take(&mut self, step: NoStep, _: Option<&DevicesTold>) -> bool {
        match step {}
    }

    fn take_from_stream(&mut self, told: &DevicesTold) -> Option<Said> {
        match told {
            DevicesTold::Devices(devices) => {
                self.devices.clone_from(devices);
                let health =
                    if devices.is_empty() { SessionHealth::Undetected } else { SessionHealth::Healthy };
                Some(Said { health, description: String::new() })
            }
            DevicesTold::Figures => None,
        }
    }
}

/// Restarts the plugin.
#[derive(Debug, Clone, Copy)]
struct Restart(Attempt);

conversation! {
    /// The messages of the machine of a device plugin.
    enum DeviceAsk -> DeviceAnswer {
        Restart => (),
    }
}

/// The state of a device plugin.
#[derive(Debug, Clone, PartialEq)]
struct DeviceReport {
    known: SessionStatus,
    stage: SessionStage,
    devices: Vec<String>,
}

#[derive(Debug)]
struct Device {
    session: Session<Devices>,
    told: LastNews<DeviceReport>,
}

impl Machine for Device {
    const KIND: &'static str = "device";
    type Config = SessionConfig;
    type Image = ();
    type Ask = DeviceAsk;
    type Answer = DeviceAnswer;
    type Call = SessionCall<NoStep>;
    type Outcome = Result<Reached<DevicesTold>, Trouble>;
    type Timer = SessionTimer;
    type Change = Never;
    type News = DeviceReport;
    type View = DeviceReport;

    fn restore(config: &SessionConfig, (): (), moment: Moment) -> Self {
        let session = Session::new(config.clone(), Devices::default(), moment);
        Self { session, told: LastNews::default() }
    }

    fn step(&mut self, input: &Input<Self>, cx: &mut StepContext<Self>) {
        let was_over = self.session.is_over();
        match input {
            Input::Asked { id, ask: DeviceAsk::Restart(Restart(number)), .. } => {
                self.session.restart_now(*number, cx);
                cx.reply(*id, DeviceAnswer::Restart(()));
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

    fn view(&self) -> DeviceReport {
        DeviceReport {
            known: self.session.status().clone(),
            stage: self.session.stage(),
            devices: self.session.service().devices.clone(),
        }
    }
}

// === The scripts ===

fn begin(args: &mut ArgumentConsumer<'_>) -> Result<Stage<Device>, Fault> {
    let mut process = ProcessSpec::new(Executable::at("/bin/devices"));
    if args.take_key("lifetime") == Some("surviving") {
        process.lifetime = Lifetime::Surviving;
    }
    let backoff =
        Backoff { first: std::time::Duration::from_secs(5), jitter_percent: 0, ..Backoff::default() };
    let seconds = std::time::Duration::from_secs;
    let config = SessionConfig {
        stop_grace: seconds(4),
        polite_deadline: seconds(1),
        process: process.into(),
        not_launched: None,
        adopts_any: false,
        mode: SessionMode::Serve,
        limits: SessionLimits {
            backoff,
            step_deadline: seconds(10),
            fingerprint_deadline: seconds(50),
            fingerprint_pause: seconds(1),
            ping_every: args.take_key("pings").map(parse_span).transpose()?,
            silent_until_replaced: 2,
            drain_deadline: seconds(3),
        },
    };
    Ok(Stage::begin(config, tell))
}

fn say(stage: &mut Stage<Device>, verb: &str, args: &mut ArgumentConsumer<'_>) -> Result<(), Fault> {
    match verb {
        "restart" => stage.ask(DeviceAsk::Restart(Restart(stage.machine.view().known.restart.next()))),
        verb if stories::say::<Devices, _>(stage, verb, args, read_outcome)? => {}
        unknown => return Err(format!("no such verb: {unknown}").into()),
    }
    Ok(())
}

fn name() -> ProcessName {
    ProcessName::new("device-usb").unwrap()
}

fn read_outcome(args: &mut ArgumentConsumer<'_>) -> Result<Outcome<Devices>, Fault> {
    let word = word(args, "outcome")?;
    Ok(match word.as_str() {
        "proven" => {
            let found = stories::launched(name(), stories::read_number(args)?, true);
            Ok(Ok(Reached::Recalled(Recalled::Proven(found))))
        }
        "devices" => {
            let mut devices = Vec::new();
            while let Some(device) = args.next_pos() {
                devices.push(device.to_owned());
            }
            Ok(Ok(Reached::Told(DevicesTold::Devices(devices))))
        }
        "figures" => Ok(Ok(Reached::Told(DevicesTold::Figures))),
        word => return stories::read_outcome::<Devices>(word, args, name()),
    })
}

fn tell(effect: &Effect<Device>, now: Timestamp) -> String {
    match effect {
        Effect::Call { call, deadline, .. } => stories::tell_call(call, *deadline),
        Effect::Publish(DeviceReport { known, stage, devices }) => {
            let reason = if known.reason.is_empty() { String::new() } else { format!(" ({})", known.reason) };
            let pid = known.pid.map_or("no process".to_owned(), |pid| format!("pid {pid}"));
            let (health, generation) = (known.health, known.generation);
            format!("news: {stage}, {health}{reason}, generation {generation}, {pid}, devices {devices:?}")
        }
        Effect::Reply(_, DeviceAnswer::Restart(())) => "answer: taken".to_owned(),
        Effect::StartTimer(timer, at) => format!("{timer:?} in {:?}", at.since(now)),
        Effect::CancelTimer(_) => String::new(),
        Effect::Stop(ending) => format!("ends: {ending:?}"),
        Effect::Persist(_, never) => match *never {},
    }
}
