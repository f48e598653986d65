//! The state that the actors of all volumes of a host share. It outlives each of them, and each incarnation of their owner.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use super::bulkhead::Bulkheads;
use super::next_step::Prepared;
use super::plugins::Plugins;
use super::secrets::SecretSource;
use super::{Route, Turn};
use crate::mounts::Mounts;
use crate::vocabulary::{PluginKey, PluginName};

/// The state that the actors of all volumes of a host share. Created once for each host: a call that outlives its actor still has its turn
/// here, so that the next call of that volume waits for it (V2). Clones share everything.
#[derive(Debug, Clone)]
pub struct Shared {
    pub(super) plugins: Rc<dyn Plugins>,
    pub(super) secrets: Arc<dyn SecretSource>,
    pub(super) mounts: Arc<dyn Mounts>,
    pub(super) data_dir: Arc<Path>,
    pub(super) routes: Routes,
    /// The prepared directories for the next call of each volume.
    pub(super) prepared: Prepared,
    /// One call at a time for each volume, snapshot and group (V2, C002).
    pub(super) turns: Bulkheads<Turn>,
    /// A limited number of calls at a time for each half of a plugin (V9).
    pub(super) halves: Bulkheads<PluginKey>,
}

impl Shared {
    /// Calls go to `plugins` with the secrets of `secrets`, at most `calls_max` at a time for each half of a plugin. Directories are made
    /// below `data_dir`, which is absolute and has no symbolic link in it: the kernel names mount points so.
    #[must_use]
    pub fn new(
        plugins: Rc<dyn Plugins>,
        secrets: Arc<dyn SecretSource>,
        mounts: Arc<dyn Mounts>,
        data_dir: &Path,
        calls_max: usize,
    ) -> Self {
        Self {
            plugins,
            secrets,
            mounts,
            data_dir: data_dir.into(),
            routes: Routes::default(),
            prepared: Prepared::default(),
            turns: Bulkheads::new(1),
            halves: Bulkheads::new(calls_max),
        }
    }

    /// The present routes, which the owner of the volumes keeps.
    pub(crate) const fn routes(&self) -> &Routes {
        &self.routes
    }
}

/// The present route of each plugin that has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes(Rc<RefCell<HashMap<PluginName, Route>>>);

impl Routes {
    /// The route of a plugin; an empty one if none of its halves is healthy.
    pub(super) fn of(&self, plugin: &PluginName) -> Route {
        self.0.borrow().get(plugin).cloned().unwrap_or_default()
    }

    /// Sets the route of the calls of this plugin from now on.
    pub(crate) fn set(&self, plugin: PluginName, route: Route) {
        let mut routes = self.0.borrow_mut();
        match route == Route::default() {
            true => drop(routes.remove(&plugin)),
            false => drop(routes.insert(plugin, route)),
        }
    }

    /// Removes all routes.
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}
