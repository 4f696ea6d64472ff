// HOCKEYSTICK_LIB is the folder of the C library: `pkg-config --variable=libdir hockeystick`.
fn main() {
    let folder = std::env::var("HOCKEYSTICK_LIB").expect("set HOCKEYSTICK_LIB to the folder of libhockeystick_c");
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=dylib=hockeystick_c");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    println!("cargo:rerun-if-env-changed=HOCKEYSTICK_LIB");
}
