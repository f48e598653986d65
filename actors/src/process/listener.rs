//! Proves that the listener at a plugin's endpoint is the launched process or a descendant of it.
//!
//! A plugin reports its endpoint, and nothing ties that endpoint to it: it may name the socket of another plugin, which would
//! then serve, and be ended, in its name. So the kernel is asked which process listens. It must be the launched process, a
//! descendant by the chain of parents, or a process that has the random tag of this launch, which only the launched process
//! and its descendants inherit.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::{PidfdFlags, pidfd_open};

use super::Launched;
use super::look;
use super::system::ProcessStatus;
use crate::goplugin::Listener;

/// The limit of parents that are checked: more than the depth of any process tree.
const PARENTS_MAX: usize = 64;
/// The state of a listening port in the kernel's lists.
const LISTENING: &str = "0A";

/// Why a listener is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impostor {
    /// Another process listens there.
    #[error(
        "{who} listens there, and not the process that was launched (pid {launched}) or one that it made; no request was sent to it. \
         The plugin has to listen itself: look at the address in its handshake line, or install another version of it"
    )]
    Stranger {
        /// The process that listens.
        who: Who,
        /// The process that was launched.
        launched: u32,
    },
    /// The listening process cannot be determined.
    #[error(
        "it cannot be proven that the launched process (pid {launched}) or one that it made listens there: {reason}; nothing was \
         sent to the listener"
    )]
    Unproven {
        /// The reason.
        reason: String,
        /// The process that was launched.
        launched: u32,
    },
    /// The socket belongs to a user who is neither the plugin's nor ours.
    #[error(
        "the socket belongs to user {owner}, and the plugin runs as user {plugin}; no request was sent to it. Remove the socket, and \
         start the plugin again"
    )]
    ForeignSocket {
        /// The user id of the file's owner.
        owner: u32,
        /// The user id of the plugin.
        plugin: u32,
    },
}

/// A listening process, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Its PID.
    pub pid: u32,
    /// Its program, if readable.
    pub program: Option<PathBuf>,
    /// Whether it carries the tag of another launch by a host like this one.
    pub is_of_another_launch: bool,
}

impl Who {
    pub(super) fn of(pid: u32, is_of_another_launch: bool) -> Self {
        let program = fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe")).ok();
        Self { pid, program, is_of_another_launch }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        if let Some(program) = &self.program {
            write!(f, " ({})", program.display())?;
        }
        if self.is_of_another_launch { f.write_str(", which belongs to another launch,") } else { Ok(()) }
    }
}

/// Proves that this listener is the launched process or a descendant, on a thread for blocking calls.
///
/// # Errors
/// Names the actual listener, or why it cannot be determined, and the remedy.
pub async fn prove_listener(launched: Launched, listener: Listener) -> Result<(), String> {
    let proving = tokio::task::spawn_blocking(move || prove(&launched, &listener));
    let proven = proving.await.map_err(|crash| format!("it cannot be proven who listens there: {crash}"));
    proven?.map_err(|impostor| impostor.to_string())
}

