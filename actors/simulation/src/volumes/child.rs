//! Simulates a volume's actor: it does what the contract of a volume requires, in steps that succeed or fail.

use std::sync::Arc;

use callboard_actors::shell::CallLost;
use callboard_actors::vocabulary::{Attempt, Generation, Timestamp};
use callboard_machines::volume::{
    ClaimError, Claimed, ClaimsConfirmed, CreateError, Created, DeleteError, Deleted, Exists, ForceError,
    Forced, Order, OrderError, PlaceOrder, ReleaseError, Released, VolumeAnswer, VolumeAsk, VolumeNews,
    VolumeStatus,
};

use super::status::{allocation, key, number_of, status, volume_id};
use super::volume::{Claim, Existence, Phase, VolumeModel, not_durable, not_running};

/// The condition that a caller of a volume waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Waits {
    Claim(u8),
    Release(u8, bool),
    Create,
    Delete(bool),
    Order,
    Group,
}

/// The actor of a volume, while it lives.
#[derive(Debug, Clone, Hash)]
pub(super) struct Child {
    pub(super) life: Attempt,
    pub(super) run: u64,
    /// The id of the volume, if it has one yet.
    pub(super) id: Option<u8>,
    pub(super) is_stopping: bool,
    /// Whether its owner has allowed the deletion of its id.
    pub(super) may_be_deleted: bool,
    /// Whether it crashes at its next message.
    pub(super) crashes_next: bool,
    pub(super) waiting: Vec<(u64, Waits)>,
    pub(super) told: Option<Arc<VolumeStatus>>,
}

impl Child {
    pub(super) const fn new(life: Attempt, run: u64, id: Option<u8>) -> Self {
        Self {
            life,
            run,
            id,
            is_stopping: false,
            may_be_deleted: false,
            crashes_next: false,
            waiting: Vec::new(),
            told: None,
        }
    }
}

impl VolumeModel {
    // === Its requests ===

    /// A message arrives for the actor of this life: an error if that life has ended or if a sick disk refuses new work. True if the actor
    /// receives the message.
    pub(super) fn asked(&mut self, (place, call): (usize, u64), life: Attempt, ask: &VolumeAsk) -> bool {
        let Some(child) = self.living(life).cloned() else {
            self.answers.push_back((call, Err(not_running())));
            return false;
        };
        let status = status(place, self, child.id);
        if self.is_sick() && self.is_new(ask, status.exists) {
            self.answers.push_back((call, Err(not_durable(false))));
            return false;
        }
        let answer = match ask {
            VolumeAsk::Claim(claim) => self.claim(call, &child, number_of(&claim.allocation), &status),
            VolumeAsk::Release(release) => {
                let number = number_of(&release.allocation);
                let was_held = self.claims.contains_key(&number);
                self.let_go(place, number);
                self.wait(call, Waits::Release(number, was_held))
            }
            VolumeAsk::ConfirmClaims(asked) => {
                let living = |number: u8| asked.living.contains(&allocation(number));
                Some(VolumeAnswer::ConfirmClaims(self.confirm(place, child.run, living)))
            }
            VolumeAsk::PrepareForce(_) => Some(VolumeAnswer::PrepareForce(self.may_force(place))),
            VolumeAsk::ForceRelease(_) => Some(VolumeAnswer::ForceRelease(self.force(place))),
            VolumeAsk::CreateVolume(_) => self.create(place, call, &child, &status),
            VolumeAsk::DeleteVolume(asked) => {
                let answer = self.delete(place, call, &child, &status);
                self.allow_deletion(&asked.volume_id);
                answer
            }
            VolumeAsk::AllowDeletion(asked) => {
                self.allow_deletion(&asked.volume_id);
                Some(VolumeAnswer::AllowDeletion(()))
            }
            // A violation: see `VolumesScene::called`.
            VolumeAsk::Disown(_) => Some(VolumeAnswer::Disown(false)),
            VolumeAsk::PlaceOrder(PlaceOrder { order: Order::TakeGroup(_), .. }) => {
                self.order(call, &child, &status, Waits::Group)
            }
            VolumeAsk::PlaceOrder(_) => self.order(call, &child, &status, Waits::Order),
            VolumeAsk::RouteChanged(_) => Some(VolumeAnswer::RouteChanged(())),
            VolumeAsk::DescribeVolume(_) => Some(VolumeAnswer::DescribeVolume(status.into())),
        };
        self.answers.extend(answer.map(|answer| (call, Ok(answer))));
        self.keep_id(child.id);
        self.answer_releases();
        self.tell();
        true
    }

