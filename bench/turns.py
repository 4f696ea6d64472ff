"""Timing what is compared: everybody takes turns, so that a noisy neighbour disturbs all of them; and the tables that are printed."""

import time

SHORTEST_SAMPLE = 5e-3  # seconds: short calls are repeated, so that the clock does not count


def take_turns(calls, rounds, clock=time.process_time):
    """Return the seconds per call of each in every round, after one call of each to warm the code up."""

    def sample(call, repeats):
        start = clock()
        for _ in range(repeats):
            call()
        return (clock() - start) / repeats

    repeats = {name: max(1, round(SHORTEST_SAMPLE / max(sample(call, 1), 1e-9))) for name, call in calls.items()}
    seconds = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            seconds[name].append(sample(call, repeats[name]))
    return seconds


def table(header, rows):
    """Return a table in Markdown; what has no value is empty, and all but the first column stands to the right."""
    lines = (header, ["---", *["--:"] * (len(header) - 1)], *rows)
    return "\n".join(f"| {' | '.join('' if one is None else str(one) for one in line)} |" for line in lines)
