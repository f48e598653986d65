//! Formats status, reports and trees for people.

use std::time::Duration;

use callboard_actors::vocabulary::FailoverPolicy;
use callboard_proto::admin::v1 as wire;
use wire::watch_response::News;

use super::disk::{directory_line, disk_line};
use super::driven;
use super::health;
use super::table::{Cell, Table};
use super::times::{ago, bounds, left_until, span, time_of_day, with_due};
use super::volumes;
use crate::output::{Palette, Tone, harmless};

/// `status`
pub(super) fn status(status: &wire::GetStatusResponse, palette: Palette) -> String {
    let mut text = status.host.as_ref().map(|host| head(host, palette)).unwrap_or_default();
    let groups = status.host.as_ref().map(|host| harmless(&host.control_groups)).unwrap_or_default();
    if groups.starts_with("none") && !status.tasks.is_empty() {
        text.push_str(&format!("control groups of tasks: {groups}\n"));
    }
    let lost = status.host.as_ref().filter(|host| !host.data_dir_problem.is_empty());
    text.push_str(&lost.map(|host| directory_line(host, palette)).unwrap_or_default());
    if let Some(stopping) = status.host.as_ref().and_then(|host| host.stopping.as_ref()) {
        text.push_str(&self::stopping(stopping, palette));
    }
    for gone in &status.gone {
        if !gone.ended {
            let name = does_not_answer(gone, palette);
            text.push_str(&format!("{name}, and what it knows is not shown: {}\n", harmless(&gone.reason)));
        }
    }
    text.push_str(&health::summary(&volumes::troubles(status, None), palette));
    text.push('\n');
    if status.plugins.is_empty() {
        text.push_str("no plugins\n");
    } else {
        text.push_str(&plugins(&status.plugins).lines(palette));
    }
    text.push('\n');
    if status.allocations.is_empty() {
        text.push_str("no allocations\n");
    } else {
        text.push_str(&allocations(&status.allocations).lines(palette));
    }
    driven::tables(status, palette, &mut text);
    if !status.volumes.is_empty() {
        text.push('\n');
        text.push_str(&volumes::table(&status.volumes).lines(palette));
    }
    text
}

fn head(host: &wire::HostStatus, palette: Palette) -> String {
    let data_dir = palette.paint(Tone::Faint, &harmless(&host.data_dir));
    let up = ago(host.started_at_unix_ms);
    let guess = match host.cpu_speed_guessed {
        true => format!(
            "{}: this machine does not tell its speed; its {} cores count {} MHz by a guess; `cpu_total_compute` of [host] sets it\n",
            palette.paint(Tone::Doubtful, "cpu"),
            host.cores,
            host.cpu_mhz
        ),
        false => String::new(),
    };
    let sick = host.disk.as_ref().filter(|disk| disk.health != "sound");
    let disk = sick.map(|disk| disk_line(disk, palette)).unwrap_or_default();
    format!(
        "callboard {}  pid {}  run {}  up {up}  {data_dir}\n{disk}{guess}",
        host.version, host.pid, host.run
    )
}

fn stopping(stopping: &wire::Stopping, palette: Palette) -> String {
    let word = palette.paint(Tone::Doubtful, if stopping.detach { "detaching" } else { "stopping" });
    let mut text = format!("{word} for {}\n", ago(stopping.since_unix_ms));
    for awaited in &stopping.waits_for {
        let left = |at: u64| (at > 0).then(|| left_until(at));
        let message = (!awaited.message.is_empty()).then(|| harmless(&awaited.message));
        let told = message.into_iter().chain(bounds(left(awaited.kill_unix_ms), left(awaited.until_unix_ms)));
        let told = told.collect::<Vec<_>>().join(", ");
        text.push_str(&format!("  waits for {}: {told}\n", harmless(&awaited.name)));
    }
    for ended in &stopping.ended {
        text.push_str(&format!("  {}: {}\n", harmless(&ended.child), harmless(&ended.ending)));
    }
    text
}

