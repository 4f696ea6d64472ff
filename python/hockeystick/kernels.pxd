# For Cython: from hockeystick.kernels cimport theta
cdef double q(double x) noexcept nogil
cdef double log_q(double x) noexcept nogil
cdef double q_inv(double p) noexcept nogil
cdef double theta(double eps, double r) noexcept nogil
cdef double log_theta(double eps, double r) noexcept nogil
cdef double laplace_theta(double eps, double r) noexcept nogil
cdef double theta_inverse(double eps, double delta) noexcept nogil
cdef double gaussian_epsilon(double r, double delta) noexcept nogil
# n numbers at a time, vectorised; inputs and output may not overlap
cdef void q_batch(const double* x, double* out, size_t n) noexcept nogil
cdef void log_q_batch(const double* x, double* out, size_t n) noexcept nogil
cdef void q_inv_batch(const double* p, double* out, size_t n) noexcept nogil
cdef void theta_batch(const double* eps, const double* r, double* out, size_t n) noexcept nogil
cdef void log_theta_batch(const double* eps, const double* r, double* out, size_t n) noexcept nogil
cdef void laplace_theta_batch(const double* eps, const double* r, double* out, size_t n) noexcept nogil
