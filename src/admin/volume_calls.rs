//! Handles requests of the admin socket about volumes. The text of a request is parsed here; the owner of the volumes decides whether it
//! can be done. A request reaches the owner at most once.

use std::time::Duration;

use callboard_actors::csi::{
    AccessMode, AccessType, CapacityRange, MountFlags, MountVolume, VolumeCapability, VolumeContentSource,
};
use callboard_actors::vocabulary::{AllocationId, PluginName};
use callboard_actors::volume::{self, ForceScope, NewVolume, ObservedEnd, Usage, VolumeKey};
use callboard_actors::volumes::{
    Claim, ClaimError, CreateError, CreateVolume, DescribeVolume, ForceError, ForceRelease, Release,
    ReleaseError, UnknownVolume,
};
use callboard_proto::admin::v1 as wire;
use tokio::time::Instant;
use tonic::{Code, Response, Status};

use super::convert::unanswered;
use super::server::Sources;
use super::volume_ends::forget_secrets;
use super::volumes::topology;
use super::workloads::Workloads;
use crate::config::{VolumeConfig, suggest, volume_words};

/// The longest time that a request may wait for its answer.
const WITHIN_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The longest reason of a forced release, in bytes.
const REASON_BYTES_MAX: usize = 1_024;

/// Creates a volume.
pub(super) async fn create(
    sources: &Sources,
    asked: wire::CreateVolumeRequest,
) -> Result<wire::CreateVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    if sources.volumes.entry(&volume).is_some() {
        let text = format!(
            "volume {name} is not created: it is in the configuration, by which its first claim makes it; choose another name"
        );
        return Err(Status::failed_precondition(text));
    }
    let plugin = PluginName::new(&asked.plugin).map_err(invalid)?;
    if is_unknown(sources, &volume).await? {
        let refused = |text| Status::failed_precondition(format!("volume {name} is not created: {text}"));
        check_served(sources, &plugin).map_err(refused)?;
        // An earlier volume of this name was a different volume.
        let forgotten = forget_secrets(sources, &volume, within(asked.within_ms)).await;
        forgotten.map_err(|text| Status::unavailable(format!("volume {name} is not created: {text}")))?;
    }
    let range = CapacityRange { required_bytes: asked.capacity_bytes, limit_bytes: asked.limit_bytes };
    let create = CreateVolume {
        volume,
        plugin,
        new: NewVolume {
            capacity_range: (range != CapacityRange::default()).then_some(range),
            capabilities: vec![capability(asked.usage)?],
            parameters: asked.parameters.into_iter().collect(),
            content_source: content(asked.from_snapshot, asked.from_volume)?,
            ..NewVolume::default()
        },
        within: within(asked.within_ms),
    };
    let created = sources.host.volumes().ask(create).await.map_err(|error| unanswered(&error))?;
    let volume = created.map_err(|error| Status::new(not_created(&error), error.to_string()))?.volume;
    Ok(wire::CreateVolumeResponse {
        name,
        volume_id: volume.volume_id.clone(),
        capacity_bytes: volume.capacity_bytes,
        context: volume.volume_context.clone().into_iter().collect(),
        topology: topology(&volume.accessible_topology),
    })
}

/// Whether an allocation of the configuration serves this plugin as controller.
pub(super) fn check_served(sources: &Sources, plugin: &PluginName) -> Result<(), String> {
    if sources.controllers.contains(plugin) {
        return Ok(());
    }
    let known: Vec<_> = sources.controllers.iter().map(PluginName::as_str).collect();
    let advice = match &known[..] {
        [] => "add one of the type `controller` or `monolith`".to_owned(),
        known => suggest::advice(plugin.as_str(), known),
    };
    Err(format!("no allocation of the configuration serves plugin {plugin} as controller; {advice}"))
}

