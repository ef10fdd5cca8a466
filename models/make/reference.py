"""What other implementations are compared with, beside the weights.

reference.json: greedy tokens, margins and logits of the stored weights in float64, by transformers' own Llama on the CPU.
Greedy runs ignore the end token; first_eos_index says where a stop would have been. Texts are without special tokens.
vectors.json: texts, and the ids that the tokenizers library makes of them.
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


TEXTS = ["", " ", "a", "Hello, world!", "What is 12 + 30?", "Sort these numbers: 7, 3, 9", "Spell 'river' backwards.", "r e v i r", "1234567890", "3.14 and -15, 2:30", "it's we'll I'd they've don't 'tis o'clock 's'", "IT'S",
         "  two  spaces   three", "trailing   ", "tab\tand\ttabs\t\t", "line\nline\n\nline\r\n \n  indented", "\n", "{\"name\": \"Zoë Åberg\", \"age\": 41, \"info\": {\"city\": \"Málaga\"}}", "Zoë, José, Øyvind, Łódź, Ångström", "Zoe\u0308 (two code points)", "naïve café", "ALL CAPITALS ÀÉÎ",
         "日本語とEnglish", "Привет, мир", "שלום", "emoji 😀👍🏽👩‍👩‍👧", "…—“quotes”„", "½ ² ٣ Ⅷ", "\u00a0no-break\u2003em", "a\u0000b", "x" * 70, "unbelievable antidisestablishmentarianism", "<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n",
         "<|im_end|><|im_end|> <|im_start|>", "<|im_start", "Once upon a time there was a fox named Ada who lived in a small house by the river in Larkhill."]


def write_vectors(name: str) -> None:
    tokenizer = load_tokenizer()
    encoded = [(text, tokenizer.encode(text).ids) for text in TEXTS]
    vectors = [{"text": text, "ids": ids, "add_special_tokens": True, "decoded": tokenizer.decode(ids, skip_special_tokens=False), "source": "tokenizers"} for text, ids in encoded]
    (MODELS / name / "vectors.json").write_text(json.dumps(vectors) + "\n")


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
        return {"prompt": render(prompt), "prompt_ids": ids, "greedy_ids": out, "margins": margins, "text": tokenizer.decode(out), "full_text": tokenizer.decode(ids + out),
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
    write_vectors(name)
    print(f"{name}: reference written; smallest margin {min(g['min_top1_top2_margin'] for g in made)}", file=sys.stderr)


if __name__ == "__main__":
    for n in sys.argv[1:] or ("rill", "rill-draft"):
        write(n)
