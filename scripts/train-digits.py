#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the two small networks that `opennuma demo` runs, and write models/digits/.

Needs NumPy and scikit-learn (whose copy of the data is used), nothing else: the
gradients are written out by hand. It takes about a minute. Everything that
decides the result is in RECIPE, which is recorded in the files it writes;
tests/cli/test_digits_files.py holds the two against each other.

    python3 scripts/train-digits.py [--out models/digits]
"""
import argparse
import hashlib
import json
import pathlib
import struct

RECIPE = {
    "seed": 20240611,
    "test_images": 360,
    "batch": 32,
    "cnn": {"epochs": 40, "rate": 0.002, "channels": [1, 16, 32], "hidden": 64},
    "transformer": {"epochs": 80, "rate": 0.002, "tokens": 8, "pixels": 8, "width": 32, "heads": 4, "hidden": 64, "blocks": 2},
    "shift": 1,  # each training image is moved by at most that many pixels, anew in each epoch
}
CLASSES, SIDE, EPSILON = 10, 8, 1e-5


def tensor_shapes(network):
    """Name and shape of each weight, in the order of the file."""
    recipe = RECIPE[network]
    if network == "cnn":
        first, second, third = recipe["channels"]
        flat = third * (SIDE // 2) ** 2
        return {
            "conv1.weight": (second, first, 3, 3), "conv1.bias": (second,),
            "conv2.weight": (third, second, 3, 3), "conv2.bias": (third,),
            "dense1.weight": (recipe["hidden"], flat), "dense1.bias": (recipe["hidden"],),
            "dense2.weight": (CLASSES, recipe["hidden"]), "dense2.bias": (CLASSES,),
        }
    width, hidden = recipe["width"], recipe["hidden"]
    shapes = {"embed.weight": (width, recipe["pixels"]), "embed.bias": (width,), "position": (recipe["tokens"], width)}
    for block in range(recipe["blocks"]):
        shapes |= {
            f"block{block}.norm1.weight": (width,), f"block{block}.norm1.bias": (width,),
            f"block{block}.qkv.weight": (3 * width, width), f"block{block}.qkv.bias": (3 * width,),
            f"block{block}.out.weight": (width, width), f"block{block}.out.bias": (width,),
            f"block{block}.norm2.weight": (width,), f"block{block}.norm2.bias": (width,),
            f"block{block}.up.weight": (hidden, width), f"block{block}.up.bias": (hidden,),
            f"block{block}.down.weight": (width, hidden), f"block{block}.down.bias": (width,),
        }
    return shapes | {"norm.weight": (width,), "norm.bias": (width,),
                     "head.weight": (CLASSES, width), "head.bias": (CLASSES,)}


def initial_weights(np, network, generator):
    weights = {}
    for name, shape in tensor_shapes(network).items():
        if name.endswith(".bias"):
            weights[name] = np.zeros(shape, np.float32)
        elif "norm" in name:
            weights[name] = np.ones(shape, np.float32)
        else:
            fan_in = int(np.prod(shape[1:]))
            scale = 0.1 if name == "position" else np.sqrt(2.0 / fan_in)
            weights[name] = (generator.standard_normal(shape) * scale).astype(np.float32)
    return weights


# Each layer returns its output and a function from the output's gradient to the
# input's, which also adds the weights' gradients to `gradients`.

def dense(np, x, weights, gradients, name):
    w = weights[name + ".weight"]

    def back(g):
        rows, inputs = g.reshape(-1, w.shape[0]), x.reshape(-1, w.shape[1])
        gradients[name + ".weight"] = rows.T @ inputs
        gradients[name + ".bias"] = rows.sum(0)
        return g @ w
    return x @ w.T + weights[name + ".bias"], back


def relu(np, x):
    return np.maximum(x, 0), lambda g: g * (x > 0)


def conv(np, x, weights, gradients, name):
    w = weights[name + ".weight"]
    n, channels, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    columns = np.stack([padded[:, :, dy:dy + height, dx:dx + width] for dy in range(3) for dx in range(3)], 2)
    columns = columns.reshape(n, channels * 9, height * width)
    flat = w.reshape(w.shape[0], -1)
    y = (flat @ columns).reshape(n, w.shape[0], height, width) + weights[name + ".bias"][:, None, None]

    def back(g):
        g = g.reshape(n, w.shape[0], height * width)
        gradients[name + ".weight"] = np.einsum("nkp,ncp->kc", g, columns).reshape(w.shape)
        gradients[name + ".bias"] = g.sum((0, 2))
        spread = (flat.T @ g).reshape(n, channels, 3, 3, height, width)
        out = np.zeros_like(padded)
        for dy in range(3):
            for dx in range(3):
                out[:, :, dy:dy + height, dx:dx + width] += spread[:, :, dy, dx]
        return out[:, :, 1:-1, 1:-1]
    return y, back


def maxpool(np, x):
    n, c, h, w = x.shape
    tiles = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    best = tiles.argmax(-1)

    def back(g):
        out = np.zeros_like(tiles)
        np.put_along_axis(out, best[..., None], g[..., None], -1)
        return out.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h, w)
    return tiles.max(-1), back


def layer_norm(np, x, weights, gradients, name):
    mean = x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(x.var(-1, keepdims=True) + np.float32(EPSILON))
    normal = (x - mean) * inverse
    gain = weights[name + ".weight"]

    def back(g):
        gradients[name + ".weight"] = (g * normal).reshape(-1, gain.size).sum(0)
        gradients[name + ".bias"] = g.reshape(-1, gain.size).sum(0)
        g = g * gain
        return inverse * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))
    return normal * gain + weights[name + ".bias"], back


def softmax(np, x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(np, qkv, heads):
    n, tokens, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    split = qkv.reshape(n, tokens, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
    q, k, v = split
    scale = np.float32((width // heads) ** -0.5)
    p = softmax(np, q @ k.swapaxes(-1, -2) * scale)
    y = (p @ v).transpose(0, 2, 1, 3).reshape(n, tokens, width)

    def back(g):
        g = g.reshape(n, tokens, heads, width // heads).transpose(0, 2, 1, 3)
        gp = g @ v.swapaxes(-1, -2)
        gs = p * (gp - (gp * p).sum(-1, keepdims=True)) * scale
        all3 = np.stack([gs @ k, gs.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g])
        return all3.transpose(1, 3, 0, 2, 4).reshape(qkv.shape)
    return y, back


def cnn(np, images, weights, gradients):
    steps = []

    def run(pair):
        steps.append(pair[1])
        return pair[0]
    x = images.reshape(-1, 1, SIDE, SIDE)
    x = run(relu(np, run(conv(np, x, weights, gradients, "conv1"))))
    x = run(relu(np, run(conv(np, x, weights, gradients, "conv2"))))
    x = run(maxpool(np, x))
    shape = x.shape
    steps.append(lambda g: g.reshape(shape))
    x = run(relu(np, run(dense(np, x.reshape(shape[0], -1), weights, gradients, "dense1"))))
    x = run(dense(np, x, weights, gradients, "dense2"))

    def back(g):
        for step in reversed(steps):
            g = step(g)
    return x, back


def transformer(np, images, weights, gradients):
    recipe = RECIPE["transformer"]
    steps = []
    x, embed_back = dense(np, images.reshape(-1, recipe["tokens"], recipe["pixels"]), weights, gradients, "embed")
    x = x + weights["position"]
    for block in range(recipe["blocks"]):
        name = f"block{block}."
        a, norm1 = layer_norm(np, x, weights, gradients, name + "norm1")
        a, qkv = dense(np, a, weights, gradients, name + "qkv")
        a, mix = attention(np, a, recipe["heads"])
        a, out = dense(np, a, weights, gradients, name + "out")
        x = x + a
        b, norm2 = layer_norm(np, x, weights, gradients, name + "norm2")
        b, up = dense(np, b, weights, gradients, name + "up")
        b, bend = relu(np, b)
        b, down = dense(np, b, weights, gradients, name + "down")
        x = x + b
        steps.append((norm1, qkv, mix, out, norm2, up, bend, down))
    x, norm = layer_norm(np, x, weights, gradients, "norm")
    y, head = dense(np, x.mean(1), weights, gradients, "head")

    def back(g):
        g = norm(np.repeat(head(g)[:, None, :] / np.float32(recipe["tokens"]), recipe["tokens"], 1))
        for norm1, qkv, mix, out, norm2, up, bend, down in reversed(steps):
            g = g + norm2(up(bend(down(g))))
            g = g + norm1(qkv(mix(out(g))))
        gradients["position"] = g.sum(0)
        embed_back(g)
    return y, back


NETWORKS = {"cnn": cnn, "transformer": transformer}


def shifted(np, images, generator):
    reach = RECIPE["shift"]
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach)))
    moves = generator.integers(0, 2 * reach + 1, (len(images), 2))
    return np.stack([padded[i, dy:dy + SIDE, dx:dx + SIDE] for i, (dy, dx) in enumerate(moves)])


def train(np, network, images, labels, generator):
    """Adam on the cross entropy, the rate falling to nothing along a cosine."""
    forward, recipe = NETWORKS[network], RECIPE[network]
    weights = initial_weights(np, network, generator)
    first = {k: np.zeros_like(v) for k, v in weights.items()}
    second = {k: np.zeros_like(v) for k, v in weights.items()}
    step, steps = 0, recipe["epochs"] * (len(images) // RECIPE["batch"])
    for epoch in range(recipe["epochs"]):
        moved = shifted(np, images, generator)
        order = generator.permutation(len(images))
        loss = 0.0
        for start in range(0, len(images) - RECIPE["batch"] + 1, RECIPE["batch"]):
            pick = order[start:start + RECIPE["batch"]]
            gradients = {}
            logits, back = forward(np, moved[pick], weights, gradients)
            p = softmax(np, logits)
            loss -= float(np.log(p[np.arange(len(pick)), labels[pick]] + 1e-9).sum())
            p[np.arange(len(pick)), labels[pick]] -= 1
            back((p / np.float32(len(pick))).astype(np.float32))
            rate = recipe["rate"] * 0.5 * (1 + np.cos(np.pi * step / steps))
            step += 1
            for k, g in gradients.items():
                first[k] = 0.9 * first[k] + 0.1 * g
                second[k] = 0.99 * second[k] + 0.01 * g * g
                weights[k] -= (rate * (first[k] / (1 - 0.9 ** step))
                               / (np.sqrt(second[k] / (1 - 0.99 ** step)) + 1e-8)).astype(np.float32)
        if epoch % 10 == 9:
            print(f"{network}: epoch {epoch + 1}, loss {loss / len(images):.4f}", flush=True)
    return weights


def write_safetensors(path, tensors, metadata):
    names = {"float32": "F32", "uint8": "U8"}
    header, offset = {"__metadata__": metadata}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": names[str(value.dtype)], "shape": list(value.shape),
                        "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    data = struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in tensors.values())
    path.write_bytes(data)
    print(f"{path}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "models" / "digits")
    arguments = parser.parse_args()
    import numpy as np
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(RECIPE["seed"]).permutation(len(digits.images))
    pixels, labels = digits.images[order].astype(np.uint8), digits.target[order].astype(np.uint8)
    cut = len(pixels) - RECIPE["test_images"]
    images = pixels.astype(np.float32) / 16
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(arguments.out / "test.safetensors", {"images": pixels[cut:], "labels": labels[cut:]}, {
        "source": "Optical Recognition of Handwritten Digits, UCI, CC BY 4.0, as in scikit-learn's load_digits",
        "recipe": json.dumps(RECIPE, sort_keys=True)})
    for network in NETWORKS:
        generator = np.random.default_rng([RECIPE["seed"], len(network)])
        weights = train(np, network, images[:cut], labels[:cut], generator)
        logits = NETWORKS[network](np, images[cut:], weights, {})[0]
        ordered = np.sort(logits, -1)
        correct = int((logits.argmax(-1) == labels[cut:]).sum())
        # The margin tells that rounding on another device cannot change an answer, so the count must be met exactly.
        margin = float((ordered[:, -1] - ordered[:, -2]).min())
        print(f"{network}: {correct} of {len(logits)} right, smallest margin {margin:.4f}")
        write_safetensors(arguments.out / f"{network}.safetensors", weights, {
            "network": network, "images": str(len(logits)), "correct": str(correct), "margin": f"{margin:.4f}",
            "recipe": json.dumps(RECIPE, sort_keys=True)})


if __name__ == "__main__":
    main()
