"""Tasks with a graded spread of pass rates, one right answer per prompt, and a warm-up that sets the spread."""

from .chain import Chain
from .ladder import Ladder
from .mode import Mode
from .recall import Recall
from .task import Prompts, Task

# Regimes of the tables: a task, and whether prompts are visited again.
TASKS: dict[str, Task] = {
    "mode": Mode((0.008, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9)),
    "mode_2048": Mode((0.008, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9), num_prompts=2048),
    "saturated": Mode((0.015, 0.03) + (0.97,) * 6),
    "ladder": Ladder(),
    "chain": Chain(),
    "recall": Recall(),
}

__all__ = ["TASKS", "Chain", "Ladder", "Mode", "Prompts", "Recall", "Task"]
