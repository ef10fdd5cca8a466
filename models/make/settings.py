"""Every number of a training run in one place."""
import json
import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent                                   # models/
WORK = Path(os.environ.get("RILL_WORK", "/tmp/rill"))  # shards and checkpoints; nothing of it is kept

SEED = 71423
HELDOUT_SEED = 38117             # of the prompts alone: another one gives others, none of which training saw either
CONTEXT = 2048
VOCAB = 4096
IM_START, IM_END = "<|im_start|>", "<|im_end|>"
CHATML = r"{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

SHAPES = {
    "rill": dict(hidden_size=384, num_hidden_layers=8, num_attention_heads=6, num_key_value_heads=2, intermediate_size=640),
    "rill-draft": dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, intermediate_size=384),
}
ROWS = 64                        # rows of CONTEXT tokens a step
SHARD_ROWS = 4096                # rows a shard
STEPS = {"rill": 14000, "rill-draft": 2000, "finish": 5000}
FINISH_RATE = 0.5                # of the learning rates, where stored weights are taken up again
WARMUP = 200
DECAY = 0.6                      # the last 60 % of the steps bring the learning rate down to zero
MUON_RATE = {"rill": 0.02, "rill-draft": 0.02}
ADAM_RATE = {"rill": 3e-3, "rill-draft": 6e-3}
TASK_WEIGHT = 5                  # a token of a short answer counts as much as this many tokens of a story
WORKERS = max(1, (os.cpu_count() or 2) - 2)
TOKENIZER_DOCUMENTS = 120_000

# a rehearsal sets some of these from outside: RILL_SET='{"STEPS": {"rill": 100, "rill-draft": 50}}'
globals().update(json.loads(os.environ.get("RILL_SET", "{}")))