    /// Whether this requests something new, which must be written to disk first.
    fn is_new(&self, ask: &VolumeAsk, exists: Exists) -> bool {
        match ask {
            VolumeAsk::Claim(claim) => {
                let claim = self.claims.get(&number_of(&claim.allocation));
                claim.is_none_or(|claim| claim.phase == Phase::GoingDown)
            }
            VolumeAsk::CreateVolume(_) => !matches!(exists, Exists::BeingCreated | Exists::Created),
            VolumeAsk::DeleteVolume(_) => exists != Exists::BeingDeleted,
            VolumeAsk::PlaceOrder(PlaceOrder { order: Order::TakeGroup(_), .. }) => !self.has_group,
            VolumeAsk::PlaceOrder(_) => !self.is_ordered,
            VolumeAsk::PrepareForce(_) | VolumeAsk::ForceRelease(_) | VolumeAsk::Disown(_) => true,
            VolumeAsk::Release(_)
            | VolumeAsk::AllowDeletion(_)
            | VolumeAsk::ConfirmClaims(_)
            | VolumeAsk::RouteChanged(_)
            | VolumeAsk::DescribeVolume(_) => false,
        }
    }

    fn wait(&mut self, call: u64, waits: Waits) -> Option<VolumeAnswer> {
        if let Some(child) = &mut self.child {
            child.waiting.push((call, waits));
        }
        None
    }

    fn claim(&mut self, call: u64, child: &Child, number: u8, status: &VolumeStatus) -> Option<VolumeAnswer> {
        let volume = status.key.clone();
        if child.is_stopping {
            return Some(VolumeAnswer::Claim(Err(ClaimError::Stopping { volume })));
        }
        if !matches!(status.exists, Exists::Registered | Exists::Created) {
            let (state, is_transient) = ("it is not there", status.exists.is_changing());
            return Some(VolumeAnswer::Claim(Err(ClaimError::NotThere { volume, state, is_transient })));
        }
        let claim = self.claims.entry(number).or_insert(Claim { phase: Phase::GoingUp, run: child.run });
        match claim.phase {
            Phase::GoingDown => {
                let error = ClaimError::Leaving { volume, allocation: allocation(number) };
                return Some(VolumeAnswer::Claim(Err(error)));
            }
            Phase::GoingUp | Phase::Up => claim.run = child.run,
        }
        match claim.phase {
            Phase::Up => Some(VolumeAnswer::Claim(Ok(claimed()))),
            Phase::GoingUp | Phase::GoingDown => self.wait(call, Waits::Claim(number)),
        }
    }

    fn let_go(&mut self, place: usize, number: u8) {
        let Some(claim) = self.claims.get_mut(&number) else { return };
        claim.phase = Phase::GoingDown;
        let error = ClaimError::Released { volume: key(place), allocation: allocation(number) };
        self.answer(|waits| waits == Waits::Claim(number), |_| VolumeAnswer::Claim(Err(error.clone())));
    }

    fn confirm(&mut self, place: usize, run: u64, is_living: impl Fn(u8) -> bool) -> ClaimsConfirmed {
        let mut settled = ClaimsConfirmed::default();
        let earlier = self.claims.iter().filter(|(_, claim)| claim.run != run);
        let earlier = earlier.filter(|(_, claim)| claim.phase != Phase::GoingDown);
        for number in earlier.map(|(number, _)| *number).collect::<Vec<_>>() {
            if is_living(number) {
                settled.confirmed.push(allocation(number));
                self.claims.entry(number).and_modify(|claim| claim.run = run);
            } else {
                settled.released.push(allocation(number));
                self.let_go(place, number);
            }
        }
        settled
    }

    fn may_force(&self, place: usize) -> Result<(), ForceError> {
        let volume = key(place);
        let held = self.claims.iter().find(|(_, claim)| claim.phase != Phase::GoingDown);
        if let Some((number, _)) = held {
            return Err(ForceError::Held { volume, holder: allocation(*number) });
        }
        let is_being_deleted = matches!(self.existence, Some(Existence::BeingDeleted(_)));
        if !self.is_on_node() && !is_being_deleted && !self.has_orders() {
            return Err(ForceError::Nothing { volume });
        }
        Ok(())
    }

