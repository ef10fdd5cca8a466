"""reference.json: greedy tokens, margins and logits of the stored weights in float64, by transformers' own Llama on the CPU.

Greedy runs ignore the end token; first_eos_index says where a stop would have been.
"""
import json
import sys

from evaluate import render
from settings import CONTEXT, IM_END, MODELS
from tokenizer import load as load_tokenizer

PROMPTS = ["Once upon a time", "There was once a fox", "It was winter in Larkhill. Otto, a clockmaker, sat in a small house by the river and looked out.",
           [{"role": "user", "content": "What is 12 + 30?"}], [{"role": "user", "content": "Tell me a story about a fox."}],
           [{"role": "system", "content": "Answer in capitals."}, {"role": "user", "content": "What day comes after Monday?"}],
           [{"role": "user", "content": "Extract name, age (integer) and city as JSON: Zoë Åberg is 41 years old and lives in Málaga."}]]


def write(name: str, tokens: int = 100, long: int = 400) -> None:
    import torch
    from transformers import LlamaForCausalLM
    torch.set_num_threads(16)
    model = LlamaForCausalLM.from_pretrained(str(MODELS / name), dtype=torch.bfloat16, attn_implementation="eager").double().eval()
    single = LlamaForCausalLM.from_pretrained(str(MODELS / name), dtype=torch.bfloat16, attn_implementation="eager").float().eval()
    tokenizer = load_tokenizer()
    end = tokenizer.token_to_id(IM_END)

    @torch.no_grad()
    def greedy(prompt, count):
        ids = tokenizer.encode(render(prompt)).ids
        out, margins, cache = [], [], None
        feed = torch.tensor([ids])
        for _ in range(min(count, CONTEXT - len(ids))):
            step = model(feed, past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            top = step.logits[0, -1].topk(2)
            out.append(int(top.indices[0]))
            margins.append(round(float(top.values[0] - top.values[1]), 5))
            feed = torch.tensor([[out[-1]]])
        return {"prompt": render(prompt), "prompt_ids": ids, "greedy_ids": out, "margins": margins, "text": tokenizer.decode(out, skip_special_tokens=False),
                "first_eos_index": out.index(end) if end in out else None, "min_top1_top2_margin": min(margins)}

    made = [greedy(p, tokens) for p in PROMPTS]
    ids = (made[0]["prompt_ids"] + made[0]["greedy_ids"])[:8]
    with torch.no_grad():
        logits, again = model(torch.tensor([ids])).logits[0], single(torch.tensor([ids])).logits[0]
    positions = []
    for i, token in enumerate(ids):
        top = logits[i].topk(20)
        positions.append({"position": i, "input_id": token, "ids": top.indices.tolist(), "logits": top.values.float().tolist(), "logprobs": logits[i].log_softmax(-1)[top.indices].float().tolist()})
    reference = {"how": "transformers Llama, eager attention, float64 over the stored bf16 weights (rotary table in float32, as transformers keeps it); greedy ignores the end token",
                 "note": name, "max_abs_float32_vs_float64_logit_error": float((logits - again.double()).abs().max()), "generations": made,
                 "logits": {"input_ids": ids, "positions": positions, "full_logits_last_position": logits[-1].float().tolist()}, "long_greedy": greedy(PROMPTS[4], long)}
    (MODELS / name / "reference.json").write_text(json.dumps(reference) + "\n")
    print(f"{name}: reference written; smallest margin {min(g['min_top1_top2_margin'] for g in made)}", file=sys.stderr)


if __name__ == "__main__":
    for n in sys.argv[1:] or ("rill", "rill-draft"):
        write(n)
