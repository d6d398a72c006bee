//! The fingerprint: what tells at a glance that two sessions did the same work at the same place of the same machine.
//!
//! For: grouping sessions whose figures may be compared with one another. Not for: saying what differs (`fathom compare`).

use model::job::Job;
use model::machine::{Machine, Place};
use model::record::Header;
use serde_json::{Value, json};

/// 16 hexadecimal digits over the machine (host, kernel, CPU), the stack below each target (file system with its options,
/// devices with their queues) and the jobs. Paths, times, seeds and repeats are not in it.
pub(super) fn fingerprint(header: &Header) -> String {
    let machines: Vec<Value> = header.hosts.iter().map(machine).collect();
    // Names do not change the work.
    let jobs: Vec<_> = header.plan.jobs.iter().map(|Job { phases, .. }| phases).collect();
    let whole = json!({ "hosts": machines, "jobs": jobs, "cold": header.plan.cold });
    format!("{:016x}", fnv1a(whole.to_string().as_bytes()))
}

fn machine(m: &Machine) -> Value {
    let places: Vec<Value> = m.places.iter().map(place).collect();
    json!({ "host": m.host, "kernel": m.kernel, "cpu": m.cpu, "cpus": m.cpus, "places": places })
}

fn place(p: &Place) -> Value {
    let file_system = p.file_system.as_ref().map(|f| json!([f.kind, f.source, f.options, f.attributes]));
    let layers: Vec<Value> =
        p.layers.iter().map(|l| json!([l.name, l.driver, l.model, l.serial, l.queue])).collect();
    json!({ "file_system": file_system, "layers": layers, "ram": p.ram })
}

/// FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923): the same on every machine and in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_hash_is_that_of_its_authors() {
    assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
}
