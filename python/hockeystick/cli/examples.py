"""The examples in the help of every command; a test parses each of them."""

from __future__ import annotations

import argparse

EXAMPLES: dict[str, tuple[str, ...]] = {
    "epsilon": (
        "epsilon --records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5",
        "epsilon --records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5 --sampling unknown",
        "epsilon --noise-multiplier 1 --sampling-rate 256/60000 --steps 1e4 --delta 1e-5",
    ),
    "delta": (
        "delta --records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --epsilon 1",
        "delta --noise-multiplier 2 --steps 4 --epsilon 1",
    ),
    "calibrate": (
        "calibrate --records 60000 --batch-size 256 --epochs 15 --epsilon 1 --delta 1e-5",
        "calibrate --target steps --records 60000 --batch-size 256 --noise-multiplier 1.1 --epsilon 2 --delta 1e-5",
        "calibrate --target rounds --clients 1000 --local-steps 5 --clip-norm 1 --learning-rate 0.1 --noise-std 1 --epsilon 2 --delta 1e-5",
    ),
    "plan": (
        "plan --silos 25 --records 99 --dimension 50 --lipschitz 1 --diameter 2 --smoothness 1 --epsilon 2 --delta 1e-6 --rounds 500",
    ),
    "simulate": ("simulate examples/training/digits.toml -o rounds.parquet",),
    "plot": (
        "plot epsilon --records 60000 --batch-size 256 --epochs 15 --noise-multiplier 1.1 --delta 1e-5 --budget 2 -o epsilon.png",
        "plot trade-off --noise-multiplier 1 --sampling-rate 0.01 --steps 1000 -o attacks.svg",
    ),
    "figures": ("figures 002/2 -o figures",),
    "demo": ("demo -o demo.svg",),
    "completion": ("completion bash > ~/.local/share/bash-completion/completions/hockeystick",),
    "sweep run": ("sweep run examples/dpsgd_grid.toml -o out",),
    "sweep plot": ("sweep plot out --x steps --y noise_multiplier",),
    "sweep report": ("sweep report out -o report.html",),
    "sweep best": ("sweep best out --where 'epsilon <= 2' --maximise steps",),
    "sweep merge": ("sweep merge out share_1 share_2",),
    "sweep functions": ("sweep functions",),
    "sweep describe": ("sweep describe dpsgd_epsilon",),
    "sweep init": ("sweep init plan.toml --function dpsgd_epsilon",),
}


class Help(argparse.HelpFormatter):
    """Argparse's help, in which a line that begins with two blanks stays as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = super()._fill_text
        return "\n".join(
            indent + line if line.startswith("  ") else filled(line, width, indent) for line in text.splitlines()
        )


def add_examples(parser: argparse.ArgumentParser, program: str = "", command: str = "") -> None:
    """Add the examples to the help of a command and of those below it."""
    program = program or parser.prog
    lines = EXAMPLES.get(command, ())
    if lines:
        heading = "examples:" if len(lines) > 1 else "example:"
        parts = [parser.epilog, heading, *(f"  {program} {line}" for line in lines)]
        parser.epilog = "\n".join(filter(None, parts)).replace("%", "%%")
        parser.formatter_class = Help
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                add_examples(below, program, f"{command} {name}".strip())
