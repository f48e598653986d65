//! Tests which file is run, and what it receives from the host.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use callboard_actors::process::{Executable, ExecutableError, LaunchError, ProcessSpec};
use callboard_actors::shell::StopMode;
use sha2::{Digest, Sha256};

use crate::stage::{shell, story};

fn program(executable: Executable) -> ProcessSpec {
    ProcessSpec { executable, arguments: vec![], ..shell("") }
}

fn refusal(error: LaunchError) -> ExecutableError {
    match error {
        LaunchError::Executable { source, .. } => source,
        other => panic!("{other}"),
    }
}

#[test]
fn names_with_separators_dots_links_and_odd_bytes_never_lead_out_of_the_directory_sec_05() {
    story(|stage| async move {
        let fixture = stage.open();
        let root = stage.path("plugins");
        fs::create_dir_all(root.join("directory")).expect("a directory");
        let ran = stage.path("ran");
        let outside = stage.script("outside", &format!("#!/bin/sh\necho ran >> {}\n", ran.display()));
        symlink(&outside, root.join("link")).expect("a link");
        symlink(root.join("good"), root.join("inner-link")).expect("a link");
        fs::write(root.join("plain"), "#!/bin/sh\n").expect("a file");
        rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o755.into(), 0)
            .expect("a pipe");
        let names = [
            "../outside",
            "..",
            ".",
            "",
            "/bin/sh",
            "directory/../../outside",
            "link",
            "inner-link",
            "good\n",
            "directory",
            "plain",
            "pipe",
            "missing",
        ];
        for name in names {
            let error = fixture.launch("a", program(Executable::within(&root, name))).await.expect_err(name);
            println!("{name:?}: {}", refusal(error));
        }
        assert!(!ran.exists(), "it was run");
        let relative =
            fixture.launch("a", program(Executable::at("outside"))).await.expect_err("it is relative");
        assert!(matches!(refusal(relative), ExecutableError::NotAbsolute { .. }));
        stage.script("plugins/good", &format!("#!/bin/sh\necho ran >> {}\n", ran.display()));
        let launched =
            fixture.launch("a", program(Executable::within(&root, "good"))).await.expect("it is allowed");
        assert!(fixture.ended(&launched).await.exit.is_success());
        assert!(ran.exists());
        fixture.end(StopMode::Stop).await;
    });
}

fn digest(path: &Path) -> [u8; 32] {
    Sha256::digest(fs::read(path).expect("a file")).into()
}

