//! The lines of the volumes. Like the lines of the instances they are made from the news of the owner: the actor of a volume reports the
//! same, but neither its own crash nor that its volume is forgotten.

use std::collections::BTreeMap;
use std::fmt::Display;

use callboard_actors::volume::{
    ClaimStatus, ClaimsConfirmed, Desired, Exists, Expanded, Forced, OrderStatus, Released, VolumeKey,
    VolumeStatus,
};
use callboard_actors::volumes::{
    VolumeActor, VolumeRegistered, VolumeReport, VolumesAnswer, VolumesNews, VolumesView,
};

use super::answers::{done, lines, or_no};
use super::line::{Line, Participant};
use super::news_lines::{NewsLines, joined};

/// Converts the news of the volumes into lines.
#[derive(Debug, Default)]
pub(super) struct VolumesTeller {
    known: BTreeMap<VolumeKey, VolumeReport>,
}

impl NewsLines for VolumesTeller {
    type News = VolumesNews;
    type View = VolumesView;

    fn begin(&mut self, view: &VolumesView) -> Vec<Line> {
        let key = |report: &VolumeReport| report.volume.spec.key.clone();
        self.known = view.volumes.iter().map(|report| (key(report), report.clone())).collect();
        Vec::new()
    }

    fn lines_of(&mut self, news: &VolumesNews) -> Vec<Line> {
        match news {
            VolumesNews::Changed(report) => {
                let before = self.known.insert(report.volume.spec.key.clone(), report.clone());
                changed(report, before.as_ref())
            }
            VolumesNews::Forgotten(key) => {
                self.known.remove(key);
                vec![to_everyone(format!("{key} is forgotten"))]
            }
            VolumesNews::ClaimFailed { volume, allocation, .. } => {
                vec![to_everyone(format!("{volume}: {}", event(news))).of_allocation(allocation)]
            }
            VolumesNews::OrderFailed { volume, .. } => {
                vec![to_everyone(format!("{volume}: {}", event(news)))]
            }
            VolumesNews::Forced(forced) => {
                vec![to_everyone(format!(
                    "{} is forgotten by force: {}",
                    forced.volume,
                    self::forced(forced)
                ))]
            }
        }
    }
}

fn to_everyone(message: String) -> Line {
    Line::new(Participant::Volumes, Participant::Everyone, message)
}

/// The lines for the changes of a volume.
fn changed(report: &VolumeReport, before: Option<&VolumeReport>) -> Vec<Line> {
    let key = &report.volume.spec.key;
    let mut lines = Vec::new();
    if report.is_known && before.is_none_or(|before| !before.is_known) {
        lines.push(to_everyone(format!("{key} of plugin {} is known", report.volume.spec.plugin)));
    }
    if before.is_none_or(|before| before.actor != report.actor) {
        lines.extend(fall(&report.actor).map(|message| to_everyone(format!("{key}: {message}"))));
    }
    if let Some(status) = &report.status {
        lines.extend(steps(status, before.and_then(|before| before.status.as_deref())));
    }
    lines
}

/// The state of an actor that has ended unexpectedly.
fn fall(actor: &VolumeActor) -> Option<String> {
    match actor {
        VolumeActor::Unneeded | VolumeActor::Running | VolumeActor::Stopping => None,
        VolumeActor::Pausing { reason } => Some(format!("its actor ended, and is started again: {reason}")),
        VolumeActor::GivenUp { reason } => {
            Some(format!("its actor ended too often, and is started by the next message: {reason}"))
        }
    }
}

