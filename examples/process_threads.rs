//! How many threads a host program has for a thousand processes of plugins.
//!
//! ```console
//! $ cargo run --example process_threads
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use callboard::process::{Binder, LogSpec, ProcessSpec, launch};

const PROCESSES: usize = 1_000;

/// The threads of this process.
fn threads() -> Result<usize, std::io::Error> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

fn main() -> Result<(), Box<dyn Error>> {
    // Launched in the place of `callboard bound`, it executes what follows.
    let mut bound = std::env::args_os().skip_while(|argument| argument != "--").skip(1);
    if let Some(program) = bound.next() {
        return Err(Command::new(program).args(bound).exec().into());
    }
    let directory = tempfile::tempdir()?;
    let binder = Binder::program(std::env::current_exe()?);
    actix::System::new().block_on(async {
        println!("without processes: {} threads", threads()?);
        let mut processes = Vec::new();
        for number in 0..PROCESSES {
            let spec = ProcessSpec {
                name: format!("p{number}"),
                program: "/bin/sh".into(),
                arguments: vec!["-c".to_owned(), "echo ready; exec sleep 1000".to_owned()],
                environment: BTreeMap::new(),
                log: LogSpec::at(directory.path().join(format!("p{number}.log"))),
            };
            processes.push(launch(&spec, &binder)?);
        }
        println!("with {PROCESSES} processes: {} threads", threads()?);
        processes.iter().for_each(|process| process.stop(Duration::from_secs(5)));
        for process in &processes {
            process.ended().await;
        }
        println!("after their end: {} threads", threads()?);
        Ok(())
    })
}