    fn force(&mut self, place: usize) -> Result<Forced, ForceError> {
        self.may_force(place)?;
        let volume = key(place);
        let is_being_deleted = matches!(self.existence, Some(Existence::BeingDeleted(_)));
        self.claims.clear();
        (self.is_staged, self.is_forced) = (false, true);
        (self.is_ordered, self.has_group) = (false, false);
        let (of, what, left) = (volume.clone(), "modify it".to_owned(), "it".to_owned());
        let error = OrderError::Forced { volume: of, what, left };
        let is_order = |waits| matches!(waits, Waits::Order | Waits::Group);
        self.answer(is_order, |_| VolumeAnswer::PlaceOrder(Err(error.clone())));
        if is_being_deleted {
            self.gone();
        }
        let error = DeleteError::Forced { volume: volume.clone(), left: "it".to_owned() };
        self.answer(
            |waits| matches!(waits, Waits::Delete(_)),
            |_| VolumeAnswer::DeleteVolume(Err(error.clone())),
        );
        let reason = "an operator".to_owned();
        let forced = Forced { volume, reason, at: Timestamp::default(), left: Vec::new() };
        let life = self.child.as_ref().map(|child| child.life);
        self.news.extend(life.map(|life| (life, VolumeNews::Forced(forced.clone()))));
        Ok(forced)
    }

    fn create(
        &mut self,
        place: usize,
        call: u64,
        child: &Child,
        status: &VolumeStatus,
    ) -> Option<VolumeAnswer> {
        let volume = key(place);
        let refused = match (status.exists, &status.created) {
            _ if child.is_stopping => CreateError::Stopping { volume },
            (Exists::Created, Some(volume)) => {
                return Some(VolumeAnswer::CreateVolume(Ok(Created { volume: volume.clone() })));
            }
            (Exists::Absent, _) => {
                self.existence = Some(Existence::BeingCreated);
                return self.wait(call, Waits::Create);
            }
            (Exists::BeingCreated, _) => return self.wait(call, Waits::Create),
            (Exists::BeingDeleted, _) => CreateError::BeingDeleted { volume },
            (Exists::Registered | Exists::Created | Exists::Unfit, _) => {
                CreateError::Registered { volume, volume_id: "id-0".to_owned() }
            }
        };
        Some(VolumeAnswer::CreateVolume(Err(refused)))
    }

    fn delete(
        &mut self,
        place: usize,
        call: u64,
        child: &Child,
        status: &VolumeStatus,
    ) -> Option<VolumeAnswer> {
        let volume = key(place);
        if child.is_stopping {
            return Some(VolumeAnswer::DeleteVolume(Err(DeleteError::Stopping { volume })));
        }
        if self.is_on_node() || self.has_orders() {
            let holders = self.claims.keys().map(|number| allocation(*number)).collect();
            let error = DeleteError::InUse { volume, holders, held_by: Vec::new(), remedy: "release it" };
            return Some(VolumeAnswer::DeleteVolume(Err(error)));
        }
        if status.exists == Exists::Absent {
            return Some(VolumeAnswer::DeleteVolume(Ok(Deleted { did_exist: false })));
        }
        if status.exists != Exists::BeingDeleted {
            self.existence = Some(Existence::BeingDeleted(child.id));
            let error = CreateError::Deleted { volume };
            self.answer(|waits| waits == Waits::Create, |_| VolumeAnswer::CreateVolume(Err(error.clone())));
        }
        self.wait(call, Waits::Delete(true))
    }

    fn order(
        &mut self,
        call: u64,
        child: &Child,
        status: &VolumeStatus,
        waits: Waits,
    ) -> Option<VolumeAnswer> {
        let (volume, what) = (status.key.clone(), "modify it".to_owned());
        if child.is_stopping {
            return Some(VolumeAnswer::PlaceOrder(Err(OrderError::Stopping { volume, what })));
        }
        if !matches!(status.exists, Exists::Registered | Exists::Created) {
            let (state, is_transient) = ("it is not there", status.exists.is_changing());
            let error = OrderError::NotThere { volume, what, state, is_transient };
            return Some(VolumeAnswer::PlaceOrder(Err(error)));
        }
        self.is_ordered |= waits == Waits::Order;
        self.has_group |= waits == Waits::Group;
        self.wait(call, waits)
    }

