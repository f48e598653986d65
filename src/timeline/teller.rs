//! Converts the journal of a host into lines, entry by entry, in the order of the events.

use std::any::Any;

use callboard_actors::shell::{Ending, JournalLine, Recorded};
use callboard_actors::vocabulary::AllocationId;
use callboard_proto::admin::v1::{Fate, Gate};

use super::agent::AgentTeller;
use super::allocations::AllocationsTeller;
use super::drivers::DriversTeller;
use super::instances::InstancesTeller;
use super::inventory::InventoryTeller;
use super::line::{Line, Participant};
use super::news_lines::NewsLines;
use super::registry::RegistryTeller;
use super::tasks::TasksTeller;
use super::volumes::VolumesTeller;
use super::{allocations, drivers, instances, inventory, processes, registry, supervisor, volumes};

/// Converts entries into lines.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    agent: AgentTeller,
    allocations: AllocationsTeller,
    registry: RegistryTeller,
    instances: InstancesTeller,
    inventory: InventoryTeller,
    tasks: TasksTeller,
    drivers: DriversTeller,
    volumes: VolumesTeller,
}

impl Teller {
    /// The lines for an entry; none for an entry that does not matter outside of its actor.
    pub(crate) fn tell(&mut self, JournalLine { actor, entry, .. }: &JournalLine) -> Vec<Line> {
        let voice = || Participant::Actor(actor.to_string());
        let trouble = |message: String| {
            Line::new(voice(), Participant::Everyone, message).of_fate(voice(), Fate::Troubled)
        };
        match entry {
            Recorded::Holds { view, .. } => self.news_or_view(actor, &**view),
            Recorded::Published { step, news, .. } => {
                let lines = self.news_or_view(actor, &**news).into_iter();
                lines.map(|line| line.of_step(actor, *step)).collect()
            }
            Recorded::Writing { step, write } => {
                let line = Line::new(voice(), Participant::Disk, format!("write {write}"));
                vec![line.of_gate(Gate::Closes, *write).of_step(actor, *step)]
            }
            Recorded::OnDisk { through } => {
                vec![Line::new(Participant::Disk, voice(), "on disk").of_gate(Gate::Opens, *through)]
            }
            Recorded::WriteFailed { error } => {
                vec![falls(voice()), trouble(format!("could not write: {error}"))]
            }
            Recorded::Ended { is_waiting: true, .. } => vec![falls(voice())],
            Recorded::Crashed { message } => vec![trouble(format!("crashed: {message}"))],
            Recorded::LoadFailed { error } => vec![trouble(format!("could not read: {error}"))],
            // These are shown by `status` and in the log.
            Recorded::Built { .. }
            | Recorded::Stepped { .. }
            | Recorded::Called { .. }
            | Recorded::Lagged { .. }
            | Recorded::Stale
            | Recorded::Ended { is_waiting: false, .. } => Vec::new(),
        }
    }

    /// The lines for news or for a view, of any actor. Other contents have no lines.
    fn news_or_view(&mut self, actor: &str, told: &dyn Any) -> Vec<Line> {
        if let Some(news) = told.downcast_ref() {
            let allocation = actor.strip_prefix("allocation ").and_then(|name| AllocationId::new(name).ok());
            return allocation.map_or_else(Vec::new, |name| self.allocations.lines_of_one(&name, news));
        }
        let lines = tell(&mut self.registry, told)
            .or_else(|| tell(&mut self.instances, told))
            .or_else(|| tell(&mut self.inventory, told))
            .or_else(|| tell(&mut self.allocations, told))
            .or_else(|| tell(&mut self.drivers, told))
            .or_else(|| tell(&mut self.agent, told))
            .or_else(|| tell(&mut self.tasks, told))
            .or_else(|| tell(&mut self.volumes, told));
        lines.unwrap_or_default()
    }
}

fn tell<R: NewsLines>(teller: &mut R, told: &dyn Any) -> Option<Vec<Line>> {
    let news = told.downcast_ref().map(|news| teller.lines_of(news));
    news.or_else(|| told.downcast_ref().map(|view| teller.begin(view)))
}

fn falls(actor: Participant) -> Line {
    Line::new(Participant::Disk, actor, "not on disk, and what waited is refused").of_gate(Gate::Falls, 0)
}

/// One action of an actor as a line, unless it is internal.
pub(crate) fn sentence(entry: &Recorded) -> Option<String> {
    match entry {
        Recorded::Published { news, .. } => news_sentence(&**news),
        Recorded::Crashed { message, .. } => Some(format!("crashed: {message}")),
        Recorded::WriteFailed { error } => Some(format!("could not write: {error}")),
        Recorded::Built { is_rebuilt: true } => Some("was rebuilt from what is on disk".to_owned()),
        Recorded::Ended { ending: Ending::Normal, .. } => None,
        Recorded::Ended { ending, .. } => Some(format!("ended: {}", supervisor::ending(ending))),
        Recorded::Built { is_rebuilt: false }
        | Recorded::LoadFailed { .. }
        | Recorded::Holds { .. }
        | Recorded::Called { .. }
        | Recorded::Lagged { .. }
        | Recorded::Stepped { .. }
        | Recorded::Stale
        | Recorded::Writing { .. }
        | Recorded::OnDisk { .. } => None,
    }
}

