#!/usr/bin/env python3
"""The share of answers that loop, by settings: what penalties and DRY are worth on prompts that invite loops.

    weir serve --model m=models/rill
    tests/bench/sample/loops.py http://127.0.0.1:8080 0,1

The list has the model's stop ids, which are forbidden: an answer that may not end goes on.
A prompt is a sentence, three times. An answer loops where the same 1 to 64 tokens come eight times in a row
within its first 256 tokens: the server ends it there (max_repeats), so that it has fewer tokens.
"""
import concurrent.futures
import json
import sys
import urllib.request

SENTENCES = [
    "The river runs to the sea.", "I do not know what to say.", "She said that she would come back.",
    "Once more, and then again.", "The answer is the same as before.", "He counted: one, two, three.",
    "It rained all day and all night.", "Please read the manual first.", "We waited, and nobody came.",
    "A house, a tree, a garden.", "The end of the story is near.", "Water is made of hydrogen and oxygen.",
    "Open the door and close the door.", "The king was old and tired.", "Every day is like the other.",
    "This is a list of things to do:", "Do you hear me?", "The train leaves at nine.",
    "All work and no play.", "Nothing happened, and nothing changed.",
]
SETTINGS = {
    "nothing": {},
    "repetition_penalty 1.1": {"repetition_penalty": 1.1},
    "frequency_penalty 0.5": {"frequency_penalty": 0.5},
    "dry_multiplier 0.8": {"dry_multiplier": 0.8},
    "no_repeat_ngram_size 4": {"no_repeat_ngram_size": 4},
}
TOKENS, SEEDS = 256, 5
STOP_IDS = [int(i) for i in sys.argv[2].split(",")]


def loops(url, sentence, seed, temperature, fields):
    body = {"prompt": " ".join([sentence] * 3), "max_tokens": TOKENS, "temperature": temperature,
            "seed": seed, "top_p": 1, "top_k": 0, "ignore_eos": True, "max_repeats": 8,
            "disallow_tokens": STOP_IDS, **fields}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["usage"]["completion_tokens"] < TOKENS


def main():
    url = sys.argv[1]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        print("| | " + " | ".join(f"temperature {t}" for t in (0, 0.7, 1)) + " |\n|---|---|---|---|")
        for name, fields in SETTINGS.items():
            shares = []
            for temperature in (0, 0.7, 1):
                seeds = range(SEEDS if temperature else 1)
                found = list(pool.map(lambda a: loops(url, *a, temperature, fields),
                                      [(s, seed) for s in SENTENCES for seed in seeds]))
                shares.append(f"{100 * sum(found) / len(found):.0f} %")
            print(f"| {name} | " + " | ".join(shares) + " |", flush=True)


main()
