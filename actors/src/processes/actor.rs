//! The effect handler of the owner of the processes: holds their actors.

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::{
    ChildEnded, ProcessReported, Processes, ProcessesCall, ProcessesNews, ProcessesOptions, ProcessesOutcome,
};
use crate::process::{
    self, EndProcess, EndedBy, Exit, Process, ProcessConfig, ProcessEnding, ProcessName, ProcessTag,
    Surroundings,
};
use crate::shell::{
    Address, Children, EffectHandler, Running, Settings, Started, Store, start as start_machine,
};
use crate::vocabulary::{Attempt, milliseconds};

/// The limit of messages in flight to one process actor. Only its owner sends to it, and bounds the number.
const PROCESS_IN_FLIGHT_MAX: usize = 4_096;
/// The limit of queued calls: several per process, and none may delay another.
const ORDERS_MAX: usize = 1 << 20;

/// Starts the owner of the processes at a vacant address. The process actors get the same settings.
///
/// Run it on a thread that lives as long as the host: the kernel ends bound processes with the thread that started them
/// (PRC-04).
pub fn start(
    address: &Address<Processes>,
    options: ProcessesOptions,
    surroundings: Surroundings,
    store: impl Store<Processes>,
    settings: Settings,
) -> Running {
    let children = Children::default();
    let handler = Handler { address: address.clone(), surroundings, children, settings: settings.clone() };
    let settings = Settings { calls_running_max: ORDERS_MAX, calls_waiting_max: ORDERS_MAX, ..settings };
    start_machine(address, options, handler, store, settings)
}

struct Handler {
    address: Address<Processes>,
    surroundings: Surroundings,
    /// No actor outlives this. A ready process does: its record finds it.
    children: Children<Address<Process>, ChildEnded>,
    settings: Settings,
}

impl EffectHandler<Processes> for Handler {
    fn call(&mut self, call: ProcessesCall) -> Started<ProcessesOutcome> {
        match call {
            ProcessesCall::AwaitDisk { .. } => {}
            ProcessesCall::Release => self.children.kill_all(),
            ProcessesCall::Sweep { known, names } => return Started::Running(self.sweep(known, names)),
            ProcessesCall::AwaitEndings => {
                return Started::running(self.children.endings().map(ProcessesOutcome::Ended));
            }
            ProcessesCall::Start { life, config } => self.start(life, *config),
            ProcessesCall::End { life, grace } => {
                // An actor that has ended already is reported by its ending.
                let _ = self.children.with(life, |child| child.address.notify(EndProcess { grace }));
            }
            ProcessesCall::Stop { life, mode } => {
                self.children.with(life, |child| child.running.request_stop(mode));
            }
        }
        Started::Done(ProcessesOutcome::Done)
    }

    fn published(&mut self, news: &ProcessesNews) {
        match news {
            ProcessesNews::Changed(report) => {
                tracing::info!(
                    process = %report.name, tag = %report.tag, pid = report.pid, phase = report.phase.as_str(),
                    adopted = report.is_adopted, "process changed"
                );
            }
            ProcessesNews::Ended(ending) => log_ending(ending),
            ProcessesNews::Retired { name, tag, reason } => {
                tracing::warn!(process = %name, %tag, error = reason, "the record of a process was retired");
            }
            ProcessesNews::Settled => tracing::info!("all processes of earlier runs are settled"),
        }
    }
}

/// One log event holds everything known about an ending (LOG-01): at error level if it was not requested and is a failure or
/// left a panic, as a warning if its exit status is unknown.
fn log_ending(ending: &ProcessEnding) {
    let ProcessEnding { name, tag, pid, exit, uptime, panic, .. } = ending;
    let uptime_ms = milliseconds(*uptime);
    // Its lines were logged one by one, each with its own fields.
    let trace = || panic.clone().or_else(|| ending.last_words()).unwrap_or_else(|| exit.to_string());
    match alarm_of(ending) {
        Alarm::Trouble => {
            tracing::error!(process = %name, %tag, pid, %exit, uptime_ms, error = trace(), "process ended");
        }
        Alarm::Doubt => {
            tracing::warn!(process = %name, %tag, pid, %exit, uptime_ms, error = trace(), "process ended");
        }
        Alarm::None => tracing::info!(process = %name, %tag, pid, %exit, uptime_ms, "process ended"),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alarm {
    None,
    /// The exit status is unknown: it was adopted, so another process got it.
    Doubt,
    Trouble,
}

fn alarm_of(ending: &ProcessEnding) -> Alarm {
    match (ending.by, &ending.exit) {
        (EndedBy::Request | EndedBy::Force, _) => Alarm::None,
        (EndedBy::Itself, exit) if exit.is_success() => Alarm::None,
        (EndedBy::Itself, Exit::Unknown { .. }) if ending.panic.is_none() => Alarm::Doubt,
        (EndedBy::Itself, _) => Alarm::Trouble,
    }
}

impl Handler {
    fn start(&mut self, life: Attempt, config: ProcessConfig) {
        let name = config.record.name.clone();
        let address = Address::vacant(format!("process {name}"), PROCESS_IN_FLIGHT_MAX);
        let (parent, child) = (self.address.clone(), name.clone());
        let told = move |news| {
            // If the owner has ended, its successor uses the record.
            let _ = parent.notify(ProcessReported { life, name: child.clone(), news });
        };
        let surroundings = self.surroundings.clone();
        let running = process::start(&address, config, surroundings, told, self.settings.clone());
        self.children.hold(life, address, running, move |ending| ChildEnded { name, life, ending });
    }

    fn sweep(
        &self,
        known: Vec<ProcessTag>,
        names: Vec<ProcessName>,
    ) -> LocalBoxFuture<'static, ProcessesOutcome> {
        let surroundings = self.surroundings.clone();
        Box::pin(async move { ProcessesOutcome::Swept(process::sweep(&surroundings, known, names).await) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_that_is_known_to_be_no_success_is_told_as_an_error_log_01() {
        let of = |by, exit, panic: Option<&str>| {
            alarm_of(&ProcessEnding {
                name: ProcessName::new("zfs").expect("a good name"),
                tag: ProcessTag::new([0; 16]),
                pid: Some(7),
                exit,
                by,
                uptime: std::time::Duration::ZERO,
                last_output: Vec::new(),
                last_errors: Vec::new(),
                panic: panic.map(str::to_owned),
            })
        };
        let unknown = || Exit::Unknown { reason: "it was no child of this host".to_owned() };
        assert_eq!(of(EndedBy::Itself, Exit::Code(3), None), Alarm::Trouble);
        assert_eq!(of(EndedBy::Itself, Exit::Code(0), None), Alarm::None);
        assert_eq!(
            of(EndedBy::Itself, unknown(), None),
            Alarm::Doubt,
            "it may have been told to, over its connection"
        );
        assert_eq!(of(EndedBy::Itself, unknown(), Some("panic: nil map")), Alarm::Trouble);
        assert_eq!(of(EndedBy::Request, Exit::Signal(15), None), Alarm::None);
        assert_eq!(of(EndedBy::Force, Exit::Signal(9), None), Alarm::None);
    }
}
