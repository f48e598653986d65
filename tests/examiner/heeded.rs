//! Tests that an orchestrator that follows the rules passes, whatever the plugin does.

use serde_json::json;

use crate::exam::{Exam, rules};
use crate::orchestrator::Orchestrator;

/// Examines the orchestrator with two volumes.
async fn passes(what: &str, arguments: &str) -> Option<(Exam, serde_json::Value)> {
    let exam = Exam::or_say(what, &format!("--expect-undone {arguments}")).await?;
    let orchestrator = Orchestrator::meet(exam.clients.clone()).await;
    for name in ["data", "logs"] {
        orchestrator.life(name, &exam.namespace).await;
    }
    let report = exam.end();
    assert_eq!(report["clean"], true, "{arguments}: {}", exam.text());
    assert_eq!(report["open"], json!([]), "{arguments}");
    Some((exam, report))
}

#[tokio::test]
async fn an_orchestrator_that_heeds_the_rules_passes_and_its_report_says_what_was_tried() {
    let Some((exam, report)) = passes("an exam that is passed", "").await else { return };
    let tried = rules(&report, "tried");
    for rule in
        ["C001", "C009", "C033", "C059", "C073", "C074", "C121", "C125", "C131", "C132", "C136", "C.4"]
    {
        assert!(tried.iter().any(|found| found == rule), "{rule} was not tried: {tried:?}");
    }
    assert_eq!(report["calls"]["NodeStageVolume"], 2);
    let text = exam.text();
    assert!(text.contains("0 of the ") && text.contains("the plugin was started once"), "{text}");
}

#[tokio::test]
async fn it_passes_with_every_unclear_code_before_and_after_the_effect_of_each_call_c014_c022() {
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
    for moment in ["before", "after"] {
        let codes = ["UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "UNKNOWN", "ABORTED"];
        let faults = calls.iter().zip(codes.iter().cycle());
        let faults: Vec<_> =
            faults.map(|(call, code)| format!("--fault {call}={code},{moment},nth:1")).collect();
        let Some((_, report)) = passes("faults in an exam", &faults.join(" ")).await else { return };
        let tried = rules(&report, "tried");
        for rule in ["C003", "C013", "C014", "C022"] {
            assert!(tried.iter().any(|found| found == rule), "{moment}: {rule} was not tried: {tried:?}");
        }
    }
}

#[tokio::test]
async fn it_passes_when_the_plugin_is_slower_than_its_deadlines_c015() {
    let faults =
        "--fault NodeStageVolume=slow:3s,before,nth:1 --fault NodeUnpublishVolume=slow:3s,after,nth:1";
    let Some((_, report)) = passes("a plugin that is slow", faults).await else { return };
    assert!(rules(&report, "tried").contains(&"C015".to_owned()));
}

#[tokio::test]
async fn it_passes_when_the_plugin_dies_again_and_again_and_the_exam_goes_on_c015() {
    let faults = "--fault NodeStageVolume=die,after,chance:40 --fault NodePublishVolume=die,middle,chance:40 \
                  --fault NodeUnpublishVolume=die,before,chance:40 --fault CreateVolume=die,after,chance:40 \
                  --fault ControllerPublishVolume=die,after,chance:40 --fault NodeUnstageVolume=die,after,chance:40";
    let Some((_, report)) = passes("a plugin that dies", faults).await else { return };
    assert!(report["starts"].as_u64().expect("a number") > 1, "{}", report["starts"]);
}

#[tokio::test]
async fn it_passes_when_the_plugin_is_ready_late_c039() {
    let Some((_, report)) = passes("a plugin that is ready late", "--ready-after 300ms").await else {
        return;
    };
    assert!(rules(&report, "tried").contains(&"C039".to_owned()));
}

#[tokio::test]
async fn what_is_still_up_is_listed_while_the_exam_goes_on() {
    let Some(exam) = Exam::or_say("what is up in an exam", "").await else { return };
    let orchestrator = Orchestrator::meet(exam.clients.clone()).await;
    let mut volume = orchestrator.create("data", &exam.namespace).await;
    orchestrator.up(&mut volume).await;
    let report = exam.interim();
    assert_eq!((&report["clean"], report["open"].as_array().expect("a list").len()), (&json!(true), 4));
    orchestrator.down(&volume).await;
    orchestrator.delete(&volume).await;
    assert_eq!(exam.end()["open"], json!([]));
}
