//! Chooses the faults, and the behaviour of plugins in their calls.

use callboard_actors::vocabulary::Timestamp;

use super::super::super::instances::Behaviour;
use super::super::event::{DriverDoing, EventKind};
use super::super::faults::Fault;
use super::super::host_model::{HostModel, HostPhase};
use super::super::supervision::FamilyDoing;
use super::Plan;

impl Plan {
    /// The behaviour of a plugin in a call. Each bad behaviour is a fault of its own.
    pub(super) fn behaviour(&mut self) -> Behaviour {
        let ways = [
            (Fault::Hang, Behaviour::Hangs),
            (Fault::Die, Behaviour::Dies),
            (Fault::Lie, Behaviour::Lies),
            (Fault::Lie, Behaviour::Mistakes),
            (Fault::Lie, Behaviour::Babbles),
            (Fault::NotReady, Behaviour::NotReady),
            (Fault::Fail, Behaviour::Fails),
            (Fault::Fail, Behaviour::Declines),
        ];
        self.meets(&ways, 12, Behaviour::Well)
    }

    pub(super) fn breakage(&mut self, at: Timestamp, host_model: &HostModel) -> Option<EventKind> {
        if host_model.phase != HostPhase::Running {
            return None;
        }
        if let Some(end) = self.host_ends(host_model) {
            return Some(end);
        }
        let drivers = host_model.drivers_model.drivers();
        let driver = self.random.place(drivers);
        if drivers > 0
            && let Some(doing) = self.driver_breaks()
        {
            return Some(EventKind::Driver(driver, doing));
        }
        if let Some(doing) = self.processes_break(host_model) {
            return Some(EventKind::Processes(doing));
        }
        if let Some(crash) = self.volume_crashes(host_model) {
            return Some(crash);
        }
        if let Some(death) = self.workload_dies(host_model) {
            return Some(death);
        }
        if let Some(breaks) = self.disk_breaks(at) {
            return Some(breaks);
        }
        if self.does(Fault::Disk, 20) {
            return Some(EventKind::DiskFull);
        }
        if self.does(Fault::Crash, 3) {
            if let Some(crash) = self.workload_crashes(3, host_model) {
                return Some(crash);
            }
            return Some(match self.random.below(6 + u64::from(drivers.min(5))) {
                0..=1 => EventKind::CrashRegistry,
                2 => EventKind::CrashInstances,
                3 => EventKind::CrashInventory,
                4 => EventKind::CrashInstance(self.instance(host_model)),
                5 => EventKind::Fall(self.instance(host_model)),
                6 => EventKind::CrashDrivers,
                7 => EventKind::Driver(driver, DriverDoing::Crash),
                8 => EventKind::Driver(driver, DriverDoing::CrashEventor),
                9 => EventKind::Driver(driver, DriverDoing::Fall),
                _ => EventKind::Driver(driver, DriverDoing::FallEventor),
            });
        }
        self.does(Fault::Crash, 4).then(|| {
            let number = u8::try_from(self.random.below(host_model.family.len() as u64)).unwrap_or(0);
            EventKind::Family(number, FamilyDoing::Crash)
        })
    }

    /// One of the living instances.
    fn instance(&mut self, host_model: &HostModel) -> u32 {
        let places = host_model.instances_model.places();
        let place = places.iter().nth(self.random.below(places.len().max(1) as u64) as usize);
        place.map_or(0, |place| host_model.names.number_of(place))
    }

    /// The host is killed, or requested to stop.
    fn host_ends(&mut self, host_model: &HostModel) -> Option<EventKind> {
        if self.does(Fault::KillHost, 30) {
            let waiting = u64::try_from(host_model.registry.store.waiting()).unwrap_or(0);
            let of_processes = u64::try_from(host_model.owned.model.waiting()).unwrap_or(0);
            let [reached, of_processes] = [waiting, of_processes]
                .map(|waiting| u32::try_from(self.random.below(waiting + 1)).unwrap_or(0));
            return Some(EventKind::KillHost(reached, of_processes));
        }
        self.does(Fault::Shutdown, 40)
            .then(|| if self.random.once_in(2) { EventKind::Stop } else { EventKind::Detach })
    }
}
