//! E15: sessions of one side differ as much as the two sides do. It compares the difference of the headline with the differences between
//! sessions of one side.

use super::{ComparisonCheck, Context, NamedAnswer};
use crate::checks::prelude::*;
use crate::threshold::{MARGIN, MARGIN_OF_LONE_SESSIONS};

pub(super) const CHECK: ComparisonCheck = ComparisonCheck {
    id: CheckId::E15,
    name: "NOISE_FLOOR",
    belief: "two sessions of the same configuration have the same result",
    reads: "The means of the sessions of each side, if a side has several.",
    formula: formula!(
        "The floor is the largest difference between two sessions of one side, from 20 pairs on their 95th \
         percentile: both have the same configuration, so this difference occurs without any change. It \
         replaces the margin of {margin} if it is larger, separately for each number. Fires if the headline \
         differs by no more. Runs of one session cannot show the floor: changes from one hour to the next, \
         or with a new test file, affect all of them alike. Therefore, if each side is one session, the \
         margin is {lone}, unless you give another.",
        margin = Share(MARGIN),
        lone = Share(MARGIN_OF_LONE_SESSIONS)
    ),
    provoke: "Measure A twice with another load on the disk in between, then `fathom compare A1,A2 B`.",
    fix: "Find what changes between sessions of one configuration, or measure more of them in turns: `fathom \
          compare A1,A2,A3 B1,B2,B3`.",
    accept: "",
    acceptable: false,
    ask: evaluate,
};

fn evaluate(context: &Context) -> Vec<NamedAnswer> {
    let Some((pair, metric)) = context.headline() else { return Vec::new() };
    let about = vec![pair.name.clone()];
    let Some(floor) = metric.floor else {
        let why = format!(
            "each side is one session, so the difference between two sessions of one configuration is \
             unknown, and {} counts as no difference; give several on each side: A1,A2,A3 B1,B2,B3",
            show_share(metric.margin)
        );
        return vec![(about, Err(why))];
    };
    // Symmetric: half and double are the same effect.
    let effect = metric.ratio.ln().abs().exp_m1();
    let numbers = evidence([("floor_share", floor), ("difference_share", effect)]);
    if effect > floor {
        let sentence = "The sessions of one side differ less than the two sides.";
        return vec![(about, holds(sentence, numbers))];
    }
    let found = detail!(
        Severity::Biased,
        numbers,
        "{} differs by {}, but sessions of one side differ by up to {} without any change.",
        metric.name,
        show_share(effect),
        show_share(floor)
    );
    vec![(about, Ok(Answer::Finding(found)))]
}
