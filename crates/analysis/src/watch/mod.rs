//! Computes what two samples of a running machine mean: figures of devices and CPUs, the share of the load in what was measured on the
//! device, and conclusions from both. Everything here is pure; the crate `machine` takes the samples.

pub mod conclusions;
pub mod cpu;
pub mod figures;
pub mod head_room;
pub mod over_time;
