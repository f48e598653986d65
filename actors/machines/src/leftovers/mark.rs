//! How the processes of a task are identified.

use std::fmt;

/// The environment variable with the allocation of a task, in each of its processes (T080).
pub const ALLOCATION_VARIABLE: &str = "NOMAD_ALLOC_ID";
/// The environment variable with the name of the task in its allocation.
pub const TASK_VARIABLE: &str = "NOMAD_TASK_NAME";
/// The length of an allocation id that is unique on a machine (TH053).
const ALLOCATION_LETTERS: usize = 36;

/// The task that a process names in its environment. Allocation ids are unique on a machine (TH053), so this is one task of
/// one host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskMark {
    /// The id of the allocation.
    pub allocation: String,
    /// The name of the task.
    pub task: String,
}

impl TaskMark {
    /// The mark for a task id of three parts: `ALLOCATION/NAME/RUN` (T070). `None` for another form: it cannot be searched.
    #[must_use]
    pub fn of_task_id(id: &str) -> Option<Self> {
        let mut parts = id.split('/');
        let (allocation, task) = (parts.next()?, parts.next()?);
        let is_whole = !parts.next()?.is_empty() && parts.next().is_none();
        // An id that is not unique on the machine would include tasks of others.
        let is_unique = allocation.len() == ALLOCATION_LETTERS && !task.is_empty();
        let mark = || Self { allocation: allocation.to_owned(), task: task.to_owned() };
        (is_whole && is_unique).then(mark)
    }

    /// Whether a component of a cgroup path consists of both names (T103): `ALLOCATION.NAME`, with or without `.scope`.
    pub(super) fn names_group(&self, path: &str) -> bool {
        path.split('/').any(|part| {
            let rest = part.strip_prefix(self.allocation.as_str()).and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|name| name.strip_suffix(".scope").unwrap_or(name) == self.task)
        })
    }

    /// Whether a text has the path of something in the task's directory, `ALLOCATION/NAME`.
    pub(super) fn names_directory(&self, text: &[u8]) -> bool {
        let part = format!("/{}/{}/", self.allocation, self.task);
        text.windows(part.len()).any(|window| window == part.as_bytes())
    }

    /// Whether a cgroup path may be named after the task: it contains the id of the allocation, or the name of the task as a
    /// whole word. Components that the init system creates on every machine, such as `system.slice`, do not count.
    pub(super) fn is_mentioned_in(&self, path: &str) -> bool {
        let mut parts = path.split('/').filter(|part| !is_of_everybody(part));
        path.contains(&self.allocation) || parts.any(|part| has_word(unit_name(part), &self.task))
    }

    /// Whether a cgroup path has such a component for another task, of any host.
    pub(super) fn is_of_another(&self, path: &str) -> bool {
        let names_task = |part: &str| {
            part.split_once('.').is_some_and(|(allocation, name)| {
                allocation.len() == ALLOCATION_LETTERS
                    && allocation.bytes().all(|letter| letter.is_ascii_hexdigit() || letter == b'-')
                    && !name.is_empty()
            })
        };
        path.split('/').any(names_task) && !self.names_group(path)
    }
}

/// Whether a component of a cgroup path is one that the init system creates on each machine or for each login.
fn is_of_everybody(part: &str) -> bool {
    const COMMON: [&str; 7] = [
        "init.scope",
        "system.slice",
        "user.slice",
        "machine.slice",
        "app.slice",
        "session.slice",
        "background.slice",
    ];
    const NUMBERED: [(&str, &str); 3] = [("user-", ".slice"), ("user@", ".service"), ("session-", ".scope")];
    let is_number = |text: &str| {
        let digits = text.strip_prefix('c').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|letter| letter.is_ascii_digit())
    };
    let is_numbered = |(before, behind): &(&str, &str)| {
        let number = part.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
        number.is_some_and(is_number)
    };
    COMMON.contains(&part) || NUMBERED.iter().any(is_numbered)
}

fn unit_name(part: &str) -> &str {
    let kinds = [".service", ".scope", ".slice"];
    kinds.iter().find_map(|kind| part.strip_suffix(kind)).unwrap_or(part)
}