fn plugins(plugins: &[wire::PluginStatus]) -> Table {
    let mut table = Table::new(&[
        "PLUGIN",
        "TYPE",
        "HEALTH",
        "FOR",
        "UP",
        "GENERATION",
        "PROVIDER",
        "ACTIVE",
        "STANDBY",
        "VOLUMES",
    ]);
    for plugin in first(plugins, |plugin| health::plugin(plugin).is_some()) {
        let provider = format!("{} {}", plugin.provider, plugin.version);
        let cells = vec![
            Cell::plain(&plugin.name),
            Cell::plain(&plugin.r#type),
            Cell::toned(tone(&plugin.health), &plugin.health),
            Cell::plain(ago(plugin.since_unix_ms)),
            Cell::plain(format!("{}/{}", plugin.healthy, plugin.expected.max(plugin.registered))),
            Cell::plain(generation(plugin)),
            Cell::plain(provider.trim()),
            Cell::plain(&plugin.active_allocation),
            Cell::plain(standby(plugin)),
            Cell::plain(volumes_in_use(plugin)),
        ];
        let reason = (!plugin.reason.is_empty()).then(|| plugin.reason.clone());
        let notes = reason.into_iter().chain(plugin.remarks.iter().cloned()).chain(standbys(plugin));
        table.row(cells, notes.collect());
    }
    table
}

/// The unusual facts of an election: a policy other than the default, standbys that would not take over, and versions that run beside each
/// other.
fn standbys(plugin: &wire::PluginStatus) -> impl Iterator<Item = String> + '_ {
    let usual = FailoverPolicy::default().to_string();
    let policy = Some(&plugin.policy).filter(|policy| !policy.is_empty() && **policy != usual);
    let policy = policy.map(|policy| format!("policy {policy}"));
    let standbys = plugin.registrations.iter().filter(|registration| registration.standing == "standby");
    let lacking = standbys.filter_map(|standby| {
        let is_other = !standby.version.is_empty() && standby.version != plugin.version;
        let version = if is_other { format!(", version {}", standby.version) } else { String::new() };
        let calm = match standby.calm_until_unix_ms {
            0 => String::new(),
            until => format!(" (another {})", span(left_until(until))),
        };
        (is_other || !standby.ready)
            .then(|| format!("standby {}{version}: {}{calm}", standby.allocation, standby.lacks))
    });
    policy.into_iter().chain(lacking)
}

/// The standbys, and the provisional allocations, which are known from an earlier run.
fn standby(plugin: &wire::PluginStatus) -> String {
    let provisional = plugin.provisional_allocations.iter().map(|name| format!("({name})"));
    plugin.standby_allocations.iter().cloned().chain(provisional).collect::<Vec<_>>().join(" ")
}

/// How many volumes of a plugin are in use on this node, and its limit if it sets one.
fn volumes_in_use(plugin: &wire::PluginStatus) -> String {
    match (&*plugin.r#type, plugin.volumes_in_use, plugin.max_volumes) {
        ("csi-node", 1.., 0) => plugin.volumes_in_use.to_string(),
        ("csi-node", in_use, limit @ 1..) => format!("{in_use}/{limit}"),
        _ => String::new(),
    }
}

fn allocations(allocations: &[wire::AllocationStatus]) -> Table {
    let mut table = Table::new(&[
        "ALLOCATION",
        "PLUGIN",
        "TYPE",
        "TASK",
        "FOR",
        "PID",
        "RESTARTS",
        "REGISTRATION",
        "HEALTH",
        "LAST EVENT",
    ]);
    for allocation in first(allocations, |allocation| health::allocation(allocation).is_some()) {
        let pid = if allocation.pid == 0 { String::new() } else { allocation.pid.to_string() };
        let cells = vec![
            Cell::plain(&allocation.name),
            Cell::plain(&allocation.plugin),
            Cell::plain(&allocation.role),
            Cell::toned(tone(&allocation.task_state), &allocation.task_state),
            Cell::plain(ago(allocation.since_unix_ms)),
            Cell::plain(pid),
            Cell::plain(allocation.restarts.to_string()),
            Cell::toned(tone(&allocation.state), &allocation.state),
            Cell::toned(tone(&allocation.health), &allocation.health),
            Cell::plain(with_due(&allocation.last_event, allocation.due_unix_ms)),
        ];
        let reason = (!allocation.reason.is_empty()).then(|| allocation.reason.clone());
        table.row(cells, reason.into_iter().collect());
    }
    table
}

