//! Nothing grows with the number of launches (SCL-06).

use std::time::{Duration, Instant};

use callboard_actors::shell::StopMode;

use crate::stage::{HANDSHAKE, Stage, TIMEOUT, plugin};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("our own descriptors").count()
}

/// The memory of this program, in kilobytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("our own status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("our memory");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

fn children() -> usize {
    let us = format!("PPid:\t{}\n", std::process::id());
    let statuses = std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
        let path = entry.ok()?.path().join("status");
        std::fs::read_to_string(path).ok()
    });
    statuses.filter(|status| status.contains(&us)).count()
}

#[test]
fn a_thousand_launches_and_stops_leave_descriptors_children_and_memory_as_they_were_scl_06_prc_10() {
    let stage = Stage::new();
    actix::System::new()
        .block_on(async {
            tokio::time::timeout(TIMEOUT * 2, async move {
                let fixture = stage.open();
                let cycle = || async {
                    let spec = plugin(&format!("echo '{HANDSHAKE}'; exec sleep 60"));
                    fixture.launch("a", spec).await.expect("it is ready");
                    fixture.stop("a", Duration::from_secs(5)).await;
                };
                for _ in 0..20 {
                    cycle().await;
                }
                let before = (descriptors(), children(), memory());
                let began = Instant::now();
                for _ in 0..1_000 {
                    cycle().await;
                }
                println!("1000 cycles took {:?}", began.elapsed());
                tokio::time::sleep(Duration::from_millis(100)).await;
                let after = (descriptors(), children(), memory());
                println!("descriptors, children and kilobytes: {before:?}, then {after:?}");
                // Other tests of this program run beside this one. A task, a thread or a buffer that stayed behind for each
                // launch would show in the memory.
                assert!(after.0 <= before.0 + 100 && after.1 <= before.1 + 20, "{before:?} {after:?}");
                assert!(after.2 <= before.2 + 64 * 1_024, "{before:?} {after:?}");
                assert!(stage.records.all().is_empty());
                fixture.end(StopMode::Stop).await;
            })
            .await
        })
        .expect("it ends in time");
}
