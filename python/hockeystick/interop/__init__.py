"""Adapters: hockeystick behind the interfaces that other libraries' users know, one module a library.

`dp_accounting` (and the events of jax_privacy), `opacus`, `prv`, `flower`, `pfl`, `riskcal`. None imports the library that it is
named after unless it must: `events` reads dp_accounting's events by their structure, the accountants have the shape that
their hosts ask for. docs/switching.md shows the one line that changes.
"""