/// Whether the host does not know a volume at all, not even that it is to be created.
pub(super) async fn is_unknown(sources: &Sources, volume: &VolumeKey) -> Result<bool, Status> {
    let described = sources.host.volumes().ask(DescribeVolume { volume: volume.clone() }).await;
    Ok(described.map_err(|error| unanswered(&error))?.is_err())
}

/// Claims a volume for an allocation that the host does not run itself: the end of an allocation of the host would release the claim.
pub(super) async fn claim(
    sources: &Sources,
    asked: wire::ClaimVolumeRequest,
) -> Result<wire::ClaimVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let until = Instant::now() + within(asked.within_ms);
    let usage = usage(sources.volumes.entry(&volume), asked.usage, asked.read_only)?;
    let allocation = allocation(&asked.allocation)?;
    if workloads(sources, &format!("volume {name} is not claimed")).await?.has(&allocation) {
        let text = format!(
            "volume {name} is not claimed: this host runs {allocation} itself, and would release the claim when that ends; choose another allocation name"
        );
        return Err(Status::failed_precondition(text));
    }
    if sources.departed.contains(&allocation) {
        let text = format!(
            "volume {name} is not claimed: an earlier configuration of this host had an allocation {allocation}, and a start of the host would release the claim as one that it left; choose another allocation name"
        );
        return Err(Status::failed_precondition(text));
    }
    let known = sources.volumes.make_known(&volume, left(until)).await;
    known.map_err(|error| Status::new(code_of(false, false, error.is_transient), error.reason))?;
    let claim = Claim { volume, allocation, usage, within: left(until) };
    let claimed = sources.host.volumes().ask(claim).await.map_err(|error| unanswered(&error))?;
    let claimed = claimed.map_err(|error| Status::new(not_claimed(&error), error.to_string()))?;
    Ok(wire::ClaimVolumeResponse {
        name,
        path: claimed.path.display().to_string(),
        block: claimed.is_block,
        read_only: claimed.read_only,
        generation: claimed.generation.get(),
    })
}

/// Releases the claim of an allocation whose last process has ended, according to its client. If the host itself knows otherwise, or cannot
/// tell, nothing is released (V8).
pub(super) async fn release(
    sources: &Sources,
    asked: wire::ReleaseVolumeRequest,
) -> Result<wire::ReleaseVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let allocation = allocation(&asked.allocation)?;
    let refused = format!("volume {name} is not released");
    if sources.volumes.entry(&volume).is_none() && is_unknown(sources, &volume).await? {
        return Err(Status::not_found(ReleaseError::Unknown(UnknownVolume { volume }).to_string()));
    }
    if let Some(what) = workloads(sources, &refused).await?.living(&allocation) {
        return Err(Status::failed_precondition(format!("{refused}: {what}")));
    }
    let observed = ObservedEnd::Exited;
    let release = Release { volume, allocation, observed, within: within(asked.within_ms) };
    let released = sources.host.volumes().ask(release).await.map_err(|error| unanswered(&error))?;
    let released = released.map_err(|error| Status::new(not_released(&error), error.to_string()))?;
    let others = released.others.iter().map(ToString::to_string).collect();
    Ok(wire::ReleaseVolumeResponse { name, was_held: released.was_held, others })
}

/// Forgets what is released and not confirmed down, in the name of this user (V9).
pub(super) async fn force(
    sources: &Sources,
    user: Option<u32>,
    asked: wire::ForceReleaseVolumeRequest,
) -> Result<wire::ForceReleaseVolumeResponse, Status> {
    let volume = key(&asked.name)?;
    let name = volume.to_string();
    let scope = match (asked.allocation.as_str(), asked.orders_only) {
        ("", false) => ForceScope::Everything,
        ("", true) => ForceScope::Orders,
        (claimant, false) => ForceScope::Claim(allocation(claimant)?),
        (_, true) => {
            return Err(invalid("only an allocation or `orders_only` can be given: a claim has no orders"));
        }
    };
    let reason = reason(user, &asked.reason)?;
    let force = ForceRelease { volume, scope, reason };
    let forced = sources.host.volumes().ask(force).await.map_err(|error| unanswered(&error))?;
    let forced = forced.map_err(|error| Status::new(not_forced(&error), error.to_string()))?;
    Ok(wire::ForceReleaseVolumeResponse { name, reason: forced.reason, left: forced.left })
}

