//! Session files: any bytes are a record or an error, and any record has a report in every format.
//!
//! For: `fathom show` on files that were damaged, forged or written by another version. Not for: meaning.
//! The input is a file, and also the lines of one without their checksums, which no fuzzer would guess.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::record::frame;

fuzz_target!(|bytes: &[u8]| {
    look(bytes);
    let mut file = frame::MAGIC.as_bytes().to_vec();
    for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        file.extend(format!("{:08x} ", crc32fast::hash(line)).bytes());
        file.extend(line);
        file.push(b'\n');
    }
    look(&file);
});

fn look(bytes: &[u8]) {
    let Ok((record, _)) = frame::decode(bytes) else { return };
    let report = analysis::judge(&record, &analysis::Judging::default());
    let _ = analysis::exit_code(&report);
    for format in report::FORMATS {
        assert!(
            !(format.render)(&report, report::Style { colour: false, ledger: true, course: true }).is_empty()
        );
    }
}
