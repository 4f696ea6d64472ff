//! 1000 steps of DP-SGD and one release with Laplace noise, by the C library. The standard library suffices.

use std::ffi::{c_char, CStr};
use std::ptr;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Bracket {
    lower: f64,
    upper: f64,
}

#[repr(C)]
struct HsAccountant {
    _private: [u8; 0],
}

const HS_ABI_VERSION: i32 = 1;
const HS_OK: i32 = 0;
const HS_ADD_OR_REMOVE: i32 = 0;

extern "C" {
    fn hs_abi_version() -> i32;
    fn hs_last_error_message() -> *const c_char;
    fn hs_accountant_create(adjacency: i32, out: *mut *mut HsAccountant) -> i32;
    fn hs_accountant_destroy(accountant: *mut HsAccountant);
    fn hs_accountant_laplace(accountant: *mut HsAccountant, noise_multiplier: f64, count: f64) -> i32;
    fn hs_accountant_poisson_gaussian(
        accountant: *mut HsAccountant,
        noise_multiplier: f64,
        sampling_rate: f64,
        count: f64,
    ) -> i32;
    fn hs_accountant_epsilon(accountant: *const HsAccountant, delta: *const f64, n: usize, out: *mut Bracket) -> i32;
}

/// The library's message, if a status is not HS_OK.
fn checked(status: i32) -> Result<(), String> {
    if status == HS_OK {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(hs_last_error_message()) }.to_string_lossy().into_owned())
}

/// An accountant, which ends with its scope.
struct Accountant(*mut HsAccountant);

impl Accountant {
    fn new() -> Result<Self, String> {
        let mut handle = ptr::null_mut();
        checked(unsafe { hs_accountant_create(HS_ADD_OR_REMOVE, &mut handle) })?;
        Ok(Accountant(handle))
    }

    fn poisson_gaussian(&mut self, noise_multiplier: f64, sampling_rate: f64, count: f64) -> Result<(), String> {
        checked(unsafe { hs_accountant_poisson_gaussian(self.0, noise_multiplier, sampling_rate, count) })
    }

    fn laplace(&mut self, noise_multiplier: f64, count: f64) -> Result<(), String> {
        checked(unsafe { hs_accountant_laplace(self.0, noise_multiplier, count) })
    }

    fn epsilon(&self, delta: f64) -> Result<Bracket, String> {
        let mut bracket = Bracket::default();
        checked(unsafe { hs_accountant_epsilon(self.0, &delta, 1, &mut bracket) })?;
        Ok(bracket)
    }
}

impl Drop for Accountant {
    fn drop(&mut self) {
        unsafe { hs_accountant_destroy(self.0) }
    }
}

fn main() -> Result<(), String> {
    if unsafe { hs_abi_version() } != HS_ABI_VERSION {
        return Err("this library has another ABI than the program was written for".to_string());
    }
    let mut training = Accountant::new()?;
    training.poisson_gaussian(1.1, 0.01, 1000.0)?;
    training.laplace(20.0, 1.0)?;
    let epsilon = training.epsilon(1e-5)?;
    println!("{} {}", epsilon.lower, epsilon.upper);
    println!("{}", training.laplace(-1.0, 1.0).unwrap_err());
    Ok(())
}
