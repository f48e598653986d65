//! Shows volumes and their troubles.

use callboard_proto::admin::v1 as wire;

use super::health::{self, Trouble};
use super::show::first;
use super::table::{Cell, Table};
use super::usage;
use crate::config::volume_words;
use crate::output::{Palette, Tone, harmless};

/// The table of volumes, those with troubles first.
pub(super) fn table(volumes: &[wire::VolumeStatus]) -> Table {
    let mut table = Table::new(&["VOLUME", "PLUGIN", "STATE", "SIZE", "ATTACH", "STAGE", "CLAIMS", "DOING"]);
    for volume in first(volumes, |volume| trouble(volume).is_some()) {
        let size =
            if volume.capacity_bytes == 0 { String::new() } else { usage::bytes(volume.capacity_bytes) };
        let (word, tone) = state(volume);
        let cells = vec![
            Cell::plain(&volume.name),
            Cell::plain(&volume.plugin),
            Cell::toned(tone, word),
            Cell::plain(size),
            Cell::toned(step_tone(&volume.attach), &volume.attach),
            Cell::toned(step_tone(&volume.stage), &volume.stage),
            Cell::plain(claims(volume)),
            Cell::plain(&volume.doing),
        ];
        table.row(cells, remarks(volume));
    }
    table
}

/// A volume in one line of `watch`.
pub(super) fn line(volume: &wire::VolumeStatus, palette: Palette) -> String {
    let (word, tone) = state(volume);
    let mut line = format!("volume {}  {}", harmless(&volume.name), palette.paint(tone, word));
    for (step, at) in [("attach", &volume.attach), ("stage", &volume.stage)] {
        if !at.is_empty() {
            line.push_str(&format!("  {step} {}", palette.paint(step_tone(at), at)));
        }
    }
    let claims = harmless(&claims(volume));
    if !claims.is_empty() {
        line.push_str(&format!("  {claims}"));
    }
    let told = [volume.doing.clone()].into_iter().chain(remarks(volume)).filter(|text| !text.is_empty());
    told.for_each(|text| line.push_str(&format!("  ({})", harmless(&text))));
    line
}

/// Its state in a word: the state of its actor if that has ended unexpectedly, else whether it exists.
fn state(volume: &wire::VolumeStatus) -> (&str, Tone) {
    match (&*volume.actor, &*volume.exists) {
        (fallen @ ("pausing" | "given-up"), _) => (fallen, Tone::Bad),
        (_, "") if volume.known => ("unused", Tone::Plain),
        (_, "configured") => ("configured", Tone::Plain),
        (_, "") => ("unknown", Tone::Doubtful),
        (_, word @ ("registered" | "created")) => (word, Tone::Good),
        (_, word @ "unfit") => (word, Tone::Bad),
        (_, word @ "absent") => (word, Tone::Faint),
        (_, word) => (word, Tone::Doubtful),
    }
}

fn step_tone(step: &str) -> Tone {
    match step {
        "" => Tone::Plain,
        "up" => Tone::Good,
        "down" => Tone::Faint,
        "unknown-up" | "unknown-down" => Tone::Bad,
        _ => Tone::Doubtful,
    }
}

/// Its claims, with the state of each publication.
fn claims(volume: &wire::VolumeStatus) -> String {
    let claim = |claim: &wire::VolumeClaim| {
        let marks = [
            (claim.desired == "released", " released"),
            (claim.provisional, " provisional"),
            (claim.publish == "up" && !claim.proven, " not-proven"),
        ];
        let marks: String = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect();
        format!("{} {}{marks}", claim.allocation, claim.publish)
    };
    volume.claims.iter().map(claim).collect::<Vec<_>>().join(", ")
}

/// The errors that its present operation does not mention.
fn remarks(volume: &wire::VolumeStatus) -> Vec<String> {
    let fallen = format!("its actor ended: {}", volume.actor_reason);
    let fallen = Some(fallen).filter(|_| !volume.actor_reason.is_empty());
    let is_new = |error: &&String| !error.is_empty() && !volume.doing.contains(error.as_str());
    let error = Some(&volume.error).filter(is_new).cloned();
    let of_claims = volume.claims.iter().filter(|claim| is_new(&&claim.error));
    let of_claims = of_claims.map(|claim| format!("{}: {}", claim.allocation, claim.error));
    fallen.into_iter().chain(error).chain(of_claims).collect()
}

