//! The lifecycle of the examiner: as that of the reference plugin, with a report at its end and on SIGUSR1.

use std::path::PathBuf;
use std::sync::Arc;

use callboard_proto::csi::v1::controller_server::ControllerServer;
use callboard_proto::csi::v1::group_controller_server::GroupControllerServer;
use callboard_proto::csi::v1::identity_server::IdentityServer;
use callboard_proto::csi::v1::node_server::NodeServer;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tonic::transport::Server;

use super::arguments::{ExamArgs, ExaminerArgs};
use super::error::ExaminerError;
use super::observe::Digests;
use super::recorder::Recorder;
use super::services::Examined;
use super::surface::surface;
use crate::hostpath::{Plugin, serve_as};
use crate::output;

/// Runs the examiner until SIGTERM or SIGINT arrives, and writes its report then, and on each SIGUSR1.
///
/// # Errors
/// A required resource is missing or cannot be written, or the plugin ends with an error. The report is written in that case, too.
pub async fn serve(args: ExaminerArgs) -> Result<(), ExaminerError> {
    let ExaminerArgs { plugin: args, exam } = args;
    if args.volumes.is_none() {
        return Err(ExaminerError::NoVolumes);
    }
    for file in &exam.report {
        output::check_directory(file).map_err(|source| failed(file, source))?;
    }
    let asked = signal(SignalKind::user_defined1()).map_err(|source| ExaminerError::Signals { source })?;
    let plugin = Arc::new(Plugin::begin(args)?);
    let recorder = Recorder::begin(surface(&plugin, &exam), exam.journal.as_deref())?;
    let examined = Arc::new(Examined {
        plugin: Arc::clone(&plugin),
        recorder: Arc::clone(&recorder),
        digests: Digests::default(),
    });
    // Also services that the plugin does not offer: whether they are called is a rule (C033, C034).
    let services = Server::builder()
        .add_service(IdentityServer::from_arc(Arc::clone(&examined)))
        .add_service(ControllerServer::from_arc(Arc::clone(&examined)))
        .add_service(GroupControllerServer::from_arc(Arc::clone(&examined)))
        .add_service(NodeServer::from_arc(examined));
    let served = tokio::select! {
        served = serve_as(&plugin, services) => served,
        () = report_when_asked(asked, &recorder, &exam) => Ok(()),
    };
    let written = write(&recorder, &exam);
    served?;
    written
}

/// Never ends.
async fn report_when_asked(mut asked: Signal, recorder: &Recorder, exam: &ExamArgs) {
    loop {
        asked.recv().await;
        match write(recorder, exam) {
            Ok(()) => tracing::info!("report written on SIGUSR1"),
            Err(error) => {
                tracing::warn!(
                    error = &error as &(dyn std::error::Error + 'static),
                    "cannot write the report"
                );
            }
        }
    }
}

fn write(recorder: &Recorder, exam: &ExamArgs) -> Result<(), ExaminerError> {
    let report = recorder.report(exam.expect_undone);
    let (broken, open) = (report.broken().count(), report.open.len());
    tracing::info!(rules_broken = broken, not_undone = open, "exam");
    for file in &exam.report {
        let text = match file.extension().is_some_and(|extension| extension == "json") {
            true => format!("{:#}\n", report.json()),
            false => report.text(),
        };
        output::write_whole(file, &text).map_err(|source| failed(file, source))?;
    }
    Ok(())
}

fn failed(file: &std::path::Path, source: std::io::Error) -> ExaminerError {
    ExaminerError::Report { file: PathBuf::from(file), source }
}
