//! Tests the life of a volume, up and down, also with a plugin that dies in the middle of a call.

use std::fs;
use std::io::Write;

use tonic::{Code, Status};

use crate::stage::{Clients, Namespace, code, request};

#[tokio::test]
async fn a_volume_goes_up_and_down_in_order_and_its_files_stay_c079_c122_c131_c142() {
    let Some(mut namespace) = Namespace::or_say("the life of a volume") else { return };
    let mut clients = namespace.start("").await;
    let made = clients.created("data").await;
    assert_eq!(clients.created("data").await, made, "it is the same one");
    let volume = namespace.volume(&made.volume_id);

    assert_eq!(code(volume.stage(&mut clients).await), Code::FailedPrecondition, "it is not attached");
    volume.attach(&mut clients).await.expect("it is attached");
    assert_eq!(
        code(volume.publish(&mut clients, "target", false).await),
        Code::FailedPrecondition,
        "not staged"
    );
    for _ in 0..2 {
        volume.stage(&mut clients).await.expect("it is staged");
        volume.publish(&mut clients, "target", false).await.expect("it is published");
        volume.publish(&mut clients, "reader", true).await.expect("it is published");
    }
    assert_eq!(namespace.mounts_at(&volume.target("target")), 1, "twice is once");
    assert_eq!(
        code(volume.publish(&mut clients, "reader", false).await),
        Code::AlreadyExists,
        "for another use"
    );

    fs::write(volume.file("target"), "kept").expect("it can be written");
    assert_eq!(fs::read_to_string(volume.file("reader")).expect("it is the same volume"), "kept");
    let refused = fs::write(volume.file("reader"), "lost").expect_err("it is read-only");
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);

    assert_eq!(code(volume.unstage(&mut clients).await), Code::FailedPrecondition, "it is published");
    assert_eq!(code(volume.detach(&mut clients).await), Code::FailedPrecondition, "it is staged");
    assert_eq!(code(volume.delete(&mut clients).await), Code::FailedPrecondition, "it is attached");
    for _ in 0..2 {
        volume.unpublish(&mut clients, "reader").await.expect("it is unpublished");
        volume.down(&mut clients).await;
    }
    assert!(
        !volume.target("target").exists() && volume.staging.exists(),
        "each side removes what it has made"
    );

    volume.up(&mut clients).await;
    assert_eq!(fs::read_to_string(volume.file("target")).expect("it stayed"), "kept");
    volume.down(&mut clients).await;
    for _ in 0..2 {
        volume.delete(&mut clients).await.expect("it is deleted");
    }
    assert_eq!(code(volume.attach(&mut clients).await), Code::NotFound);
    let left = fs::read_dir(namespace.path("volumes/content")).expect("it is there").count();
    assert_eq!(left, 0, "nothing is left behind");
}

#[tokio::test]
async fn a_plugin_that_dies_in_the_middle_of_any_call_completes_it_when_it_is_repeated_c013_c076_c128_c140() {
    let Some(mut namespace) = Namespace::or_say("a plugin that dies in the middle of a call") else { return };
    let calls = [
        "CreateVolume",
        "ControllerPublishVolume",
        "NodeStageVolume",
        "NodePublishVolume",
        "NodeUnpublishVolume",
        "NodeUnstageVolume",
        "ControllerUnpublishVolume",
        "DeleteVolume",
    ];
    for moment in ["before", "middle", "after"] {
        for dying in calls {
            let mut clients = namespace.start(&format!("--fault {dying}=die,{moment},nth:1")).await;
            let mut died = 0;
            for call in calls {
                let answer = once(&namespace, &mut clients, call).await;
                if let Err(status) = answer {
                    // The connection breaks; clients report this with either code.
                    let is_cut = matches!(status.code(), Code::Unavailable | Code::Unknown);
                    assert!(call == dying && is_cut, "{call}: {status}");
                    died += 1;
                    clients = namespace.start("").await;
                    once(&namespace, &mut clients, call).await.expect("it is completed");
                }
            }
            assert_eq!(died, 1, "{dying} {moment}");
            let left = fs::read_dir(namespace.path("volumes/content")).expect("it is there").count();
            assert_eq!(left, 0, "{dying} {moment}: nothing is left behind");
            namespace.shell.stdin.as_mut().expect("a pipe").write_all(b"kill $!\n").expect("it reads");
        }
    }
}

#[tokio::test]
async fn a_node_that_claims_that_there_is_no_controller_demands_no_attachment_c121_c134_c183() {
    let Some(mut namespace) = Namespace::or_say("a node without a controller") else { return };
    let id = namespace.start("").await.created("data").await.volume_id;
    namespace.shell.stdin.as_mut().expect("a pipe").write_all(b"kill $!\n").expect("it reads");
    let mut clients = namespace.start("--role node --without-controller").await;
    let volume = namespace.volume(&id);
    volume.stage(&mut clients).await.expect("it is staged");
    volume.publish(&mut clients, "target", false).await.expect("it is published");
    volume.unpublish(&mut clients, "target").await.expect("it is unpublished");
    volume.unstage(&mut clients).await.expect("it is unstaged");
}

/// One call in the life of the only volume; each call continues from the state that the call before has left.
async fn once(namespace: &Namespace, clients: &mut Clients, call: &str) -> Result<(), Status> {
    if call == "CreateVolume" {
        return clients.create(request("only")).await.map(drop);
    }
    let entries =
        fs::read_dir(namespace.path("volumes/volumes")).expect("it is there").filter_map(Result::ok);
    let record =
        entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|it| it == "json"));
    // A deleted volume has no record; the call is repeated with an id that no longer exists.
    let id = record.map_or("vol-0".to_owned(), |path| path.file_stem().unwrap().display().to_string());
    let volume = namespace.volume(&id);
    match call {
        "ControllerPublishVolume" => volume.attach(clients).await,
        "NodeStageVolume" => volume.stage(clients).await,
        "NodePublishVolume" => {
            volume.publish(clients, "target", false).await?;
            assert_eq!(namespace.mounts_at(&volume.target("target")), 1, "it is mounted once");
            Ok(())
        }
        "NodeUnpublishVolume" => {
            volume.unpublish(clients, "target").await?;
            assert!(!volume.target("target").exists(), "it is gone");
            Ok(())
        }
        "NodeUnstageVolume" => {
            volume.unstage(clients).await?;
            assert_eq!(namespace.mounts_at(&volume.staging), 0, "it is gone");
            Ok(())
        }
        "ControllerUnpublishVolume" => volume.detach(clients).await,
        "DeleteVolume" => volume.delete(clients).await,
        other => unreachable!("{other}"),
    }
}
