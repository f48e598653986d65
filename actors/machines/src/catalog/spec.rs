//! The process specification of a plugin.

use super::messages::PluginSource;
use super::options::{CatalogOptions, InternalPlugin, PluginEntry};
use crate::process::{Executable, ProcessSpec};

/// The process of an external plugin: its file by name, only in the plugin directory.
pub(super) fn external_spec(file: &str, options: &CatalogOptions) -> ProcessSpec {
    let directory = options.directory.clone().unwrap_or_default();
    finished(Executable::within(directory, file), &[], options.entries.get(file), options)
}

/// The process that serves a plugin. `None` for an internal plugin that the host program did not provide.
pub(super) fn spec_of(source: &PluginSource, options: &CatalogOptions) -> Option<ProcessSpec> {
    match source {
        PluginSource::External(file) => Some(external_spec(file, options)),
        PluginSource::Internal(name) => {
            let internal = options.internal.iter().find(|internal| internal.plugin.name.as_str() == name)?;
            Some(internal_spec(internal, options))
        }
    }
}

fn internal_spec(internal: &InternalPlugin, options: &CatalogOptions) -> ProcessSpec {
    let entry = options.entries.get(internal.plugin.name.as_str());
    finished(internal.executable.clone(), &internal.arguments, entry, options)
}

fn finished(
    executable: Executable,
    arguments: &[String],
    entry: Option<&PluginEntry>,
    options: &CatalogOptions,
) -> ProcessSpec {
    let unconfigured = PluginEntry::new();
    let entry = entry.unwrap_or(&unconfigured);
    let sha256 = entry.sha256.or(executable.sha256);
    let usual = ProcessSpec::new(Executable { sha256, ..executable });
    ProcessSpec {
        arguments: arguments.iter().chain(&entry.arguments).cloned().collect(),
        environment: entry.environment.clone(),
        inherit: options.inherit.clone().unwrap_or_else(|| usual.inherit.clone()),
        lifetime: entry.lifetime,
        handshake: Some(options.handshake.clone()),
        start_timeout: entry.start_timeout.unwrap_or(options.limits.start_timeout),
        stop_grace: entry.stop_grace.unwrap_or(usual.stop_grace),
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_plugin_is_started_on_the_terms_and_with_the_variables_of_its_host() {
        let executable = || Executable::at("/plugins/a");
        let mut options = CatalogOptions::new();
        options.handshake.versions = vec![7];
        let usual = finished(executable(), &[], None, &options);
        assert_eq!(usual.handshake, Some(options.handshake.clone()));
        assert_eq!(usual.inherit, ProcessSpec::new(executable()).inherit);
        let entry = PluginEntry { stop_grace: Some(Duration::from_secs(77)), ..PluginEntry::new() };
        assert_eq!(finished(executable(), &[], Some(&entry), &options).stop_grace, Duration::from_secs(77));
        assert_eq!(usual.stop_grace, ProcessSpec::new(executable()).stop_grace);
        options.inherit = Some(vec!["SECRET_PATH".to_owned()]);
        assert_eq!(finished(executable(), &[], None, &options).inherit, ["SECRET_PATH"]);
    }
}