/// The calls to the plugin, in both directions, and the changes of claims. Before its first status a volume had nothing set up.
fn steps(status: &VolumeStatus, before: Option<&VolumeStatus>) -> Vec<Line> {
    let key = &status.key;
    let told = Told { status, plugin: Participant::Plugin(status.plugin.clone()) };
    let claim_before =
        |claim: &ClaimStatus| before?.claims.iter().find(|before| before.allocation == claim.allocation);
    let mut lines = Vec::new();
    for claim in status.claims.iter().filter(|claim| claim_before(claim).is_none()) {
        let message = format!("{} claims {key}", claim.allocation);
        lines.push(to_everyone(message).of_allocation(&claim.allocation));
    }
    lines.extend(told.existence(before.map_or(Exists::Registered, |before| before.exists)));
    lines.extend(told.step(&ATTACH, before.map_or("down", |before| before.attach), status.attach, ""));
    lines.extend(told.step(&STAGE, before.map_or("down", |before| before.stage), status.stage, ""));
    let orders_before = before.map(|before| &before.orders[..]).unwrap_or_default();
    lines.extend(told.orders(orders_before));
    for claim in &status.claims {
        let claimed = told.claim(claim, claim_before(claim));
        lines.extend(claimed.into_iter().map(|line| line.of_allocation(&claim.allocation)));
    }
    let claims_before = before.into_iter().flat_map(|before| &before.claims);
    let is_there =
        |gone: &&ClaimStatus| status.claims.iter().any(|claim| claim.allocation == gone.allocation);
    for gone in claims_before.filter(|claim| !is_there(claim)) {
        let unpublished = told.step(&PUBLISH, gone.publish, "down", &format!(" for {}", gone.allocation));
        let message = format!("the claim of {} to {key} has ended", gone.allocation);
        let ended = unpublished.into_iter().chain([to_everyone(message)]);
        lines.extend(ended.map(|line| line.of_allocation(&gone.allocation)));
    }
    let is_new = |error: &&String| before.and_then(|before| before.error.as_ref()) != Some(*error);
    lines.extend(status.error.iter().filter(is_new).map(|error| to_everyone(format!("{key}: {error}"))));
    // One change may contain the answer to a call and the next call, which follows from it.
    lines.sort_by_key(|line| line.to == told.plugin);
    lines
}

/// A call with its inverse, as orders and as reports of completion.
struct Words {
    up: [&'static str; 2],
    down: [&'static str; 2],
}

const ATTACH: Words = Words { up: ["attach", "attached"], down: ["detach", "detached"] };
const STAGE: Words = Words { up: ["stage", "staged"], down: ["unstage", "unstaged"] };
const PUBLISH: Words = Words { up: ["publish", "published"], down: ["unpublish", "unpublished"] };

/// A volume, and the plugin that is called for it.
struct Told<'s> {
    status: &'s VolumeStatus,
    plugin: Participant,
}

impl Told<'_> {
    fn asked(&self, message: String) -> Line {
        Line::new(Participant::Volumes, self.plugin.clone(), message)
    }

    fn answered(&self, message: String) -> Line {
        Line::new(self.plugin.clone(), Participant::Volumes, message)
    }

    /// The line for a new state of a step, if it has changed.
    fn step(&self, words: &Words, before: &str, now: &str, of: &str) -> Option<Line> {
        let key = &self.status.key;
        if before == now {
            return None;
        }
        let Words { up, down } = words;
        match now {
            "going-up" => Some(self.asked(format!("{} {key}{of}", up[0]))),
            "up" => Some(self.answered(format!("{key} is {}{of}", up[1]))),
            "going-down" => Some(self.asked(format!("{} {key}{of}", down[0]))),
            "down" => Some(self.answered(format!("{key} is {}{of}", down[1]))),
            "unknown-up" => Some(to_everyone(format!("whether {key} is {}{of} is unknown", up[1]))),
            "unknown-down" => Some(to_everyone(format!("whether {key} is {}{of} is unknown", down[1]))),
            _ => None,
        }
    }

    /// The calls of orders, and the orders that are no longer pending. The reason of a failure is reported as separate news.
    fn orders(&self, before: &[OrderStatus]) -> Vec<Line> {
        let VolumeStatus { key, orders, .. } = self.status;
        let mut lines = Vec::new();
        for OrderStatus { what, state, .. } in orders {
            let state_before = before.iter().find(|before| before.what == *what).map(|before| before.state);
            if state_before == Some(*state) {
                continue;
            }
            lines.extend(match *state {
                "going-up" => Some(self.asked(format!("{key}: {what}"))),
                "going-up-on-node" => Some(self.asked(format!("{key}: {what}, on the node"))),
                "up-at-controller" => {
                    Some(self.answered(format!("{key}: \"{what}\" is done at the controller")))
                }
                "unknown-up" | "unknown-on-node" => {
                    Some(to_everyone(format!("{key}: whether \"{what}\" is done is unknown")))
                }
                "taken and not ready yet" => {
                    Some(self.answered(format!("{key}: \"{what}\" is taken, and not ready yet")))
                }
                _ => None,
            });
        }
        let is_there = |gone: &&OrderStatus| orders.iter().any(|order| order.what == gone.what);
        let gone = before.iter().filter(|before| !is_there(before));
        lines.extend(
            gone.map(|gone| to_everyone(format!("{key}: \"{}\" is not pending any more", gone.what))),
        );
        lines
    }

