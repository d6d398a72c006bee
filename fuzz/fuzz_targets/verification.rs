//! States of a verification: any text is a state whose arithmetic holds everywhere, or a message.
//!
//! For: whatever a crash or a hand leaves of a state file. Not for: blocks (unit tests flip every bit of one).
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::verification::State;

fuzz_target!(|text: &str| {
    let Ok(state) = State::parse(text) else { return };
    let verification = &state.verification;
    for turn in [0, verification.blocks / 2, verification.blocks.saturating_sub(1)] {
        let _ = verification.expected(turn, state.mark);
    }
    let _ = verification.stamp(verification.writes());
    assert!(State::parse(&state.text()).is_ok());
});
