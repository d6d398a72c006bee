//! Compiles the C++ streams (`fstream.cc`) if the feature `cxx` is on.

fn main() {
    #[cfg(feature = "cxx")]
    {
        println!("cargo::rerun-if-changed=src/fstream.cc");
        cc::Build::new().cpp(true).std("c++17").file("src/fstream.cc").compile("fathom_fstream");
    }
}