    fn existence(&self, before: Exists) -> Option<Line> {
        let VolumeStatus { key, exists, .. } = self.status;
        if before == *exists {
            return None;
        }
        match exists {
            Exists::BeingCreated => Some(self.asked(format!("create {key}"))),
            // Otherwise it was known before.
            Exists::Created if before != Exists::BeingCreated => None,
            Exists::Created => Some(self.answered(format!("{key} is created"))),
            Exists::Unfit => Some(self.answered(format!("{key} is created, and is not what was asked for"))),
            Exists::BeingDeleted => Some(self.asked(format!("delete {key}"))),
            Exists::Absent => Some(self.answered(format!("{key} does not exist"))),
            Exists::Registered => None,
        }
    }

    fn claim(&self, claim: &ClaimStatus, before: Option<&ClaimStatus>) -> Vec<Line> {
        let (key, allocation) = (&self.status.key, &claim.allocation);
        let mut lines = Vec::new();
        if claim.desired == Desired::Released && before.is_none_or(|before| before.desired == Desired::Held) {
            lines.push(to_everyone(format!("{allocation} has released {key}")));
        }
        let published_before = before.map_or("down", |before| before.publish);
        lines.extend(self.step(&PUBLISH, published_before, claim.publish, &format!(" for {allocation}")));
        if claim.is_proven && before.is_none_or(|before| !before.is_proven) {
            lines.push(to_everyone(format!("{allocation} has {key} at {}", claim.path.display())));
        }
        let is_new = |error: &&String| before.and_then(|before| before.error.as_ref()) != Some(*error);
        let error = claim.error.iter().filter(is_new);
        lines.extend(error.map(|error| to_everyone(format!("{key} for {allocation}: {error}"))));
        lines
    }
}

/// One piece of news as a complete sentence, for message scripts and their subscribers.
pub(super) fn sentence(news: &VolumesNews) -> String {
    let key = match news {
        VolumesNews::Changed(report) => &report.volume.spec.key,
        VolumesNews::Forgotten(key) => key,
        VolumesNews::ClaimFailed { volume, .. } | VolumesNews::OrderFailed { volume, .. } => volume,
        VolumesNews::Forced(forced) => &forced.volume,
    };
    format!("{key}: {}", event(news))
}

/// One piece of news of a volume, without its name.
pub(crate) fn event(news: &VolumesNews) -> String {
    match news {
        VolumesNews::Changed(report) => state(report),
        VolumesNews::Forgotten(_) => "is forgotten".to_owned(),
        VolumesNews::ClaimFailed { allocation, reason, .. } => {
            format!("the claim of {allocation} has failed, and is undone: {reason}")
        }
        VolumesNews::OrderFailed { what, reason, .. } => format!("\"{what}\" has failed: {reason}"),
        VolumesNews::Forced(forced) => format!("is forgotten by force: {}", self::forced(forced)),
    }
}

fn state(report: &VolumeReport) -> String {
    let VolumeReport { is_known, actor, status, .. } = report;
    let known = if *is_known { "known, and not in use" } else { "not known" };
    fall(actor).unwrap_or_else(|| status.as_ref().map_or_else(|| known.to_owned(), ToString::to_string))
}

/// The audit of a forced release.
fn forced(forced: &Forced) -> String {
    let left = match &forced.left[..] {
        [] => "nothing may be left".to_owned(),
        left => format!("{} may be left", joined(left)),
    };
    format!("{left}; {}", forced.reason)
}

// === Answers ===

