//! The volumes, the plugin and the callers around their owner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_actors::kernel::Ending;
use callboard_actors::shell::{AskError, CallLost, Message, StopMode};
use callboard_actors::vocabulary::{Attempt, Backoff, RestartBudget, RunNumber, Timestamp, Topology};
use callboard_machines::volume::{Route, VolumeAsk};
use callboard_machines::volumes::{
    ChildEnded, InstancesItem, KnownVolume, VolumeReported, Volumes, VolumesAnswer, VolumesCall,
    VolumesConfig, VolumesImage, VolumesOptions, VolumesOutcome,
};

use super::super::law::Law;
use super::super::law_checker::{Verdict, Violation, violation};
use super::super::search::{Actor, Scene, SceneEvent as Event, Stage};
use super::super::stand_in::{Refusal, Rules, StandIn};
use super::super::writes::Outcome;
use super::disk::VolumesDisk;
use super::event::{VolumeAct, VolumesBounds, VolumesEvent, VolumesRequest};
use super::laws::VolumesLaws;
use super::plugin::{PluginModel, here};
use super::status::{key, place_of, spec};
use super::volume::VolumeModel;
use super::wants::Wants;

/// Everything around the owner.
#[derive(Debug, Clone, Hash)]
pub struct VolumesScene {
    pub(super) volumes: Vec<VolumeModel>,
    pub(super) plugin: PluginModel,
    /// The route that the handler keeps for the actors of volumes.
    pub(super) route: Route,
    pub(super) loses_route: bool,
    pub(super) endings: Vec<ChildEnded>,
    pub(super) await_endings: Option<u64>,
    pub(super) run: u64,
    /// How often the machine was rebuilt.
    pub(super) builds: u64,
    /// The requests without an answer, by caller.
    pub(super) asked: BTreeMap<u64, VolumesRequest>,
    /// The last caller that claimed a volume for an allocation.
    pub(super) claimed_at: BTreeMap<(usize, u8), u64>,
    /// The last caller that released the volume for the allocation.
    pub(super) released_at: BTreeMap<(usize, u8), u64>,
    /// The claims that are held by processes.
    pub(super) held: BTreeSet<(usize, u8)>,
    /// The life of the machine in which the host reported the living allocations and received its answer.
    pub(super) confirmed_in: Option<u64>,
    /// The requests of callers that were not refused, in a world whose disk may be sick.
    pub(super) wants: Option<Wants>,
}

impl VolumesScene {
    pub(super) fn place(&self, place: usize) -> &VolumeModel {
        &self.volumes[place]
    }

    /// The laws may know the volumes that are claimed or set up.
    fn reveal(&self, stage: &mut Stage<Self>) {
        let used = self.volumes.iter().enumerate().filter(|(_, volume)| volume.is_on_node());
        stage.actor.checker.on_node = used.map(|(place, _)| key(place)).collect();
    }

    // === The actors of the volumes ===

    fn act(&mut self, stage: &mut Stage<Self>, place: usize, act: VolumeAct) {
        if act == VolumeAct::IsSilent {
            if let Some((call, lost)) = self.volumes[place].silenced() {
                stage.lost(call, lost);
            }
            return;
        }
        let ended = self.volumes[place].act(place, act);
        self.endings.extend(ended);
    }

    fn living(&mut self, life: Attempt) -> Option<&mut VolumeModel> {
        self.volumes.iter_mut().find(|volume| volume.life() == Some(life))
    }

    fn sweep(&mut self) {
        self.route = Route::default();
        let ended = self.volumes.iter_mut().filter_map(|volume| volume.end(Ending::Killed));
        self.endings.extend(ended);
    }

    // === The host ===

    fn kill(&mut self, stage: &mut Stage<Self>, reached: usize) {
        self.run += 1;
        self.volumes.iter_mut().for_each(|volume| volume.begin_run(reached > 0));
        self.endings.clear();
        self.asked.clear();
        (self.route, self.confirmed_in) = (Route::default(), None);
        let disk = stage.actor.store.clone().begin_run(reached);
        let mut laws = VolumesLaws::default();
        std::mem::swap(&mut laws.verdict, &mut stage.actor.checker.verdict);
        stage.begin_run(StandIn::begin(config(self.run), disk, laws, Rules::default()));
    }

    fn next_of(&self, place: usize) -> Option<VolumesEvent> {
        let volume = &self.volumes[place];
        if !volume.answers.is_empty() {
            Some(VolumesEvent::Answer(place))
        } else if !volume.news.is_empty() {
            Some(VolumesEvent::News(place))
        } else if volume.can(VolumeAct::Works) {
            Some(VolumesEvent::Act(place, VolumeAct::Works))
        } else {
            let acts = [VolumeAct::GivesUp, VolumeAct::Ends].into_iter();
            acts.filter(|act| volume.can(*act)).map(|act| VolumesEvent::Act(place, act)).next()
        }
    }
}

