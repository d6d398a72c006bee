//! The table of recipes: jobs with the I/O pattern of an application or an article.
//!
//! A recipe is a job file in `recipes/`, with its source in a comment. A limit that the source names is a `fail-if` condition.

/// A built-in job file.
#[derive(Debug)]
pub struct Recipe {
    /// Name on the command line, and of the file.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Text of the job file.
    pub text: &'static str,
}

const fn recipe(name: &'static str, about: &'static str, text: &'static str) -> Recipe {
    Recipe { name, about, text }
}

/// All recipes: applications first, then articles.
pub const RECIPES: &[Recipe] = &[
    recipe("etcd", "etcd's log: fdatasync after each 2300-byte write", include_str!("../recipes/etcd.toml")),
    recipe(
        "postgres-wal",
        "PostgreSQL's log: fdatasync after each 8 KiB block",
        include_str!("../recipes/postgres-wal.toml"),
    ),
    recipe(
        "postgres-pages",
        "PostgreSQL's pages: random 8 KiB reads, one after another",
        include_str!("../recipes/postgres-pages.toml"),
    ),
    recipe(
        "mysql",
        "InnoDB's pages: random 16 KiB reads, then writes, 4 threads",
        include_str!("../recipes/mysql.toml"),
    ),
    recipe(
        "kafka",
        "a Kafka broker: 8 threads append 16 KiB, buffered",
        include_str!("../recipes/kafka.toml"),
    ),
    recipe(
        "sqlite",
        "SQLite's log: fsync after each frame of one page",
        include_str!("../recipes/sqlite.toml"),
    ),
    recipe("backup", "a full backup: sequential 512 KiB writes", include_str!("../recipes/backup.toml")),
    recipe("video", "8K video: sequential writes at 90 MB/s", include_str!("../recipes/video.toml")),
    recipe(
        "vm-boot",
        "a booting virtual machine: random 8 KiB, 95 % reads",
        include_str!("../recipes/vm-boot.toml"),
    ),
    recipe("swap", "pages read back from swap: random 32 KiB", include_str!("../recipes/swap.toml")),
    recipe("ccsio", "article: bulk I/O with 8 buffers of 512 KiB", include_str!("../recipes/ccsio.toml")),
    recipe(
        "six-patterns",
        "article: six common patterns one after another",
        include_str!("../recipes/six-patterns.toml"),
    ),
    recipe(
        "bypass-cache",
        "article: random 8 KiB past the cache, 32 in flight",
        include_str!("../recipes/bypass-cache.toml"),
    ),
    recipe(
        "iops-threads",
        "article: random 4 KiB reads by 32 threads",
        include_str!("../recipes/iops-threads.toml"),
    ),
];

/// Finds a recipe by name.
pub fn find(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.name == name)
}
