//! The dynamic users in use, stored on disk: an id is released only when no process uses it (T116, TH070).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::dynamic::{DynamicUser, POOL, choose};
use super::machine::MachineBook;
use crate::datadir;

/// The dynamic users of one host. Each one in use is a symlink in a directory: its name is the id, its target the holder.
/// Creating a symlink is atomic, and it is on disk before the id is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservations {
    directory: PathBuf,
    pool: RangeInclusive<u32>,
    /// The directory in which all hosts of this machine record their users.
    machine: Option<PathBuf>,
}

impl Reservations {
    /// Reservations in this directory, which is created with the first user; ids come from [`POOL`].
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), pool: POOL, machine: None }
    }

    /// Uses another pool of ids.
    #[must_use]
    pub fn with_pool(self, pool: RangeInclusive<u32>) -> Self {
        Self { pool, ..self }
    }

    /// Shares the ids with the other hosts of this machine that use this directory
    /// ([`MACHINE_USERS`](super::MACHINE_USERS)).
    #[must_use]
    pub fn shared_in(self, machine: impl Into<PathBuf>) -> Self {
        Self { machine: Some(machine.into()), ..self }
    }

    /// Records the users from before the restart for the other hosts of this machine, and removes stale records of a killed
    /// run. Returns the users that another host has taken meanwhile, since a reboot; their holders must [`take`](Self::take)
    /// again.
    ///
    /// # Errors
    /// When one of the directories cannot be read or written.
    pub fn claim(&self) -> io::Result<Vec<DynamicUser>> {
        if !self.directory.exists() {
            return Ok(Vec::new());
        }
        let Some(machine) = self.machine()? else { return Ok(Vec::new()) };
        let (others, taken) = (machine.of_others()?, self.taken()?);
        let taken: BTreeSet<DynamicUser> = taken.into_iter().map(|(user, _)| user).collect();
        for user in taken.difference(&others) {
            machine.note(*user)?;
        }
        for user in machine.of_this_host()?.difference(&taken) {
            machine.forget(*user)?;
        }
        Ok(taken.intersection(&others).copied().collect())
    }

    /// Assigns a user to `holder`: its present one, or one that is free and that no process on this machine runs as.
    /// `random` decides where the search begins.
    ///
    /// # Errors
    /// When all are in use, or the directory cannot be read or written.
    pub fn take(&self, holder: &str, random: u64) -> io::Result<DynamicUser> {
        datadir::enter_or_make(&self.directory, 0o700)?;
        // Before the lock: a user that begins to run processes meanwhile is in the book of its host, and found below.
        let running = running_users();
        let machine = self.machine()?;
        let of_others = machine.as_ref().map_or_else(|| Ok(BTreeSet::new()), MachineBook::of_others)?;
        let taken = self.taken()?;
        for (user, _) in taken.iter().filter(|(_, other)| other == holder) {
            if !of_others.contains(user) {
                machine.iter().try_for_each(|machine| machine.note(*user))?;
                return Ok(*user);
            }
            datadir::remove_file(&self.link(*user))?;
        }
        let mut in_use: BTreeSet<DynamicUser> = taken.into_iter().map(|(user, _)| user).collect();
        in_use.extend(running.into_iter().map(DynamicUser::new));
        in_use.extend(of_others);
        loop {
            let Some(user) = choose(&self.pool, &in_use, random) else { return Err(self.exhausted()) };
            // An id that is only recorded for the other hosts is harmless; one only in our own book could be assigned twice.
            machine.iter().try_for_each(|machine| machine.note(user))?;
            let directory = datadir::enter(&self.directory, OFlags::PATH)?;
            match rustix::fs::symlinkat(holder, directory, user.number().to_string()) {
                Ok(()) => {
                    // The others see it now; the sync does not need the lock.
                    drop(machine);
                    self.sync()?;
                    return Ok(user);
                }
                Err(Errno::EXIST) => drop(in_use.insert(user)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn exhausted(&self) -> io::Error {
        let (first, last) = (self.pool.start(), self.pool.end());
        let others = self.machine.as_ref().map_or_else(String::new, |machine| {
            format!(
                ", by tasks of this host, of others on this machine (see {}), or by processes",
                machine.display()
            )
        });
        io::Error::other(format!("all users from {first} to {last} are in use{others}"))
    }

    /// Releases the user of `holder`. Idempotent.
    ///
    /// # Errors
    /// When a process still runs as that user, and the id stays taken; or the directory cannot be written.
    pub fn give_back(&self, holder: &str) -> io::Result<()> {
        if !self.directory.exists() {
            return Ok(());
        }
        let held: Vec<_> = self.taken()?.into_iter().filter(|(_, other)| other == holder).collect();
        if held.is_empty() {
            return Ok(());
        }
        // Before the lock: new processes of a user come from its existing ones.
        let running = running_users();
        if let Some((user, _)) = held.iter().find(|(user, _)| running.contains(&user.number())) {
            return Err(io::Error::other(format!("processes still run as {user}")));
        }
        let machine = self.machine()?;
        for (user, _) in held {
            datadir::remove_file(&self.link(user))?;
            machine.iter().try_for_each(|machine| machine.forget(user))?;
        }
        drop(machine);
        self.sync()
    }

    fn machine(&self) -> io::Result<Option<MachineBook>> {
        self.machine.as_ref().map(|machine| MachineBook::open(machine, &self.directory)).transpose()
    }

    fn link(&self, user: DynamicUser) -> PathBuf {
        self.directory.join(user.number().to_string())
    }

    /// The users in use and their holders.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn taken(&self) -> io::Result<Vec<(DynamicUser, String)>> {
        datadir::check(&self.directory).map_err(io::Error::other)?;
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // An id whose symlink cannot be read is still in use.
            let holder = fs::read_link(entry.path()).map(|to| to.to_string_lossy().into_owned());
            all.extend(number.map(|number| (DynamicUser::new(number), holder.unwrap_or_default())));
        }
        all.sort();
        Ok(all)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(datadir::enter(&self.directory, OFlags::empty())?)?)
    }
}

