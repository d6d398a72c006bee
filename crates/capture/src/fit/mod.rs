//! Fitting: a job that behaves like a captured load.
//!
//! For: pure work on rows, in memory that does not grow with their number: one pass that says which tasks become streams ([`Survey`]), a
//! second one that gathers what each is like ([`Gathering`]), and the job file that says it ([`Fitted::toml`]). [`Observed`] is what a load
//! and its fit are compared by. Not for: the load again request by request ([`crate::replay`]), nor for running a job.

mod bursts;
mod closed;
mod entry;
mod gather;
mod law;
mod observed;
mod pace;
mod part;
mod side;
mod sizes;
mod stream;
mod survey;
mod text;
mod turns;
mod zones;

pub use self::gather::Gathering;
pub use self::observed::{Figures, Observed};
pub use self::stream::Fitted;
pub use self::survey::{Nothing, Survey};
pub use self::text::Head;

#[cfg(test)]
mod tests;