/// The items for which the predicate holds, then the others.
pub(super) fn first<T>(all: &[T], is_first: impl Fn(&T) -> bool) -> Vec<&T> {
    let (mut first, rest): (Vec<_>, Vec<_>) = all.iter().partition(|one| is_first(one));
    first.extend(rest);
    first
}

/// The colour of a state.
pub(super) fn tone(state: &str) -> Tone {
    match state {
        "healthy" | "running" | "registered" => Tone::Good,
        "unhealthy" | "failed" | "awaiting-restart" | "refused" | "out-of-reach" | "not running"
        | "not answering" => Tone::Bad,
        "gone" | "stopped" | "ended" => Tone::Faint,
        "" => Tone::Plain,
        _ => Tone::Doubtful,
    }
}

/// `stop` and `shutdown`
pub(super) fn report(report: &[wire::ChildEnding], palette: Palette) -> String {
    let mut table = Table::new(&["STOPPED", "TOOK", "HOW"]);
    for child in report {
        let took = format!("{:.3} s", Duration::from_millis(child.took_ms).as_secs_f64());
        let tone = if child.left { Tone::Bad } else { Tone::Plain };
        let ending = Cell::toned(tone, &child.ending);
        table.row(vec![Cell::plain(&child.child), Cell::plain(took), ending], vec![]);
    }
    table.lines(palette)
}

/// `tree`
pub(super) fn tree(root: &wire::TreeNode, palette: Palette) -> String {
    let mut text = String::new();
    branch(root, "", "", palette, &mut text);
    text
}

/// Shows a node after the prefix `here`, and its children after `below`.
fn branch(node: &wire::TreeNode, here: &str, below: &str, palette: Palette, text: &mut String) {
    let state = palette.paint(state_tone(&node.state), &harmless(&node.state));
    let mut details = Vec::new();
    if node.restarts > 0 {
        details.push(format!("{} restarts", node.restarts));
    }
    details.extend(node.crashes.filter(|crashes| *crashes > 0).map(|crashes| format!("{crashes} crashes")));
    details
        .extend(node.mailbox_depth.filter(|depth| *depth > 0).map(|depth| format!("{depth} in its mailbox")));
    let [kill, end] = [node.kills_within_ms, node.stops_within_ms].map(|ms| ms.map(Duration::from_millis));
    details.extend(bounds(kill, end));
    details.extend(node.ended.iter().map(|ended| harmless(&format!("{}: {}", ended.child, ended.ending))));
    if !node.message.is_empty() {
        details.push(harmless(&node.message));
    }
    let name = if node.kind == node.name {
        harmless(&node.name)
    } else {
        format!("{} {}", node.kind, harmless(&node.name))
    };
    let details = palette.paint(Tone::Faint, &details.join(", "));
    text.push_str(format!("{here}{name}  {state}  {details}").trim_end());
    text.push('\n');
    let last = node.children.len().saturating_sub(1);
    for (number, child) in node.children.iter().enumerate() {
        let (elbow, bar) = if number == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(child, &format!("{below}{elbow}"), &format!("{below}{bar}"), palette, text);
    }
}

/// The tone of a state of the tree, which may have several words.
fn state_tone(state: &str) -> Tone {
    state.split(", ").map(tone).find(|tone| *tone != Tone::Good).unwrap_or(Tone::Good)
}

