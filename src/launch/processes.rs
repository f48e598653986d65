//! The processes of plugins as a part of a host. They are reattached or ended before a new process may be launched. Drivers end their own
//! processes before this part ends; the remaining processes have their own grace period.

use std::time::Duration;

use callboard_actors::process::{Surroundings, random_bytes};
use callboard_actors::processes::{self, DurableRecords, ListProcesses, Processes, ProcessesOptions};

use super::options::Options;
use super::part::Part;
use crate::host::Host;

/// The minimum stop deadline.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

pub(super) fn part(host: &Host, options: &Options) -> Part<Processes> {
    let (binder, runtime_dir) = (options.binder.clone(), options.runtime_dir());
    Part::remembering(host.processes(), move |address, context| {
        let (binder, runtime_dir) = (binder.clone(), runtime_dir.clone());
        let (address, context) = (address.clone(), context.clone());
        let records = DurableRecords::new(context.host().own_database());
        move || {
            let host = context.host();
            let surroundings =
                Surroundings::new(host.data_dir(), host.owner_mark().into(), binder.clone(), true);
            let started = surroundings.and_then(|surroundings| {
                let surroundings = surroundings.with_short_directory(runtime_dir.clone());
                let options = ProcessesOptions::new(random_bytes()?);
                Ok(processes::start(&address, options, surroundings, records.clone(), context.settings()))
            });
            started.map_err(|error| error.to_string())
        }
    })
    .after("persister")
    .ready_when(|| ListProcesses)
    .stops_within(STOP_DEADLINE)
}
