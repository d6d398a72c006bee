//! Trims with their writes: how jobs go through blocks beside the plain ways.
//!
//! For: what becomes of `trimwrite`. Not for: the plain directions and orders ([`super`]).

use super::{job, refused, stream};
use model::job::{Order, PerKind, Sizes};
use model::spec::Rw;

#[test]
fn a_write_follows_each_trim_and_ends_and_rates_count_both() {
    let pairs = stream("rw=trimwrite:8k bs=4k");
    assert_eq!((pairs.rw, pairs.hole, pairs.passes), (Some(Rw::Trimwrite), Some(8192), Some(1)));
    let random = stream("rw=randtrimwrite bs=4k,4k,8k");
    assert_eq!((random.rw, random.random), (Some(Rw::Randtrimwrite), Some(Order::Once)));
    assert_eq!(random.bs, Some(PerKind::all(Sizes::Fixed(8192))), "a write has the size of its trim");
    let ends = stream("rw=trimwrite io_size=64k number_ios=3").limit;
    assert_eq!((ends.bytes, ends.operations), (Some(128 << 10), Some(6)));
    let rates = stream("rw=randtrimwrite rate_iops=10");
    assert_eq!(
        (rates.limit_iops, stream("rw=trimwrite rate=1m").limit_bandwidth),
        (Some(20.0), Some(2 << 20))
    );
    let pauses = stream("rw=trimwrite thinktime=5 thinktime_blocks=4");
    assert_eq!(pauses.burst, Some(2), "bursts are of pairs");
    let checked = job("[j]\nsize=1m\nrw=randtrimwrite\nverify=crc32c\n");
    assert_eq!((checked.phases.len(), checked.phases[1].streams[0].read_back), (2, Some(1)));
    assert_eq!(stream("rw=randtrimwrite verify=md5 verify_only").rw, Some(Rw::Randread));
    refused("rw=trimwrite bs=4k,4k,8k", &["bytes that were trimmed"]);
    refused("rw=randtrimwrite:8", &["leave the number out"]);
    refused("rw=trimwrite io_size=2m", &["io_size=2m", "type loops"]);
    refused("rw=trimwrite rate_iops=,10,20", &["directions differ"]);
    refused("rw=trimwrite thinktime=5", &["even thinktime_blocks"]);
}
