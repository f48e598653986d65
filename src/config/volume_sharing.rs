//! Refuses users that could never have a volume at the same time.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::VolumeConfig;
use super::problem::Faults;
use super::read::Entries;
use super::volume::written;
use super::volume_words::split;
use callboard_actors::volume::Usage;

/// A user of a volume that starts with the host, as it is written.
struct User<'t> {
    name: &'t str,
    volume: String,
    read_only: bool,
    at: usize,
}

/// Records each user that could not have its volume while an earlier user runs (V12). A user started by an operator waits for it instead.
pub(super) fn check(
    volumes: &[VolumeConfig],
    allocations: &[Entries<'_>],
    tasks: &[Entries<'_>],
    faults: &mut Faults,
) {
    let users: Vec<_> = allocations.iter().chain(tasks).flat_map(|(entries, _)| users(entries)).collect();
    for volume in volumes {
        let key = volume.key.to_string();
        let usage = |user: &User<'_>| Usage {
            read_only: volume.usage.read_only || user.read_only,
            ..volume.usage.clone()
        };
        let of_it: Vec<_> = users.iter().filter(|user| user.volume == key).collect();
        for (place, user) in of_it.iter().enumerate() {
            let wanted = usage(user);
            let others = of_it[..place].iter().filter(|other| other.name != user.name);
            let mut excluding =
                others.filter_map(|other| Some((other.name, usage(other).excludes(&wanted)?)));
            if let Some((other, reason)) = excluding.next() {
                let message = format!(
                    "the volume {key} cannot be used by {:?} beside {other:?}: {reason}; give it another `access_mode`, or \
                     give one of both `start = false`",
                    user.name
                );
                faults.add(user.at, message);
            }
        }
    }
}

fn users<'t>(entries: &'t DeTable<'_>) -> Vec<User<'t>> {
    let value = |key: &str| entries.get(key).map(Spanned::get_ref);
    let (Some(name), Some(DeValue::Array(list))) = (written(entries, "name"), value("volumes")) else {
        return Vec::new();
    };
    if matches!(value("start"), Some(DeValue::Boolean(false))) {
        return Vec::new();
    }
    let user = |item: &Spanned<DeValue<'_>>| {
        let (volume, read_only) = match item.get_ref() {
            DeValue::String(volume) => (&**volume, false),
            DeValue::Table(of) => {
                let read_only = of.get("read_only").map(Spanned::get_ref);
                (written(of, "name")?, matches!(read_only, Some(DeValue::Boolean(true))))
            }
            _ => return None,
        };
        let (namespace, plain) = split(volume);
        Some(User { name, volume: format!("{namespace}/{plain}"), read_only, at: item.span().start })
    };
    list.iter().filter_map(user).collect()
}
