"""Answers the held-out prompts with PyTorch, through transformers' Llama over the stored bf16 weights; result lines for score.py.

Also how often the draft's greedy choice is rill's, on the answers of held-out conversations.
"""
import json
import random
import sys

import mixture
import score
from settings import HELDOUT_SEED, IM_END, IM_START, MODELS, WORK
from tokenizer import Encoder


def render(given) -> str:
    if isinstance(given, str):
        return given
    return "".join(f"{IM_START}{m['role']}\n{m['content']}{IM_END}\n" for m in given) + f"{IM_START}assistant\n"


def load(name: str):
    import torch
    from transformers import LlamaForCausalLM
    return LlamaForCausalLM.from_pretrained(str(MODELS / name), dtype=torch.bfloat16).float().cuda().eval()


def answer(model, requests: list[dict], batch: int = 500):
    """Result lines, in batches of prompts of like length, padded on the left."""
    import torch
    encoder = Encoder()
    end = encoder.end
    torch.manual_seed(HELDOUT_SEED)
    work = sorted(((encoder.tokenizer.encode(render(r["input"])).ids, r) for r in requests), key=lambda x: (x[1]["max_tokens"], x[1]["temperature"], len(x[0])))
    at = 0
    while at < len(work):
        how_many, heat = work[at][1]["max_tokens"], work[at][1]["temperature"]
        part = [w for w in work[at:at + batch] if (w[1]["max_tokens"], w[1]["temperature"]) == (how_many, heat)]
        at += len(part)
        longest = max(len(ids) for ids, _ in part)
        ids = torch.tensor([[end] * (longest - len(x)) + x for x, _ in part]).cuda()
        mask = torch.tensor([[0] * (longest - len(x)) + [1] * len(x) for x, _ in part]).cuda()
        temperature, limit = part[0][1]["temperature"], min(part[0][1]["max_tokens"], 2048 - longest)
        how = dict(do_sample=True, temperature=temperature, top_k=0, top_p=1.0) if temperature else dict(do_sample=False, temperature=None, top_p=None, top_k=None)
        with torch.no_grad():
            out = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=limit, eos_token_id=end, pad_token_id=end, **how)[:, longest:].tolist()
        for (_, request), new in zip(part, out):
            stopped = end in new
            text = encoder.tokenizer.decode(new[:new.index(end)] if stopped else new, skip_special_tokens=False)
            yield {"id": request["id"], "text": text, "finish_reason": "stop" if stopped else "length"}


def agreement(rill, draft, count: int = 1500) -> dict[str, float]:
    """Share of answer tokens on which both choose the same, teacher-forced, over held-out documents of every task by its weight."""
    import torch
    rng = random.Random(HELDOUT_SEED + 1)
    encoder = Encoder()
    names, shares = list(mixture.WEIGHTS), list(mixture.WEIGHTS.values())
    same = {True: 0, False: 0}
    total = {True: 0, False: 0}
    samples = [mixture.TASKS[rng.choices(names, shares)[0]](rng, True) for _ in range(count)]
    documents = sorted(((ids, w, len(ids) > 300) for ids, w in encoder.encode(samples, lambda n: 1)), key=lambda d: len(d[0]))
    for i in range(0, len(documents), 50):
        part = documents[i:i + 50]
        longest = max(len(d[0]) for d in part)
        ids = torch.tensor([d[0] + [encoder.end] * (longest - len(d[0])) for d in part]).cuda()
        goal = torch.tensor([d[1] + [0] * (longest - len(d[1])) for d in part]).cuda()[:, 1:] > 0
        with torch.no_grad():
            equal = rill(ids).logits.argmax(-1)[:, :-1] == draft(ids).logits.argmax(-1)[:, :-1]
        for row, d in enumerate(part):
            same[d[2]] += int((equal[row] & goal[row]).sum())
            total[d[2]] += int(goal[row].sum())
    return {"draft agrees: all": 100 * sum(same.values()) / sum(total.values()), "draft agrees: stories and long texts": 100 * same[True] / max(1, total[True]), "draft agrees: short answers": 100 * same[False] / max(1, total[False])}


def evaluate(stories: int = 1000, with_draft: bool = True) -> None:
    folder = score.Path(__file__).resolve().parent / "heldout"
    requests = [json.loads(line) for line in open(folder / "questions.jsonl")] + [json.loads(line) for line in open(folder / "stories.jsonl")][:stories]
    answers = [json.loads(line) for line in open(folder / "answers.jsonl")]
    rill = load("rill")
    results = {}
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "results.jsonl", "w") as f:
        for r in answer(rill, requests):
            results[r["id"]] = r
            f.write(json.dumps(r) + "\n")
    table = score.score(answers, results, show=10)
    if with_draft:
        table |= agreement(rill, load("rill-draft"))
    for task, value in table.items():
        print(f"| {task} | {value:.1f} |")


if __name__ == "__main__":
    evaluate(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