/// The trouble of a volume by itself. A volume that is being set up is not well yet.
fn trouble(volume: &wire::VolumeStatus) -> Option<Trouble> {
    let of_claim = volume.claims.iter().find(|claim| !claim.error.is_empty());
    let of_claim = of_claim.map(|claim| format!("{}: {}", claim.allocation, claim.error));
    let what = match (&*volume.actor, &*volume.exists, of_claim) {
        (fallen @ ("pausing" | "given-up"), _, _) => format!("{fallen}: {}", volume.actor_reason),
        (_, unfit @ "unfit", _) => format!("{unfit}: {}", volume.doing),
        _ if !volume.error.is_empty() => volume.error.clone(),
        (_, _, Some(of_claim)) => of_claim,
        (_, "", None) if volume.pending => "its actor has not reported its state yet".to_owned(),
        (_, _, None) if volume.pending => format!("{} ({})", volume.doing, states(volume)),
        (_, _, None) => return None,
    };
    Some(Trouble { kind: "volume", name: volume.name.clone(), what })
}

/// The states of the steps of a volume that are set up.
fn states(volume: &wire::VolumeStatus) -> String {
    let claims = claims(volume);
    let claims = if claims.is_empty() { claims } else { format!("; {claims}") };
    format!("{}, attach {}, stage {}{claims}", volume.exists, volume.attach, volume.stage)
}

/// Nothing on this host serves the plugin of a volume that is in use, or being set up: the volume stays as it is until something does. A
/// stopped allocation serves nothing, and a controller undoes nothing on this node.
fn unserved(volume: &wire::VolumeStatus, status: &wire::GetStatusResponse) -> Option<Trouble> {
    let is_used = volume.pending || !volume.claims.is_empty();
    let needs_node = !volume.claims.is_empty() || !matches!(&*volume.stage, "" | "down");
    let serves = |one: &&wire::AllocationStatus| {
        one.plugin == volume.plugin && !(needs_node && one.role == "controller")
    };
    let mut served = status.allocations.iter().filter(serves);
    let stopped = served.clone().find(|one| one.task_state == "stopped");
    let is_there = |plugin: &&wire::PluginStatus| plugin.expected > 0 || plugin.registered > 0;
    let of_its_plugin = |plugin: &wire::PluginStatus| {
        plugin.name == volume.plugin && !(needs_node && plugin.r#type == "csi-controller")
    };
    let is_served = served.any(|one| one.task_state != "stopped")
        || status.plugins.iter().filter(is_there).any(of_its_plugin);
    let of_it = || {
        let advice = match stopped {
            Some(one) => format!("`callboard start {}` starts one", one.name),
            None => "add one to the configuration".to_owned(),
        };
        let doing = format!("{} ({})", volume.doing, states(volume));
        format!("no allocation serves its plugin {}; {advice}: {doing}", volume.plugin)
    };
    (is_used && !is_served).then(|| Trouble { kind: "volume", name: volume.name.clone(), what: of_it() })
}

/// All troubles of a host and its volumes, or of the objects of this name.
pub(super) fn troubles(status: &wire::GetStatusResponse, name: Option<&str>) -> Vec<Trouble> {
    let is_meant =
        |volume: &&wire::VolumeStatus| name.is_none_or(|name| volume_words::is_named(&volume.name, name));
    let mut found = health::troubles(status, name);
    // An actor that did not answer is missing, and is reported as a trouble of its own.
    let knows_allocations = !status.gone.iter().any(|gone| gone.name == "agent");
    let unserved = |volume| unserved(volume, status).filter(|_| knows_allocations);
    let of_it = |volume| unserved(volume).or_else(|| trouble(volume));
    found.extend(status.volumes.iter().filter(is_meant).filter_map(of_it));
    found
}

/// The objects of this name, with what belongs to them, the volumes that they claim, and the volume of this name. `None` if there is none.
pub(super) fn of_name(status: &wire::GetStatusResponse, name: &str) -> Option<wire::GetStatusResponse> {
    let of_it = |volume: &&wire::VolumeStatus| {
        let is_claimed = volume.claims.iter().any(|claim| claim.allocation == name);
        is_claimed || volume_words::is_named(&volume.name, name)
    };
    let volumes: Vec<_> = status.volumes.iter().filter(of_it).cloned().collect();
    match health::of_name(status, name) {
        Some(others) => Some(wire::GetStatusResponse { volumes, ..others }),
        None => volume_of_name(status, name),
    }
}

/// The plain name of an object: a user may give `KIND/NAME`, as output writes it. `None` if there is no such object.
pub(super) fn plain_name<'a>(status: &wire::GetStatusResponse, given: &'a str) -> Option<&'a str> {
    if of_name(status, given).is_some() {
        return Some(given);
    }
    let (kind, name) = given.split_once('/')?;
    let is_there = match kind {
        "allocation" => status.allocations.iter().any(|one| one.name == name),
        "driver" => status.drivers.iter().any(|one| one.name == name),
        // The process of an allocation has this kind too, in the tree and during a stop.
        "task" => {
            let is_one = status.tasks.iter().any(|one| one.name == name);
            is_one || status.allocations.iter().any(|one| one.name == name)
        }
        "volume" => volume_of_name(status, name).is_some(),
        plugin_type => status.plugins.iter().any(|one| one.r#type == plugin_type && one.name == name),
    };
    is_there.then_some(name)
}