/// One response of `watch`
pub(super) fn watched(response: &wire::WatchResponse, palette: Palette) -> String {
    let at = palette.paint(Tone::Faint, &time_of_day(response.at_unix_ms));
    match &response.news {
        Some(News::Snapshot(all)) => format!("{}\n", status(all, palette)),
        Some(News::PluginChanged(plugin)) => format!("{at}  {}\n", plugin_line(plugin, palette)),
        Some(News::PluginLeft(left)) => {
            format!(
                "{at}  plugin {}/{}  {}\n",
                left.r#type,
                harmless(&left.name),
                palette.paint(Tone::Faint, "left")
            )
        }
        Some(News::AllocationChanged(allocation)) => {
            format!("{at}  {}\n", allocation_line(allocation, palette))
        }
        Some(News::DriverChanged(driver)) => format!("{at}  {}\n", driven::driver_line(driver, palette)),
        Some(News::TaskChanged(task)) => format!("{at}  {}\n", driven::task_line(task, palette)),
        Some(News::DriverLeft(name)) => {
            format!("{at}  driver {}  {}\n", harmless(name), palette.paint(Tone::Faint, "left"))
        }
        Some(News::VolumeChanged(volume)) => format!("{at}  {}\n", volumes::line(volume, palette)),
        Some(News::VolumeLeft(name)) => {
            format!("{at}  volume {}  {}\n", harmless(name), palette.paint(Tone::Faint, "forgotten"))
        }
        Some(News::TaskLeft(name)) => {
            format!("{at}  task {}  {}\n", harmless(name), palette.paint(Tone::Faint, "forgotten"))
        }
        Some(News::ActorGone(gone)) => {
            format!("{at}  {}: {}\n", does_not_answer(gone, palette), harmless(&gone.reason))
        }
        Some(News::HostChanged(host)) => match &host.stopping {
            Some(stopping) => format!("{at}  the host is {}", self::stopping(stopping, palette)),
            None => {
                let disk = host.disk.as_ref().map(|disk| disk_line(disk, palette));
                format!("{at}  {}{at}  {}", disk.unwrap_or_default(), directory_line(host, palette))
            }
        },
        Some(News::ActorBack(name)) => {
            format!("{at}  {} {}\n", harmless(name), palette.paint(Tone::Good, "answers again"))
        }
        Some(News::Lagged(lagged)) => format!("{at}  {} events were too fast to be shown\n", lagged.missed),
        // A newer host may have other news.
        None => String::new(),
    }
}

fn does_not_answer(gone: &wire::GoneActor, palette: Palette) -> String {
    match gone.ended {
        true => palette.paint(Tone::Faint, &format!("{} has ended", harmless(&gone.name))),
        false => palette.paint(Tone::Bad, &format!("{} does not answer", harmless(&gone.name))),
    }
}

fn plugin_line(plugin: &wire::PluginStatus, palette: Palette) -> String {
    let mut line = format!(
        "plugin {}/{}  {}",
        plugin.r#type,
        harmless(&plugin.name),
        palette.paint(tone(&plugin.health), &plugin.health),
    );
    if plugin.generation > 0 {
        line.push_str(&format!("  generation {}", plugin.generation));
    }
    for (what, who) in [("active", plugin.active_allocation.clone()), ("standby", standby(plugin))] {
        if !who.is_empty() {
            line.push_str(&format!("  {what} {}", harmless(&who)));
        }
    }
    if !plugin.reason.is_empty() {
        line.push_str(&format!("  ({})", harmless(&plugin.reason)));
    }
    line
}

fn allocation_line(allocation: &wire::AllocationStatus, palette: Palette) -> String {
    let task = palette.paint(tone(&allocation.task_state), &allocation.task_state);
    let mut line = format!("allocation {}  {task}", harmless(&allocation.name));
    if !allocation.state.is_empty() {
        line.push_str(&format!("  {}", palette.paint(tone(&allocation.state), &allocation.state)));
    }
    match (&*allocation.state, &*allocation.reason) {
        // Its last event may be older than its health.
        ("registered", reason) => {
            line.push_str(&format!("  {}", palette.paint(tone(&allocation.health), &allocation.health)));
            if !reason.is_empty() {
                line.push_str(&format!("  ({})", harmless(reason)));
            }
        }
        _ => {
            let event = with_due(&allocation.last_event, allocation.due_unix_ms);
            line.push_str(&format!("  {}", harmless(&event)));
        }
    }
    line
}

