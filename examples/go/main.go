// 1000 steps of DP-SGD and one release with Laplace noise, by the C library through cgo.
package main

/*
#cgo pkg-config: hockeystick
#include <hockeystick/c_api.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"log"
	"runtime"
	"strconv"
)

// call runs f on one thread, because the library keeps a message for each thread.
func call(f func() C.hs_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if f() != C.HS_OK {
		return errors.New(C.GoString(C.hs_last_error_message()))
	}
	return nil
}

func shortest(x C.double) string { return strconv.FormatFloat(float64(x), 'g', -1, 64) }

func run() error {
	if C.hs_abi_version() != C.HS_ABI_VERSION {
		return errors.New("this library has another ABI than its header")
	}
	var training *C.hs_accountant
	if err := call(func() C.hs_status { return C.hs_accountant_create(C.HS_ADD_OR_REMOVE, &training) }); err != nil {
		return err
	}
	defer C.hs_accountant_destroy(training)
	steps := func() C.hs_status { return C.hs_accountant_poisson_gaussian(training, 1.1, 0.01, 1000) }
	release := func() C.hs_status { return C.hs_accountant_laplace(training, 20, 1) }
	delta, epsilon := C.double(1e-5), C.hs_bracket{}
	ask := func() C.hs_status { return C.hs_accountant_epsilon(training, &delta, 1, &epsilon) }
	for _, step := range []func() C.hs_status{steps, release, ask} {
		if err := call(step); err != nil {
			return err
		}
	}
	fmt.Println(shortest(epsilon.lower), shortest(epsilon.upper))
	fmt.Println(call(func() C.hs_status { return C.hs_accountant_laplace(training, -1, 1) }))
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
