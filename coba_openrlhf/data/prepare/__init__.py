"""``python -m coba_openrlhf.data.prepare``: public data sets in one shape.

specs ─> local file (--from) or Hugging Face hub ─> normalise ─> NAME.parquet, NAME.source.json
"""
