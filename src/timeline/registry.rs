//! The lines of the registry.

use std::collections::BTreeSet;

use callboard_actors::registry::{
    Active, ActiveReason, Departure, Entry, InactiveBecause, RegistryNews, RegistryView, Standing,
};
use callboard_actors::vocabulary::{PluginKey, RegistrationNumber};

use super::line::{Line, Participant};
use super::news_lines::NewsLines;

/// Converts the news of the registry into lines.
#[derive(Debug, Default)]
pub(super) struct RegistryTeller {
    /// Which registrations were restored and have not been confirmed yet.
    provisional: BTreeSet<RegistrationNumber>,
}

impl NewsLines for RegistryTeller {
    type News = RegistryNews;
    type View = RegistryView;

    fn begin(&mut self, view: &RegistryView) -> Vec<Line> {
        let restored = view.entries.iter().filter(|entry| entry.standing == Standing::Provisional);
        let known = std::mem::take(&mut self.provisional);
        let mut lines = Vec::new();
        for entry in restored {
            self.provisional.insert(entry.number);
            if !known.contains(&entry.number) {
                let message = "restored in its place, not confirmed yet";
                lines.push(of(entry, Line::new(Participant::Disk, Participant::Registry, message)));
            }
        }
        lines
    }

    fn lines_of(&mut self, news: &RegistryNews) -> Vec<Line> {
        let line = match news {
            RegistryNews::Registered(entry) => asked(entry, "Register"),
            RegistryNews::Updated(entry) => {
                // Its owner has registered again, or a look at its socket has proved it (R8); the news does not report which.
                let was_provisional = self.provisional.remove(&entry.number);
                if was_provisional && entry.standing == Standing::Confirmed {
                    of(
                        entry,
                        Line::new(
                            Participant::Registry,
                            Participant::Everyone,
                            "confirmed, in its old place",
                        ),
                    )
                } else {
                    asked(entry, "Register (with other contents)")
                }
            }
            RegistryNews::Renewed(entry) => {
                let message = format!("{}: another generation", entry.registration.allocation);
                let line = Line::new(Participant::Registry, Participant::Everyone, message);
                of(entry, line).of_generation(entry.generation)
            }
            RegistryNews::Deregistered(entry, departure) => {
                self.provisional.remove(&entry.number);
                left(entry, *departure)
            }
            RegistryNews::ActiveChanged { plugin, from, to, reason } => {
                active_changed(plugin, from.as_ref(), to.as_ref(), reason)
            }
        };
        vec![line]
    }
}

fn of(entry: &Entry, line: Line) -> Line {
    line.of_plugin(&entry.registration.plugin).of_allocation(&entry.registration.allocation)
}

fn asked(entry: &Entry, message: &str) -> Line {
    let allocation = Participant::Allocation(entry.registration.allocation.clone());
    of(entry, Line::new(allocation, Participant::Registry, message))
}

fn left(entry: &Entry, departure: Departure) -> Line {
    match departure {
        Departure::Deregistered => asked(entry, "Deregister"),
        Departure::Failed => asked(entry, "Deregister (failed)"),
        Departure::NotConfirmed => {
            let message = "dropped: it was not confirmed";
            of(entry, Line::new(Participant::Registry, Participant::Everyone, message))
        }
    }
}

fn active_changed(
    plugin: &PluginKey,
    from: Option<&Active>,
    to: Option<&Active>,
    reason: &ActiveReason,
) -> Line {
    let name = |active: Option<&Active>| match active {
        Some(active) => active.registration.allocation.to_string(),
        None => "none".to_owned(),
    };
    let message = match (from, to) {
        (Some(from), Some(to)) if from.registration.allocation == to.registration.allocation => {
            format!("active: {}, {}", name(Some(to)), reason)
        }
        (from, to) => format!("active: {} → {}, {}", name(from), name(to), reason),
    };
    let voice = |active: &Active| Participant::Allocation(active.registration.allocation.clone());
    let line = Line::new(Participant::Registry, Participant::Everyone, message)
        .of_plugin(plugin)
        .of_active(from.map(voice), to.map(voice));
    match to {
        Some(to) => line.of_allocation(&to.registration.allocation).of_generation(to.generation),
        None => line,
    }
}

/// One piece of news as a complete sentence, for message scripts and their subscribers.
pub(super) fn sentence(news: &RegistryNews) -> String {
    match news {
        RegistryNews::Registered(entry) => about(entry, "registered as"),
        RegistryNews::Updated(entry) => about(entry, "updated its registration as"),
        RegistryNews::Renewed(entry) => {
            format!("{} @{}", about(entry, "begins another generation as"), entry.generation)
        }
        RegistryNews::Deregistered(entry, Departure::Deregistered) => about(entry, "deregistered as"),
        RegistryNews::Deregistered(entry, Departure::Failed) => about(entry, "failed and deregistered as"),
        RegistryNews::Deregistered(entry, Departure::NotConfirmed) => {
            about(entry, "was not confirmed and left as")
        }
        RegistryNews::ActiveChanged { plugin, from, to, reason } => {
            let (from, to) = (active(from.as_ref()), active(to.as_ref()));
            format!("{plugin} is active: {from} → {to}, {reason}")
        }
    }
}