/// The real, effective and saved users of all processes. One that ends meanwhile has none.
fn running_users() -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
            all.extend(users.split_whitespace().filter_map(|user| user.parse::<u32>().ok()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    /// A pool of three ids, unique to this test: all tests see the processes of all users.
    fn reservations(first: u32) -> (tempfile::TempDir, Reservations) {
        let directory = tempfile::tempdir().unwrap();
        let reservations = Reservations::new(directory.path().join("users")).with_pool(first..=first + 2);
        (directory, reservations)
    }

    #[test]
    fn a_user_is_kept_over_a_restart_and_no_other_task_gets_it_th070_t116() {
        let (_directory, before) = reservations(4_000_000_000);
        before.give_back("web").expect("a task without a user is accepted");
        let web = before.take("web", 7).unwrap();
        // Another run of the host knows only the directory.
        let after = before.clone();
        assert_eq!(after.take("web", 9).unwrap(), web, "the same task has the same user");
        let others = [after.take("db", 7).unwrap(), after.take("job", 7).unwrap()];
        assert!(others[0] != web && others[1] != web && others[0] != others[1]);
        let refused = after.take("more", 7).unwrap_err().to_string();
        assert!(refused.contains("4000000000 to 4000000002"), "{refused}");
        after.give_back("db").unwrap();
        assert_eq!(after.take("more", 1).unwrap(), others[0]);
    }

    #[test]
    fn a_user_is_not_given_back_before_its_last_process_is_gone_th070() {
        let (directory, reservations) = reservations(4_000_000_010);
        let user = reservations.take("web", 0).unwrap();
        let spawned = Command::new("sleep").arg("60").uid(user.number()).gid(user.number()).spawn();
        let Ok(mut process) = spawned else {
            eprintln!("SKIPPED: a process of a dynamic user is not shown, since only root can start one");
            return;
        };
        let refused = reservations.give_back("web").unwrap_err().to_string();
        assert!(refused.contains("still run as nomad-4000000010"), "{refused}");
        fs::remove_file(reservations.directory.join("4000000010")).unwrap();
        let other = reservations.take("db", 0).unwrap();
        assert_ne!(other, user, "a process of another host keeps the number out of use");
        // That query blocks no user of the shared directory, and waits for none.
        let machine = directory.path().join("machine");
        let shared = reservations.clone().shared_in(&machine);
        shared.claim().unwrap();
        symlink("web", reservations.directory.join("4000000010")).unwrap();
        let lock = File::open(machine.join("lock")).unwrap();
        let _lock = crate::machine::Locked::within(lock, std::time::Duration::ZERO).unwrap().unwrap();
        let began = std::time::Instant::now();
        assert!(shared.give_back("web").unwrap_err().to_string().contains("still run as nomad-4000000010"));
        assert!(began.elapsed() < std::time::Duration::from_secs(8), "{:?}", began.elapsed());
        fs::remove_file(reservations.directory.join("4000000010")).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        reservations.give_back("db").unwrap();
        assert_eq!(reservations.take("db", 0).unwrap(), user);
    }

    /// Two hosts of one machine with a shared pool of three ids.
    struct TwoHosts {
        directory: tempfile::TempDir,
        one: Reservations,
        two: Reservations,
    }

    impl TwoHosts {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let host = |name: &str| {
                Reservations::new(directory.path().join(name).join("users"))
                    .with_pool(4_100_000_000..=4_100_000_002)
                    .shared_in(directory.path().join("machine/users"))
            };
            let (one, two) = (host("one"), host("two"));
            Self { one, two, directory }
        }

        /// Removes everything that a reboot removes.
        fn restart(&self) {
            fs::remove_dir_all(self.directory.path().join("machine")).unwrap();
        }
    }

    #[test]
    fn two_hosts_on_one_machine_never_have_the_same_user_also_before_a_process_has_it_th070_t116() {
        let hosts = TwoHosts::new();
        let (one, two) = (&hosts.one, &hosts.two);
        let web = one.take("web", 0).unwrap();
        let db = two.take("web", 0).unwrap();
        assert_ne!(web, db, "no process runs as either");
        // Another run of each host knows only its directory.
        assert_eq!((one.clone().take("web", 2).unwrap(), two.clone().take("web", 2).unwrap()), (web, db));
        let last = two.take("job", 0).unwrap();
        let refused = one.take("more", 0).unwrap_err().to_string();
        assert!(
            refused.contains("4100000000 to 4100000002") && refused.contains("machine/users"),
            "{refused}"
        );
        // An id that one host releases can be taken by the other.
        two.give_back("job").unwrap();
        assert_eq!(one.take("more", 0).unwrap(), last);
        assert!(two.take("job", 0).is_err());
    }

    #[test]
    fn what_a_host_has_counts_as_long_as_its_data_directory_is_there_th070() {
        let hosts = TwoHosts::new();
        let (one, two) = (&hosts.one, &hosts.two);
        let users: BTreeSet<_> = ["a", "b", "c"].map(|holder| one.take(holder, 0).unwrap()).into();
        assert!(two.take("web", 0).is_err(), "also while that host does not run");
        fs::remove_dir_all(hosts.directory.path().join("one")).unwrap();
        assert!(users.contains(&two.take("web", 0).unwrap()));
        // A stale symlink: its host released the user without an update.
        let other = two.take("job", 0).unwrap();
        fs::remove_file(two.link(other)).unwrap();
        one.take("a", 0).unwrap();
        one.take("b", 0).unwrap();
        assert!(one.take("c", 0).is_err());
    }

    #[test]
    fn after_a_restart_of_the_machine_each_host_claims_what_it_has_and_no_user_is_given_twice_th070() {
        let hosts = TwoHosts::new();
        let (one, two) = (&hosts.one, &hosts.two);
        assert_eq!((one.claim().unwrap(), two.claim().unwrap()), (vec![], vec![]), "there is nothing yet");
        let web = one.take("web", 0).unwrap();
        hosts.restart();
        assert_eq!(one.claim().unwrap(), []);
        assert_ne!(two.take("web", 0).unwrap(), web);
        two.give_back("web").unwrap();
        // The other host claims first.
        hosts.restart();
        assert_eq!(two.take("web", 0).unwrap(), web);
        assert_eq!(one.claim().unwrap(), [web]);
        let other = one.take("web", 0).unwrap();
        assert_ne!(other, web, "it has another one from now on");
        assert_eq!((one.claim().unwrap(), one.taken().unwrap()), (vec![], vec![(other, "web".to_owned())]));
        // A run that was killed between the two symlinks.
        let machine = hosts.directory.path().join("machine/users");
        symlink(one.directory.canonicalize().unwrap(), machine.join("4100000002")).unwrap();
        one.claim().unwrap();
        assert!(fs::symlink_metadata(machine.join("4100000002")).is_err());
        assert!(fs::symlink_metadata(machine.join(other.number().to_string())).is_ok());
        assert_eq!(two.claim().unwrap(), []);
    }

    #[test]
    fn a_host_under_another_path_has_what_it_had_th070() {
        let hosts = TwoHosts::new();
        let (directory, one, two) = (hosts.directory.path(), &hosts.one, &hosts.two);
        let web = one.take("web", 0).unwrap();
        symlink(directory.join("one"), directory.join("link")).unwrap();
        let linked = Reservations { directory: directory.join("link/users"), ..one.clone() };
        assert_eq!((linked.claim().unwrap(), linked.take("web", 1).unwrap()), (vec![], web));
        fs::rename(directory.join("one"), directory.join("moved")).unwrap();
        let moved = Reservations { directory: directory.join("moved/users"), ..one.clone() };
        assert_eq!(moved.claim().unwrap(), []);
        assert_ne!(two.take("web", 0).unwrap(), web);
        moved.give_back("web").unwrap();
        assert_eq!(moved.claim().unwrap(), []);
        assert_eq!(two.take("job", 0).unwrap(), web);
    }

    #[test]
    fn the_directory_above_that_of_the_users_lets_every_user_pass_whichever_made_it_first_sec_01() {
        use std::os::unix::fs::PermissionsExt as _;
        let hosts = TwoHosts::new();
        hosts.one.take("web", 0).unwrap();
        let machine = hosts.directory.path().join("machine");
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(&machine), mode(&machine.join("users"))), (0o711, 0o700));
    }

    #[test]
    fn a_directory_of_the_machine_that_others_may_write_to_is_refused_with_what_to_do() {
        use std::os::unix::fs::PermissionsExt as _;
        let hosts = TwoHosts::new();
        let web = hosts.one.take("web", 0).unwrap();
        let machine = hosts.directory.path().join("machine/users");
        fs::set_permissions(&machine, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = hosts.one.take("db", 0).unwrap_err().to_string();
        assert!(
            refused.contains("machine/users") && refused.contains("look at it and remove it"),
            "{refused}"
        );
        fs::set_permissions(&machine, fs::Permissions::from_mode(0o700)).unwrap();
        assert_ne!(hosts.one.take("db", 0).unwrap(), web);
    }

    #[test]
    fn many_hosts_that_take_users_at_once_get_different_ones_th070() {
        let directory = tempfile::tempdir().unwrap();
        let takes = (0..8).map(|number| {
            let host = Reservations::new(directory.path().join(number.to_string()))
                .with_pool(4_200_000_000..=4_200_000_099)
                .shared_in(directory.path().join("machine"));
            std::thread::spawn(move || {
                (0..5).map(|task| host.take(&task.to_string(), 0).unwrap()).collect::<Vec<_>>()
            })
        });
        let takes: Vec<_> = takes.collect();
        let users: Vec<_> = takes.into_iter().flat_map(|taken| taken.join().unwrap()).collect();
        assert_eq!(users.iter().collect::<BTreeSet<_>>().len(), 40, "{users:?}");
    }
}
