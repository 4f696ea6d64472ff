# For Cython: from hockeystick.kernels cimport theta
cdef double q(double x) noexcept nogil
cdef double log_q(double x) noexcept nogil
cdef double q_inv(double p) noexcept nogil
cdef double theta(double eps, double r) noexcept nogil
cdef double log_theta(double eps, double r) noexcept nogil
cdef double laplace_theta(double eps, double r) noexcept nogil
cdef double theta_inverse(double eps, double delta) noexcept nogil
cdef double gaussian_epsilon(double r, double delta) noexcept nogil