/// The volume of this name alone. `None` if there is none.
pub(super) fn volume_of_name(
    status: &wire::GetStatusResponse,
    name: &str,
) -> Option<wire::GetStatusResponse> {
    let volume = status.volumes.iter().find(|volume| volume_words::is_named(&volume.name, name))?;
    Some(wire::GetStatusResponse {
        host: status.host.clone(),
        volumes: vec![volume.clone()],
        ..Default::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(name: &str) -> wire::VolumeStatus {
        wire::VolumeStatus {
            name: format!("default/{name}"),
            plugin: "zfs".to_owned(),
            exists: "registered".to_owned(),
            known: true,
            actor: "running".to_owned(),
            attach: "up".to_owned(),
            stage: "up".to_owned(),
            doing: "in use".to_owned(),
            ..Default::default()
        }
    }

    fn claim(allocation: &str, error: &str) -> wire::VolumeClaim {
        wire::VolumeClaim {
            allocation: allocation.to_owned(),
            desired: "held".to_owned(),
            proven: true,
            publish: "up".to_owned(),
            error: error.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn what_is_not_well_is_first_and_says_why() {
        let well = wire::VolumeStatus {
            capacity_bytes: 3 << 29,
            claims: vec![claim("web", ""), wire::VolumeClaim { proven: false, ..claim("db", "") }],
            ..volume("a")
        };
        let unused = wire::VolumeStatus {
            exists: String::new(),
            attach: String::new(),
            stage: String::new(),
            doing: String::new(),
            actor: "unneeded".to_owned(),
            ..volume("b")
        };
        let failing = wire::VolumeStatus {
            stage: "unknown-up".to_owned(),
            doing: "stage is tried again; no \u{1b}[2Jroom".to_owned(),
            error: "no \u{1b}[2Jroom".to_owned(),
            claims: vec![claim("web", "not mounted")],
            ..volume("c")
        };
        let fallen = wire::VolumeStatus {
            actor: "given-up".to_owned(),
            actor_reason: "crashed: a drill".to_owned(),
            ..volume("d")
        };
        let lines = table(&[well, unused, failing, fallen]).lines(Palette::plain());
        let expected = "\
VOLUME     PLUGIN  STATE       SIZE     ATTACH  STAGE       CLAIMS                    DOING
default/c  zfs     registered  -        up      unknown-up  web up                    stage is tried again; no \\u{1b}[2Jroom
  └ web: not mounted
default/d  zfs     given-up    -        up      up          -                         in use
  └ its actor ended: crashed: a drill
default/a  zfs     registered  1.5 GiB  up      up          web up, db up not-proven  in use
default/b  zfs     unused      -        -       -           -                         -
";
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_volume_is_not_well_while_something_fails_and_its_name_selects_it() {
        let failing = wire::VolumeStatus { error: "no room".to_owned(), ..volume("c") };
        let unfit = wire::VolumeStatus {
            exists: "unfit".to_owned(),
            doing: "it is not what was asked for: too small".to_owned(),
            ..volume("d")
        };
        let host = Some(wire::HostStatus::default());
        let volumes = vec![volume("a"), failing, unfit];
        let status = wire::GetStatusResponse { host, volumes, ..Default::default() };
        let told = |name| -> Vec<String> {
            troubles(&status, name).iter().map(|t| format!("{} {}: {}", t.kind, t.name, t.what)).collect()
        };
        let all =
            ["volume default/c: no room", "volume default/d: unfit: it is not what was asked for: too small"];
        assert_eq!(told(None), all);
        assert_eq!(told(Some("c")), all[..1]);
        assert_eq!(told(Some("default/d")), all[1..]);
        assert_eq!(told(Some("a")), Vec::<String>::new());
        let found = of_name(&status, "default/a").expect("it is there");
        assert!(found.host.is_some() && found.volumes.len() == 1);
        assert_eq!(of_name(&status, "other/a"), None);
        assert_eq!(volume_of_name(&status, "b"), None);
    }

    #[test]
    fn a_name_with_its_kind_is_what_output_writes_and_a_volume_may_have_one_that_looks_so() {
        let plugin = wire::PluginStatus {
            r#type: "csi-node".to_owned(),
            name: "zfs".to_owned(),
            ..Default::default()
        };
        let task = wire::AllocationStatus { name: "web".to_owned(), ..Default::default() };
        let status = wire::GetStatusResponse {
            plugins: vec![plugin],
            allocations: vec![task],
            volumes: vec![wire::VolumeStatus { name: "task/web".to_owned(), ..volume("a") }, volume("b")],
            ..Default::default()
        };
        let meant = |given| plain_name(&status, given);
        assert_eq!(["zfs", "csi-node/zfs"].map(meant), [Some("zfs"); 2]);
        assert_eq!(["web", "allocation/web"].map(meant), [Some("web"); 2]);
        assert_eq!(
            ["b", "volume/b", "volume/default/b"].map(meant),
            [Some("b"), Some("b"), Some("default/b")]
        );
        assert_eq!(meant("task/web"), Some("task/web"), "a volume of the namespace `task`");
        let without = wire::GetStatusResponse { volumes: Vec::new(), ..status.clone() };
        assert_eq!(plain_name(&without, "task/web"), Some("web"), "the process of an allocation");
        assert_eq!(["csi-controller/zfs", "allocation/zfs", "driver/web", "c"].map(meant), [None; 4]);
    }

    #[test]
    fn a_volume_that_is_on_its_way_or_that_nothing_can_undo_is_not_well() {
        let served = wire::AllocationStatus {
            name: "zfs-1".to_owned(),
            plugin: "zfs".to_owned(),
            task_state: "running".to_owned(),
            state: "registered".to_owned(),
            health: "healthy".to_owned(),
            ..Default::default()
        };
        let status = |volume, allocations: &[wire::AllocationStatus]| wire::GetStatusResponse {
            host: Some(wire::HostStatus::default()),
            volumes: vec![volume],
            allocations: allocations.to_vec(),
            ..Default::default()
        };
        let told = |volume: &wire::VolumeStatus, allocations: &[wire::AllocationStatus]| -> Vec<String> {
            troubles(&status(volume.clone(), allocations), None).into_iter().map(|t| t.what).collect()
        };
        let served = [served];
        let undone = wire::VolumeStatus {
            stage: "unknown-down".to_owned(),
            doing: "NodeUnstageVolume waits for a healthy instance of the plugin".to_owned(),
            pending: true,
            ..volume("a")
        };
        let state = "NodeUnstageVolume waits for a healthy instance of the plugin (registered, attach up, stage unknown-down)";
        assert_eq!(told(&undone, &served), [state]);
        let none = "no allocation serves its plugin zfs; add one to the configuration: ";
        assert_eq!(told(&undone, &[]), [format!("{none}{state}")]);
        let used = wire::VolumeStatus { claims: vec![claim("web", "")], ..volume("a") };
        assert_eq!(told(&used, &served), [""; 0]);
        assert_eq!(told(&used, &[])[0], format!("{none}in use (registered, attach up, stage up; web up)"));
        let stopped = served
            .each_ref()
            .map(|one| wire::AllocationStatus { task_state: "stopped".to_owned(), ..one.clone() });
        let controller = wire::AllocationStatus { role: "controller".to_owned(), ..served[0].clone() };
        let with_controller = told(&used, &[stopped[0].clone(), controller]);
        let stopped = &told(&used, &stopped)[0];
        assert_eq!(&with_controller, std::slice::from_ref(stopped), "a controller undoes nothing here");
        assert!(
            stopped.starts_with("no allocation serves its plugin zfs; `callboard start zfs-1` starts one: "),
            "{stopped}"
        );
        let unused = wire::VolumeStatus { attach: String::new(), stage: String::new(), ..volume("a") };
        assert_eq!(told(&unused, &[]), [""; 0]);
    }

    #[test]
    fn a_task_is_shown_with_the_volumes_that_it_claims() {
        let task = wire::TaskStatus { name: "web".to_owned(), ..Default::default() };
        let used = wire::VolumeStatus { claims: vec![claim("web", "")], ..volume("a") };
        let (tasks, volumes) = (vec![task], vec![used, volume("b")]);
        let status = wire::GetStatusResponse { tasks, volumes, ..Default::default() };
        let found = of_name(&status, "web").expect("it is there");
        assert_eq!((found.tasks.len(), found.volumes.len()), (1, 1));
    }

    #[test]
    fn a_task_and_a_volume_of_one_name_are_shown_both() {
        let task = wire::TaskStatus { name: "a".to_owned(), ..Default::default() };
        let (tasks, volumes) = (vec![task], vec![volume("a")]);
        let status = wire::GetStatusResponse { tasks, volumes, ..Default::default() };
        let found = of_name(&status, "a").expect("both");
        assert_eq!((found.tasks.len(), found.volumes.len()), (1, 1));
    }

    #[test]
    fn a_volume_is_watched_in_one_line() {
        let watched = wire::VolumeStatus { claims: vec![claim("web", "")], ..volume("a") };
        let expected = "volume default/a  registered  attach up  stage up  web up  (in use)";
        assert_eq!(line(&watched, Palette::plain()), expected);
    }
}
