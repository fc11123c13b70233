"""What a reader of a replay must know about its log and its rules, one line each."""

from collections.abc import Sequence

from .log import Log
from .replayed import Replayed
from .rule import STRATEGY, Family, RunOptions

_MOST_WARNINGS = 3


def log_notes(log: Log, options: RunOptions) -> list[str]:
    """What the log lacks."""
    notes = []
    if log.steps[0].step > 1:
        notes.append(f"The log begins at step {log.steps[0].step}: rules start there without knowing any prompt.")
    if not log.is_contiguous:
        notes.append("Steps of the log are missing: what happened in them is not known to the rules.")
    if log.missing:
        notes.append(f"The log of an older version lacks {', '.join(log.missing)}: filled with what can be known.")
    if options.absent:
        notes.append(
            f"config.yaml of an older version lacks {len(options.absent)} options, taken at the values that change "
            f"nothing: {_some(options.absent)}."
        )
    if options.unknown:
        notes.append(f"config.yaml has options that this version does not know: {_some(options.unknown)}.")
    if options.config.success_rule == "score":
        notes.append("Scores are graded: a score counts as that much of a success, so the shares are approximate.")
    return notes


def rule_notes(replayed: Sequence[Replayed], families: Sequence[Family]) -> list[str]:
    """What happened to the rules; what happened to several is told once."""
    rules_of: dict[str, list[str]] = {}
    for rule in replayed:
        num_fallback = int((rule.columns["fallback"] == 1).sum())
        is_fallback = num_fallback and rule.options.get(STRATEGY) != "uniform"
        texts = [f"budgets were uniform in {num_fallback} steps (coba.fallback_steps)."] if is_fallback else []
        texts += rule.warnings[:_MOST_WARNINGS]
        if len(rule.warnings) > _MOST_WARNINGS:
            texts.append(f"{len(rule.warnings) - _MOST_WARNINGS} more warnings")
        for text in texts:
            rules_of.setdefault(text, []).append(rule.label)
    notes = [f"{_some(labels)}: {text}" for text, labels in rules_of.items()]
    if any(len(family.grid) > 2 for family in families):
        notes.append("A grid of more than two options has no picture.")
    return notes


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
