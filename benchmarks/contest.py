"""Times of kernels of the FlashInfer contest of MLSys 2026 on a B200, beside the published means.

Means are from https://github.com/syhya/mlsys26-flashinfer-contest; no parameter was chosen on them. Routing over the 32
of 256 experts of DeepSeek-V3 on a rank is taken as even.
"""

import iomodel

TOKENS = (1, 7, 14, 15, 16, 32, 52, 53, 54, 55, 56, 57, 58, 59, 62, 80, 901, 11_948, 14_107)
STATE = {"heads": 8, "key_heads": 4, "head_dim": 128, "gate": "head", "delta": True, "stateful": True}
LATENT = iomodel.Attention(heads=16, kv_heads=1, q_len=1, kv_len=8192, head_dim=576, value_dim=512, latent=True)


def table() -> str:
    """Return the predicted and the published times, as Markdown."""
    scores, choice, attention, combination = (
        kernel.seconds for kernel in iomodel.estimate("dsa", LATENT, "b200").kernels
    )
    rows = [
        ("fused experts (`split_mlp`), mean of 19 calls", sum(map(experts, TOKENS)) / len(TOKENS), 289.7),
        ("gated delta rule, decoding (`stepwise_scan`)", scan("stepwise_scan", tokens=1, batch=8), 6.2),
        ("gated delta rule, 2,048 tokens (`chunked_scan`)", scan("chunked_scan", tokens=2048), 52.0),
        ("scores and choice of 8,192 keys (`dsa`)", scores + choice, 6.9),
        ("attention over the chosen keys", attention + combination, 11.1),
    ]
    head = "| call | model [us] | published mean [us] |\n| --- | ---: | ---: |\n"
    return head + "\n".join(f"| {name} | {1e6 * model:.1f} | {published} |" for name, model, published in rows)


def experts(tokens: int) -> float:
    """Estimate the fused experts for some tokens, evenly routed [s]."""
    loads = [tokens // 32 + (expert < tokens % 32) for expert in range(32)]
    call = iomodel.Experts(loads=[one for one in loads if one], in_features=7168, hidden_features=2048, dtype="fp8")
    return iomodel.estimate("split_mlp", call, "b200").seconds


def scan(name: str, **shape: int) -> float:
    """Estimate the gated delta rule by one schedule [s]."""
    return iomodel.estimate(name, iomodel.Recurrence(**shape, **STATE), "b200").seconds


if __name__ == "__main__":
    print(table())