/// An answer of the owner of the volumes, as lines; none to a child that reports.
pub(crate) fn answer(answer: &VolumesAnswer) -> Option<String> {
    Some(match answer {
        VolumesAnswer::RegisterVolume(answer) => or_no(answer, |registered| {
            let word = match registered {
                VolumeRegistered::New => "new",
                VolumeRegistered::Unchanged => "unchanged",
                VolumeRegistered::Replaced => "replaced",
            };
            word.to_owned()
        }),
        VolumesAnswer::ForgetVolume(answer) => {
            or_no(answer, |was_known| if *was_known { "forgotten" } else { "was not known" }.to_owned())
        }
        VolumesAnswer::CreateVolume(answer) => {
            or_no(answer, |created| format!("created: {}", created.volume.volume_id))
        }
        VolumesAnswer::DeleteVolume(answer) => {
            or_no(answer, |deleted| if deleted.did_exist { "deleted" } else { "did not exist" }.to_owned())
        }
        VolumesAnswer::ExpandVolume(answer) => or_no(answer, expanded),
        VolumesAnswer::CreateSnapshot(answer) => {
            or_no(answer, |snapshot| format!("snapshot taken: {}", snapshot.snapshot_id))
        }
        VolumesAnswer::DeleteSnapshot(answer) => done(answer, "snapshot deleted"),
        VolumesAnswer::CreateGroupSnapshot(answer) => {
            or_no(answer, |group| format!("group of snapshots taken: {}", group.group_snapshot_id))
        }
        VolumesAnswer::DeleteGroupSnapshot(answer) => done(answer, "group of snapshots deleted"),
        VolumesAnswer::ModifyVolume(answer) => done(answer, "modified"),
        VolumesAnswer::ListSnapshots(_)
        | VolumesAnswer::DescribeGroupSnapshot(_)
        | VolumesAnswer::ListVolumesOfPlugin(_)
        | VolumesAnswer::GetCapacity(_)
        | VolumesAnswer::ValidateVolume(_)
        | VolumesAnswer::VolumeStats(_) => return found(answer),
        VolumesAnswer::Claim(answer) => or_no(answer, |claimed| {
            let only = if claimed.read_only { ", read-only" } else { "" };
            format!("here: {}{only}, of generation {}", claimed.path.display(), claimed.generation)
        }),
        VolumesAnswer::Release(answer) => released(answer),
        VolumesAnswer::AllocationEnded(all) => {
            let one = all.iter().map(|one| format!("{}: {}", one.volume, released(&one.result)));
            lines(one, "no volume was claimed")
        }
        VolumesAnswer::ConfirmClaims(all) => {
            let one = all.iter().map(|one| format!("{}: {}", one.volume, or_no(&one.result, confirmed)));
            lines(one, "no volume is in use")
        }
        VolumesAnswer::ForceRelease(answer) => or_no(answer, forced),
        VolumesAnswer::DescribeVolume(answer) => or_no(answer, report),
        VolumesAnswer::ListVolumes(all) => lines(all.iter().map(report), "no volumes"),
        VolumesAnswer::AwaitUnused(answer) => done(answer, "unused"),
        VolumesAnswer::VolumeReported(()) => return None,
    })
}

/// The answer of a plugin to a request that only reads.
fn found(answer: &VolumesAnswer) -> Option<String> {
    Some(match answer {
        VolumesAnswer::ListSnapshots(answer) => {
            or_no(answer, |page| format!("{} snapshots", page.entries.len()))
        }
        VolumesAnswer::ListVolumesOfPlugin(answer) => {
            or_no(answer, |page| format!("{} volumes", page.entries.len()))
        }
        VolumesAnswer::DescribeGroupSnapshot(answer) => {
            or_no(answer, |found| format!("{} snapshots", found.snapshots.len()))
        }
        VolumesAnswer::GetCapacity(answer) => {
            or_no(answer, |found| format!("{} bytes available", found.available_capacity))
        }
        VolumesAnswer::ValidateVolume(answer) => or_no(answer, |found| match &found.unconfirmed[..] {
            [] => "confirmed".to_owned(),
            fields => format!("not confirmed: {}", joined(fields)),
        }),
        VolumesAnswer::VolumeStats(answer) => or_no(answer, |stats| {
            let units = stats.usage.len();
            format!("statistics in {units} units")
        }),
        // The others are not requests to a plugin.
        _ => return None,
    })
}

fn report(report: &VolumeReport) -> String {
    format!("{}: {}", report.volume.spec.key, state(report))
}

fn expanded(Expanded { capacity_bytes, is_node_next }: &Expanded) -> String {
    let size =
        capacity_bytes.map_or_else(|| "expanded".to_owned(), |bytes| format!("expanded to {bytes} bytes"));
    let next = if *is_node_next { ", and on this node with the next claim" } else { "" };
    format!("{size}{next}")
}

fn released<E: Display>(answer: &Result<Released, E>) -> String {
    or_no(answer, |Released { was_held, others, .. }| {
        let first = if *was_held { "released" } else { "was not held" };
        let others = if others.is_empty() { String::new() } else { format!("; held by {}", joined(others)) };
        format!("{first}{others}")
    })
}

