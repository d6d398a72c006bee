//! Under way: what may be said of a measurement before it is over, to whoever watches it.
//!
//! For: the counters of the run that goes on ([`counters`]), findings about a run that has ended ([`findings`]) and what the runs of
//! a job came to so far ([`row`]). Not for: the report, which is judged from the whole record, nor for deciding anything.

pub mod counters;
pub mod findings;
pub mod row;