/// Whether a text contains a word that is not surrounded by letters or digits.
fn has_word(text: &str, word: &str) -> bool {
    let is_edge = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
    text.char_indices().any(|(start, _)| {
        let behind = text[start..].strip_prefix(word);
        behind.is_some_and(|behind| {
            is_edge(text[..start].chars().next_back()) && is_edge(behind.chars().next())
        })
    })
}

impl fmt::Display for TaskMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocation, task } = self;
        write!(f, "{ALLOCATION_VARIABLE}={allocation} and {TASK_VARIABLE}={task}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0a1b2c3d-0a1b-8a1b-8a1b-0a1b2c3d4e5f";

    #[test]
    fn a_task_id_of_three_parts_names_its_task_and_no_other_form_does_t070() {
        let mark = TaskMark::of_task_id(&format!("{ID}/web/00000001")).unwrap();
        assert_eq!((mark.allocation.as_str(), mark.task.as_str()), (ID, "web"));
        for other in
            ["", "web", "web/main/1-0", &format!("{ID}/web"), &format!("{ID}//1"), &format!("{ID}/web/")]
        {
            assert_eq!(TaskMark::of_task_id(other), None, "{other}");
        }
        assert_eq!(TaskMark::of_task_id(&format!("{ID}/web/1/2")), None);
    }

    #[test]
    fn a_control_group_is_the_tasks_if_its_name_is_made_of_both_names_t103() {
        let mark = TaskMark { allocation: ID.to_owned(), task: "web".to_owned() };
        for path in [
            format!("/nomad.slice/share.slice/{ID}.web.scope"),
            format!("/nomad/{ID}.web"),
            format!("/nomad.slice/share.slice/{ID}.web.scope/inner"),
        ] {
            assert!(mark.names_group(&path), "{path}");
        }
        for path in ["/".to_owned(), format!("/{ID}"), format!("/{ID}.web2.scope"), format!("/x{ID}.web")] {
            assert!(!mark.names_group(&path), "{path}");
        }
    }

    #[test]
    fn a_control_group_mentions_a_task_if_its_name_stands_there_as_a_whole_word() {
        let mentions = |task: &str, path: &str| {
            TaskMark { allocation: ID.to_owned(), task: task.to_owned() }.is_mentioned_in(path)
        };
        for (task, path) in [
            ("web", format!("/nomad.slice/{ID}.web.scope")),
            ("web", format!("/machine.slice/web-{ID}.scope")),
            ("web", format!("/docker/{ID}")),
            ("web", "/system.slice/task-web.service".to_owned()),
            ("web", "/system.slice/my_web.service/inner".to_owned()),
            ("my-web", "/system.slice/task-my-web.scope".to_owned()),
            ("system", "/system.slice/system.service".to_owned()),
            ("app", "/user.slice/user-1000.slice/user@1000.service/app.slice/app-web.scope".to_owned()),
        ] {
            assert!(mentions(task, &path), "{task} {path}");
        }
        for (task, path) in [
            ("s", "/system.slice/other.service"),
            ("system", "/system.slice/other.service"),
            ("service", "/system.slice/other.service"),
            ("slice", "/user.slice/user-1000.slice/session-3.scope"),
            ("user", "/user.slice/user-1000.slice/user@1000.service/init.scope"),
            ("1000", "/user.slice/user-1000.slice/session-c3.scope"),
            ("web", "/system.slice/webmail.service"),
            ("web", "/system.slice/cobweb.service"),
        ] {
            assert!(!mentions(task, path), "{task} {path}");
        }
    }

    #[test]
    fn a_control_group_is_another_tasks_if_its_name_is_made_of_the_names_of_that_t103() {
        let mark = TaskMark { allocation: ID.to_owned(), task: "web".to_owned() };
        let other = ID.replace('a', "b");
        for path in [format!("/nomad/{ID}.job"), format!("/nomad.slice/share.slice/{other}.web.scope/inner")]
        {
            assert!(mark.is_of_another(&path), "{path}");
        }
        for path in
            ["/".to_owned(), format!("/nomad/{ID}.web"), format!("/{other}"), "/host.service".to_owned()]
        {
            assert!(!mark.is_of_another(&path), "{path}");
        }
    }
}