/// The news of an actor as a sentence, if it concerns others.
pub(crate) fn news_sentence(news: &dyn Any) -> Option<String> {
    let of_supervisor = || news.downcast_ref().and_then(supervisor::sentence);
    let sentence = news.downcast_ref().map(registry::sentence);
    sentence
        .or_else(|| news.downcast_ref().map(instances::sentence))
        .or_else(|| news.downcast_ref().map(inventory::sentence))
        .or_else(|| news.downcast_ref().map(allocations::sentence))
        .or_else(|| news.downcast_ref().map(drivers::sentence))
        .or_else(|| news.downcast_ref().map(processes::sentence))
        .or_else(|| news.downcast_ref().map(volumes::sentence))
        .or_else(of_supervisor)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::inventory::InventoryNews;
    use callboard_actors::registry::{Entry, RegistryNews, RegistryView, Standing};
    use callboard_actors::shell::Typed;
    use callboard_actors::vocabulary::{
        PluginKey, PluginName, PluginType, Registration, RegistrationNumber, SocketPath, Timestamp,
    };

    use super::*;

    fn entry(standing: Standing) -> Entry {
        Entry {
            number: RegistrationNumber::new(1),
            generation: callboard_actors::vocabulary::Generation::new(2),
            registration: Arc::new(Registration {
                policy: None,
                plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
                allocation: AllocationId::new("a").unwrap(),
                socket: SocketPath::new("/run/a.sock").unwrap(),
                provider: None,
                version: None,
                options: Arc::default(),
            }),
            standing,
            since: Timestamp::default(),
        }
    }

    fn published(actor: &str, step: u64, news: Typed) -> JournalLine {
        line(actor, Recorded::Published { step, number: 1, news })
    }

    fn line(actor: &str, entry: Recorded) -> JournalLine {
        JournalLine { number: 1, at: Timestamp::default(), kind: "", actor: actor.into(), entry }
    }

    fn told(lines: &[JournalLine]) -> Vec<String> {
        let mut teller = Teller::default();
        let lines = lines.iter().flat_map(|line| teller.tell(line));
        lines.map(|line| format!("{} → {}: {}", line.from, line.to, line.message)).collect()
    }

    #[test]
    fn what_was_found_on_disk_is_told_at_the_beginning() {
        let view = RegistryView { entries: vec![entry(Standing::Provisional)], active: vec![] };
        let holds = Recorded::Holds { number: 0, view: Arc::new(view) };
        let expected = ["disk → registry: restored in its place, not confirmed yet"];
        assert_eq!(told(&[line("registry", holds)]), expected);
    }

    #[test]
    fn an_order_that_is_not_expected_is_shown_as_it_was() {
        let first = InventoryNews::First(vec![], Default::default());
        let registered = RegistryNews::Registered(entry(Standing::Confirmed));
        let lines =
            [published("inventory", 1, Arc::new(first)), published("registry", 1, Arc::new(registered))];
        let expected =
            ["inventory → everyone: first inventory: nothing", "allocation a → registry: Register"];
        assert_eq!(told(&lines), expected, "also if the inventory follows from the registry as a rule");
    }

    #[test]
    fn a_gate_is_told_where_it_closes_opens_and_falls_shell_1() {
        let fails = || Recorded::WriteFailed { error: "no space".into() };
        let ended = |is_waiting| Recorded::Ended { ending: Ending::Normal, is_waiting };
        let entries = [
            Recorded::Writing { step: 3, write: 7 },
            Recorded::OnDisk { through: 7 },
            fails(),
            ended(true),
            ended(false),
        ];
        let falls = "disk → registry: not on disk, and what waited is refused";
        let expected = [
            "registry → disk: write 7",
            "disk → registry: on disk",
            falls,
            "registry → everyone: could not write: no space",
            falls,
        ];
        assert_eq!(told(&entries.map(|entry| line("registry", entry))), expected);
        let mut teller = Teller::default();
        let mut said = |entry| teller.tell(&line("registry", entry)).remove(0).said(1, Timestamp::default());
        let closes = said(Recorded::Writing { step: 3, write: 7 });
        assert_eq!(
            (closes.gate(), closes.write, &*closes.actor, closes.step),
            (Gate::Closes, 7, "registry", 3)
        );
        let opens = said(Recorded::OnDisk { through: 9 });
        assert_eq!((opens.gate(), opens.write), (Gate::Opens, 9));
        assert_eq!(said(fails()).gate(), Gate::Falls);
    }

    #[test]
    fn a_crash_is_told_under_the_name_of_the_actor() {
        let crashed = Recorded::Crashed { message: "a drill".into() };
        let expected = ["instance csi-node/zfs → everyone: crashed: a drill"];
        assert_eq!(told(&[line("instance csi-node/zfs", crashed)]), expected);
    }
}
