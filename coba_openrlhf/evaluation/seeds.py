"""Seeds of single responses."""

import hashlib


def request_seed(seed: int, prompt_id: str, index: int) -> int:
    """Seed of response ``index`` to a problem, in [0, 2**62): it depends on nothing else.

    So a response does not change with the order of the problems, with what is generated beside it, or with the
    engine that generates it (up to rounding: see docs/evaluation.md).
    """
    digest = hashlib.sha256(f"{seed}\n{prompt_id}\n{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2
