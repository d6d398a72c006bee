//! `fathom recipe`: its flags, and the table of recipes.
//!
//! A recipe is a job with a question, which stands for an application or an article. Its content is a job file in
//! `recipes/` with its source. A source that names a limit is a `fail-if` condition.

use crate::cli::shared_flags::{InconclusiveArgs, LiveArgs, Measuring, OUTPUT, ShowingArgs};
use crate::cli::{run, shared_flags};
use crate::failure::Failure;
use crate::request::{JobSource, Request, Work};
use crate::show::Showing;
use crate::stdout;
use clap::Arg;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::gate::Condition;
use std::path::PathBuf;

/// Run the I/O pattern of an application: a job file with its source, and the limit that the source names.
///
/// Without a NAME all recipes are listed. Where the source names a limit, the report begins with PASS, FAIL or INCONCLUSIVE: PASS
/// where the number is within the limit with 95 % confidence. --explain prints the job file, which is also what to begin
/// a job file of your own with.
#[derive(clap::Args, Debug)]
#[command(mut_args(of_a_recipe))]
pub struct Args {
    /// Which one [default: list them]
    #[arg(value_parser = names())]
    name: Option<&'static Recipe>,
    /// Directory, file or block device [default: the current directory]
    #[arg(value_parser = shared_flags::parser())]
    target: Option<PathBuf>,
    #[command(flatten)]
    measuring: Measuring,
    /// Print the job file with its source, and what would be measured, with the origin of every setting, and stop
    #[arg(long, help_heading = OUTPUT)]
    explain: bool,
    #[command(flatten)]
    inconclusive: InconclusiveArgs,
    #[command(flatten)]
    showing: ShowingArgs,
    #[command(flatten)]
    live: LiveArgs,
}

/// Makes a flag require a recipe's name: the list measures nothing.
fn of_a_recipe(arg: Arg) -> Arg {
    if arg.get_id() == "name" { arg } else { arg.requires("name") }
}

fn names() -> impl TypedValueParser<Value = &'static Recipe> {
    let values = RECIPES.iter().map(|r| PossibleValue::new(r.name).help(r.about));
    PossibleValuesParser::new(values)
        .try_map(|name| find(&name).ok_or_else(|| format!("there is no recipe {name}")))
}

impl Args {
    /// Returns the request; `None` after printing the list.
    ///
    /// # Errors
    /// A usage failure that names the flag.
    pub fn request(self) -> Result<Option<(Request, Showing)>, Failure> {
        let Some(recipe) = self.name else {
            stdout::text(&list())?;
            return Ok(None);
        };
        let given = self.measuring.typed_keys().to_vec();
        let mut request = self.measuring.request(Work::Job, self.target);
        let source = JobSource::Recipe(recipe);
        let job = dialect::job::parse(&source.name(), recipe.text, crate::plan::problems);
        run::take(&mut request, &given, source, job.map_err(|trouble| run::pointed(&trouble))?)?;
        Ok(Some((request, self.live.with(self.showing.gated(self.explain, &self.inconclusive)?))))
    }
}

/// Two lines for each recipe: its question, and its condition.
fn list() -> String {
    let width = RECIPES.iter().map(|r| r.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for recipe in RECIPES {
        out += &format!("{:width$}  {}\n", recipe.name, recipe.about);
        let conditions = conditions(recipe);
        if !conditions.is_empty() {
            out += &format!("{:width$}  fails if {}\n", "", conditions.join(" or "));
        }
    }
    out
}

/// The conditions as typed.
fn conditions(recipe: &Recipe) -> Vec<String> {
    let job = dialect::job::parse(recipe.name, recipe.text, crate::plan::problems).ok();
    let given = job.and_then(|job| job.fail_if).unwrap_or_default();
    given.iter().map(Condition::to_flag).collect()
}

/// A job file of fathom, and its question.
#[derive(Debug)]
pub struct Recipe {
    /// Its name on the command line, and of its file.
    pub name: &'static str,
    /// Its question, in a line.
    pub about: &'static str,
    /// The job file.
    pub text: &'static str,
}

const fn recipe(name: &'static str, about: &'static str, text: &'static str) -> Recipe {
    Recipe { name, about, text }
}

/// All recipes: applications first, then articles.
pub const RECIPES: &[Recipe] = &[
    recipe(
        "etcd",
        "etcd's log: fdatasync after each 2300-byte write",
        include_str!("../../recipes/etcd.toml"),
    ),
    recipe(
        "postgres-wal",
        "PostgreSQL's log: fdatasync after each 8 KiB block",
        include_str!("../../recipes/postgres-wal.toml"),
    ),
    recipe(
        "postgres-pages",
        "PostgreSQL's pages: random 8 KiB reads, one after another",
        include_str!("../../recipes/postgres-pages.toml"),
    ),
    recipe(
        "mysql",
        "InnoDB's pages: random 16 KiB reads, then writes, 4 threads",
        include_str!("../../recipes/mysql.toml"),
    ),
    recipe(
        "kafka",
        "a Kafka broker: 8 threads append 16 KiB, buffered",
        include_str!("../../recipes/kafka.toml"),
    ),
    recipe(
        "sqlite",
        "SQLite's log: fsync after each frame of one page",
        include_str!("../../recipes/sqlite.toml"),
    ),
    recipe("backup", "a full backup: sequential 512 KiB writes", include_str!("../../recipes/backup.toml")),
    recipe(
        "video",
        "8K video: sequential writes that keep up 90 MB/s",
        include_str!("../../recipes/video.toml"),
    ),
    recipe(
        "vm-boot",
        "a virtual machine that boots: random 8 KiB, 95 % reads",
        include_str!("../../recipes/vm-boot.toml"),
    ),
    recipe("swap", "pages back from swap: random 32 KiB reads", include_str!("../../recipes/swap.toml")),
    recipe("ccsio", "article: bulk I/O with 8 buffers of 512 KiB", include_str!("../../recipes/ccsio.toml")),
    recipe(
        "six-patterns",
        "article: six common patterns one after another",
        include_str!("../../recipes/six-patterns.toml"),
    ),
    recipe(
        "bypass-cache",
        "article: random 8 KiB past the cache, 32 in flight",
        include_str!("../../recipes/bypass-cache.toml"),
    ),
    recipe(
        "iops-threads",
        "article: random 4 KiB reads by 32 threads",
        include_str!("../../recipes/iops-threads.toml"),
    ),
];

/// Finds a recipe by name.
pub fn find(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.name == name)
}

#[test]
fn every_recipe_is_a_job_with_a_source() {
    for recipe in RECIPES {
        let job = dialect::job::parse(recipe.name, recipe.text, crate::plan::problems);
        let job = job.unwrap_or_else(|trouble| panic!("{trouble}"));
        let problems = job.check();
        assert!(problems.is_empty(), "{}: {problems:?}", recipe.name);
        assert!(job.name.is_some(), "{}: its results have a name", recipe.name);
        assert!(recipe.text.contains("\n# Source: http"), "{}", recipe.name);
        // The command line of a recipe cannot set targets of streams, so the recipe must not need it to.
        assert!(job.phases.iter().flat_map(|p| &p.streams).all(|s| s.target.is_empty()), "{}", recipe.name);
    }
    let mut names: Vec<&str> = RECIPES.iter().map(|r| r.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RECIPES.len(), "no name is there twice");
}

#[test]
fn the_list_fits_a_terminal() {
    assert!(list().lines().all(|line| line.chars().count() <= 80), "{}", list());
    assert!(list().contains("fails if sync.p99>10ms"), "{}", list());
}
