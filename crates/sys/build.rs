//! Builds what is not Rust: the C++ streams, where the feature `cxx` asks for them.

fn main() {
    #[cfg(feature = "cxx")]
    {
        println!("cargo::rerun-if-changed=src/fstream.cc");
        cc::Build::new().cpp(true).std("c++17").file("src/fstream.cc").compile("fathom_fstream");
    }
}
