//! Tests logs of tasks, with real processes, pipes and files: killed hosts and log writers, full pipes and disks, and readers of logs.

mod program;

#[path = "task_logs/collected.rs"]
mod collected;
#[path = "task_logs/shown.rs"]
mod shown;
