//! Checked: what a job of fio's writes to be verified, and what it reads back.
//!
//! For: `verify` and what belongs to it, `buffer_pattern`. Not for: carrying it out (the engine).
//!
//! fio has a checksum in each block; here each byte is compared with what was written at its place, which all of fio's methods come to.

use super::access::ParsedRw;
use super::around::Around;
use super::jobs::{Fault, Job};
use super::pattern::pattern;
use model::job::{Content, Verify};

/// Methods of fio's that are a checksum in the block.
const CHECKSUMS: [&str; 17] = [
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern_hdr",
];
/// Blocks of jobs that say no seed of their own are the same in every call.
const SEED: u64 = 0x6669_6f20_7665_7266;

/// What a stream writes to be checked; with whether another one reads it back when it is over. Where it only verifies, it is to read
/// instead.
pub(super) fn checked(
    job: &Job,
    way: &ParsedRw,
    around: &dyn Around,
) -> Result<(Option<Verify>, bool), Fault> {
    let read = |option: &str| -> Result<Option<Content>, Fault> {
        let Some(text) = job.text(option) else { return Ok(None) };
        let (bytes, offsets) = pattern(text, around).map_err(|why| job.fault(option, why))?;
        Ok(Some(Content::Pattern { bytes, offsets }))
    };
    let verified = read("verify_pattern")?;
    let content = match job.text("verify").unwrap_or("none") {
        "0" | "none" => return Ok((read("buffer_pattern")?.map(only_written), false)),
        "pattern" => verified
            .ok_or_else(|| job.fault("verify", "it says no pattern; type verify_pattern=0xdeadbeef too"))?,
        "null" => {
            return Err(job.fault("verify", "nothing would be compared; type verify=crc32c, or leave it out"));
        }
        known if CHECKSUMS.contains(&known) => {
            let seed = job.number("randseed")?.unwrap_or(SEED);
            verified.unwrap_or(Content::Stamps { seed })
        }
        _ => {
            return Err(job.fault(
                "verify",
                "it is no method of fio's; type verify=crc32c, md5, sha256, xxhash or pattern",
            ));
        }
    };
    let (does, only) = (job.on("do_verify", true)?, job.on("verify_only", false)?);
    // Reads of a mix may find what was not written yet.
    let checks = only || way.directions() == [0];
    let fatal = job.on("verify_fatal", false)?;
    let back = does && way.writes() && !only;
    let verify = Verify { content, checks, back: None, fatal };
    Ok((Some(verify), back))
}

/// A pattern that is written and never compared.
fn only_written(content: Content) -> Verify {
    Verify { content, checks: false, back: None, fatal: false }
}
