"""``python -m coba_openrlhf.compare``: runs, or evaluations, against each other."""
