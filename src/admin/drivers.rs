//! Restarts drivers on request of the admin socket.

use callboard_actors::drivers::{ListDrivers, NoSuchDriver, RestartDriver};
use callboard_actors::vocabulary::DriverName;
use callboard_proto::admin::v1 as wire;
use tonic::Status;

use super::convert::unanswered;
use super::server::Sources;
use crate::tasks::{DriverProgress, ListTasks, SetUpDriver};

/// Restarts a driver, or resolves its plugin again if the plugin could not be used.
pub(super) async fn restart(
    sources: &Sources,
    asked: wire::RestartDriverRequest,
) -> Result<wire::RestartDriverResponse, Status> {
    let name = DriverName::new(&asked.name).map_err(|error| Status::invalid_argument(error.to_string()))?;
    if sources.stopping.borrow().is_some() {
        let text = format!("driver {name} is not restarted: the host is stopping");
        return Err(Status::failed_precondition(text));
    }
    let progress = sources.tasks.ask(SetUpDriver { name: name.clone() }).await;
    let progress = progress.map_err(|error| unanswered(&error))?;
    let (pid, resolving) = match progress.map_err(|error| Status::not_found(error.to_string()))? {
        DriverProgress::Added => (restarted(sources, &name).await?, false),
        DriverProgress::Asking => (0, true),
        DriverProgress::Pausing(reason) | DriverProgress::Refused(reason) => {
            return Err(Status::failed_precondition(format!("driver {name} is not restarted: {reason}")));
        }
        DriverProgress::Leaving => {
            let text = format!(
                "driver {name} is not restarted: it is being ended, since it is no longer in the configuration"
            );
            return Err(Status::failed_precondition(text));
        }
    };
    let tasks = sources.tasks.ask(ListTasks).await.map_err(|error| unanswered(&error))?;
    let tasks = tasks.into_iter().filter(|task| task.driver == name && task.id.is_some());
    let tasks = tasks.map(|task| task.name.to_string()).collect();
    Ok(wire::RestartDriverResponse { pid, resolving, tasks })
}

/// Restarts a driver of the host. Returns the process that is ended for that; 0 if there is none.
async fn restarted(sources: &Sources, name: &DriverName) -> Result<u32, Status> {
    let drivers = sources.host.drivers();
    let reports = drivers.ask(ListDrivers).await.map_err(|error| unanswered(&error))?;
    let pid = reports.into_iter().find(|report| report.name == *name).and_then(|report| report.pid);
    let restarted = drivers.ask(RestartDriver { name: name.clone() }).await;
    restarted.map_err(|error| unanswered(&error))?.map_err(|error| not_restarted(&error))?;
    Ok(pid.unwrap_or_default())
}

fn not_restarted(error: &NoSuchDriver) -> Status {
    let text = error.to_string();
    match error {
        NoSuchDriver::Unknown { .. } => Status::not_found(text),
        NoSuchDriver::TooMany { .. } => Status::resource_exhausted(text),
        NoSuchDriver::Stopping { .. } | NoSuchDriver::NotLaunched { .. } => Status::failed_precondition(text),
    }
}
