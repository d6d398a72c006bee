//! Logs of operations as files: which ones a plan asks for, and their bytes.
//!
//! For: CSV of our own, and what fio's `write_*_log` ask for. Not for: keeping a log while it grows, nor writing files.

mod csv;
mod fio;

use model::op_log::WorkerLog;
use model::plan::Plan;

/// A file that a plan asks for.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// Where it goes.
    pub path: String,
    what: LogContent,
}

#[derive(Clone, Debug)]
enum LogContent {
    /// Everything, with the names of results by job, phase and stream.
    Csv(Vec<Vec<Vec<String>>>),
    Fio(fio::FioLog),
}

/// The files that a plan asks for.
pub fn log_files(plan: &Plan) -> Vec<LogFile> {
    let own = plan.op_log.iter().map(|path| {
        let names = plan.jobs.iter().map(|job| {
            let phases = job.phases.iter().enumerate();
            let of_phase = |(at, phase): (usize, &model::job::Phase)| {
                (0..phase.streams.len()).map(|stream| job.result_name(at, stream)).collect()
            };
            phases.map(of_phase).collect()
        });
        LogFile { path: path.clone(), what: LogContent::Csv(names.collect()) }
    });
    let typed =
        fio::fio_logs(plan).into_iter().map(|(path, file)| LogFile { path, what: LogContent::Fio(file) });
    own.chain(typed).collect()
}

impl LogFile {
    /// What stands in it.
    pub fn content(&self, logs: &[WorkerLog]) -> Vec<u8> {
        match &self.what {
            LogContent::Csv(names) => csv::csv_content(names, logs),
            LogContent::Fio(file) => file.content(logs),
        }
    }
}