impl Scene for VolumesScene {
    type Machine = Volumes;
    type Disk = VolumesDisk;
    type Laws = VolumesLaws;
    type Bounds = VolumesBounds;
    type Event = VolumesEvent;

    fn begin(bounds: &VolumesBounds, _: Timestamp) -> (Self, Actor<Self>) {
        let volumes = 0..bounds.volumes;
        let mut scene = Self {
            volumes: volumes.clone().map(|place| VolumeModel::new(place, bounds.are_registered)).collect(),
            plugin: PluginModel::new(bounds.limit),
            route: Route::default(),
            loses_route: false,
            endings: Vec::new(),
            await_endings: None,
            run: 1,
            builds: 0,
            asked: BTreeMap::new(),
            claimed_at: BTreeMap::new(),
            released_at: BTreeMap::new(),
            held: BTreeSet::new(),
            confirmed_in: None,
            wants: (bounds.sicknesses > 0).then(Wants::default),
        };
        if bounds.is_claimed {
            scene.volumes[0].leave_claim(0);
            scene.held.insert((0, 0));
        }
        let registered = volumes.filter(|_| bounds.are_registered).map(|place| {
            let is_last = place + 1 == bounds.volumes;
            let zone = if bounds.is_apart && is_last { elsewhere() } else { here() };
            let spec = spec(place, Some(0));
            Arc::new(KnownVolume { accessible_topology: vec![zone], ..KnownVolume::new(spec) })
        });
        let disk = VolumesDisk::new(registered.collect());
        (scene, StandIn::begin(config(1), disk, VolumesLaws::default(), Rules::default()))
    }

