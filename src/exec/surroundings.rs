//! The surroundings of a task, for a command beside it: directory, user and environment.
//!
//! An environment holds secrets, so the driver does not store it. It is read from the living task on demand: that is the
//! task's real environment, and it also exists for a driver that recovered the task by a handle without it. If the task has
//! cleared or overwritten it, the fallback is the handle's, then the initial one of another process of the task.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use callboard_proto::drivers::TaskConfig;

use super::config;
use super::processes::{self, TAG};
use super::record::{TaskContext, TaskRecord};
use crate::plugin::Refusal;

type Variables = Vec<(OsString, OsString)>;

#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) context: TaskContext,
    pub(super) groups: Vec<PathBuf>,
    pub(super) environment: Variables,
}

impl Surroundings {
    pub(super) fn of(record: &TaskRecord, config: &TaskConfig) -> Result<Self, Refusal> {
        let context = match &record.context {
            Some(context) => context.clone(),
            // A task of an earlier version has no context in its record.
            None => config::context(config)?,
        };
        let environment = environment(record, config);
        Ok(Self { context, groups: record.groups.clone(), environment })
    }
}

fn environment(record: &TaskRecord, config: &TaskConfig) -> Variables {
    let of_process = |pid: i32| whole(&processes::environment(pid)?, &record.tag);
    let of_itself = processes::lives(&record.task).then(|| of_process(record.task.pid)).flatten();
    let told = || {
        let told = config::environment(config).into_iter();
        told.map(|(name, value)| (name.into(), value.into())).collect()
    };
    match of_itself {
        Some(environment) => environment,
        None if !config.env.is_empty() => told(),
        None => processes::tagged(&record.tag).into_keys().find_map(of_process).unwrap_or_else(told),
    }
}

/// Parses the environment of a process of a task; `None` without the task's tag, or if the process has overwritten it.
fn whole(environment: &[u8], tag: &str) -> Option<Variables> {
    let entries = environment.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let mut variables = Variables::new();
    let mut is_tagged = false;
    for entry in entries {
        let equals = entry.iter().position(|byte| *byte == b'=').filter(|position| *position > 0)?;
        let (name, value) = (&entry[..equals], &entry[equals + 1..]);
        match name == TAG.as_bytes() {
            true => is_tagged = value == tag.as_bytes(),
            false => variables.push((OsString::from_vec(name.into()), OsString::from_vec(value.into()))),
        }
    }
    is_tagged.then_some(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_taken_only_as_the_task_was_given_it_th092() {
        let read = |text: &str| whole(text.as_bytes(), "word");
        let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let given = read("A=1\0CALLBOARD_EXEC_TAG=word\0EMPTY=\0LONG=a=b\0");
        assert_eq!(given, Some(vec![variable("A", "1"), variable("EMPTY", ""), variable("LONG", "a=b")]));
        assert_eq!(read("A=1\0"), None, "it was thrown away and made anew");
        assert_eq!(read("A=1\0CALLBOARD_EXEC_TAG=other\0"), None, "it is of another task");
        assert_eq!(read("nginx: master\0\0\0CALLBOARD_EXEC_TAG=word\0"), None, "it was written over");
        assert_eq!(read(""), None);
    }
}
