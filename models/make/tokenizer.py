"""Byte-level BPE of 4096 tokens, trained on the corpus itself. Digits stand alone."""
import json
import sys

import mixture
from settings import CHATML, CONTEXT, IM_END, IM_START, MODELS, SEED, TOKENIZER_DOCUMENTS, VOCAB, WORKERS

# A word may take one space before it and nothing else, so that 'planet' in quotes is the same word; the letters after an
# apostrophe are cut off only where the word ends there.
SPLIT = r"'(?:s|t|re|ve|m|ll|d)(?!\p{L})| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s*[\r\n]+|\s+(?!\S)|\s+"


def _texts(job: tuple[int, int]) -> list[str]:
    return [text for s in mixture.documents(*job) for text in ([s.text] if s.text else [m["content"] for m in s.messages])]


def train() -> None:
    from concurrent.futures import ProcessPoolExecutor

    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=[IM_START, IM_END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    jobs = [(SEED * 1000 + i, TOKENIZER_DOCUMENTS // 60) for i in range(60)]
    with ProcessPoolExecutor(WORKERS) as pool:
        texts = [t for part in pool.map(_texts, jobs) for t in part]
    tokenizer.train_from_iterator(texts, trainer)
    write(tokenizer)
    print(f"tokenizer: {tokenizer.get_vocab_size()} tokens from {sum(map(len, texts)) / 1e6:.1f} MB", file=sys.stderr)


def write(tokenizer) -> None:
    """tokenizer.json and tokenizer_config.json of both models."""
    for name in ("rill", "rill-draft"):
        folder = MODELS / name
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / "tokenizer.json"))
        special = {str(i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True} for i, t in enumerate((IM_START, IM_END))}
        config = {"added_tokens_decoder": special, "additional_special_tokens": [IM_START, IM_END], "bos_token": None, "eos_token": IM_END, "pad_token": IM_END, "unk_token": None,
                  "add_bos_token": False, "add_eos_token": False, "clean_up_tokenization_spaces": False, "model_max_length": CONTEXT, "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": CHATML}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def load():
    from tokenizers import Tokenizer
    return Tokenizer.from_file(str(MODELS / "rill" / "tokenizer.json"))


class Encoder:
    """Conversations to token ids, exactly as the chat template renders them, with a weight for every token that is to be learnt."""

    def __init__(self):
        self.tokenizer = load()
        self.start, self.end = self.tokenizer.token_to_id(IM_START), self.tokenizer.token_to_id(IM_END)
        self.role = {r: [self.start] + self.tokenizer.encode(r + "\n").ids for r in ("system", "user", "assistant")}
        self.newline = self.tokenizer.encode("\n").ids

    def encode(self, samples: list, weigh) -> list[tuple[list[int], list[int]]]:
        """weigh(answer's token count) -> weight of each of its tokens."""
        contents = [s.text if s.text else m["content"] for s in samples for m in (s.messages or [None])]
        encoded = iter(self.tokenizer.encode_batch_fast(contents, add_special_tokens=False))
        out = []
        for s in samples:
            if s.text:
                ids = next(encoded).ids + [self.end]
                out.append((ids, [0] + [1] * (len(ids) - 1)))
                continue
            ids: list[int] = []
            weights: list[int] = []
            for m in s.messages:
                head, body = self.role[m["role"]], next(encoded).ids
                w = weigh(len(body)) if m["role"] == "assistant" else 0
                ids += head + body + [self.end] + self.newline
                weights += [0] * len(head) + [w] * (len(body) + 1) + [0] * len(self.newline)
            out.append((ids, weights))
        return out
