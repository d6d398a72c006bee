//! Reading back: what a stream is that reads what another one wrote in the phase before.
//!
//! For: what it is called and judged by, with nothing that held the writer up. Not for: which blocks those were, which the writer's own
//! source tells again when they are written ([`crate::run`]).

use crate::failure::Failure;
use model::job::{PerKind, StopRule, Verify};
use model::spec::{JobSpec, Rw, StreamSpec};

/// What a stream of the phase at this index is, where it reads another one's blocks; itself where it does not.
///
/// # Errors
/// A usage failure where there is no such stream, or none whose blocks can be told from others.
pub(super) fn resolve_read_back(spec: &JobSpec, phase: usize, stream: &StreamSpec) -> Result<StreamSpec, Failure> {
    let Some(number) = stream.read_back else { return Ok(stream.clone()) };
    let fault = |why: &str| Err(Failure::Usage(format!("read-back = {number}: {why}")));
    let index = number.saturating_sub(1) as usize;
    let before = phase.checked_sub(1).and_then(|before| spec.phases.get(before)?.streams.get(index));
    let Some(writer) = before else {
        return fault("there is no such stream in the phase before; type the number of one, from 1");
    };
    let rw = match writer.rw {
        Some(Rw::Write | Rw::Rw | Rw::Trimwrite) => Rw::Read,
        Some(Rw::Randwrite | Rw::Randrw | Rw::Randtrimwrite) => Rw::Randread,
        _ => return fault("that stream writes nothing; name one that does"),
    };
    let Some(verify) = &writer.verify else {
        return fault("that stream writes nothing that can be checked; say verify = \"stamps\" there");
    };
    let verify = Verify { checks: true, back: Some(index), ..verify.clone() };
    Ok(StreamSpec {
        name: stream.name.clone().or_else(|| writer.name.clone()),
        rw: Some(rw),
        mix: None,
        positions: None,
        verify: Some(verify),
        read_back: None,
        bs: writer.bs.clone().map(|bs| PerKind::all(bs.write)),
        // Nothing holds it up, and it ends when all was read.
        rate: None,
        arrivals: None,
        limit_iops: None,
        limit_bandwidth: None,
        flow: None,
        serialize_overlap: None,
        evict_each_pass: None,
        think: None,
        burst: None,
        burst_time: None,
        think_spin: None,
        fsync: None,
        fdatasync: None,
        sync_file_range: None,
        drain: None,
        limit: StopRule::default(),
        passes: None,
        delay: None,
        log_interval: stream.log_interval,
        ..writer.clone()
    })
}
