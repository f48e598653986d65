//! Tests with unusual machines and invalid files: the derived topology is always well formed.

mod machine;

use proptest::prelude::*;

use self::machine::{CPUS_ONLINE, Machine, NODES_ONLINE, STATUS};
use super::{Core, CoreGrade, Topology, of_this_machine, read};

fn numbers(topology: &Topology) -> Vec<u16> {
    topology.cores().iter().map(|core| core.id).collect()
}

fn speeds(topology: &Topology) -> Vec<(u64, u64, u64)> {
    topology.cores().iter().map(|core| (core.base_mhz, core.max_mhz, core.guess_mhz)).collect()
}

/// Two sockets of two nodes, each core with two threads.
fn server() -> Machine {
    let machine = Machine::with(&[(CPUS_ONLINE, "0-7\n"), (NODES_ONLINE, "0-1\n")]);
    machine.node(0, "0-1,4-5\n", "10 21\n").node(1, "2-3,6-7\n", "21 10\n");
    for cpu in 0..8 {
        machine.cpu(cpu, "topology/physical_package_id", if cpu % 4 < 2 { "0\n" } else { "1\n" });
        machine.cpu(cpu, "topology/thread_siblings_list", &format!("{},{}\n", cpu % 4, cpu % 4 + 4));
        machine.cpu(cpu, "cpufreq/base_frequency", "2400000\n");
        machine.cpu(cpu, "cpufreq/cpuinfo_max_freq", "3900000\n");
    }
    machine
}

#[test]
fn a_server_of_two_nodes_is_told_whole_t010_t011_t012_t014() {
    let topology = server().topology();
    assert_eq!((topology.nodes(), topology.distances()), (&[0, 1][..], &[10, 21, 21, 10][..]));
    let expected = Core {
        id: 6,
        node: 1,
        socket: 1,
        grade: CoreGrade::Performance,
        is_disabled: false,
        base_mhz: 2_400,
        max_mhz: 3_900,
        guess_mhz: 0,
    };
    assert_eq!(topology.cores()[6], expected);
    assert_eq!((topology.total_mhz(), topology.usable_mhz()), (8 * 2_400, 8 * 2_400));
    assert!(!topology.is_guessed());
}

#[test]
fn cores_outside_our_own_affinity_or_cpuset_are_disabled_th012_t018() {
    let machine = server();
    machine.write(STATUS, "Name:\thost\nCpus_allowed:\t0c\nCpus_allowed_list:\t2-3\n");
    let topology = machine.topology();
    assert_eq!(topology.cores().len(), 8);
    assert_eq!(topology.enabled_cores().to_string(), "2-3");
    assert_eq!((topology.total_mhz(), topology.usable_mhz()), (8 * 2_400, 2 * 2_400));
    // An affinity list that does not match this machine must not disable all cores.
    machine.write(STATUS, "Cpus_allowed_list:\t64-65\n");
    assert_eq!(machine.topology().enabled_cores().to_string(), "0-7");
}

#[test]
fn gaps_in_the_numbers_of_cores_and_nodes_are_gaps_and_nothing_else_t019() {
    let machine = Machine::with(&[(CPUS_ONLINE, "1,5-6"), (NODES_ONLINE, "0,3")]);
    machine.node(0, "1", "10 40").node(3, "5-6", "40 10");
    let topology = machine.topology();
    assert_eq!((topology.nodes(), topology.distances()), (&[0, 3][..], &[10, 40, 40, 10][..]));
    let nodes: Vec<_> = topology.cores().iter().map(|core| (core.id, core.node)).collect();
    assert_eq!(nodes, [(1, 0), (5, 3), (6, 3)]);
}

#[test]
fn distances_that_are_not_square_are_left_out_t011() {
    for rows in [["10 21", "21"], ["10 21", "21 300"], ["10 21", "x y"], ["10 21 31", "21 10 31"]] {
        let machine = server();
        machine.node(0, "0-1,4-5", rows[0]).node(1, "2-3,6-7", rows[1]);
        let topology = machine.topology();
        assert_eq!((topology.nodes().len(), topology.distances().len()), (2, 0), "{rows:?}");
    }
}