#[test]
fn what_was_checked_is_run_or_nothing_is_sec_07() {
    story(|stage| async move {
        let fixture = stage.open();
        let path = stage.script("plugin", "#!/bin/sh\necho good\n");
        let pinned =
            Executable { sha256: Some(digest(&path)), ..Executable::within(stage.data_dir(), "plugin") };
        let launched = fixture.launch("a", program(pinned.clone())).await.expect("it is what was pinned");
        assert_eq!(fixture.ended(&launched).await.last_output, ["good"]);
        // Another file replaces it.
        let evil = stage.script("evil", "#!/bin/sh\necho evil\n");
        fs::rename(evil, &path).expect("it is replaced");
        let error = fixture.launch("a", program(pinned)).await.expect_err("it is another");
        assert!(matches!(refusal(error), ExecutableError::Digest { .. }));
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_file_that_is_swapped_while_it_is_started_again_and_again_never_runs_under_a_foreign_digest_sec_07() {
    story(|stage| async move {
        let fixture = stage.open();
        let path = stage.script("plugin", "#!/bin/sh\necho good\n");
        let good = stage.script("good", "#!/bin/sh\necho good\n");
        let evil = stage.script("evil", "#!/bin/sh\necho evil\n");
        let pinned = Executable { sha256: Some(digest(&path)), ..Executable::at(&path) };
        let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (swapping, stop) = (path.with_extension("new"), over.clone());
        let swapper = std::thread::spawn(move || {
            for source in [&evil, &good].into_iter().cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let _ = fs::remove_file(&swapping);
                fs::hard_link(source, &swapping)
                    .and_then(|()| fs::rename(&swapping, &path))
                    .expect("it is swapped");
                std::thread::yield_now();
            }
        });
        let (mut ran, mut refused) = (0, 0);
        while ran < 20 || refused < 20 {
            match fixture.launch("a", program(pinned.clone())).await {
                Ok(launched) => {
                    assert_eq!(fixture.ended(&launched).await.last_output, ["good"]);
                    ran += 1;
                }
                Err(error) => {
                    refusal(error);
                    refused += 1;
                }
            }
        }
        println!("{ran} ran and {refused} were refused");
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        swapper.join().expect("it ends");
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_plugin_gets_its_own_secrets_and_none_of_the_hosts_sec_06() {
    story(|stage| async move {
        let fixture = stage.open();
        let mut spec = shell("sleep 0.2; env | sort");
        spec.environment.insert("TOKEN".to_owned(), "canary-7f3a".to_owned());
        spec.inherit = vec!["PATH".to_owned(), "NOT_THERE".to_owned()];
        let launched = fixture.launch("a", spec).await.expect("it starts");
        let described = format!(
            "{:?} {:?}",
            fixture.address.ask(callboard_actors::processes::ListProcesses).await,
            stage.records.all()
        );
        assert!(!described.contains("canary"), "{described}");
        let ending = fixture.ended(&launched).await;
        let names: Vec<&str> = ending.last_output.iter().filter_map(|line| line.split('=').next()).collect();
        assert!(ending.last_output.contains(&"TOKEN=canary-7f3a".to_owned()));
        let allowed = [
            "CALLBOARD_PROCESS_OWNER",
            "CALLBOARD_PROCESS_TAG",
            "OLDPWD",
            "PATH",
            "PWD",
            "SHLVL",
            "TOKEN",
            "_",
        ];
        assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
        assert_eq!(ending.tag, launched.tag);
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_program_that_reads_its_standard_input_finds_nothing_and_knows_its_own_name() {
    story(|stage| async move {
        let fixture = stage.open();
        let mut spec = shell("cat; echo \"$0\"; echo end");
        spec.executable = Executable::within(
            "/bin",
            fs::canonicalize("/bin/sh").expect("a shell").file_name().expect("a name"),
        );
        let launched = fixture.launch("a", spec).await.expect("it starts");
        let ending = fixture.ended(&launched).await;
        assert!(ending.last_output[0].starts_with("/bin/") && ending.last_output[1] == "end", "{ending:?}");
        fs::metadata(stage.output("a", "stdout.log"))
            .map(|file| assert_eq!(file.permissions().mode() & 0o777, 0o600))
            .expect("its file");
        fixture.end(StopMode::Stop).await;
    });
}

/// Prints how it was started, and runs itself again.
const WRAPPER: &str = "#!/bin/sh\n[ \"$1\" = again ] && { echo again; exit; }\n\
    echo \"$0\"; cat /proc/$$/comm; readlink /proc/$$/fd/0; echo \"from $CALLBOARD_PROGRAM_PATH\"; exec \"$0\" again\n";

#[test]
fn a_script_is_run_under_its_own_name_and_finds_itself_again_t004_th033() {
    story(|stage| async move {
        let fixture = stage.open();
        let path = stage.script("wrapper", WRAPPER);
        let launched = fixture.launch("a", program(Executable::at(&path))).await.expect("it starts");
        let printed = fixture.ended(&launched).await.last_output;
        let place = path.display().to_string();
        assert_eq!(printed, [&*place, "wrapper", "/dev/null", "from ", "again"]);
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn a_pinned_script_runs_as_a_copy_that_no_other_user_can_change_and_gets_the_path_where_it_was_opened_sec_07_th033()
 {
    story(|stage| async move {
        let fixture = stage.open();
        let path = stage.script("wrapper", WRAPPER);
        let pinned = Executable { sha256: Some(digest(&path)), ..Executable::at(&path) };
        for round in 0..2 {
            let launched = fixture.launch("a", program(pinned.clone())).await.expect("it starts");
            let printed = fixture.ended(&launched).await.last_output;
            let from = format!("from {}", path.display());
            assert_eq!(printed[1..], ["wrapper", "/dev/null", &from, "again"], "round {round}");
            let copy = Path::new(&printed[0]);
            assert_eq!(fs::read(copy).expect("it stays"), fs::read(&path).expect("a file"));
            let above = copy.parent().expect("a directory");
            assert_eq!(fs::metadata(above).expect("it is there").permissions().mode() & 0o777, 0o700);
        }
        // Another digest is pinned: the older copy is removed.
        let path = stage.script("wrapper", "#!/bin/sh\necho other\n");
        let pinned = Executable { sha256: Some(digest(&path)), ..pinned };
        let launched = fixture.launch("a", program(pinned)).await.expect("it starts");
        assert_eq!(fixture.ended(&launched).await.last_output, ["other"]);
        assert_eq!(fs::read_dir(stage.output("a", "program")).expect("it is there").count(), 1);
        fixture.end(StopMode::Stop).await;
    });
}

#[test]
fn descriptors_of_the_host_reach_no_process_whichever_of_them_were_left_inheritable() {
    story(|stage| async move {
        let fixture = stage.open();
        fs::write(stage.path("secret"), "of the host").expect("room");
        let flags = rustix::fs::OFlags::RDONLY;
        let leaky = rustix::fs::open(stage.path("secret"), flags, rustix::fs::Mode::empty()).expect("a file");
        let launched = fixture.launch("a", shell("for fd in /proc/$$/fd/*; do readlink $fd; done")).await;
        let printed = fixture.ended(&launched.expect("it starts")).await.last_output;
        assert!(printed.len() > 2 && !printed.iter().any(|link| link.ends_with("secret")), "{printed:?}");
        drop(leaky);
        fixture.end(StopMode::Stop).await;
    });
}
