//! The effect handler of a volume: makes its calls and forwards its news.

use super::mounting::Mounting;
use super::shared::Shared;
use super::{Volume, VolumeCall, VolumeConfig, VolumeKey, VolumeNews, VolumeOptions, VolumeOutcome, calls};
use crate::shell::{Address, EffectHandler, Running, Settings, Started, Store, start as start_machine};
use crate::vocabulary::PluginName;

/// Starts a volume at a vacant address. `told` is called synchronously for all of its news, in order and without loss. No other actor of
/// the same volume may live; the calls of an earlier actor continue, and are waited for.
pub fn start(
    address: &Address<Volume>,
    config: VolumeConfig,
    shared: Shared,
    store: impl Store<Volume>,
    told: impl Fn(&VolumeNews) + 'static,
    settings: Settings,
) -> Running {
    let handler = Handler {
        volume: config.spec.key.clone(),
        plugin: config.spec.plugin.clone(),
        options: config.options,
        shared,
        told: Box::new(told),
    };
    start_machine(address, config, handler, store, settings)
}

struct Handler {
    volume: VolumeKey,
    plugin: PluginName,
    options: VolumeOptions,
    shared: Shared,
    told: Box<dyn Fn(&VolumeNews)>,
}

impl EffectHandler<Volume> for Handler {
    fn call(&mut self, call: VolumeCall) -> Started<VolumeOutcome> {
        match call {
            VolumeCall::ReadRoute => Started::Done(VolumeOutcome::Route(self.shared.routes.of(&self.plugin))),
            VolumeCall::AwaitAudits(_) => Started::Done(VolumeOutcome::AuditsLeft),
            VolumeCall::Look { path, staging } => {
                let mounting = Mounting::new(&self.shared);
                Started::running(async move {
                    VolumeOutcome::Looked(mounting.look(&path, staging.as_deref()).await)
                })
            }
            call => Started::running(calls::make(self.shared.clone(), self.options, call)),
        }
    }

    fn published(&mut self, news: &VolumeNews) {
        match news {
            VolumeNews::Changed(status) => {
                tracing::debug!(volume = %status.key, state = %status, "volume changed");
            }
            VolumeNews::MountLost { path, reason } => {
                let path = path.display();
                tracing::warn!(volume = %self.volume, %path, reason, "a mount is lost and will be set up again; a staging mount waits until no other claim uses it");
            }
            // The owner of the volumes logs them.
            VolumeNews::ClaimFailed { .. } | VolumeNews::OrderFailed { .. } | VolumeNews::Forced(_) => {}
        }
        (self.told)(news);
    }
}
