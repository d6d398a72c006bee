//! `fathom run` accepts every job that is fitted to a capture, even of requests that no device
//! produces.

use capture::fit::{Gathering, Head, Survey};
use model::captured::{Origin, RowUnit};
use trace::row::{Flags, Names, Row, RowKind, Task};

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = model::payload::split_mix(self.0);
        self.0 % most.max(1)
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Rows of a random load, mostly ordinary and sometimes with extreme values.
fn rows(random: &mut Random, names: &mut Names) -> Vec<Row> {
    let letters = ["R", "WS", "D", "FWFSM", "WFS", "N", "FF", "?"];
    let tasks: Vec<u32> = (0..=random.below(12))
        .map(|tid| {
            let name =
                random.pick(&["fio", "kworker/0:1", "a\"b\\c", "\u{1b}[2J", "", "iou-wrk-7"]).to_owned();
            names.task(&Task { tid: tid as u32, name, ..Task::default() })
        })
        .collect();
    let far = random.pick(&[1_u64 << 20, 1 << 30, u64::MAX]);
    let gap = random.pick(&[0_u64, 10, 500_000, 1 << 50]);
    let align = random.pick(&[1_u64, 8, 2048]);
    let (mut at, mut last) = (0_u64, 0_u64);
    (0..random.pick(&[1, 30, 3000]))
        .map(|_| {
            at = at.saturating_add(random.below(gap + 1));
            let is_asked = random.below(9) == 0;
            let kind = if is_asked { RowKind::RequestedFlush } else { RowKind::Request };
            let flags = names.flags(&Flags { kind, ..Flags::parse(random.pick(&letters)) });
            let sectors = random.pick(&[8, 8, 8, 64, 1024, 0, u32::MAX]) / align as u32 * align as u32;
            let continues = random.below(3) > 0;
            let sector = if continues { last } else { random.below(far) / align * align };
            last = sector.saturating_add(u64::from(sectors));
            let latency = random.pick(&[0, 100, 80_000, 1 << 33, u64::MAX]);
            let latency_ns = (random.below(20) > 0).then_some(latency);
            let task = random.pick(&tasks);
            Row { issue_ns: at, latency_ns, queued_ns: None, sector, sectors, flags, task }
        })
        .collect()
}

#[test]
fn every_capture_gives_a_valid_job_or_a_reason() {
    let mut random = Random(1);
    let mut fitted = 0;
    for _ in 0..1500 {
        let mut names = Names::default();
        let rows = rows(&mut random, &mut names);
        let origin = Origin { unit: random.pick(&[RowUnit::Requests, RowUnit::Bios]), ..Origin::default() };
        let mut survey = Survey::new(&origin);
        survey.add(&rows, &names);
        let mut gathering = match Gathering::new(&origin, survey, &names) {
            Ok(gathering) => gathering,
            Err(why) => {
                assert!(!why.to_string().is_empty());
                continue;
            }
        };
        gathering.add(&rows, &names);
        let text = gathering.finish().toml(&Head { capture: "x\n.capture".into(), ..Head::default() });
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        let job = dialect::job::parse("job.toml", &text, |_| Vec::new());
        fitted += 1;
        assert_eq!(job.map_err(|e| e.to_string()).map(|job| job.check()), Ok(Vec::new()));
    }
    assert!(fitted > 1000, "{fitted}");
}
