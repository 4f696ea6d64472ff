"""Adapters: hockeystick behind the interfaces that other libraries' users know, one module a library.

`dp_accounting` (and jax_privacy, whose events are its), `opacus`, `opake`, `prv`, `flower`, `pfl`, `riskcal`; `numba` for the kernels inside
``@njit``. docs/project/switching.md shows the one line that changes. No module imports the library it is named after, but
`dp_accounting`, whose base class it needs, and `numba`; `events` reads dp_accounting's events without it.
"""
