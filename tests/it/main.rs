//! Tests told to the built binary, on real files, devices and file systems.
//!
//! For: what a user sees: exit codes, messages, JSON, and what is left behind. Not for: figures themselves, which no test
//! can know; the simulated device is the exception.
//! A test that judges speed has the machine to itself; others run side by side ([`stage::Stage::beside_others`]). One that cannot run here says so with [`stage::skip`].
#![allow(clippy::unwrap_used)] // A test that cannot be set up has failed.

mod additions;
mod api;
mod bad_input;
mod blind;
mod capture;
mod checked;
mod ci;
mod commands;
mod compare;
mod containers;
mod contradictions;
mod crystal;
mod disk;
mod diskspd;
mod disturbed;
mod doctor;
mod evidence;
mod false_numbers;
mod fidelity;
mod fio;
mod fio_calls;
mod fio_engines;
mod fio_errors;
mod fio_logs;
mod fio_order;
mod fio_out;
mod fio_replay;
mod fio_results;
mod fio_rules;
mod fit;
mod foreign;
mod gates;
mod group;
mod history;
mod honesty;
mod hosts;
mod icf;
mod in_order;
mod in_use;
mod iometer;
mod kept;
#[cfg(feature = "mpi")]
mod lab;
mod layers;
mod lifecycle;
mod limit;
mod live;
mod long;
mod looks;
mod matrix;
mod newcomers;
mod open_loop;
mod output;
mod page;
mod place;
mod places;
mod precision;
mod profiles;
mod programs;
mod provoke;
mod recipes;
mod replay;
mod safety;
mod scene;
mod schema;
mod second_names;
mod shared;
mod signatures;
mod sim;
mod stage;
mod stored;
mod sustained;
mod sweep;
mod tables;
mod time;
mod trace;
mod turns;
mod verify;
#[cfg(feature = "mpi")]
mod verify_hosts;
mod watch;
mod watch_events;
mod widths;
mod winners;
