"""A checkpoint as a Hugging Face model folder, weights in bf16."""
import json
import sys

from network import EPS, HEAD, THETA
from settings import CONTEXT, IM_END, MODELS, SHAPES, VOCAB, WORK


def export(name: str) -> None:
    import torch
    from safetensors.torch import save_file
    from tokenizers import Tokenizer
    folder = MODELS / name
    end = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(IM_END)
    state = torch.load(WORK / f"{name}.pt", map_location="cpu")
    save_file({f"model.{k}": v.bfloat16().contiguous() for k, v in state.items()}, str(folder / "model.safetensors"), metadata={"format": "pt"})
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None, "eos_token_id": end, "head_dim": HEAD, "hidden_act": "silu",
              **SHAPES[name], "initializer_range": 0.02, "max_position_embeddings": CONTEXT, "mlp_bias": False, "pretraining_tp": 1, "rms_norm_eps": EPS, "rope_scaling": None, "rope_theta": THETA,
              "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": VOCAB}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [end], "pad_token_id": end, "do_sample": True, "temperature": 0.7, "top_p": 0.95}, indent=2) + "\n")
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {sum(v.numel() for v in state.values())} parameters, {size / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    for n in sys.argv[1:]:
        export(n)
