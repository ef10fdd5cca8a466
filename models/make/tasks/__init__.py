"""One module a family of tasks. Each has TASKS: name -> function(rng, want_held) -> Sample."""