#[test]
fn a_container_without_frequencies_has_the_speeds_of_cpuinfo_t017() {
    let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 2445.430\n\nprocessor\t: 1\ncpu MHz\t\t: 2450.1\n";
    let topology = Machine::with(&[("proc/cpuinfo", cpuinfo)]).topology();
    assert_eq!((numbers(&topology), topology.nodes()), (vec![0, 1], &[0][..]));
    assert_eq!(speeds(&topology), [(2_445, 0, 0), (2_450, 0, 0)]);
    assert!(!topology.is_guessed());
}

#[test]
fn a_machine_that_tells_no_speed_is_guessed_and_never_zero_th011_t205() {
    // Many ARM machines have neither frequencies nor "cpu MHz".
    let cpuinfo = "processor\t: 0\nBogoMIPS\t: 108.00\n\nprocessor\t: 1\nBogoMIPS\t: 108.00\n";
    let machine = Machine::with(&[("proc/cpuinfo", cpuinfo), (CPUS_ONLINE, "0-1")]);
    machine.cpu(0, "topology/physical_package_id", "-1\n");
    let topology = machine.topology();
    assert_eq!(speeds(&topology), [(0, 0, 1_000), (0, 0, 1_000)]);
    assert_eq!((topology.total_mhz(), topology.is_guessed()), (2_000, true));
    assert_eq!(topology.cores()[0].socket, 0);
}

#[test]
fn an_empty_root_is_one_core_of_one_node_th010() {
    let topology = Machine::empty().topology();
    assert_eq!((numbers(&topology), topology.nodes(), topology.distances()), (vec![0], &[0][..], &[][..]));
    assert_eq!((topology.usable_mhz(), topology.is_guessed()), (1_000, true));
    let missing = Machine::empty().root().join("nowhere");
    assert_eq!(read(&missing), topology);
}

#[test]
fn the_speed_of_acpi_drivers_is_the_nominal_one_t014() {
    let machine = Machine::with(&[(CPUS_ONLINE, "0-1")]);
    for cpu in 0..2 {
        machine.cpu(cpu, "acpi_cppc/nominal_freq", "2800");
        machine.cpu(cpu, "cpufreq/base_frequency", "2400000");
        machine.cpu(cpu, "cpufreq/cpuinfo_max_freq", "0");
    }
    machine.cpu(0, "cpufreq/scaling_driver", "acpi-cpufreq\n").cpu(
        1,
        "cpufreq/scaling_driver",
        "amd-pstate\n",
    );
    assert_eq!(speeds(&machine.topology()), [(2_800, 0, 0), (2_400, 0, 0)]);
}

#[test]
fn sparing_cores_are_those_of_a_machine_with_two_kinds_t013() {
    let grades = |machine: &Machine| {
        let topology = machine.topology();
        topology.cores().iter().map(|core| core.grade == CoreGrade::Efficiency).collect::<Vec<_>>()
    };
    let machine = Machine::with(&[(CPUS_ONLINE, "0-2")]);
    assert_eq!(grades(&machine), [false; 3], "no siblings at all: all are alike");
    machine.cpu(0, "topology/thread_siblings_list", "0-1").cpu(1, "topology/thread_siblings_list", "0-1");
    machine.cpu(2, "topology/thread_siblings_list", "2");
    assert_eq!(grades(&machine), [false, false, true], "a core without a sibling beside others with one");
    machine.write("sys/devices/cpu_atom/cpus", "1-2\n");
    assert_eq!(grades(&machine), [false, true, true], "the kernel says which");
}

#[test]
fn numbers_that_do_not_fit_the_other_side_are_not_cut_t010_t012() {
    let machine = Machine::with(&[(CPUS_ONLINE, "0-1"), (NODES_ONLINE, "2,300")]);
    machine.node(2, "0", "10 20").node(300, "1", "20 10");
    machine.cpu(0, "topology/physical_package_id", "36").cpu(1, "topology/physical_package_id", "3688");
    let topology = machine.topology();
    assert_eq!((topology.nodes(), topology.distances()), (&[2][..], &[][..]));
    let places: Vec<_> = topology.cores().iter().map(|core| (core.node, core.socket)).collect();
    assert_eq!(places, [(2, 0), (2, 1)]);
}

