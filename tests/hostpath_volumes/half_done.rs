//! Tests steps that a plugin has half done when it dies: its next process undoes them, as for a host that gives up, and completes them.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use callboard_proto::csi::v1 as wire;
use tonic::{Code, Status};
use wire::volume_capability::access_mode::Mode;
use wire::volume_capability::{AccessType, BlockVolume};

use crate::stage::{Clients, Namespace, Used, capability, code, request};

/// Where the plugin dies in a step: at a moment of its faults, or, as after a SIGKILL, between its record and the target.
const POINTS: [&str; 3] = ["recorded", "middle", "after"];
/// Where the next process dies in the undo, if it does.
const UNDO_POINTS: [Option<&str>; 3] = [None, Some("middle"), Some("after")];

#[tokio::test]
async fn a_step_that_a_plugin_has_half_done_is_undone_by_the_next_wherever_both_die_c014_c128_c140() {
    let Some(mut namespace) = Namespace::or_say("steps that are half done") else { return };
    for is_block in [false, true] {
        for (step, undo) in
            [("NodeStageVolume", "NodeUnstageVolume"), ("NodePublishVolume", "NodeUnpublishVolume")]
        {
            for (point, undo_point) in POINTS.iter().flat_map(|point| UNDO_POINTS.map(|undo| (*point, undo)))
            {
                let moment = if point == "recorded" { "middle" } else { point };
                let case = format!("block {is_block}: {step} {point}, {undo} {undo_point:?}");
                let mut clients = namespace.start(&format!("--fault {step}=die,{moment}")).await;
                let id = created(&mut clients, is_block).await;
                let volume = used(&namespace, &id, is_block);
                volume.attach(&mut clients).await.expect("it is attached");
                if step == "NodePublishVolume" {
                    volume.stage(&mut clients).await.expect("it is staged");
                }
                taken(&volume, &mut clients, step).await.expect_err(&case);
                if point == "recorded" && step == "NodePublishVolume" {
                    without_target(&volume, is_block);
                }
                if let Some(moment) = undo_point {
                    let mut clients = namespace.start(&format!("--fault {undo}=die,{moment}")).await;
                    taken(&used(&namespace, &id, is_block), &mut clients, undo).await.expect_err(&case);
                }
                let mut clients = namespace.start("").await;
                let volume = used(&namespace, &id, is_block);
                taken(&volume, &mut clients, undo).await.expect(&case);
                is_undone(&namespace, &volume, undo, &case);
                volume.unstage(&mut clients).await.expect(&case);
                volume.detach(&mut clients).await.expect(&case);
                volume.delete(&mut clients).await.expect(&case);
                say(&mut namespace, "kill $!");
            }
        }
    }
}

async fn created(clients: &mut Clients, is_block: bool) -> String {
    let capabilities = if is_block { vec![block()] } else { request("only").volume_capabilities };
    let request = wire::CreateVolumeRequest { volume_capabilities: capabilities, ..request("only") };
    clients.create(request).await.expect("it is made").volume_id
}

fn block() -> wire::VolumeCapability {
    capability(Mode::SingleNodeMultiWriter, AccessType::Block(BlockVolume {}))
}

fn used<'a>(namespace: &'a Namespace, id: &str, is_block: bool) -> Used<'a> {
    let mut volume = namespace.volume(id);
    if is_block {
        volume.capability = block();
    }
    volume
}

async fn taken(volume: &Used<'_>, clients: &mut Clients, call: &str) -> Result<(), Status> {
    match call {
        "NodeStageVolume" => volume.stage(clients).await,
        "NodeUnstageVolume" => volume.unstage(clients).await,
        "NodePublishVolume" => volume.publish(clients, "target", false).await,
        "NodeUnpublishVolume" => volume.unpublish(clients, "target").await,
        other => unreachable!("{other}"),
    }
}

/// Removes the target, as if the plugin had died a moment earlier.
fn without_target(volume: &Used<'_>, is_block: bool) {
    let target = volume.target("target");
    let removed = if is_block { fs::remove_file(target) } else { fs::remove_dir(target) };
    removed.expect("it was made");
}

