//! A task driver in about 60 lines, whose tasks are timers. A host starts it; build it with `cargo build --example driver`.

use std::{collections::HashMap, error::Error, process::ExitCode, sync::Mutex, time::Duration};

use callboard::plugin::wire::{ExitResult, TaskConfig, TaskHandle, TaskState, TaskStatus};
use callboard::plugin::{
    Driver, EVENTS_KEPT, Events, InspectedTask, PluginInfo, Refusal, StartedTask, TaskExit, decode, run,
    schema,
};
use tokio::sync::watch::Sender;

#[derive(serde::Deserialize)]
struct Timer {
    seconds: f64,
}

struct Timers {
    events: Events,
    tasks: Mutex<HashMap<String, Sender<bool>>>, // whether the task has ended
}

impl Timers {
    fn find(&self, task_id: &str) -> Result<Sender<bool>, Refusal> {
        self.tasks.lock().unwrap().get(task_id).cloned().ok_or_else(|| Refusal::no_such_task(task_id))
    }
}

#[tonic::async_trait]
impl Driver for Timers {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("timer", "1.0.0")
    }

    fn task_config_schema(&self) -> callboard::proto::hclspec::Spec {
        schema::object([("seconds", schema::required("seconds", "number"))])
    }

    fn events(&self) -> Result<Events, Refusal> {
        Ok(self.events.clone())
    }

    async fn start_task(&self, task: TaskConfig) -> Result<StartedTask, Refusal> {
        let timer: Timer = decode(&task.msgpack_driver_config)?;
        let (time, ended, task_id) =
            (Duration::from_secs_f64(timer.seconds), Sender::new(false), task.id.clone());
        self.tasks.lock().unwrap().insert(task_id, ended.clone());
        let (events, of) = (self.events.clone(), task.clone());
        tokio::spawn(async move {
            let is_stopped =
                tokio::time::timeout(time, ended.subscribe().wait_for(|ended| *ended)).await.is_ok();
            events.tell(&of, if is_stopped { "stopped" } else { "time is up" });
            ended.send_replace(true);
        });
        let state = TaskState::Running.into();
        let handle = TaskHandle { version: 1, config: Some(task), state, driver_state: Vec::new() };
        Ok(StartedTask { handle, network: None })
    }

    async fn wait_task(&self, task_id: &str) -> Result<TaskExit, Refusal> {
        let _ = self.find(task_id)?.subscribe().wait_for(|ended| *ended).await;
        Ok(TaskExit { result: ExitResult::default(), error: None })
    }

    async fn stop_task(&self, task_id: &str, _: Duration, _: &str) -> Result<(), Refusal> {
        self.find(task_id)?.send_replace(true);
        Ok(())
    }

    async fn destroy_task(&self, task_id: &str, _: bool) -> Result<(), Refusal> {
        self.find(task_id)?.send_replace(true);
        self.tasks.lock().unwrap().remove(task_id);
        Ok(())
    }

    async fn inspect_task(&self, task_id: &str) -> Result<InspectedTask, Refusal> {
        let has_ended = *self.find(task_id)?.borrow();
        let state = if has_ended { TaskState::Exited } else { TaskState::Running }.into();
        let status = TaskStatus { id: task_id.to_owned(), state, ..Default::default() };
        Ok(InspectedTask { status, ..Default::default() })
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    Ok(run(Timers { events: Events::in_memory(EVENTS_KEPT)?, tasks: Mutex::default() }))
}