#[test]
fn this_machine_has_a_topology_with_the_cores_that_we_may_use() {
    let topology = of_this_machine();
    let usable = std::thread::available_parallelism().unwrap().get();
    assert!(topology.enabled_cores().len() >= usable, "{topology:?}");
    assert!(topology.usable_mhz() >= usable as u64);
}

/// Possible contents of a file, valid or not.
fn contents() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("0".to_owned()),
        Just("0-3\n".to_owned()),
        Just("1,5-6,300".to_owned()),
        Just("65535".to_owned()),
        Just("65530-65540".to_owned()),
        Just("4294967295".to_owned()),
        Just("-1".to_owned()),
        Just("10 20\n".to_owned()),
        Just("10".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just("2400000".to_owned()),
        Just("999".to_owned()),
        Just("acpi-cpufreq".to_owned()),
        Just("Cpus_allowed_list:\t2\n".to_owned()),
        Just("processor: 2\ncpu MHz: 18446744073709551615\nprocessor: 7\n".to_owned()),
        Just("processor: 3\ncpu MHz: 1800.0\n".to_owned()),
        "\\PC{0,24}",
    ]
}

fn paths() -> impl Strategy<Value = String> {
    let number = prop_oneof![Just(0_u32), Just(2), Just(5), Just(300), Just(65_535), Just(70_000)];
    let cpu = prop_oneof![
        Just("topology/physical_package_id"),
        Just("topology/thread_siblings_list"),
        Just("cpufreq/scaling_driver"),
        Just("cpufreq/base_frequency"),
        Just("cpufreq/cpuinfo_max_freq"),
        Just("acpi_cppc/nominal_freq"),
    ];
    let whole = prop_oneof![
        Just(CPUS_ONLINE.to_owned()),
        Just(NODES_ONLINE.to_owned()),
        Just(STATUS.to_owned()),
        Just("proc/cpuinfo".to_owned()),
        Just("sys/devices/cpu_atom/cpus".to_owned()),
        Just("sys/devices/system/cpu/cpu1".to_owned()),
        Just("sys/devices/system/node/node0".to_owned()),
    ];
    let node = prop_oneof![Just("cpulist"), Just("distance")];
    prop_oneof![
        whole,
        (number.clone(), cpu).prop_map(|(number, file)| format!("sys/devices/system/cpu/cpu{number}/{file}")),
        (number, node).prop_map(|(number, file)| format!("sys/devices/system/node/node{number}/{file}")),
    ]
}

/// A file at a path: a text, a directory, or a symlink that dangles or forms a cycle.
#[derive(Debug, Clone)]
enum Thing {
    Text(String),
    Directory,
    Link(&'static str),
}

fn things() -> impl Strategy<Value = Thing> {
    prop_oneof![
        8 => contents().prop_map(Thing::Text),
        1 => Just(Thing::Directory),
        1 => Just(Thing::Link("nowhere")),
        1 => Just(Thing::Link("distance")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_stands_in_the_files_a_driver_can_divide_by_it_th010_th011(
        tree in prop::collection::vec((paths(), things()), 0..24),
    ) {
        let machine = Machine::empty();
        for (path, thing) in &tree {
            match thing {
                Thing::Text(text) => machine.write_if_possible(path, text),
                Thing::Directory => machine.write_if_possible(&format!("{path}/x"), ""),
                Thing::Link(target) => machine.link_if_possible(path, target),
            }
        }
        let topology = machine.topology();
        let (nodes, cores) = (topology.nodes().len(), topology.cores().len());
        prop_assert!(nodes >= 1 && cores >= 1);
        prop_assert!(topology.distances().is_empty() || topology.distances().len() == nodes * nodes);
        let mut ids = numbers(&topology);
        ids.dedup();
        prop_assert_eq!(ids.len(), cores, "ids rise and are unique");
        prop_assert!(topology.cores().iter().all(|core| core.mhz() > 0));
        prop_assert!(topology.total_mhz() >= cores as u64);
        prop_assert!(topology.usable_mhz() > 0 && !topology.enabled_cores().is_empty());
        prop_assert_eq!(Topology::try_from(topology.parts()), Ok(topology));
    }
}