/// Logs the outcome of an operator's command, and answers it.
pub(super) fn logged<T>(
    action: &str,
    volume: &str,
    user: Option<u32>,
    done: Result<T, Status>,
) -> Result<Response<T>, Status> {
    logged_if(action, volume, user, done, |_| true)
}

/// The same for a command whose answer may be that it had no target.
pub(super) fn logged_if<T>(
    action: &str,
    volume: &str,
    user: Option<u32>,
    done: Result<T, Status>,
    was_there: impl Fn(&T) -> bool,
) -> Result<Response<T>, Status> {
    let (user, volume) = (user_text(user), volume.escape_debug());
    match done.as_ref().map(was_there).map_err(Status::message) {
        Ok(true) => tracing::info!(action, %volume, user, "volume command succeeded"),
        Ok(false) => tracing::info!(action, %volume, user, "volume command failed: not found"),
        Err(error) => tracing::info!(action, %volume, user, error, "volume command failed"),
    }
    done.map(Response::new)
}

fn user_text(user: Option<u32>) -> String {
    user.map_or_else(|| "an unknown user".to_owned(), |user| format!("user {user}"))
}

/// The workloads of the host. While they are unknown, the request is refused.
async fn workloads(sources: &Sources, refused: &str) -> Result<Workloads, Status> {
    if sources.stopping.borrow().is_some() {
        return Err(Status::unavailable(format!(
            "{refused}: the host is stopping; try again after its next start"
        )));
    }
    let Sources { host, agent, tasks, .. } = sources;
    Workloads::ask(host, agent, tasks).await.map_err(|reason| {
        Status::unavailable(format!(
            "{refused}: {reason}; see `callboard health`, and try again when it answers"
        ))
    })
}

// === Text of requests ===

pub(super) fn invalid(error: impl ToString) -> Status {
    Status::invalid_argument(error.to_string())
}

pub(super) fn key(name: &str) -> Result<VolumeKey, Status> {
    volume_words::volume_key(name).map_err(invalid)
}

fn content(from_snapshot: String, from_volume: String) -> Result<Option<VolumeContentSource>, Status> {
    match (from_snapshot.is_empty(), from_volume.is_empty()) {
        (true, true) => Ok(None),
        (false, true) => Ok(Some(VolumeContentSource::Snapshot(from_snapshot))),
        (true, false) => Ok(Some(VolumeContentSource::Volume(from_volume))),
        (false, false) => {
            Err(invalid("a volume has the content of a snapshot or of a volume; give one of them"))
        }
    }
}

fn allocation(name: &str) -> Result<AllocationId, Status> {
    AllocationId::new(name).map_err(invalid)
}

