//! Parses the texts of `/proc`.

use super::mark::{ALLOCATION_VARIABLE, TASK_VARIABLE, TaskMark};
use super::seen::Environment;
use crate::goplugin::SOCKET_DIR_VARIABLE;
use crate::process::OWNER_VARIABLE;

/// Reads `/proc/<pid>/environ`.
#[must_use]
pub fn environment(bytes: &[u8]) -> Environment {
    let value = |name: &str| {
        let entries = bytes.split(|byte| *byte == 0);
        let mut values = entries.filter_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        values.next().and_then(|value| std::str::from_utf8(value).ok()).map(str::to_owned)
    };
    // A process that overwrites its environment with its title leaves zeros.
    if bytes.iter().all(|byte| *byte == 0) {
        return Environment::Unknown;
    }
    let mark = |allocation, task| TaskMark { allocation, task };
    let task = value(ALLOCATION_VARIABLE).zip(value(TASK_VARIABLE));
    Environment::Read {
        task: task.map(|(allocation, task)| mark(allocation, task)),
        sockets: value(SOCKET_DIR_VARIABLE),
        owner: value(OWNER_VARIABLE),
    }
}

/// Whether a process with this status may become another user (`CAP_SETUID`). True if the status does not contain it.
#[must_use]
pub fn may_change_user(status: &str) -> bool {
    const SET_USER: u64 = 1 << 7;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let rights = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok());
    rights.is_none_or(|rights| rights & SET_USER != 0)
}

/// The paths in a text such as `/proc/<pid>/cgroup`, one per hierarchy.
#[must_use]
pub fn groups(text: &str) -> Vec<String> {
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut paths: Vec<String> = paths.filter(|path| *path != "/").map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Inode numbers and paths of the sockets in a text such as `/proc/net/unix`. Unnamed and abstract ones are skipped.
#[must_use]
pub fn sockets(text: &str) -> Vec<(u64, String)> {
    let socket = |line: &str| {
        let place = line.find(" /")?;
        let number = line[..place].split_ascii_whitespace().last()?.parse().ok()?;
        Some((number, line[place + 1..].to_owned()))
    };
    text.lines().skip(1).filter_map(socket).collect()
}

/// The inode number of the socket that a descriptor links to: `socket:[123]`.
#[must_use]
pub fn socket_number(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether the driver's state of a task contains this path, and not merely a longer path that begins with it.
#[must_use]
pub fn names_path(state: &[u8], path: &str) -> bool {
    let path = path.as_bytes();
    if path.is_empty() {
        return false;
    }
    state.windows(path.len()).enumerate().any(|(place, window)| {
        let next = state.get(place + path.len());
        window == path && next.is_none_or(|byte| !byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_names_its_task_or_nothing_and_an_empty_one_is_unknown() {
        let whole = b"PATH=/bin\0NOMAD_ALLOC_ID=a\0NOMAD_TASK_NAME=web\0PLUGIN_UNIX_SOCKET_DIR=/run/p\0";
        let Environment::Read { task, sockets, owner } = environment(whole) else { panic!("it can be read") };
        assert_eq!(task, Some(TaskMark { allocation: "a".into(), task: "web".into() }));
        assert_eq!((sockets.as_deref(), owner), (Some("/run/p"), None));
        for half in [&b"NOMAD_ALLOC_ID=a\0"[..], b"XNOMAD_ALLOC_ID=a\0NOMAD_TASK_NAME=web\0", b"A=b"] {
            assert!(matches!(environment(half), Environment::Read { task: None, .. }));
        }
        for empty in [&b""[..], b"\0\0\0"] {
            assert_eq!(environment(empty), Environment::Unknown);
        }
    }

    #[test]
    fn the_right_to_become_another_user_is_read() {
        let status = "Name:\ta\nCapEff:\t0000000000000000\n";
        assert!(!may_change_user(status) && may_change_user("Name:\ta\n"));
        assert!(
            may_change_user("CapEff:\t0000000000000080\n") && !may_change_user("CapEff:\t00000000ffffff7f\n")
        );
    }

    #[test]
    fn control_groups_are_read_of_both_versions() {
        let text =
            "12:pids:/nomad/a.web\n3:cpu,cpuacct:/nomad/a.web\n1:name=systemd:/\n0::/a.slice/x:y.scope\n";
        assert_eq!(groups(text), ["/a.slice/x:y.scope", "/nomad/a.web"]);
        assert!(groups("").is_empty());
    }

    #[test]
    fn sockets_are_read_with_their_paths() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 18 /run/p/plugin 1\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 19\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 20 @abstract\n";
        assert_eq!(sockets(text), [(18, "/run/p/plugin 1".to_owned())]);
        assert_eq!(socket_number("socket:[18]"), Some(18));
        assert_eq!(socket_number("pipe:[18]"), None);
    }

    #[test]
    fn a_state_names_a_path_only_as_a_whole() {
        let state = b"\xa4Addr\xae/run/p/plugin1\xa3Pid\x07";
        assert!(names_path(state, "/run/p/plugin1"));
        assert!(!names_path(state, "/run/p/plugin") && !names_path(state, "/run/p/plugin12"));
        assert!(!names_path(b"", "/run") && !names_path(state, ""));
        assert!(names_path(b"/run/p/plugin1", "/run/p/plugin1"));
    }
}