    fn stops(bounds: &VolumesBounds) -> &'static [StopMode] {
        bounds.stops
    }

    fn bound<'a>(left: &'a mut VolumesBounds, event: &Event<VolumesEvent>) -> Option<&'a mut u8> {
        match event {
            Event::Own(event) => left.of(event),
            Event::Pass => Some(&mut left.pauses),
            Event::Crash => Some(&mut left.crashes),
            Event::Stop(_) => None,
        }
    }

    fn verdict(laws: &VolumesLaws) -> &Verdict {
        &laws.verdict
    }

    fn events(&self, stage: &Stage<Self>, events: &mut Vec<Event<VolumesEvent>>) {
        if !stage.actor.has_ended() {
            self.list(stage, &mut |event| events.push(Event::Own(event)));
        }
    }

    fn happens(&mut self, stage: &mut Stage<Self>, event: VolumesEvent) -> Result<(), Violation> {
        match event {
            VolumesEvent::Ask(request) => self.ask(stage, request),
            VolumesEvent::Act(place, act) => self.act(stage, place, act),
            VolumesEvent::Answer(place) => {
                if let Some((call, answer)) = self.volumes[place].answers.pop_front() {
                    stage.returned(call, VolumesOutcome::Answered(answer));
                }
            }
            VolumesEvent::News(place) => {
                if let Some((life, news)) = self.volumes[place].news.pop_front() {
                    stage.notify(VolumeReported { volume: key(place), life, news }.into_ask());
                }
            }
            VolumesEvent::Endings => {
                if let Some(call) = self.await_endings.take() {
                    stage.returned(call, VolumesOutcome::Ended(std::mem::take(&mut self.endings)));
                }
            }
            VolumesEvent::Say(word) => self.plugin.say(word),
            VolumesEvent::Deliver => {
                if let Some((call, items)) = self.plugin.deliver() {
                    stage.returned(call, followed(Ok(items)));
                }
            }
            VolumesEvent::Lag => self.plugin.lag(),
            VolumesEvent::Lose => {
                if let Some(call) = self.plugin.lose() {
                    stage.returned(
                        call,
                        followed(Err(AskError::NotRunning { actor: "instances".to_owned() })),
                    );
                }
            }
            VolumesEvent::LoseRoute => self.loses_route = true,
            VolumesEvent::Settle(count, outcome) => {
                if let Some(settlement) = stage.actor.store.settle(usize::from(count), outcome) {
                    stage.settled(settlement);
                }
            }
            VolumesEvent::RefuseNext => stage.actor.store.refuse_next(),
            VolumesEvent::Disk(is_sick) => stage.actor.disk(stage.moment(), is_sick),
            VolumesEvent::Ledger(place, is_sick) => self.volumes[place].disk(is_sick),
            VolumesEvent::Kill(reached) => self.kill(stage, usize::from(reached)),
        }
        self.reveal(stage);
        match self.volumes.iter().filter(|volume| volume.has_group).count() {
            0 | 1 => Ok(()),
            orders => violation(Law::C2, format!("{orders} volumes have an order of the same group")),
        }
    }

    fn called(&mut self, stage: &mut Stage<Self>, number: u64, call: VolumesCall) -> Result<(), Violation> {
        match call {
            VolumesCall::Follow { afresh } => {
                self.plugin.follow(number, afresh);
                return Ok(());
            }
            VolumesCall::AwaitEndings => {
                self.await_endings = Some(number);
                return Ok(());
            }
            VolumesCall::Ask { ask: VolumeAsk::Disown(disown), .. } => {
                let id = disown.volume_id;
                return violation(Law::C59, format!("{id} is to be forgotten, and no other volume has it"));
            }
            VolumesCall::Ask { life, ask } => {
                // An ended actor answers with an error.
                let place =
                    self.volumes.iter().position(|volume| volume.life() == Some(life)).unwrap_or_default();
                if self.volumes[place].crashes_next(life) {
                    let ended = self.volumes[place].act(place, VolumeAct::Falls);
                    self.endings.extend(ended);
                }
                let is_taken = self.volumes[place].asked((place, number), life, &ask);
                self.reveal(stage);
                return if is_taken { self.begins(place, &ask) } else { Ok(()) };
            }
            // No caller reads in this world.
            VolumesCall::Read(_) => return Ok(()),
            VolumesCall::Sweep => self.sweep(),
            VolumesCall::Start { life, config } => {
                let place = place_of(&config.spec.key);
                if !self.volumes[place].start(life, &config) {
                    return violation(Law::V2, format!("two actors of v{place} live at once"));
                }
            }
            VolumesCall::SetRoute { route, .. } => {
                if std::mem::take(&mut self.loses_route) {
                    stage.lost(number, CallLost::Busy(1));
                    return Ok(());
                }
                self.route = route;
            }
            VolumesCall::Stop { life, .. } => {
                if let Some(volume) = self.living(life) {
                    volume.stop(life);
                }
            }
            VolumesCall::Kill { life } => {
                let ended = self.living(life).and_then(|volume| volume.kill(life));
                self.endings.extend(ended);
            }
        }
        stage.returned(number, VolumesOutcome::Done);
        Ok(())
    }

    fn answered(&mut self, _: &Stage<Self>, asker: u64, answer: &VolumesAnswer) -> Result<(), Violation> {
        match self.asked.remove(&asker) {
            Some(request) => self.heard(asker, request, answer),
            None => Ok(()),
        }
    }

    fn refused(&mut self, asker: u64, refusal: Refusal) -> Result<(), Violation> {
        match self.asked.remove(&asker) {
            Some(request) if refusal == Refusal::NotBegun => self.is_refused(request),
            Some(_) | None => Ok(()),
        }
    }

    fn loads(&mut self, stage: &mut Stage<Self>) -> VolumesImage {
        self.builds += 1;
        self.await_endings = None;
        self.plugin.forget();
        for volume in &mut self.volumes {
            volume.answers.retain(|(call, _)| stage.actor.awaits(*call));
        }
        self.reveal(stage);
        let in_ledger = self.volumes.iter().filter_map(VolumeModel::in_ledger).collect();
        VolumesImage { in_ledger, ..stage.actor.store.rows().clone() }
    }

    /// In each life of the machine the numbers of the actors' lives start from another number.
    fn random(&self) -> u64 {
        self.builds << 36
    }

    fn due(&self) -> Option<Timestamp> {
        None
    }

    fn passes(&mut self, _: &mut Stage<Self>) {}

    fn next(&self, stage: &Stage<Self>) -> Option<VolumesEvent> {
        if stage.actor.has_ended() {
            return None;
        }
        if stage.actor.is_sick() {
            return Some(VolumesEvent::Disk(false));
        }
        if let Some(place) = self.volumes.iter().position(VolumeModel::is_sick) {
            return Some(VolumesEvent::Ledger(place, false));
        }
        let waiting = stage.actor.store.waiting();
        if waiting > 0 {
            return Some(VolumesEvent::Settle(waiting, Outcome::Written));
        }
        if self.await_endings.is_some() && !self.endings.is_empty() {
            return Some(VolumesEvent::Endings);
        }
        if self.plugin.is_followed() && self.plugin.has_news() {
            return Some(VolumesEvent::Deliver);
        }
        let next = (0..self.volumes.len()).find_map(|place| self.next_of(place));
        let is_stopping = stage.stopped.is_some();
        next.or_else(|| self.repeated(stage).filter(|_| !is_stopping).map(VolumesEvent::Ask))
    }

    fn check_end(&self, stage: &Stage<Self>) -> Result<(), Violation> {
        self.comes_to(stage)
    }
}

fn followed(items: Result<Vec<InstancesItem>, AskError>) -> VolumesOutcome {
    VolumesOutcome::Followed(items)
}

fn config(run: u64) -> VolumesConfig {
    let options = VolumesOptions {
        restart_budget: RestartBudget { limit: 1, ..RestartBudget::default() },
        restart_backoff: Backoff { jitter_percent: 0, ..Backoff::default() },
        ..VolumesOptions::default()
    };
    VolumesConfig { options, data_dir: "/d".into(), boot_id: "boot".into(), run: RunNumber::new(run) }
}

fn elsewhere() -> Topology {
    BTreeMap::from([("zone".to_owned(), "elsewhere".to_owned())])
}
