//! Tests of the claimer with the real owner of the volumes; the test answers for the volumes.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use callboard_actors::csi::{self, AccessMode, AccessType, MountVolume, VolumeCapability};
use callboard_actors::shell::{
    Address, AskError, EffectHandler, Running, Settings, Started, Store, Ticket, Written, start,
};
use callboard_actors::vocabulary::{
    AllocationId, Generation, PluginName, RunNumber, VolumeName, VolumeNamespace,
};
use callboard_actors::volume::{
    self, ClaimStatus, Claimed, ClaimsConfirmed, Created, Desired, Exists, NewVolume, ObservedEnd, Released,
    Usage, VolumeAnswer, VolumeAsk, VolumeKey, VolumeNews, VolumeSpec, VolumeStatus,
};
use callboard_actors::volumes::{
    KnownVolume, VolumeReported, Volumes, VolumesCall, VolumesChange, VolumesConfig, VolumesImage,
    VolumesOptions, VolumesOutcome,
};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::{Claimer, KnownUsers, confirm};
use crate::config::{VolumeConfig, VolumeOrigin};

const WITHIN: Duration = Duration::from_secs(30);

/// The requests to the volumes, and their answers to claims and releases instead of success.
#[derive(Clone, Default)]
struct Fake(Rc<RefCell<Script>>);

#[derive(Default)]
struct Script {
    asked: Vec<String>,
    claims: VecDeque<volume::ClaimError>,
    releases: VecDeque<volume::ReleaseError>,
    /// How many confirmations are not answered.
    silences: usize,
    image: VolumesImage,
    /// The owner, and the users with claims to each volume when its actor starts. Otherwise they are not reported.
    claimants: Option<(Address<Volumes>, Vec<AllocationId>)>,
}

impl Fake {
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.borrow_mut().asked)
    }

    fn answer(&self, ask: VolumeAsk) -> Option<VolumeAnswer> {
        let mut script = self.0.borrow_mut();
        let (told, answer) = match ask {
            VolumeAsk::CreateVolume(volume::CreateVolume { volume, .. }) => {
                let made = csi::Volume {
                    capacity_bytes: 0,
                    volume_id: "made-1".to_owned(),
                    volume_context: csi::Context::new(),
                    content_source: None,
                    accessible_topology: Vec::new(),
                };
                let created = Created { volume: Arc::new(made) };
                (format!("create {:?}", volume.parameters), VolumeAnswer::CreateVolume(Ok(created)))
            }
            VolumeAsk::Claim(volume::Claim { allocation, usage: Usage { read_only, .. }, .. }) => {
                let path = format!("/d/{allocation}").into();
                let claimed = Claimed { path, is_block: false, read_only, generation: Generation::default() };
                let answer = script.claims.pop_front().map_or(Ok(claimed), Err);
                (format!("claim {allocation} read-only {read_only}"), VolumeAnswer::Claim(answer))
            }
            VolumeAsk::Release(volume::Release { allocation, observed, .. }) => {
                let released = Released { was_held: true, others: vec![], has_orders: false };
                let answer = script.releases.pop_front().map_or(Ok(released), Err);
                (format!("release {allocation} {observed:?}"), VolumeAnswer::Release(answer))
            }
            VolumeAsk::ConfirmClaims(volume::ConfirmClaims { living, unclear }) => {
                let names: Vec<_> = living.iter().map(ToString::to_string).collect();
                let unclear: String = unclear.iter().map(|user| format!(", unclear {user}")).collect();
                script.asked.push(format!("confirm {}{unclear}", names.join(", ")));
                if script.silences > 0 {
                    script.silences -= 1;
                    return None;
                }
                return Some(VolumeAnswer::ConfirmClaims(ClaimsConfirmed::default()));
            }
            VolumeAsk::RouteChanged(_) => return Some(VolumeAnswer::RouteChanged(())),
            VolumeAsk::DescribeVolume(_)
            | VolumeAsk::DeleteVolume(_)
            | VolumeAsk::AllowDeletion(_)
            | VolumeAsk::Disown(_)
            | VolumeAsk::PlaceOrder(_)
            | VolumeAsk::PrepareForce(_)
            | VolumeAsk::ForceRelease(_) => return None,
        };
        script.asked.push(told);
        Some(answer)
    }
}

