"""Ray actors: allocator, vLLM engines, DeepSpeed policy and reference ranks."""