pub(super) fn within(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(WITHIN_MAX)
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// How a claim uses a volume.
fn usage(
    entry: Option<&VolumeConfig>,
    asked: Option<wire::VolumeUsage>,
    read_only: bool,
) -> Result<Usage, Status> {
    let capability = capability_of(entry, asked)?;
    let is_read = entry.is_some_and(|entry| entry.usage.read_only) || capability.access_mode.is_read_only();
    Ok(Usage { read_only: read_only || is_read, capability })
}

/// How a volume is used: as requested, else as configured, else by one writer of a file system.
pub(super) fn capability_of(
    entry: Option<&VolumeConfig>,
    asked: Option<wire::VolumeUsage>,
) -> Result<VolumeCapability, Status> {
    match (asked, entry) {
        (Some(asked), _) => capability(Some(asked)),
        (None, Some(entry)) => Ok(entry.usage.capability.clone()),
        (None, None) => Ok(VolumeCapability {
            access_type: AccessType::Mount(MountVolume::default()),
            access_mode: AccessMode::SingleNodeWriter,
        }),
    }
}

fn capability(usage: Option<wire::VolumeUsage>) -> Result<VolumeCapability, Status> {
    let usage = usage.ok_or_else(|| invalid("the request does not say how the volume is used"))?;
    let wire::VolumeUsage { access_mode, block, fs_type, mount_flags, mount_group } = usage;
    let access_mode = volume_words::access_mode(&access_mode)
        .map_err(|advice| invalid(format!("there is no access mode {access_mode:?}; {advice}")))?;
    let mount =
        MountVolume { fs_type, mount_flags: MountFlags::new(mount_flags), volume_mount_group: mount_group };
    let access_type = match block {
        true if mount != MountVolume::default() => {
            let text =
                "a block device is not mounted; leave out file system, mount flags and group, or `block`";
            return Err(invalid(text));
        }
        true => AccessType::Block,
        false => AccessType::Mount(mount),
    };
    Ok(VolumeCapability { access_type, access_mode })
}

/// Who forces the release and why, for the audit.
fn reason(user: Option<u32>, reason: &str) -> Result<String, Status> {
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(invalid("a forced release needs a reason, which the audit keeps; say why it is forced"));
    }
    if reason.len() > REASON_BYTES_MAX {
        let bytes = reason.len();
        return Err(invalid(format!("the reason has {bytes} bytes; at most {REASON_BYTES_MAX} are taken")));
    }
    Ok(format!("{}: {reason}", user_text(user)))
}

// === Error codes ===

/// How a client can react: retry at once, retry later, or change something first.
pub(super) const fn code_of(is_pending: bool, is_invalid: bool, is_transient: bool) -> Code {
    match (is_pending, is_invalid, is_transient) {
        (true, _, _) => Code::DeadlineExceeded,
        (false, true, _) => Code::InvalidArgument,
        (false, false, true) => Code::Unavailable,
        (false, false, false) => Code::FailedPrecondition,
    }
}

const fn not_created(error: &CreateError) -> Code {
    let is_pending = matches!(error, CreateError::Refused(volume::CreateError::Pending { .. }));
    let is_invalid = matches!(error, CreateError::Refused(volume::CreateError::Invalid { .. }));
    code_of(is_pending, is_invalid, error.is_transient())
}

const fn not_claimed(error: &ClaimError) -> Code {
    match error {
        ClaimError::Unknown(_) => Code::NotFound,
        error => {
            let is_pending = matches!(error, ClaimError::Refused(volume::ClaimError::Pending { .. }));
            let is_invalid = matches!(error, ClaimError::Refused(volume::ClaimError::Invalid { .. }));
            code_of(is_pending, is_invalid, error.is_transient())
        }
    }
}

const fn not_released(error: &ReleaseError) -> Code {
    match error {
        ReleaseError::Unknown(_) => Code::NotFound,
        ReleaseError::Unconfirmed(volume::ReleaseError::Pending { .. }) => Code::DeadlineExceeded,
        ReleaseError::Unconfirmed(
            volume::ReleaseError::Refused { .. } | volume::ReleaseError::Forced { .. },
        ) => Code::FailedPrecondition,
        ReleaseError::TooManyCallers(_)
        | ReleaseError::NoAnswer(_)
        | ReleaseError::Stopping { .. }
        | ReleaseError::Unconfirmed(volume::ReleaseError::Stopping { .. }) => Code::Unavailable,
    }
}

