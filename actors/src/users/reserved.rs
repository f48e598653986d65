//! Which dynamic users are in use, kept on disk: a number is given back only when no process has it any more (T116, TH070).

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::PathBuf;

use super::dynamic::{DynamicUser, POOL, choose};

/// The dynamic users of one host. Each one in use is a link in a directory: its name is the number, and what it names, who has it.
/// Making a link succeeds for one only, and is on disk when it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservations {
    directory: PathBuf,
    pool: RangeInclusive<u32>,
}

impl Reservations {
    /// Those that are kept in this directory, which is made when the first user is taken; numbers come from [`POOL`].
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), pool: POOL }
    }

    /// Takes numbers from another pool.
    #[must_use]
    pub fn with_pool(self, pool: RangeInclusive<u32>) -> Self {
        Self { pool, ..self }
    }

    /// Gives `holder` a user: the one that it has, or one that nobody has and no process on this machine runs as, whoever started
    /// that. `random` decides where the search begins.
    ///
    /// # Errors
    /// When all are in use, or the directory cannot be read or written.
    pub fn take(&self, holder: &str, random: u64) -> io::Result<DynamicUser> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let taken = self.taken()?;
        if let Some((user, _)) = taken.iter().find(|(_, other)| other == holder) {
            return Ok(*user);
        }
        let mut in_use: BTreeSet<DynamicUser> = taken.into_iter().map(|(user, _)| user).collect();
        in_use.extend(running_users().into_iter().map(DynamicUser::new));
        loop {
            let Some(user) = choose(&self.pool, &in_use, random) else {
                let (first, last) = (self.pool.start(), self.pool.end());
                return Err(io::Error::other(format!("all users from {first} to {last} are in use")));
            };
            match symlink(holder, self.directory.join(user.number().to_string())) {
                Ok(()) => {
                    self.sync()?;
                    return Ok(user);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => drop(in_use.insert(user)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives back what `holder` has. Whoever has none is well.
    ///
    /// # Errors
    /// When a process still runs as that user, and the number stays taken; or the directory cannot be written.
    pub fn give_back(&self, holder: &str) -> io::Result<()> {
        if !self.directory.exists() {
            return Ok(());
        }
        for (user, _) in self.taken()?.into_iter().filter(|(_, other)| other == holder) {
            if running_users().contains(&user.number()) {
                return Err(io::Error::other(format!("processes still run as {user}")));
            }
            fs::remove_file(self.directory.join(user.number().to_string()))?;
            self.sync()?;
        }
        Ok(())
    }

    /// Who has which user.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn taken(&self) -> io::Result<Vec<(DynamicUser, String)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // A number whose link cannot be read is in use all the same.
            let holder = fs::read_link(entry.path()).map(|to| to.to_string_lossy().into_owned());
            all.extend(number.map(|number| (DynamicUser::new(number), holder.unwrap_or_default())));
        }
        all.sort();
        Ok(all)
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
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
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    fn reservations() -> (tempfile::TempDir, Reservations) {
        let directory = tempfile::tempdir().unwrap();
        let reservations =
            Reservations::new(directory.path().join("users")).with_pool(4_000_000_000..=4_000_000_002);
        (directory, reservations)
    }

    #[test]
    fn a_user_is_kept_over_a_restart_and_nobody_else_gets_it_th070_t116() {
        let (_directory, before) = reservations();
        before.give_back("web").expect("whoever has none is well");
        let web = before.take("web", 7).unwrap();
        // Another run of the host knows the directory only.
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
        let (_directory, reservations) = reservations();
        let user = reservations.take("web", 0).unwrap();
        let spawned = Command::new("sleep").arg("60").uid(user.number()).gid(user.number()).spawn();
        let Ok(mut process) = spawned else {
            eprintln!("SKIPPED: a process of a dynamic user is not shown, since only root can start one");
            return;
        };
        let refused = reservations.give_back("web").unwrap_err().to_string();
        assert!(refused.contains("still run as nomad-4000000000"), "{refused}");
        fs::remove_file(reservations.directory.join("4000000000")).unwrap();
        let other = reservations.take("db", 0).unwrap();
        assert_ne!(other, user, "a process of somebody else keeps the number out of use");
        process.kill().unwrap();
        process.wait().unwrap();
        reservations.give_back("db").unwrap();
        assert_eq!(reservations.take("db", 0).unwrap(), user);
    }
}