fn is_undone(namespace: &Namespace, volume: &Used<'_>, undo: &str, case: &str) {
    let target = volume.target("target");
    assert_eq!(namespace.mounts_at(&target), 0, "{case}: it is mounted");
    assert!(fs::symlink_metadata(&target).is_err(), "{case}: the target is left");
    if undo == "NodeUnstageVolume" {
        assert_eq!(namespace.mounts_at(&volume.staging), 0, "{case}: it is mounted");
        let records = fs::read_dir(namespace.path("volumes/node")).expect("it is there").count();
        assert_eq!(records, 0, "{case}: a record is left");
    }
    assert_eq!(devices_below(&namespace.path("volumes")), 0, "{case}: a loop device is left");
}

/// The number of loop devices on images below a directory.
fn devices_below(directory: &Path) -> usize {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().filter_map(Result::ok);
    let images = devices.filter_map(|it| fs::read_to_string(it.path().join("loop/backing_file")).ok());
    images.filter(|image| Path::new(image).starts_with(directory)).count()
}

fn say(namespace: &mut Namespace, command: &str) {
    let stdin = namespace.shell.stdin.as_mut().expect("a pipe");
    stdin.write_all(format!("{command}\n").as_bytes()).expect("it reads");
}

#[tokio::test]
async fn a_publication_that_a_dying_plugin_left_writable_is_read_only_when_it_is_repeated_c140() {
    let Some(mut namespace) = Namespace::or_say("a publication that is half read-only") else { return };
    let mut clients = namespace.start("--fault NodePublishVolume=die,after").await;
    let id = clients.created("data").await.volume_id;
    let volume = namespace.volume(&id);
    volume.attach(&mut clients).await.expect("it is attached");
    volume.stage(&mut clients).await.expect("it is staged");
    volume.publish(&mut clients, "reader", true).await.expect_err("it dies");
    let target = volume.target("reader");
    // As if the plugin had died a moment earlier.
    say(&mut namespace, &format!("mount -o remount,bind,rw {}", target.display()));
    let mut clients = namespace.start("").await;
    let volume = namespace.volume(&id);
    fs::write(volume.file("reader"), "too early").expect("it is writable");
    volume.publish(&mut clients, "reader", true).await.expect("it is published");
    let refused = fs::write(volume.file("reader"), "lost").expect_err("it is read-only");
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
}

#[tokio::test]
async fn a_publication_that_is_refused_has_no_effect_and_needs_no_undo_c136() {
    let Some(mut namespace) = Namespace::or_say("a publication that is refused") else { return };
    let mut clients = namespace.start("").await;
    let id = clients.created("data").await.volume_id;
    let volume = namespace.volume(&id);
    volume.attach(&mut clients).await.expect("it is attached");
    volume.stage(&mut clients).await.expect("it is staged");
    let without_parent = volume.publish(&mut clients, "missing/target", false).await;
    assert_eq!(code(without_parent), Code::FailedPrecondition);
    fs::write(volume.target("file"), "of its caller").expect("room");
    assert_eq!(code(volume.publish(&mut clients, "file", false).await), Code::Internal);
    volume.unpublish(&mut clients, "file").await.expect("there is nothing of the plugin");
    assert_eq!(fs::read_to_string(volume.target("file")).expect("it is there"), "of its caller");
    volume.unstage(&mut clients).await.expect("it is unstaged");
    volume.detach(&mut clients).await.expect("it is detached");
}

#[tokio::test]
async fn a_staging_path_that_has_lost_its_mount_is_not_published_c122() {
    let Some(mut namespace) = Namespace::or_say("a staging path without its mount") else { return };
    let mut clients = namespace.start("--fault NodeStageVolume=die,middle").await;
    let id = clients.created("data").await.volume_id;
    let volume = namespace.volume(&id);
    volume.attach(&mut clients).await.expect("it is attached");
    volume.stage(&mut clients).await.expect_err("it dies");
    let mut clients = namespace.start("").await;
    let volume = namespace.volume(&id);
    assert_eq!(code(volume.publish(&mut clients, "target", false).await), Code::FailedPrecondition);
    volume.up(&mut clients).await;
    volume.down(&mut clients).await;
}
