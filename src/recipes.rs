//! The table of recipes: jobs with the I/O pattern of an application or an article.
//!
//! A recipe is a job file in `recipes/`, with its source in a comment. A limit that the source names is a `fail-if` condition.

/// A built-in job file.
#[derive(Debug)]
pub struct Recipe {
    /// Name on the command line, and name of the job file.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Text of the job file.
    pub text: &'static str,
}

macro_rules! recipe {
    ($name:literal, $about:literal) => {
        Recipe { name: $name, about: $about, text: include_str!(concat!("../recipes/", $name, ".toml")) }
    };
}

/// All recipes: applications first, then articles.
#[rustfmt::skip]
pub const RECIPES: &[Recipe] = &[
    recipe!("etcd",           "etcd's log: fdatasync after each 2300-byte write"),
    recipe!("postgres-wal",   "PostgreSQL's log: fdatasync after each 8 KiB block"),
    recipe!("postgres-pages", "PostgreSQL's pages: random 8 KiB reads, one after another"),
    recipe!("mysql",          "InnoDB's pages: random 16 KiB reads, then writes, 4 threads"),
    recipe!("kafka",          "a Kafka broker: 8 threads append 16 KiB, buffered"),
    recipe!("sqlite",         "SQLite's log: fsync after each frame of one page"),
    recipe!("backup",         "a full backup: sequential 512 KiB writes"),
    recipe!("video",          "8K video: sequential writes at 90 MB/s"),
    recipe!("vm-boot",        "a booting virtual machine: random 8 KiB, 95 % reads"),
    recipe!("swap",           "pages read back from swap: random 32 KiB"),
    recipe!("ccsio",          "article: bulk I/O with 8 buffers of 512 KiB"),
    recipe!("six-patterns",   "article: six common patterns one after another"),
    recipe!("bypass-cache",   "article: random 8 KiB past the cache, 32 in flight"),
    recipe!("iops-threads",   "article: random 4 KiB reads by 32 threads"),
];
