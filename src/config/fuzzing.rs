//! Feeds arbitrary bytes to the parser of `callboard run`'s configuration.

use std::collections::BTreeSet;
use std::path::Path;

use super::{AllocationConfig, Config, ConfigError};

/// The longest text of one problem. Some quote the input, so their length grows with the configuration.
const PROBLEM_BYTES: usize = 2_048;

/// Parses the bytes as a configuration. Either it is valid, or every problem has a position in it and a message.
///
/// # Panics
/// If a problem is outside of the text, or a valid configuration breaks an invariant of [`Config`].
pub(crate) fn configs(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse(Path::new("/host.toml"), text) {
        Ok(config) => check(&config),
        Err(ConfigError::Problems { problems, .. }) => {
            assert!(!problems.is_empty(), "a configuration is refused without a reason");
            let lines: Vec<_> = text.split('\n').collect();
            for problem in &problems {
                let line = lines.get(problem.place.line.wrapping_sub(1)).expect("a problem has a line");
                let columns = 1..=line.chars().count() + 1;
                assert!(columns.contains(&problem.place.column), "{problem:?} lies outside of its line");
                assert!(!problem.message.trim().is_empty(), "{problem:?} says nothing");
                let bytes = problem.message.len();
                assert!(bytes <= PROBLEM_BYTES + 8 * text.len(), "a problem of {bytes} bytes");
            }
            assert!(problems.is_sorted_by_key(|problem| problem.place), "{problems:?}");
        }
        Err(error) => panic!("a text is neither unreadable nor too long: {error}"),
    }
}

fn check(config: &Config) {
    assert!(config.data_dir.is_absolute());
    assert!(config.runtime_dir.as_ref().is_none_or(|path| path.is_absolute()));
    assert!(config.plugins.directory.as_ref().is_none_or(|path| path.is_absolute()));
    assert!(config.allocations.iter().all(|allocation| allocation.program.is_absolute()));
    let names = config.allocations.iter().map(|allocation| &allocation.name);
    let names: Vec<_> = names.chain(config.tasks.iter().map(|task| &task.name)).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "two have one name");
    let drivers: BTreeSet<_> = config.drivers.iter().map(|driver| &driver.name).collect();
    assert_eq!(drivers.len(), config.drivers.len(), "two drivers have one name");
    assert!(config.tasks.iter().all(|task| drivers.contains(&task.driver)), "a task of no driver");
    let volumes: BTreeSet<_> = config.volumes.iter().map(|volume| &volume.key).collect();
    assert_eq!(volumes.len(), config.volumes.len(), "two volumes have one name");
    let allocations = config.allocations.iter().flat_map(|allocation| &allocation.volumes);
    let tasks = config.tasks.iter().flat_map(|task| &task.volumes);
    let mut used = allocations.map(|of| &of.volume).chain(tasks.map(|of| &of.volume));
    assert!(used.all(|volume| volumes.contains(volume)), "a volume that is not configured");
    for volume in &config.volumes {
        assert_eq!(volume.usage.capability.check(), Ok(()));
        let mode = volume.usage.capability.access_mode;
        assert!(volume.usage.read_only || !mode.is_read_only(), "a writer of what is only read");
        let plugin = |allocation: &AllocationConfig| allocation.plugin == volume.plugin;
        assert!(config.allocations.iter().any(plugin), "a volume of no plugin");
    }
}
