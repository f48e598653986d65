//! Counts the threads of `callboard run` with many plugins.
//!
//! ```console
//! $ cargo run --example run_threads -- 200
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time for which the pool for blocking work keeps an idle thread, and a margin.
const REST: Duration = Duration::from_secs(15);

fn main() -> ExitCode {
    // The host and its plugins are this program too.
    let Some(count) = std::env::args().nth(1).and_then(|count| count.parse().ok()) else {
        return callboard::command_line::main();
    };
    match measure(count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(count: usize) -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (program, config) = (std::env::current_exe()?, directory.path().join("host.toml"));
    let mut text = format!("data_dir = {:?}\n", directory.path().join("data"));
    for number in 0..count {
        writeln!(
            text,
            "[[allocation]]\nname = \"a{number}\"\nplugin = \"p{number}\"\ntype = \"node\"\nhealth_timeout = \"10m\"\n\
             command = [{program:?}, \"plugin\", \"hostpath\", \"--role\", \"node\", \"--endpoint\", \"${{CSI_ENDPOINT}}\"]"
        )?;
    }
    fs::write(&config, text)?;
    let mut run = Command::new(&program);
    run.args(["run", "--log-level", "warn", "--config"])
        .arg(&config)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let host = Ended(run.spawn()?);
    let (began, mut most) = (Instant::now(), 0);
    while healthy(&program, &config)? < count {
        most = most.max(threads(&host)?.values().sum());
        sleep(Duration::from_millis(100));
    }
    println!("{count} plugins are healthy after {:.0?}; meanwhile at most {most} threads", began.elapsed());
    sleep(REST);
    let names = threads(&host)?;
    println!("at rest: {} threads {names:?}", names.values().sum::<usize>());
    Command::new(&program).args(["shutdown", "--config"]).arg(&config).stdout(Stdio::null()).status()?;
    Ok(())
}

/// A process that is killed when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The threads of the host, by name.
fn threads(host: &Ended) -> Result<BTreeMap<String, usize>, std::io::Error> {
    let mut names = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{}/task", host.0.id()))? {
        // It may have ended.
        let Ok(name) = fs::read_to_string(thread?.path().join("comm")) else { continue };
        *names.entry(name.trim().to_owned()).or_default() += 1;
    }
    Ok(names)
}

/// The number of healthy allocations. 0 while the host does not answer.
fn healthy(program: &Path, config: &Path) -> Result<usize, Box<dyn Error>> {
    let status = Command::new(program).args(["status", "--json", "--config"]).arg(config).output()?;
    let Ok(status) = serde_json::from_slice::<serde_json::Value>(&status.stdout) else { return Ok(0) };
    let allocations = status["allocations"].as_array().into_iter().flatten();
    Ok(allocations.filter(|allocation| allocation["health"] == "healthy").count())
}
