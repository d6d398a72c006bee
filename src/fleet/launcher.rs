//! Detects the launcher that started this process as one of several, by its environment.
//!
//! [`check`] refuses to measure if the processes do not find each other, such as a fathom without MPI under `mpirun`: each process would
//! measure alone and disturb the others.

/// A launcher, known from the environment of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launched {
    /// The environment variable that identified the launcher.
    pub(super) variable: &'static str,
    /// The name of the launcher.
    pub(super) launcher: &'static str,
    /// The number of processes that the launcher started; `None` if the variable does not contain it.
    pub(super) processes: Option<u32>,
}

/// Variables with the number of processes, the innermost launcher first: Open MPI starts its daemons with `srun`, and their processes
/// inherit the variables of `srun`.
const SIZE_VARIABLES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI"),
    ("PMI_SIZE", "a launcher with PMI, such as mpiexec of MPICH"),
    ("MV2_COMM_WORLD_SIZE", "a launcher of MVAPICH"),
    ("PALS_SIZE", "a launcher with PALS"),
];
/// Variables that only steps of `srun` have. A shell of `salloc` or a script of `sbatch` has the number of tasks of its allocation, but
/// is one process.
const STEP_VARIABLES: [&str; 2] = ["SLURM_STEP_ID", "SLURM_STEPID"];
/// Variables with the number of processes of a step, the more specific one first.
const TASK_VARIABLES: [&str; 2] = ["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"];
/// The rank of a process under PMIx. Only the PMIx server knows the number of processes.
const PMIX_RANK: &str = "PMIX_RANK";
/// Kubernetes: the number of pods of a job, if the author of the job sets it.
const COMPLETIONS: &str = "JOB_COMPLETIONS";

/// Finds the launcher that started this process as one of several; `None` without a launcher. `variable` reads an environment variable.
pub(super) fn launched(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
    let by_size = SIZE_VARIABLES.into_iter().find_map(|(name, launcher)| {
        Some(Launched { variable: name, launcher, processes: Some(number(name)?) })
    });
    by_size
        .or_else(|| {
            STEP_VARIABLES.into_iter().find_map(number)?;
            let (name, tasks) = TASK_VARIABLES.into_iter().find_map(|name| Some((name, number(name)?)))?;
            Some(Launched { variable: name, launcher: "srun of Slurm", processes: Some(tasks) })
        })
        .or_else(|| {
            number(PMIX_RANK)?;
            Some(Launched { variable: PMIX_RANK, launcher: "a launcher with PMIx", processes: None })
        })
        .or_else(|| {
            let pods = number(COMPLETIONS)?;
            Some(Launched { variable: COMPLETIONS, launcher: "a job of Kubernetes", processes: Some(pods) })
        })
}

/// Finds the launcher in the environment of this process; `None` without a launcher.
pub(super) fn launcher_of_this_process() -> Option<Launched> {
    launched(|name| std::env::var(name).ok())
}

/// Variables with the rank of a process.
const RANK_VARIABLES: [&str; 5] =
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK", PMIX_RANK, "SLURM_PROCID", "JOB_COMPLETION_INDEX"];

/// Whether this process has rank 0, or an unknown rank.
pub(super) fn is_first() -> bool {
    let rank = RANK_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank.trim() == "0")
}

/// Refuses to measure unless all processes of the launcher have found each other. `world` is the number of processes that found each other.
///
/// # Errors
/// The reason, and what to type instead.
pub(super) fn check(launched: Option<&Launched>, world: u32, has_mpi: bool) -> Result<(), String> {
    let Some(launched) = launched else { return Ok(()) };
    let Launched { variable, launcher, processes } = launched;
    let started = match processes {
        Some(count) if *count <= 1 || *count == world => return Ok(()),
        None if world > 1 => return Ok(()),
        Some(count) => format!("{launcher} started {count} processes ({variable}={count})"),
        None => format!("{launcher} started this process ({variable} is set)"),
    };
    let why = if !has_mpi {
        "but this fathom was built without the feature fleet (MPI), so each process would measure alone and disturb the others"
            .to_owned()
    } else if world <= 1 {
        "but its processes do not find each other, probably because this fathom was built with another MPI than the launcher's, or the launcher does not start MPI".to_owned()
    } else {
        format!(
            "but only {world} of them find each other, probably because this fathom was built with another MPI than that of the launcher"
        )
    };
    let instead = if has_mpi {
        "use the mpirun of the MPI whose mpicc built fathom; under srun type the right --mpi (`srun --mpi=list`)"
    } else {
        "build fathom with `cargo build --release --features fleet` and that launcher's mpicc"
    };
    Err(format!(
        "{started}, {why}; {instead}. To measure this host alone, start fathom without the launcher, or with `env -u {variable} fathom ...`"
    ))
}

#[cfg(test)]
fn launched_from(pairs: &[(&str, &str)]) -> Option<Launched> {
    let all: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    launched(|name| all.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
}

#[test]
fn launchers_are_detected_by_their_variables() {
    let size = |pairs: &[(&str, &str)]| launched_from(pairs).map(|l| (l.variable, l.processes));
    assert_eq!(size(&[]), None);
    assert_eq!(size(&[("OMPI_COMM_WORLD_SIZE", "4")]), Some(("OMPI_COMM_WORLD_SIZE", Some(4))));
    assert_eq!(size(&[("PMI_SIZE", "3"), ("PMI_RANK", "1")]), Some(("PMI_SIZE", Some(3))));
    assert_eq!(size(&[("PMIX_RANK", "2")]), Some(("PMIX_RANK", None)));
    assert_eq!(size(&[("JOB_COMPLETIONS", "5")]), Some(("JOB_COMPLETIONS", Some(5))));
    let step = [("SLURM_NTASKS", "8"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "2")];
    assert_eq!(
        size(&step),
        Some(("SLURM_STEP_NUM_TASKS", Some(2))),
        "a step may have fewer than its allocation"
    );
    let daemon = [step.as_slice(), &[("OMPI_COMM_WORLD_SIZE", "2")]].concat();
    assert_eq!(size(&daemon), Some(("OMPI_COMM_WORLD_SIZE", Some(2))));
    assert_eq!(size(&[("OMPI_COMM_WORLD_SIZE", "many")]), None);
}

#[test]
fn a_shell_of_a_slurm_allocation_is_not_a_launcher() {
    assert_eq!(launched_from(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "17")]), None);
}

#[test]
fn measuring_requires_that_all_started_processes_find_each_other() {
    let started = launched_from(&[("OMPI_COMM_WORLD_SIZE", "4")]);
    let refused = |world, has_mpi| check(started.as_ref(), world, has_mpi).err().unwrap_or_default();
    assert!(
        refused(1, false).contains("--features fleet") && refused(1, false).contains("started 4 processes")
    );
    assert!(refused(1, true).contains("another MPI") && refused(2, true).contains("2 of them"));
    assert!(refused(1, false).contains("env -u OMPI_COMM_WORLD_SIZE"));
    assert_eq!(refused(4, true), "");
    assert_eq!(check(launched_from(&[("OMPI_COMM_WORLD_SIZE", "1")]).as_ref(), 1, false), Ok(()));
    assert_eq!(check(None, 1, false), Ok(()));
    let pmix = launched_from(&[("PMIX_RANK", "0")]);
    assert!(check(pmix.as_ref(), 1, false).is_err());
    assert_eq!(check(pmix.as_ref(), 2, true), Ok(()));
}
