"""The story grammar: who and where (world.py), what happens (plots_*.py), how it is told (telling.py)."""
