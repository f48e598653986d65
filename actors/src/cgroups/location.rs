//! The actual cgroups of a process, as the kernel reports them, independent of where it was put (TH052).

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The cgroups of one process, as in `/proc/PID/cgroup`: relative to the root of each hierarchy, as this process sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
    /// In the unified hierarchy (version 2), if it is mounted: `/nomad.slice/...`.
    pub unified: Option<PathBuf>,
    /// By controller, in the hierarchies of version 1, in the kernel's order.
    pub by_controller: Vec<(String, PathBuf)>,
}

impl Location {
    /// Parses the text of `/proc/PID/cgroup`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut location = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if number == "0" && controllers.is_empty() {
                location.unified = Some(PathBuf::from(path));
            } else {
                let named = controllers.split(',').map(|name| (name.to_owned(), PathBuf::from(path)));
                location.by_controller.extend(named);
            }
        }
        location
    }

    /// Its cgroup in the hierarchy of this version 1 controller.
    #[must_use]
    pub fn of_controller(&self, controller: &str) -> Option<&Path> {
        let found = self.by_controller.iter().find(|(name, _)| name == controller);
        found.map(|(_, path)| path.as_path())
    }

    /// Whether it is in a cgroup of this task, or in a nested one, in any hierarchy.
    #[must_use]
    pub fn is_in(&self, name: &super::GroupName) -> bool {
        let scope = format!("{}.scope", name.as_str());
        let is_named = |path: &Path| {
            path.components().any(|part| {
                let part = part.as_os_str().to_string_lossy();
                part == scope || part == name.as_str()
            })
        };
        self.unified.as_deref().is_some_and(is_named)
            || self.by_controller.iter().any(|(_, path)| is_named(path))
    }
}

/// The cgroups of a process.
///
/// # Errors
/// When it is gone, or this process has no permission.
pub fn where_is(pid: u32) -> io::Result<Location> {
    Ok(Location::parse(&fs::read_to_string(format!("/proc/{pid}/cgroup"))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{AllocationId, TaskName};

    #[test]
    fn a_process_is_found_in_either_version_th052() {
        let text = "5:cpu,cpuacct:/nomad/a.web\n3:freezer:/nomad/a.web/inner\n1:name=systemd:/\n\
                    0::/nomad.slice/share.slice/a.web.scope\nodd\n";
        let location = Location::parse(text);
        assert_eq!(location.of_controller("cpuacct"), Some(Path::new("/nomad/a.web")));
        assert_eq!(location.unified.as_deref(), Some(Path::new("/nomad.slice/share.slice/a.web.scope")));
        assert_eq!(location.of_controller("memory"), None);
        let name = |task| {
            super::super::GroupName::new(&AllocationId::new("a").unwrap(), &TaskName::new(task).unwrap())
        };
        assert!(location.is_in(&name("web").unwrap()));
        assert!(!location.is_in(&name("we").unwrap()));
        assert!(!Location::parse("0::/\n").is_in(&name("web").unwrap()));
    }

    #[test]
    fn this_process_is_somewhere_and_one_that_is_gone_is_an_error_th052() {
        assert!(where_is(std::process::id()).is_ok());
        assert!(where_is(u32::MAX).is_err());
    }
}
