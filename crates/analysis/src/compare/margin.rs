//! Margins: how large a difference must be to be of interest.
//!
//! For: the margins of those who name none; the page of a check prints them. Not for: deciding with them (`weighing`).

/// Share below which a difference of a rate is of no interest, unless the user says more.
pub(crate) const MARGIN: f64 = 0.01;
/// Share below which a difference of a rate is of no interest where it is not known how far two sessions of one configuration lie apart,
/// unless the user says otherwise. Their runs do not show it: 20 pairs of the same job on a virtual disk, one session right after the
/// other, differed with a deviation of 3 %, and with a margin of 1 % three of them were told apart.
pub(crate) const MARGIN_OF_LONE_SESSIONS: f64 = 0.05;
/// Share below which a difference of a percentile is of no interest, unless the user says more: it is known to the 0.8 % of a bucket.
pub(crate) const MARGIN_OF_PERCENTILE: f64 = 0.02;