const fn not_forced(error: &ForceError) -> Code {
    match error {
        ForceError::Unknown(_) => Code::NotFound,
        ForceError::Refused(_) => Code::FailedPrecondition,
        ForceError::TooManyCallers(_)
        | ForceError::NotPrepared { .. }
        | ForceError::NoAnswer(_)
        | ForceError::Stopping { .. } => Code::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use callboard_actors::volume::ClaimError as Refusal;

    use super::*;
    use crate::config::VolumeOrigin;

    fn usage() -> wire::VolumeUsage {
        wire::VolumeUsage { access_mode: "single-node-writer".to_owned(), ..Default::default() }
    }

    fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
        let status = answer.expect_err("it is refused");
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        status.message().to_owned()
    }

    #[test]
    fn how_a_volume_is_used_is_read_whole_v10() {
        let mounted = wire::VolumeUsage {
            fs_type: "ext4".to_owned(),
            mount_flags: vec!["noatime".to_owned()],
            mount_group: "7".to_owned(),
            ..usage()
        };
        let AccessType::Mount(mount) = capability(Some(mounted)).expect("it is valid").access_type else {
            panic!("it is mounted")
        };
        assert_eq!((&*mount.fs_type, &*mount.volume_mount_group), ("ext4", "7"));
        assert_eq!(mount.mount_flags.expose(), ["noatime"]);
        let block = capability(Some(wire::VolumeUsage { block: true, ..usage() })).expect("it is valid");
        assert_eq!(block.access_type, AccessType::Block);
    }

    #[test]
    fn a_claim_without_words_has_the_usage_of_the_configuration() {
        let entry = VolumeConfig {
            key: key("data").expect("a name"),
            plugin: PluginName::new("zfs").expect("a name"),
            origin: VolumeOrigin::Created(Box::default()),
            usage: Usage {
                capability: VolumeCapability {
                    access_type: AccessType::Block,
                    access_mode: AccessMode::MultiNodeMultiWriter,
                },
                read_only: true,
            },
            secrets: [].into(),
        };
        let of = |entry, asked| super::usage(entry, asked, false).expect("it is valid").to_string();
        assert_eq!(of(Some(&entry), None), "block device, multi-node-multi-writer, read-only");
        assert_eq!(of(None, None), "file system, single-node-writer");
        assert_eq!(of(Some(&entry), Some(usage())), "file system, single-node-writer, read-only");
    }

    #[test]
    fn what_a_request_says_wrongly_is_refused_with_what_to_do() {
        let both = wire::VolumeUsage { block: true, fs_type: "ext4".to_owned(), ..usage() };
        assert!(refused(capability(Some(both))).contains("a block device is not mounted; leave out"));
        let mode = wire::VolumeUsage { access_mode: "single-node-writer ".to_owned(), ..usage() };
        assert!(refused(capability(Some(mode))).ends_with("did you mean `single-node-writer`?"));
        assert!(refused(capability(None)).contains("does not say how the volume is used"));
        assert!(refused(reason(None, " \n")).contains("say why it is forced"));
        assert!(refused(reason(None, &"x".repeat(2_000))).contains("has 2000 bytes; at most 1024"));
        assert!(refused(key("a/b/c")).contains("has one slash at most"));
    }

    #[test]
    fn the_audit_of_a_force_says_who_wanted_it_v9() {
        assert_eq!(
            reason(Some(0), " the node of the plugin burnt ").expect("it is one"),
            "user 0: the node of the plugin burnt"
        );
        assert_eq!(reason(None, "x").expect("it is one"), "an unknown user: x");
    }

    #[test]
    fn a_client_learns_whether_asking_again_can_help_v15() {
        let volume = key("data").expect("a name");
        let allocation = allocation("web").expect("a name");
        let pending =
            Refusal::Pending { volume: volume.clone(), allocation, doing: "stage is in flight".to_owned() };
        let invalid = Refusal::Invalid { volume: volume.clone(), reason: "no".to_owned() };
        for (error, code) in [
            (ClaimError::Unknown(UnknownVolume { volume: volume.clone() }), Code::NotFound),
            (pending.into(), Code::DeadlineExceeded),
            (invalid.into(), Code::InvalidArgument),
            (ClaimError::Stopping { volume: volume.clone() }, Code::Unavailable),
            (
                ClaimError::Unreachable { volume, node: [].into(), volume_at: vec![] },
                Code::FailedPrecondition,
            ),
        ] {
            assert_eq!(not_claimed(&error), code, "{error}");
        }
    }
}
