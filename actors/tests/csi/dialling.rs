//! Connecting: why it cannot be done is known at once and told apart (REG-10, SEC-03).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use callboard_actors::csi::{CallError, Cause, Class, Connection, Limits, Rpc, Step, socket_file};
use callboard_actors::vocabulary::SocketPath;

use crate::plugin::{LONG, Place, Plugin};

#[tokio::test]
async fn a_socket_that_is_not_there_yet_is_absent_reg_10() {
    let error = refused(&Place::new().socket).await;
    assert_eq!((error.class(), error.step(), error.is_transient()), (Class::Absent, Step::Dial, true));
}

#[tokio::test]
async fn what_is_no_socket_is_called_by_its_name() {
    let place = Place::new();
    let directory = place.directory.path().to_str().expect("readable").to_owned();
    let file = format!("{directory}/file");
    fs::write(&file, "").expect("writable");
    let _datagrams = UnixDatagram::bind(format!("{directory}/datagram")).expect("free");
    for (path, what) in [
        (directory.clone(), "a directory"),
        (file, "a regular file"),
        (format!("{directory}/file/csi.sock"), "a path through a file"),
        (format!("{directory}/datagram"), "a socket that takes no connections"),
    ] {
        let error = refused(&SocketPath::new(path).expect("short")).await;
        assert_eq!(error.cause(), &Cause::NotASocket { what });
        assert!(error.to_string().contains(what) && !error.is_transient(), "{error}");
    }
}

#[tokio::test]
async fn a_link_to_a_socket_is_refused_and_named_with_where_it_leads_sec_02() {
    let place = Place::new();
    let _witness = place.serve(Plugin::default());
    let link = format!("{}/link.sock", place.directory.path().display());
    std::os::unix::fs::symlink(place.socket.as_path(), &link).expect("a link");
    let error = refused(&SocketPath::new(&link).expect("short")).await;
    assert_eq!(error.cause(), &Cause::Link { to: place.socket.to_string() });
    let told = error.to_string();
    assert!(told.contains(&link) && told.contains(&format!("a link to {}", place.socket)), "{told}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn a_socket_that_is_deleted_or_replaced_while_connected_is_noticed_reg_10() {
    let place = Place::new();
    let _witness = place.serve(Plugin::default());
    let connection = place.dial().await;
    fs::set_permissions(place.socket.as_path(), fs::Permissions::from_mode(0o600)).expect("ours to change");
    connection.check_socket().expect("another mode makes no other file");
    fs::remove_file(place.socket.as_path()).expect("there");
    let deleted = connection.check_socket().expect_err("it is gone");
    assert_eq!(deleted.class(), Class::Disconnected);
    assert!(deleted.to_string().contains("nothing is in the place of its socket"), "{deleted}");
    let _other = UnixListener::bind(place.socket.as_path()).expect("the path is free");
    let replaced = connection.check_socket().expect_err("it is another one");
    assert!(replaced.to_string().contains("another socket is in the place"), "{replaced}");
}

#[tokio::test]
async fn a_socket_left_by_a_dead_process_refuses_and_is_not_taken_for_a_slow_one_reg_10() {
    let place = Place::new();
    drop(UnixListener::bind(place.socket.as_path()).expect("free"));
    let began = Instant::now();
    let error = refused(&place.socket).await;
    assert_eq!((error.class(), error.is_transient()), (Class::Refused, true));
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_new_socket_at_the_same_path_is_another_file_reg_10() {
    let place = Place::new();
    drop(UnixListener::bind(place.socket.as_path()).expect("free"));
    let dead = socket_file(&place.socket).expect("a socket");
    assert_eq!(socket_file(&place.socket), Ok(dead));
    fs::remove_file(place.socket.as_path()).expect("there");
    let _witness = place.serve(Plugin::default());
    assert_ne!(socket_file(&place.socket), Ok(dead));
    assert_eq!(place.dial().await.endpoint(), &place.socket);
}

#[tokio::test]
async fn a_plugin_that_listens_and_does_not_accept_is_slow_and_then_busy_reg_10() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket.as_path()).expect("free");
    rustix::net::listen(&listener, 1).expect("a listener can be told to queue less");
    let connection = place.dial().await;
    let error = connection.call(Rpc::Probe, Duration::from_millis(50)).await.expect_err("no answer comes");
    assert_eq!(error.class(), Class::DeadlineExceeded);

    let _queued = UnixStream::connect(place.socket.as_path()).expect("the last free place");
    let error = refused(&place.socket).await;
    assert_eq!((error.class(), error.is_transient()), (Class::Busy, true), "{error}");
}

#[test]
fn a_socket_we_may_not_use_names_path_owner_mode_and_us_sec_03() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.socket.as_path()).expect("free");
    open_to_all(place.directory.path(), 0o755);
    open_to_all(place.socket.as_path(), 0o555);
    let (error, took) = as_nobody(&place.socket);
    let Cause::Denied(denial) = error.cause() else { panic!("denied, not {error}") };
    assert_eq!((denial.path.as_str(), denial.mode), (place.socket.as_str(), 0o555));
    let told = error.to_string();
    let owner = format!("{}:{} with mode 0555", denial.owner_uid, denial.owner_gid);
    let us = format!("we are {}:{}", denial.our_uid, denial.our_gid);
    assert!(told.contains("permission denied") && told.contains(&owner) && told.contains(&us), "{told}");
    assert!(!error.is_transient() && took < Duration::from_secs(1));
}

#[test]
fn a_directory_we_may_not_search_is_named_itself_sec_03() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.socket.as_path()).expect("free");
    open_to_all(place.directory.path(), 0o600);
    let (error, _) = as_nobody(&place.socket);
    open_to_all(place.directory.path(), 0o700);
    let Cause::Denied(denial) = error.cause() else { panic!("denied, not {error}") };
    let directory = place.directory.path().to_str().expect("readable");
    assert_eq!((denial.path.as_str(), denial.mode), (directory, 0o600));
}

#[tokio::test]
async fn every_failure_names_itself_the_socket_and_what_was_tried_log_05() {
    let place = Place::new();
    let absent = refused(&place.socket).await;
    drop(UnixListener::bind(place.socket.as_path()).expect("free"));
    let dead = refused(&place.socket).await;
    for (error, name) in [(absent, "absent"), (dead, "refused")] {
        let told = error.to_string();
        assert!(told.starts_with(&format!("Dial on {} failed: ", place.socket)), "{told}");
        assert!(told.contains(name), "{told}");
    }
}

async fn refused(socket: &SocketPath) -> CallError {
    Connection::dial(socket, Limits { dial_deadline: LONG, ..Limits::default() })
        .await
        .expect_err("nothing answers there")
}

fn open_to_all(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours to change");
}

/// Dials from a thread of the user `nobody`: root may do everything, so root's thread gives up its rights first.
fn as_nobody(socket: &SocketPath) -> (CallError, Duration) {
    let socket = socket.clone();
    let dialled = move || {
        if rustix::process::geteuid().is_root() {
            rustix::thread::set_thread_groups(&[]).expect("root may");
            rustix::thread::set_thread_gid(rustix::process::Gid::from_raw(65534)).expect("root may");
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).expect("root may");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let began = Instant::now();
        (runtime.block_on(refused(&socket)), began.elapsed())
    };
    std::thread::spawn(dialled).join().expect("no panic")
}