fn confirmed(ClaimsConfirmed { confirmed, released }: &ClaimsConfirmed) -> String {
    let parts = [("held by", confirmed), ("released from", released)];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<_> = parts.map(|(what, names)| format!("{what} {}", joined(names))).collect();
    if parts.is_empty() { "nothing was to be confirmed".to_owned() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::vocabulary::{AllocationId, PluginName, Timestamp, VolumeName, VolumeNamespace};
    use callboard_actors::volume::VolumeSpec;
    use callboard_actors::volumes::KnownVolume;

    use super::*;

    fn key() -> VolumeKey {
        VolumeKey {
            namespace: VolumeNamespace::new("default").unwrap(),
            name: VolumeName::new("data").unwrap(),
        }
    }

    fn claim(publish: &'static str) -> ClaimStatus {
        ClaimStatus {
            usage: String::new(),
            allocation: AllocationId::new("web").unwrap(),
            staged_at: None,
            desired: Desired::Held,
            is_provisional: false,
            is_proven: false,
            publish,
            path: "/volumes/web".into(),
            error: None,
        }
    }

    fn status(attach: &'static str, stage: &'static str, claims: Vec<ClaimStatus>) -> VolumeStatus {
        VolumeStatus {
            key: key(),
            plugin: PluginName::new("zfs").unwrap(),
            exists: Exists::Registered,
            created: None,
            deletion_to_allow: None,
            attach,
            stage,
            claims,
            abandoned: vec![],
            orders: vec![],
            expanded_bytes: None,
            doing: "in use".to_owned(),
            error: None,
        }
    }

    fn reported(actor: VolumeActor, status: Option<VolumeStatus>) -> VolumeReport {
        let spec = VolumeSpec {
            key: key(),
            plugin: PluginName::new("zfs").unwrap(),
            volume_id: "vol-1".to_owned(),
            volume_context: BTreeMap::new(),
        };
        VolumeReport {
            volume: Arc::new(KnownVolume::new(Arc::new(spec))),
            is_known: true,
            actor,
            restarts: 0,
            status: status.map(Arc::new),
        }
    }

    fn told(teller: &mut VolumesTeller, news: &VolumesNews) -> Vec<String> {
        let lines = teller.lines_of(news).into_iter();
        lines.map(|line| format!("{} → {}: {}", line.from, line.to, line.message)).collect()
    }

    fn story(statuses: impl IntoIterator<Item = VolumeStatus>) -> Vec<String> {
        let mut teller = VolumesTeller::default();
        let news = |status| VolumesNews::Changed(reported(VolumeActor::Running, Some(status)));
        statuses.into_iter().flat_map(|status| told(&mut teller, &news(status))).collect()
    }

    #[test]
    fn an_expansion_is_told_from_its_first_call_to_its_end() {
        let order = |state| OrderStatus {
            what: "expand to 20 bytes".to_owned(),
            state,
            is_resting: false,
            error: None,
            snapshot: None,
            group: None,
        };
        let mut teller = VolumesTeller::default();
        let mut told = Vec::new();
        let states = [
            Some("going-up"),
            Some("up-at-controller"),
            Some("going-up-on-node"),
            Some("unknown-on-node"),
            None,
        ];
        for state in states {
            let orders = state.map(order).into_iter().collect();
            let status = VolumeStatus { orders, ..status("down", "down", vec![]) };
            let lines = teller.lines_of(&VolumesNews::Changed(reported(VolumeActor::Running, Some(status))));
            told.extend(lines.iter().map(|line| line.message.clone()));
        }
        let expected = [
            "default/data of plugin zfs is known",
            "default/data: expand to 20 bytes",
            "default/data: \"expand to 20 bytes\" is done at the controller",
            "default/data: expand to 20 bytes, on the node",
            "default/data: whether \"expand to 20 bytes\" is done is unknown",
            "default/data: \"expand to 20 bytes\" is not pending any more",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_claim_is_told_from_its_beginning_to_its_end_and_each_step_once_v3() {
        let proven = ClaimStatus { is_proven: true, ..claim("up") };
        let released = |publish| ClaimStatus { desired: Desired::Released, publish, ..proven.clone() };
        let lines = story([
            status("down", "down", vec![]),
            status("going-up", "down", vec![claim("down")]),
            status("up", "down", vec![claim("down")]),
            status("up", "going-up", vec![claim("down")]),
            status("up", "up", vec![claim("going-up")]),
            status("up", "up", vec![claim("going-up")]),
            status("up", "up", vec![proven.clone()]),
            status("up", "up", vec![released("going-down")]),
            status("up", "going-down", vec![]),
            status("unknown-down", "down", vec![]),
            status("down", "down", vec![]),
        ]);
        let expected = [
            "volumes → everyone: default/data of plugin zfs is known",
            "volumes → everyone: web claims default/data",
            "volumes → plugin zfs: attach default/data",
            "plugin zfs → volumes: default/data is attached",
            "volumes → plugin zfs: stage default/data",
            "plugin zfs → volumes: default/data is staged",
            "volumes → plugin zfs: publish default/data for web",
            "plugin zfs → volumes: default/data is published for web",
            "volumes → everyone: web has default/data at /volumes/web",
            "volumes → everyone: web has released default/data",
            "volumes → plugin zfs: unpublish default/data for web",
            "plugin zfs → volumes: default/data is unpublished for web",
            "volumes → everyone: the claim of web to default/data has ended",
            "volumes → plugin zfs: unstage default/data",
            "volumes → everyone: whether default/data is detached is unknown",
            "plugin zfs → volumes: default/data is unstaged",
            "plugin zfs → volumes: default/data is detached",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_creation_is_told_and_an_error_only_when_it_is_new() {
        let exists = |exists, error: Option<&str>| VolumeStatus {
            exists,
            error: error.map(str::to_owned),
            ..status("down", "down", vec![])
        };
        let lines = story([
            exists(Exists::BeingCreated, None),
            exists(Exists::BeingCreated, Some("no room")),
            exists(Exists::BeingCreated, Some("no room")),
            exists(Exists::Created, None),
            exists(Exists::BeingDeleted, None),
            exists(Exists::Absent, None),
        ]);
        let expected = [
            "volumes → plugin zfs: create default/data",
            "volumes → everyone: default/data: no room",
            "plugin zfs → volumes: default/data is created",
            "volumes → plugin zfs: delete default/data",
            "plugin zfs → volumes: default/data does not exist",
        ];
        assert_eq!(lines[1..], expected);
    }

    #[test]
    fn what_is_known_at_the_beginning_is_not_told_and_falls_are() {
        let mut teller = VolumesTeller::default();
        let up = || Some(status("up", "up", vec![claim("up")]));
        assert_eq!(teller.begin(&VolumesView { volumes: vec![reported(VolumeActor::Running, up())] }), []);
        let news = VolumesNews::Changed(reported(VolumeActor::Running, up()));
        assert_eq!(told(&mut teller, &news), Vec::<String>::new());
        let fallen = VolumeActor::Pausing { reason: "crashed: a drill".to_owned() };
        let news = VolumesNews::Changed(reported(fallen, up()));
        let expected = "its actor ended, and is started again: crashed: a drill";
        assert_eq!(told(&mut teller, &news), [format!("volumes → everyone: default/data: {expected}")]);
        assert_eq!(sentence(&news), format!("default/data: {expected}"));
    }

    #[test]
    fn an_audit_says_what_may_be_left_and_who_wanted_it_v9() {
        let forced = Forced {
            volume: key(),
            reason: "user 0: the node burnt".to_owned(),
            at: Timestamp::default(),
            left: vec!["stage unknown-down at /staging".to_owned()],
        };
        let news = VolumesNews::Forced(forced.clone());
        let expected = "default/data is forgotten by force: stage unknown-down at /staging may be left; user 0: the node burnt";
        assert_eq!(told(&mut VolumesTeller::default(), &news), [format!("volumes → everyone: {expected}")]);
        let nothing = VolumesAnswer::ForceRelease(Ok(Forced { left: vec![], ..forced }));
        assert_eq!(answer(&nothing).unwrap(), "nothing may be left; user 0: the node burnt");
    }

    #[test]
    fn answers_say_what_was_done_or_why_it_was_not() {
        let released =
            Released { was_held: true, others: vec![AllocationId::new("db").unwrap()], has_orders: false };
        assert_eq!(answer(&VolumesAnswer::Release(Ok(released))).unwrap(), "released; held by db");
        let unknown = callboard_actors::volumes::UnknownVolume { volume: key() };
        let expected = "no: there is no volume default/data";
        assert_eq!(answer(&VolumesAnswer::DescribeVolume(Err(unknown))).unwrap(), expected);
        assert_eq!(answer(&VolumesAnswer::ListVolumes(vec![])).unwrap(), "no volumes");
        let confirmed = callboard_actors::volumes::VolumeConfirmed {
            volume: key(),
            result: Ok(ClaimsConfirmed {
                confirmed: vec![AllocationId::new("web").unwrap()],
                released: vec![AllocationId::new("db").unwrap()],
            }),
        };
        let expected = "default/data: held by web; released from db";
        assert_eq!(answer(&VolumesAnswer::ConfirmClaims(vec![confirmed])).unwrap(), expected);
    }
}
