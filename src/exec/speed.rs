//! The speed of a core, from which hosts compute a task's CPU usage in MHz.

use callboard_proto::base::{ClientTopology, ClientTopologyCore};

/// The average speed of a core in MHz, from the host's node data (T014, T016), else from the kernel, if either reports it.
pub(super) fn of_a_core(topology: Option<&ClientTopology>) -> Option<f64> {
    let told = topology.and_then(by_topology);
    told.or_else(|| by_kernel(&std::fs::read_to_string("/proc/cpuinfo").ok()?))
}

#[allow(clippy::cast_precision_loss, reason = "no node is so fast that this counts")]
fn by_topology(topology: &ClientTopology) -> Option<f64> {
    let of_core = |core: &ClientTopologyCore| {
        [core.base_speed, core.max_speed, core.guess_speed].into_iter().find(|speed| *speed > 0).unwrap_or(0)
    };
    let sum = match topology.override_total_compute {
        0 => topology.cores.iter().map(of_core).fold(0, u64::saturating_add),
        total => total,
    };
    (sum > 0 && !topology.cores.is_empty()).then(|| sum as f64 / topology.cores.len() as f64)
}

#[allow(clippy::cast_precision_loss, reason = "no node has so many processors that this counts")]
fn by_kernel(text: &str) -> Option<f64> {
    let speeds = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "cpu MHz").then(|| value.trim().parse::<f64>().ok())?
    });
    let speeds: Vec<f64> = speeds.filter(|speed| speed.is_finite() && *speed > 0.0).collect();
    (!speeds.is_empty()).then(|| speeds.iter().sum::<f64>() / speeds.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(base_speed: u64, max_speed: u64, guess_speed: u64) -> ClientTopologyCore {
        ClientTopologyCore { base_speed, max_speed, guess_speed, ..Default::default() }
    }

    fn is_near(speed: Option<f64>, expected: f64) -> bool {
        speed.is_some_and(|speed| (speed - expected).abs() < 0.01)
    }

    #[test]
    fn a_core_is_as_fast_as_the_host_says_t014_t016() {
        let cores = vec![core(2_000, 4_000, 0), core(0, 3_000, 9), core(0, 0, 1_000)];
        let topology = ClientTopology { cores, ..Default::default() };
        assert!(is_near(by_topology(&topology), 2_000.0));
        assert!(is_near(by_topology(&ClientTopology { override_total_compute: 9_000, ..topology }), 3_000.0));
        assert_eq!(by_topology(&ClientTopology::default()), None);
        assert_eq!(by_topology(&ClientTopology { cores: vec![core(0, 0, 0)], ..Default::default() }), None);
    }

    #[test]
    fn where_the_host_says_nothing_the_kernel_may_t017() {
        let text = "processor : 0\ncpu MHz\t\t: 1000.5\n\nprocessor : 1\ncpu MHz\t\t: 2000.5\nbogomips : 9\n";
        assert!(is_near(by_kernel(text), 1500.5));
        assert_eq!(by_kernel("processor : 0\nBogoMIPS : 50.00\n"), None, "as on many ARM machines");
    }
}
