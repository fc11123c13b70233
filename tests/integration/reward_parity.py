"""A reward that an untrained model meets about half of the time, so that groups are mixed."""


def reward_func(queries, prompts, labels):
    scores = [float(sum(map(ord, query)) % 2) for query in queries]
    return {"rewards": scores, "scores": scores, "extra_logs": {"parity": scores}}