fn about(entry: &Entry, what: &str) -> String {
    format!("{} {what} {}", entry.registration.allocation, entry.registration.plugin)
}

/// Why a registration is not the active one.
pub(crate) fn lacks(inactive_because: &InactiveBecause) -> String {
    match inactive_because {
        InactiveBecause::Older => "the active one is newer".to_owned(),
        InactiveBecause::NotPinned => "another one is pinned".to_owned(),
        InactiveBecause::Unproven => "it has not proven to be healthy yet".to_owned(),
        InactiveBecause::Unfit { reason } => format!("unhealthy: {reason}"),
        InactiveBecause::Calm { .. } => {
            "it failed while it was active, and must be healthy for a while".to_owned()
        }
    }
}

/// The active registration, with its generation.
pub(crate) fn active(active: Option<&Active>) -> String {
    active.map_or("none".to_owned(), |active| {
        format!("{} @{}", active.registration.allocation, active.generation)
    })
}

/// One registration with all properties that its owner set.
pub(crate) fn registration(entry: &Entry) -> String {
    let registration = &entry.registration;
    let mut text = format!("{} as {}", registration.allocation, registration.plugin);
    let said = [("provider", &registration.provider), ("version", &registration.version)];
    for (name, value) in said.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        text.push_str(&format!(" {name}={value}"));
    }
    for (name, value) in &*registration.options {
        text.push_str(&format!(" option.{name}={value}"));
    }
    match entry.standing {
        Standing::Confirmed => text,
        Standing::Provisional => text + ", not confirmed",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use callboard_actors::vocabulary::{
        AllocationId, Generation, PluginName, PluginType, Registration, SocketPath, Timestamp,
    };

    use super::*;

    fn registration(allocation: &str) -> Arc<Registration> {
        Arc::new(Registration {
            policy: None,
            plugin: PluginKey::new(PluginType::CsiNode, PluginName::new("zfs").unwrap()),
            allocation: AllocationId::new(allocation).unwrap(),
            socket: SocketPath::new("/run/a.sock").unwrap(),
            provider: None,
            version: None,
            options: Arc::default(),
        })
    }

    fn entry(allocation: &str, number: u64, standing: Standing) -> Entry {
        Entry {
            number: RegistrationNumber::new(number),
            registration: registration(allocation),
            generation: Generation::new(number + 1),
            standing,
            since: Timestamp::default(),
        }
    }

    fn active(allocation: &str, generation: u64) -> Active {
        Active {
            generation: Generation::new(generation),
            registration: registration(allocation),
            since: Timestamp::default(),
        }
    }

    fn told(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| format!("{} → {}: {}", line.from, line.to, line.message)).collect()
    }

    #[test]
    fn who_comes_back_confirms_a_registration_and_keeps_its_place() {
        let mut teller = RegistryTeller::default();
        let view = RegistryView { entries: vec![entry("a", 1, Standing::Provisional)], active: vec![] };
        assert_eq!(told(&teller.begin(&view)), ["disk → registry: restored in its place, not confirmed yet"]);
        assert_eq!(told(&teller.begin(&view)), Vec::<String>::new(), "a second snapshot repeats nothing");
        let confirmed = RegistryNews::Updated(entry("a", 1, Standing::Confirmed));
        let expected = "registry → everyone: confirmed, in its old place";
        assert_eq!(told(&teller.lines_of(&confirmed)), [expected]);
        let expected = "allocation a → registry: Register (with other contents)";
        assert_eq!(told(&teller.lines_of(&confirmed)), [expected]);
    }

    #[test]
    fn a_takeover_is_told_to_everyone_with_its_generation() {
        let mut teller = RegistryTeller::default();
        let plugin = registration("a").plugin.clone();
        let mut tell = |from: Option<Active>, to: Option<Active>| {
            let reason = ActiveReason::Proven;
            let news = RegistryNews::ActiveChanged { plugin: plugin.clone(), from, to, reason };
            let lines = teller.lines_of(&news);
            (lines[0].message.clone(), lines[0].generation.map(Generation::get))
        };
        assert_eq!(
            tell(None, Some(active("a", 2))),
            ("active: none → a, as the newest that is healthy".to_owned(), Some(2))
        );
        assert_eq!(
            tell(Some(active("a", 2)), Some(active("b", 4))),
            ("active: a → b, as the newest that is healthy".to_owned(), Some(4))
        );
        let anew = ("active: b, as the newest that is healthy".to_owned(), Some(5));
        assert_eq!(tell(Some(active("b", 4)), Some(active("b", 5))), anew);
        assert_eq!(
            tell(Some(active("b", 5)), None),
            ("active: b → none, as the newest that is healthy".to_owned(), None)
        );
    }

    #[test]
    fn who_leaves_says_so_and_who_never_came_back_is_dropped() {
        let mut teller = RegistryTeller::default();
        let left = RegistryNews::Deregistered(entry("a", 1, Standing::Confirmed), Departure::Deregistered);
        assert_eq!(told(&teller.lines_of(&left)), ["allocation a → registry: Deregister"]);
        let dropped =
            RegistryNews::Deregistered(entry("a", 1, Standing::Provisional), Departure::NotConfirmed);
        let expected = "registry → everyone: dropped: it was not confirmed";
        assert_eq!(told(&teller.lines_of(&dropped)), [expected]);
    }
}