    // === Existence ===

    /// Its owner reports that no other volume has this id.
    fn allow_deletion(&mut self, id: &str) {
        let is_so = matches!(self.existence, Some(Existence::BeingDeleted(Some(own))) if volume_id(self.place, own) == id);
        if let Some(child) = self.child.as_mut().filter(|_| is_so) {
            child.may_be_deleted = true;
        }
    }

    /// The volume no longer exists, and its former id means nothing.
    pub(super) fn gone(&mut self) {
        (self.existence, self.is_ordered, self.has_group) = (None, false, false);
        self.know(None);
    }

    /// The actor knows the volume by this id from now on.
    pub(super) fn know(&mut self, id: Option<u8>) {
        if let Some(child) = &mut self.child {
            (child.id, child.may_be_deleted) = (id, false);
        }
    }

    // === Answers ===

    /// Answers callers that wait.
    pub(super) fn answer(
        &mut self,
        is_meant: impl Fn(Waits) -> bool,
        answer: impl Fn(Waits) -> VolumeAnswer,
    ) {
        let Some(child) = &mut self.child else { return };
        let (meant, others) = child.waiting.drain(..).partition(|(_, waits)| is_meant(*waits));
        child.waiting = others;
        let meant: Vec<(u64, Waits)> = meant;
        // The result is not on disk yet. A release waits for no disk.
        let is_kept_back = |waits| self.written.is_some() && !matches!(waits, Waits::Release(..));
        let answered = |waits| if is_kept_back(waits) { Err(not_durable(true)) } else { Ok(answer(waits)) };
        self.answers.extend(meant.into_iter().map(|(call, waits)| (call, answered(waits))));
    }

    /// Answers the callers whose releases are confirmed.
    pub(super) fn answer_releases(&mut self) {
        let claims: Vec<u8> = self.claims.keys().copied().collect();
        let is_down = !self.is_staged || !claims.is_empty();
        let is_over =
            |waits| matches!(waits, Waits::Release(number, _) if is_down && !claims.contains(&number));
        let has_orders = self.has_orders();
        let released = |waits| {
            let was_held = matches!(waits, Waits::Release(_, true));
            let others = claims.iter().map(|number| allocation(*number)).collect();
            VolumeAnswer::Release(Ok(Released { was_held, others, has_orders }))
        };
        self.answer(is_over, released);
    }

    /// The timeout of the caller that has waited longest elapses. Its request continues.
    pub(super) fn oldest_gives_up(&mut self, place: usize) {
        let Some((call, waits)) = self.child.as_mut().map(|child| child.waiting.remove(0)) else { return };
        let (volume, doing) = (key(place), "something".to_owned());
        let answer = match waits {
            Waits::Claim(number) => {
                let allocation = allocation(number);
                VolumeAnswer::Claim(Err(ClaimError::Pending { volume, allocation, doing }))
            }
            Waits::Release(..) => VolumeAnswer::Release(Err(ReleaseError::Pending { volume, doing })),
            Waits::Create => VolumeAnswer::CreateVolume(Err(CreateError::Pending { volume, doing })),
            Waits::Delete(_) => VolumeAnswer::DeleteVolume(Err(DeleteError::Pending { volume, doing })),
            Waits::Order | Waits::Group => {
                let what = "modify it".to_owned();
                VolumeAnswer::PlaceOrder(Err(OrderError::Pending { volume, what, doing }))
            }
        };
        self.answers.push_back((call, Ok(answer)));
    }

    /// The call of the caller that has waited longest. Its answer is lost; also how the owner sees that.
    pub(super) fn silenced(&mut self) -> Option<(u64, CallLost)> {
        let child = self.child.as_mut().filter(|child| !child.waiting.is_empty())?;
        let (call, _) = child.waiting.remove(0);
        Some((call, CallLost::DeadlineExceeded(std::time::Duration::from_secs(50))))
    }
}

/// The result for the holder of a claim.
pub(super) fn claimed() -> Claimed {
    Claimed { path: "/t".into(), is_block: false, read_only: false, generation: Generation::new(1) }
}