impl EffectHandler<Volumes> for Fake {
    fn call(&mut self, call: VolumesCall) -> Started<VolumesOutcome> {
        match call {
            VolumesCall::Follow { .. } | VolumesCall::AwaitEndings => {
                Started::running(std::future::pending())
            }
            VolumesCall::Ask { ask, .. } => {
                let silent = || AskError::NotRunning { actor: "volume".to_owned() };
                let answer = self.answer(ask).ok_or_else(silent);
                Started::Done(VolumesOutcome::Answered(answer))
            }
            VolumesCall::Start { life, config } => {
                let claimants = self.0.borrow().claimants.clone();
                let report = claimants.map(|(owner, names)| {
                    let (volume, news) =
                        (config.spec.key.clone(), VolumeNews::Changed(status(&config.spec, names).into()));
                    owner.ask(VolumeReported { volume, life, news })
                });
                let reported = async {
                    if let Some(report) = report {
                        report.await.expect("the owner runs");
                    }
                    VolumesOutcome::Done
                };
                Started::running(reported)
            }
            VolumesCall::Sweep
            | VolumesCall::Read(_)
            | VolumesCall::SetRoute { .. }
            | VolumesCall::Stop { .. }
            | VolumesCall::Kill { .. } => Started::Done(VolumesOutcome::Done),
        }
    }
}

impl Store<Volumes> for Fake {
    fn write(&mut self, _ticket: Ticket, change: VolumesChange) -> Written {
        self.0.borrow_mut().image.apply(&change);
        Written::Now
    }

    fn load(&mut self) -> LocalBoxFuture<'static, Result<VolumesImage, String>> {
        std::future::ready(Ok(self.0.borrow().image.clone())).boxed_local()
    }
}

/// The owner of volumes that the fake answers for. It ends when the returned value is dropped.
fn owner(fake: &Fake) -> (Address<Volumes>, Running) {
    let address = Address::vacant("volumes", 1_000);
    let running = start_owner(&address, fake);
    (address, running)
}

fn start_owner(address: &Address<Volumes>, fake: &Fake) -> Running {
    let config = VolumesConfig {
        options: VolumesOptions::default(),
        data_dir: "/d".into(),
        boot_id: "boot-1".into(),
        run: RunNumber::new(1),
    };
    start(address, config, fake.clone(), fake.clone(), Settings::default())
}

fn key(name: &str) -> VolumeKey {
    let (namespace, name) = (VolumeNamespace::new("default"), VolumeName::new(name));
    VolumeKey { namespace: namespace.unwrap(), name: name.unwrap() }
}

pub(super) fn user(name: &str) -> AllocationId {
    AllocationId::new(name).unwrap()
}

pub(super) fn spec(name: &str) -> Arc<VolumeSpec> {
    let plugin = PluginName::new("zfs").unwrap();
    Arc::new(VolumeSpec {
        key: key(name),
        plugin,
        volume_id: format!("tank/{name}"),
        volume_context: [].into(),
    })
}

/// The status of a volume with these claims.
pub(super) fn status(spec: &VolumeSpec, claimants: Vec<AllocationId>) -> VolumeStatus {
    let claim = |allocation: AllocationId| ClaimStatus {
        path: format!("/d/{allocation}").into(),
        allocation,
        usage: String::new(),
        staged_at: None,
        desired: Desired::Held,
        is_provisional: true,
        is_proven: false,
        publish: "unknown",
        error: None,
    };
    VolumeStatus {
        abandoned: Vec::new(),
        key: spec.key.clone(),
        plugin: spec.plugin.clone(),
        exists: Exists::Registered,
        created: None,
        deletion_to_allow: None,
        attach: "down",
        stage: "down",
        claims: claimants.into_iter().map(claim).collect(),
        orders: vec![],
        expanded_bytes: None,
        doing: String::new(),
        error: None,
    }
}

