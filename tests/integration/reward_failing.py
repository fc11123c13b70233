"""A reward that works for the first step and then raises, as a user's mistake would."""

import threading

LOCK = threading.Lock()
CALLS = []


def reward_func(queries, prompts, labels):
    with LOCK:
        CALLS.append(queries)
        if len(CALLS) > 8:
            raise KeyError("the answer column is missing")
    return {"rewards": [float(len(CALLS) % 2)], "scores": [float(len(CALLS) % 2)]}
