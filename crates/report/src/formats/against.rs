//! An earlier session, measured again beside this one.
//!
//! For: what its workloads came to now and then, below the table of this one. Not for: the findings about them, which the JSON
//! has.

use super::text::{Page, headline};
use model::report::{Against, Headline};
use model::units::show_rate;

pub(super) fn show(out: &mut Page, against: &Against) {
    out.line(&format!("Against {}, measured again in turns", against.session));
    let again = &against.again;
    out.prose(
        "  now   ",
        "        ",
        &format!("{}: {}", again.headline.name, headline(&again.headline, again)),
    );
    out.prose("  then  ", "        ", &format!("{}: {}", against.then.name, then(&against.then)));
    out.line("");
}

/// The number of then with its interval.
fn then(headline: &Headline) -> String {
    let Some(value) = headline.value else { return "no number".into() };
    let number = format!("{} {}", show_rate(value), headline.unit);
    match headline.interval {
        Some([low, high]) => format!("{number} (95 % interval {} to {})", show_rate(low), show_rate(high)),
        None => number,
    }
}
