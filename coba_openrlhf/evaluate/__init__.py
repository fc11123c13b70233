"""``python -m coba_openrlhf.evaluate``: a model on benchmarks, with the engines and the code of training."""
