"""The Llama architecture, with parameter names as Hugging Face stores them. Attention stays inside a document."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from settings import CONTEXT, SHAPES, VOCAB

_block_mask = torch.compile(create_block_mask)
HEAD = 64
EPS = 1e-5
THETA = 10000.0


class Norm(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return F.rms_norm(x.float(), (x.shape[-1],), self.weight, EPS)


def rotate(x, cos, sin):
    """Half-split rotary embedding, x [rows, heads, time, HEAD]."""
    a, b = x.chunk(2, dim=-1)
    return (torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, size: int, heads: int, kv_heads: int):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.q_proj = nn.Linear(size, heads * HEAD, bias=False)
        self.k_proj = nn.Linear(size, kv_heads * HEAD, bias=False)
        self.v_proj = nn.Linear(size, kv_heads * HEAD, bias=False)
        self.o_proj = nn.Linear(heads * HEAD, size, bias=False)

    def forward(self, x, cos, sin, mask):
        rows, time, _ = x.shape
        q = self.q_proj(x).view(rows, time, self.heads, HEAD).transpose(1, 2)
        k = self.k_proj(x).view(rows, time, self.kv_heads, HEAD).transpose(1, 2)
        v = self.v_proj(x).view(rows, time, self.kv_heads, HEAD).transpose(1, 2)
        y = flex_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, block_mask=mask, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(rows, time, -1))


class MLP(nn.Module):
    def __init__(self, size: int, inner: int):
        super().__init__()
        self.gate_proj = nn.Linear(size, inner, bias=False)
        self.up_proj = nn.Linear(size, inner, bias=False)
        self.down_proj = nn.Linear(inner, size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, num_key_value_heads, intermediate_size, **_):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = Norm(hidden_size), Norm(hidden_size)
        self.self_attn = Attention(hidden_size, num_attention_heads, num_key_value_heads)
        self.mlp = MLP(hidden_size, intermediate_size)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Input embedding and output projection are one matrix."""

    def __init__(self, name: str):
        super().__init__()
        shape = SHAPES[name]
        self.embed_tokens = nn.Embedding(VOCAB, shape["hidden_size"])
        self.layers = nn.ModuleList(Layer(**shape) for _ in range(shape["num_hidden_layers"]))
        self.norm = Norm(shape["hidden_size"])
        frequency = THETA ** (-torch.arange(0, HEAD, 2).float() / HEAD)
        angle = torch.arange(CONTEXT).float()[:, None] * frequency
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for n, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.zeros_(p) if n.endswith(("o_proj.weight", "down_proj.weight")) else nn.init.normal_(p, std=0.02)

    def forward(self, tokens, positions, mask):
        """Logits [rows, time, VOCAB]."""
        x = self.embed_tokens(tokens).float()
        cos, sin = self.cos[positions][:, None], self.sin[positions][:, None]
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return F.linear(self.norm(x), self.embed_tokens.weight)


def document_mask(owner):
    """Causal attention within a document; owner is [rows, time]."""
    rows, time = owner.shape

    def allowed(b, h, q, k):
        return (q >= k) & (owner[b, q] == owner[b, k])
    return _block_mask(allowed, rows, None, time, time, device=owner.device)