fn prove(launched: &Launched, listener: &Listener) -> Result<(), Impostor> {
    let unproven = |reason: String| Impostor::Unproven { reason, launched: launched.pid };
    match listener {
        Listener::Socket { pid: None, .. } => Err(unproven(
            "the process that does is not visible from here, it is in another pid namespace".to_owned(),
        )),
        Listener::Socket { pid: Some(pid), user, file_owner } => {
            let us = rustix::process::geteuid().as_raw();
            if ![*user, us].contains(file_owner) {
                return Err(Impostor::ForeignSocket { owner: *file_owner, plugin: *user });
            }
            // The open file descriptor rules out PID reuse.
            let held = look::number(*pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
            if !matches!(held, Some(Ok(_))) {
                return Err(unproven(format!("process {pid}, which began to listen there, has ended")));
            }
            belongs(launched, *pid)
        }
        Listener::Port(address) => {
            let holds =
                |reason: io::Error| unproven(format!("the kernel's list of ports cannot be read: {reason}"));
            let sockets = listening_sockets(*address).map_err(holds)?;
            let is_it = |pid: u32| holds_one(pid, &sockets) && belongs(launched, pid).is_ok();
            if is_it(launched.pid) || look::numbers().map_err(holds)?.into_iter().any(is_it) {
                return Ok(());
            }
            Err(unproven(format!("none of them is seen to listen on {address}")))
        }
    }
}

fn belongs(launched: &Launched, pid: u32) -> Result<(), Impostor> {
    let tag = look::tag_of(pid);
    if tag == Some(launched.tag) || (pid == launched.pid && tag.is_none()) || descends(pid, launched.pid) {
        return Ok(());
    }
    Err(Impostor::Stranger { who: Who::of(pid, tag.is_some()), launched: launched.pid })
}

/// Whether one process descends from another. A parent that was started after its child is a case of PID reuse.
pub(super) fn descends(pid: u32, ancestor: u32) -> bool {
    let of = |pid: u32| ProcessStatus::of(i32::try_from(pid).ok()?);
    let Some(mut child) = of(pid) else { return false };
    for _ in 0..PARENTS_MAX {
        let parent = u32::try_from(child.parent).ok().filter(|parent| *parent > 1).and_then(of);
        let Some(parent) = parent.filter(|parent| parent.started_ticks <= child.started_ticks) else {
            return false;
        };
        if u32::try_from(parent.pid) == Ok(ancestor) {
            return true;
        }
        child = parent;
    }
    false
}

/// The inode numbers of the sockets that listen on this port, as links in `/proc/PID/fd` name them.
fn listening_sockets(address: SocketAddr) -> io::Result<Vec<String>> {
    let mut sockets = Vec::new();
    for list in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match fs::read_to_string(list) {
            Ok(text) => sockets.extend(text.lines().filter_map(|line| socket_on(line, address.port()))),
            // The kernel has no list for an address family that it does not support.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

/// A line of these lists: slot, local address, remote address, state, queues, timers, retransmits, user, timeout, inode.
fn socket_on(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let local = fields.get(1)?.rsplit(':').next()?;
    let is_meant = u16::from_str_radix(local, 16) == Ok(port) && fields.get(3) == Some(&LISTENING);
    is_meant.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
}

fn holds_one(pid: u32, sockets: &[String]) -> bool {
    let descriptors = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd"));
    let links = descriptors.into_iter().flatten().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter_map(|link| link.into_os_string().into_string().ok()).any(|link| sockets.contains(&link))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::{Child, Command};

    use super::super::{ProcessName, ProcessTag, TAG_VARIABLE};
    use super::*;
    use crate::vocabulary::Timestamp;

    const TAG: ProcessTag = ProcessTag::new([7; 16]);

    fn launched(pid: u32) -> Launched {
        Launched {
            name: ProcessName::new("driver-a").expect("a good name"),
            tag: TAG,
            pid,
            started_at: Timestamp::default(),
            handshake: None,
            is_adopted: false,
            spec_digest: None,
        }
    }

    fn socket_of(pid: u32) -> Listener {
        let user = rustix::process::geteuid().as_raw();
        Listener::Socket { pid: Some(pid), user, file_owner: user }
    }

    fn process(tag: ProcessTag) -> Child {
        let child = Command::new("/bin/sleep").arg("1000").env(TAG_VARIABLE, tag.to_string()).spawn();
        let child = child.expect("a process");
        while look::look_at(child.id()).is_none_or(|seen| seen.tag.is_none()) {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn the_launched_process_and_what_it_made_are_proven_and_another_launch_is_not() {
        let (mut ours, mut other) = (process(TAG), process(ProcessTag::new([8; 16])));
        let pid = std::process::id();
        assert_eq!(prove(&launched(ours.id()), &socket_of(ours.id())), Ok(()));
        assert_eq!(prove(&launched(1_999_999_999), &socket_of(ours.id())), Ok(()), "by its tag");
        assert_eq!(prove(&launched(pid), &socket_of(other.id())), Ok(()), "by its parent");
        let refused = prove(&launched(ours.id()), &socket_of(other.id())).expect_err("it is another");
        let told = refused.to_string();
        for words in [&format!("process {} ", other.id()), "another launch", &format!("pid {}", ours.id())] {
            assert!(told.contains(words), "{told}");
        }
        for child in [&mut ours, &mut other] {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
        assert!(matches!(prove(&launched(ours.id()), &socket_of(ours.id())), Err(Impostor::Unproven { .. })));
    }

    #[test]
    fn what_a_launch_made_is_proven_also_in_the_middle_of_an_exec() {
        let again = "exec /bin/sh -c \"$0\" \"$0\"";
        let mut child = Command::new("/bin/sh");
        let mut child = child.args(["-c", again, again]).env(TAG_VARIABLE, TAG.to_string()).spawn();
        let child = child.as_mut().expect("a process");
        let refused = (0..50).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            prove(&launched(1_999_999_999), &socket_of(child.id())).err()
        });
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(refused, None);
    }

    #[test]
    fn a_socket_of_another_process_or_of_one_out_of_sight_proves_nothing() {
        let pid = std::process::id();
        let user = rustix::process::geteuid().as_raw();
        let foreign = Listener::Socket { pid: Some(pid), user, file_owner: user + 1 };
        assert!(matches!(prove(&launched(pid), &foreign), Err(Impostor::ForeignSocket { .. })));
        let unseen = Listener::Socket { pid: None, user, file_owner: user };
        assert!(matches!(prove(&launched(pid), &unseen), Err(Impostor::Unproven { .. })));
    }

    #[test]
    fn a_port_is_proven_by_the_process_that_has_its_socket_open_d24() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = Listener::Port(listener.local_addr().expect("it has one"));
        assert_eq!(prove(&launched(std::process::id()), &port), Ok(()));
        let mut other = process(ProcessTag::new([8; 16]));
        let refused = prove(&launched(other.id()), &port);
        other.kill().expect("it runs");
        other.wait().expect("it ends");
        assert!(matches!(refused, Err(Impostor::Unproven { .. })), "{refused:?}");
    }
}