/// The generation of a plugin, if there is one.
fn generation(plugin: &wire::PluginStatus) -> String {
    if plugin.generation == 0 { String::new() } else { plugin.generation.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_that_does_not_answer_is_named_above_what_the_others_know() {
        let gone = wire::GoneActor {
            name: "agent".to_owned(),
            reason: "agent is not running".to_owned(),
            ..Default::default()
        };
        let plugin = wire::PluginStatus { name: "zfs".to_owned(), ..Default::default() };
        let shown = wire::GetStatusResponse { gone: vec![gone], plugins: vec![plugin], ..Default::default() };
        let text = status(&shown, Palette::plain());
        assert!(
            text.contains("agent does not answer, and what it knows is not shown: agent is not running"),
            "{text}"
        );
        assert!(text.contains("zfs"), "{text}");
    }

    fn node(name: &str, state: &str, children: Vec<wire::TreeNode>) -> wire::TreeNode {
        wire::TreeNode {
            name: name.to_owned(),
            kind: "actor".to_owned(),
            state: state.to_owned(),
            children,
            ..Default::default()
        }
    }

    #[test]
    fn a_tree_shows_who_is_below_whom() {
        let leaf = wire::TreeNode { restarts: 2, message: "fell".to_owned(), ..node("c", "waiting", vec![]) };
        let root = node("a", "running", vec![node("b", "running", vec![leaf]), node("d", "ended", vec![])]);
        let expected = "actor a  running\n├─ actor b  running\n│  └─ actor c  waiting  2 restarts, fell\n└─ actor d  ended\n";
        assert_eq!(tree(&root, Palette::plain()), expected);
    }

    #[test]
    fn the_line_of_an_allocation_says_its_health_and_no_older_event() {
        let mut allocation = wire::AllocationStatus {
            name: "a".to_owned(),
            task_state: "running".to_owned(),
            state: "registered".to_owned(),
            health: "unhealthy".to_owned(),
            reason: "no answer".to_owned(),
            last_event: "healthy as zfs 1".to_owned(),
            ..Default::default()
        };
        let plain = Palette::plain();
        let line = "allocation a  running  registered  unhealthy  (no answer)";
        assert_eq!(allocation_line(&allocation, plain), line);
        (allocation.health, allocation.reason) = ("healthy".to_owned(), String::new());
        allocation.last_event = "unhealthy: no answer".to_owned();
        assert_eq!(allocation_line(&allocation, plain), "allocation a  running  registered  healthy");
        allocation.state = "awaiting-socket".to_owned();
        allocation.last_event = "waiting for its socket".to_owned();
        let line = "allocation a  running  awaiting-socket  waiting for its socket";
        assert_eq!(allocation_line(&allocation, plain), line);
    }

    #[test]
    fn a_plugin_without_a_name_of_its_own_yet_is_shown_with_dashes() {
        let plugin = wire::PluginStatus {
            name: "zfs".to_owned(),
            r#type: "csi-node".to_owned(),
            health: "starting".to_owned(),
            provisional_allocations: vec!["a".to_owned()],
            ..Default::default()
        };
        let lines = plugins(&[plugin]).lines(Palette::plain());
        let ends = |line: &str| line.ends_with("-         -       (a)      -");
        assert!(lines.lines().nth(1).is_some_and(ends), "{lines}");
    }

    #[test]
    fn the_volumes_of_a_plugin_are_shown_for_its_node_with_their_limit_if_there_is_one_c147() {
        let shown = |plugin_type: &str, volumes_in_use, max_volumes| {
            let r#type = plugin_type.to_owned();
            super::volumes_in_use(&wire::PluginStatus {
                r#type,
                volumes_in_use,
                max_volumes,
                ..Default::default()
            })
        };
        assert_eq!([shown("csi-node", 2, 8), shown("csi-node", 0, 8)], ["2/8", "0/8"]);
        assert_eq!([shown("csi-node", 2, 0), shown("csi-node", 0, 0)], ["2", ""]);
        assert_eq!(shown("csi-controller", 2, 0), "", "they are on the node");
    }
}