fn volume(name: &str, origin: VolumeOrigin) -> VolumeConfig {
    let access_type = AccessType::Mount(MountVolume::default());
    let capability = VolumeCapability { access_type, access_mode: AccessMode::SingleNodeMultiWriter };
    VolumeConfig {
        key: key(name),
        plugin: PluginName::new("zfs").unwrap(),
        origin,
        usage: Usage { capability, read_only: false },
        secrets: [].into(),
    }
}

/// The volume `data` exists, `logs` exists and is only read, and `new` is created.
fn configured() -> Vec<VolumeConfig> {
    let registered = |name| volume(name, VolumeOrigin::Registered(KnownVolume::new(spec(name))));
    let mut logs = registered("logs");
    logs.usage.read_only = true;
    let new = NewVolume {
        capabilities: vec![logs.usage.capability.clone()],
        parameters: [("tier".to_owned(), "gold".to_owned())].into(),
        ..NewVolume::default()
    };
    vec![registered("data"), logs, volume("new", VolumeOrigin::Created(Box::new(new)))]
}

#[actix::test]
async fn volumes_are_made_known_or_created_and_then_claimed_with_the_usage_of_their_user() {
    let fake = Fake::default();
    let (address, _running) = owner(&fake);
    let claimer = Claimer::new(address, &configured());
    let wanted = [(key("data"), true), (key("logs"), false), (key("new"), false)];
    let claimed = claimer.hold(&user("web"), &wanted, WITHIN).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.read_only).collect::<Vec<_>>(), [true, true, false]);
    let mut asked = fake.asked();
    asked.sort();
    let claims = |read_only| format!("claim web read-only {read_only}");
    assert_eq!(asked, [claims(false), claims(true), claims(true), r#"create {"tier": "gold"}"#.to_owned()]);
    claimer.release(&user("web"), ObservedEnd::Exited, WITHIN).await.unwrap();
    assert_eq!(fake.asked(), ["release web Exited"; 3]);
    claimer.release(&user("other"), ObservedEnd::NeverStarted, WITHIN).await.unwrap();
    assert_eq!(fake.asked(), [""; 0], "one that has no claim releases none");
}

#[actix::test]
async fn of_several_volumes_that_are_refused_the_one_for_which_a_retry_is_useless_is_the_reason() {
    let fake = Fake::default();
    let (address, _running) = owner(&fake);
    let claimer = Claimer::new(address, &configured());
    let pending = || volume::ClaimError::Pending {
        volume: key("data"),
        allocation: user("web"),
        doing: "staging".to_owned(),
    };
    let failed = || volume::ClaimError::Failed {
        volume: key("logs"),
        allocation: user("web"),
        reason: "no".to_owned(),
    };
    fake.0.borrow_mut().claims.push_back(pending());
    let refused = claimer.hold(&user("web"), &[(key("data"), false)], WITHIN).await.unwrap_err();
    assert!(refused.is_transient && refused.reason == pending().to_string(), "{refused:?}");
    fake.0.borrow_mut().claims.extend([pending(), failed()]);
    let wanted = [(key("data"), false), (key("logs"), false)];
    let refused = claimer.hold(&user("web"), &wanted, WITHIN).await.unwrap_err();
    assert!(!refused.is_transient && refused.reason == failed().to_string(), "{refused:?}");
    let unknown = claimer.hold(&user("web"), &[(key("none"), false)], WITHIN).await.unwrap_err();
    assert!(!unknown.is_transient && unknown.reason.contains("default/none"), "{unknown:?}");
}

#[actix::test]
async fn a_release_that_is_recorded_goes_on_and_any_other_has_to_be_repeated_v15() {
    let fake = Fake::default();
    let (address, running) = owner(&fake);
    let claimer = Claimer::new(address, &configured());
    claimer.hold(&user("web"), &[(key("data"), false)], WITHIN).await.unwrap();
    let pending = volume::ReleaseError::Pending { volume: key("data"), doing: "unstaging".to_owned() };
    fake.0.borrow_mut().releases.push_back(pending.clone());
    let unreleased = claimer.release(&user("web"), ObservedEnd::Exited, WITHIN).await.unwrap_err();
    assert!(unreleased.goes_on && unreleased.reason == pending.to_string(), "{unreleased:?}");
    running.kill();
    running.ended().await;
    let unreleased = claimer.release(&user("web"), ObservedEnd::Exited, WITHIN).await.unwrap_err();
    assert!(!unreleased.goes_on && unreleased.reason.contains("web"), "{unreleased:?}");
}

#[actix::test]
async fn the_release_of_a_departed_user_is_repeated_until_it_is_recorded_v8() {
    let fake = Fake::default();
    let (address, running) = owner(&fake);
    let claimer = Claimer::new(address.clone(), &configured());
    claimer.hold(&user("web"), &[(key("data"), false)], WITHIN).await.unwrap();
    running.kill();
    running.ended().await;
    let web = user("web");
    let mut released = Box::pin(claimer.release_until_recorded(&web, ObservedEnd::Exited, WITHIN));
    assert!((&mut released).now_or_never().is_none(), "the owner of the volumes does not run");
    fake.0.borrow_mut().image.in_ledger = vec![spec("data")];
    fake.0.borrow_mut().claimants = Some((address.clone(), vec![user("web")]));
    fake.asked();
    let _running = start_owner(&address, &fake);
    released.await;
    assert!(fake.asked().contains(&"release web Exited".to_owned()));
}

#[actix::test]
async fn nothing_is_undone_under_a_process_that_was_given_a_path_of_an_earlier_run_v8_v14() {
    let fake = Fake::default();
    fake.0.borrow_mut().image.in_ledger = vec![spec("data")];
    let (address, _running) = owner(&fake);
    fake.0.borrow_mut().claimants = Some((address.clone(), vec![user("idle")]));
    let mut process = std::process::Command::new("/bin/sleep");
    let mut process = process.arg("600").env("DATA", "/d/idle").spawn().unwrap();
    let users = KnownUsers { own: BTreeSet::from([user("idle")]), ..KnownUsers::default() };
    let mut confirmed = Box::pin(confirm(&address, async || Ok(users.clone())));
    let is_kept = tokio::time::timeout(Duration::from_millis(500), &mut confirmed).await.is_err();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(is_kept, "a process may use the volume");
    confirmed.await;
    let asked = fake.asked();
    let (unclear, last) = asked.split_at(asked.len() - 1);
    assert!(
        !unclear.is_empty() && unclear.iter().all(|asked| asked == "confirm , unclear idle"),
        "{asked:?}"
    );
    assert_eq!(last, ["confirm "]);
}

#[actix::test]
async fn whose_claims_are_kept_is_said_until_each_volume_of_an_earlier_run_has_heard_it_v8_v14() {
    let fake = Fake::default();
    fake.0.borrow_mut().image.in_ledger = vec![spec("data")];
    fake.0.borrow_mut().silences = 1;
    let (address, _running) = owner(&fake);
    fake.0.borrow_mut().claimants = Some((address.clone(), vec![user("db"), user("ended"), user("web")]));
    let users = KnownUsers {
        own: BTreeSet::from([user("ended"), user("web")]),
        living: BTreeSet::from([user("web"), user("zfs-1")]),
        unsettled: BTreeSet::new(),
    };
    confirm(&address, async || Ok(users.clone())).await;
    assert_eq!(
        fake.asked(),
        ["confirm db, web, zfs-1"; 2],
        "the host does not run db, and cannot know of its end"
    );
}
