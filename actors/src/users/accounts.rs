//! Looks up users and groups in the files of this machine. Directory services are not queried.

use std::path::Path;
use std::{fs, io};

use super::dynamic::DynamicUser;

/// The ids of a user's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user id.
    pub uid: u32,
    /// The id of its primary group.
    pub gid: u32,
    /// Its home directory.
    pub home: String,
}

/// Why a lookup failed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// There is no such name.
    #[error("{file} has no entry {name:?}; name one that it lists, or give a number")]
    Unknown {
        /// The name.
        name: String,
        /// The file that was searched.
        file: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot look up {name:?} in {file}: {source}")]
    Unreadable {
        /// The name.
        name: String,
        /// The file.
        file: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Looks up a user by name or id. Names of dynamic users (`nomad-80000`) are in no file and are recognised as well (T048).
///
/// # Errors
/// [`AccountError`] when there is no such user.
pub fn user(name: &str) -> Result<Account, AccountError> {
    let listed = read(USERS, name).and_then(|text| user_in(&text, name).ok_or_else(|| unknown(USERS, name)));
    match DynamicUser::of_name(name) {
        Some(user) => Ok(listed.unwrap_or_else(|_| user.account())),
        None => listed,
    }
}

/// The ids of all groups of a user: its primary group first, then those that list it by name.
///
/// # Errors
/// [`AccountError`] when there is no such user, or the groups cannot be read.
pub fn groups(name: &str) -> Result<Vec<u32>, AccountError> {
    let own = user(name)?.gid;
    let mut all = vec![own];
    all.extend(groups_in(&read(GROUPS, name)?, name).into_iter().filter(|gid| *gid != own));
    Ok(all)
}

/// Looks up the id of a group by name or id.
///
/// # Errors
/// [`AccountError`] when there is no such group.
pub fn group(name: &str) -> Result<u32, AccountError> {
    match name.parse() {
        Ok(number) => Ok(number),
        Err(_) => group_in(&read(GROUPS, name)?, name).ok_or_else(|| unknown(GROUPS, name)),
    }
}

fn read(file: &'static str, name: &str) -> Result<String, AccountError> {
    fs::read_to_string(Path::new(file)).map_err(|source| AccountError::Unreadable {
        name: name.to_owned(),
        file,
        source,
    })
}

fn unknown(file: &'static str, name: &str) -> AccountError {
    AccountError::Unknown { name: name.to_owned(), file }
}

fn user_in(text: &str, name: &str) -> Option<Account> {
    let account = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_meant = fields.first() == Some(&name) || fields.get(2) == Some(&name);
        let (uid, gid) = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
        is_meant.then(|| Account { uid, gid, home: fields.get(5).unwrap_or(&"/").to_string() })
    };
    text.lines().find_map(account)
}

fn group_in(text: &str, name: &str) -> Option<u32> {
    let number = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&name)).then(|| fields.get(2)?.parse().ok())?
    };
    text.lines().find_map(number)
}

fn groups_in(text: &str, name: &str) -> Vec<u32> {
    let number = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_member = fields.get(3)?.split(',').any(|member| member == name);
        is_member.then(|| fields.get(2)?.parse().ok())?
    };
    text.lines().filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_by_name_and_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1001::/home/ann:/bin/sh\n";
        let ann = Account { uid: 1000, gid: 1001, home: "/home/ann".to_owned() };
        assert_eq!(user_in(users, "ann"), Some(ann.clone()));
        assert_eq!(user_in(users, "1000"), Some(ann));
        assert_eq!(user_in(users, "bob"), None);
        assert_eq!(group_in("wheel:x:10:ann\ncrew:x:12:\n", "crew"), Some(12));
        assert_eq!(group_in("wheel:x:10:ann\n", "crew"), None);
        assert_eq!(group("4711").expect("a number needs no file"), 4711);
    }
    #[test]
    fn the_groups_that_list_a_user_are_its_groups_and_root_is_in_its_own() {
        let text = "wheel:x:10:ann,bob\ncrew:x:12:anna\nbroken\nmusic:x:13:ann\n";
        assert_eq!(groups_in(text, "ann"), [10, 13]);
        assert_eq!(groups("root").expect("root is listed").first(), Some(&0));
    }

    #[test]
    fn a_dynamic_user_is_understood_without_a_file_t048() {
        let found = user("nomad-80007").expect("it need not be listed");
        assert_eq!((found.uid, found.gid, found.home.as_str()), (80_007, 80_007, "/nonexistent"));
        assert!(user("nomad-7x").is_err());
    }
}
