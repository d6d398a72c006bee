//! The kernel's block events of some devices while they come: an instance of the tracer that is emptied often.
//!
//! For: requests in the order of their issue, as somebody wants them while they are made. Not for: what is made of them
//! ([`crate::watch`], [`crate::run`], [`crate::capture`]), nor what events mean (the crate `capture`).

use crate::traced::Traced;
use capture::row::{Names, Row};
use capture::trace::pairing::{Merge, Pairing, Scope};
use capture::trace::{Decoder, Event, OF_REQUESTS, Step};
use machine::root::Root;
use machine::tracer::{Tracer, process_of, remove_leftovers};
use model::Known;
use model::captured::Unit;
use rustix::time::{ClockId, clock_gettime};

/// Bytes of buffer for each CPU.
const BUFFER_BYTES: u64 = 4 << 20;
/// How long requests wait for an older one to complete, so that their order is that of their issue.
const WAIT_NS: u64 = 50_000_000;
/// Tasks that are told apart before all begins anew: their numbers come again, and memory is bounded.
const MOST_TASKS: usize = 1 << 14;
/// The end of a bio, of devices that have no requests.
const BIO_ENDS: (&str, Step) = ("block_bio_complete", Step::Completed);

/// An instance of the tracer at work.
pub(crate) struct BlockEvents {
    tracer: Tracer,
    decoder: Decoder,
    merge: Merge,
    devices: Vec<(Traced, Pairing)>,
    page: Vec<u8>,
    /// When it began; times of requests count from there.
    pub(crate) start_ns: u64,
    /// When the reading before this one began: what is older is there.
    sure_until_ns: u64,
}

impl BlockEvents {
    /// Records these devices from now on, for somebody who wants requests soon. What killed processes left is removed first: it would go on
    /// recording.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn begin(devices: &[Traced]) -> Known<Self> {
        remove_leftovers();
        let tracer = Tracer::new(BUFFER_BYTES).map_err(|e| e.to_string())?;
        let mut new = Self::with(tracer, devices)?;
        new.devices.iter_mut().for_each(|(_, pairing)| pairing.wait_at_most(WAIT_NS));
        Ok(new)
    }

    /// Records these devices from now on by this instance. Requests come in the order of their issue, however long an older one takes.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn with(mut tracer: Tracer, devices: &[Traced]) -> Known<Self> {
        let mut formats = Vec::new();
        // Insertions always: a request that waited is issued by whoever comes along, and only that event has its own task.
        for (event, step) in OF_REQUESTS.into_iter().chain([BIO_ENDS]) {
            let all: Vec<String> =
                devices.iter().filter_map(|of| Some(format!("({})", of.filter(step, event)?))).collect();
            if !all.is_empty() {
                formats.push((step, tracer.record(event, &all.join(" || ")).map_err(|e| e.to_string())?));
            }
        }
        let header = tracer.header_page().map_err(|e| e.to_string())?;
        let decoder = Decoder::new(&header, &formats)
            .map_err(|why| format!("the kernel's trace is not understood: {why}"))?;
        tracer.begin().map_err(|e| e.to_string())?;
        let start_ns = now_ns();
        let paired =
            |of: &Traced| (of.clone(), Pairing::new(Scope { unit: of.unit, span: of.span(), start_ns }));
        Ok(Self {
            page: vec![0; decoder.page_bytes()],
            tracer,
            decoder,
            merge: Merge::default(),
            devices: devices.iter().map(paired).collect(),
            start_ns,
            sure_until_ns: start_ns,
        })
    }

    /// Empties all buffers, and hands the requests on that are surely in order, each with the index of its device.
    ///
    /// # Errors
    /// Why a buffer cannot be read.
    pub(crate) fn drain(&mut self, each: &mut dyn FnMut(usize, &Row, &Names)) -> Known<()> {
        let begun_ns = now_ns();
        self.read()?;
        let sure_ns = std::mem::replace(&mut self.sure_until_ns, begun_ns);
        self.hand_on(sure_ns, each);
        let names = &self.decoder.names;
        for (at, (_, pairing)) in self.devices.iter_mut().enumerate() {
            pairing.hand_on(sure_ns, &mut |row| each(at, row, names));
        }
        Ok(())
    }

    /// Ends recording, and hands the rest on.
    ///
    /// # Errors
    /// As [`Self::drain`].
    pub(crate) fn end(&mut self, each: &mut dyn FnMut(usize, &Row, &Names)) -> Known<()> {
        self.tracer.end().map_err(|e| e.to_string())?;
        self.read()?;
        self.hand_on(u64::MAX, each);
        let names = &self.decoder.names;
        for (at, (_, pairing)) in self.devices.iter_mut().enumerate() {
            pairing.finish(&mut |row| each(at, row, names));
        }
        Ok(())
    }

    fn read(&mut self) -> Known<()> {
        let (decoder, waiting) = (&mut self.decoder, self.merge.waiting());
        let root = Root::real();
        let mut ask = |tid| process_of(&root, tid);
        let drained = self.tracer.drain(&mut self.page, |page| decoder.page(page, &mut ask, waiting));
        drained.map_err(|e| e.to_string())
    }

    fn hand_on(&mut self, before_ns: u64, each: &mut dyn FnMut(usize, &Row, &Names)) {
        let (devices, names) = (&mut self.devices, &mut self.decoder.names);
        // Rows refer to names that are there when they are handed on.
        let mut rows = Vec::new();
        self.merge.before(before_ns, |event| {
            for (at, (traced, pairing)) in devices.iter_mut().enumerate() {
                if let Some(event) = of_device(event, traced) {
                    pairing.take(&event, names, &mut |row| rows.push(*row));
                    rows.drain(..).for_each(|row| each(at, &row, names));
                }
            }
        });
    }

    /// Events lost so far, as pages say.
    pub(crate) fn lost(&self) -> u64 {
        self.decoder.lost
    }

    /// Events lost so far, by the kernel's own count.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn lost_by_kernel(&self) -> Known<u64> {
        let lost = self.tracer.lost().map_err(|e| e.to_string())?;
        Ok(lost.overrun.saturating_add(lost.dropped))
    }

    /// Events that were read.
    pub(crate) fn count(&self) -> u64 {
        self.decoder.events
    }

    /// What requests refer to.
    pub(crate) fn names(&self) -> &Names {
        &self.decoder.names
    }

    /// What belongs together on the first device.
    pub(crate) fn pairing(&mut self) -> Option<&mut Pairing> {
        self.devices.first_mut().map(|(_, pairing)| pairing)
    }

    /// Whether it has told apart as many tasks as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.decoder.names.all_tasks().len() > MOST_TASKS
    }
}

/// An event as it is about this device; `None` where it is about another one.
fn of_device(event: &Event, traced: &Traced) -> Option<Event> {
    if event.step == Step::Lost {
        return Some(*event);
    }
    let step = match (traced.unit, event.step) {
        // What is asked for is all there is.
        (Unit::Bios, Step::Asked) => Step::Issued,
        (_, step) => step,
    };
    (u64::from(event.device) == traced.number).then_some(Event { step, ..*event })
}

/// The clock that the tracer stamps with.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
