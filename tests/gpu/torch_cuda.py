#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on OpenNUMA's callbacks, next to PyTorch's own allocators, on a real GPU. scripts/gpu.sh runs it.

    torch_cuda.py LIBRARY RESULTS.json [ROUNDS]

Each measurement is a process of its own, since an allocator is chosen once: native, expandable segments, MemPool mode and
whole-allocator mode, turn by turn. Everything prints what it saw; the exit status is 1 if something did not hold.
"""
import contextlib
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

WAYS = ("native", "expandable", "mempool", "whole", "whole_patient")


class Allocator:
    """The allocator that a process has chosen, and what it held from the device at its peak."""

    def __init__(self, way, library, torch):
        self.way, self.torch, self.pool = way, torch, None
        if way in ("native", "expandable"):
            return
        self.lib = ctypes.CDLL(library)
        self.lib.onuma_torch_cuda_pool.restype = ctypes.c_void_p
        self.allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "onuma_torch_cuda_alloc", "onuma_torch_cuda_free")
        if way == "mempool":
            return
        for name in ("record_stream", "reset", "base_alloc", "memory_fraction", "init"):
            address = ctypes.cast(getattr(self.lib, "onuma_torch_cuda_" + name), ctypes.c_void_p).value
            getattr(self.allocator.allocator(), f"set_{name}_fn")(address)
        torch.cuda.memory.change_current_allocator(self.allocator)

    def start_again(self):
        self.pool = None
        gc.collect()
        self.torch.cuda.synchronize()
        self.torch.cuda.empty_cache()
        if self.way in ("native", "expandable"):
            self.torch.cuda.reset_peak_memory_stats()
            return
        if self.way == "mempool":
            self.pool = self.torch.cuda.MemPool(self.allocator.allocator())
        self.lib.onuma_torch_cuda_reset()
        self.lib.onuma_pool_reset_peak(ctypes.c_void_p(self.lib.onuma_torch_cuda_pool(0)))

    def within(self):
        return self.torch.cuda.use_mem_pool(self.pool) if self.way == "mempool" else contextlib.nullcontext()

    def peak(self):
        if self.way in ("native", "expandable"):
            return self.torch.cuda.memory_stats()["reserved_bytes.all.peak"]
        return statistics_of(self.lib, self.lib.onuma_torch_cuda_pool(0))["reserved_bytes_peak"]


def statistics_of(lib, pool):
    """onuma_pool_stats: struct_size, then the gauges in the header's order, each now and at its peak."""
    names = ("in_use_bytes", "in_use_blocks", "requested_bytes", "reserved_bytes", "cached_bytes", "pending_bytes", "metadata_bytes")
    fields = [("struct_size", ctypes.c_size_t)]
    for name in names:
        fields += [(name, ctypes.c_uint64), (name + "_peak", ctypes.c_uint64)]
    stats = type("Stats", (ctypes.Structure,), {"_fields_": fields})()
    stats.struct_size = ctypes.sizeof(stats)
    if lib.onuma_pool_get_stats(ctypes.c_void_p(pool), ctypes.byref(stats)):
        raise RuntimeError("onuma_pool_get_stats failed")
    return {name: getattr(stats, name) for name, _ in fields}


# ------------------------------------------------------------------------------ training

def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), torch.nn.Linear(512, 512)).cuda()
    return model, lambda step: (torch.randn(32, 256, 512, device="cuda"), torch.randn(32, 256, 512, device="cuda"))


def cnn(torch):
    import torchvision
    model = torchvision.models.resnet18(num_classes=512).cuda()
    return model, lambda step: (torch.randn(64, 3, 224, 224, device="cuda"), torch.randn(64, 512, device="cuda"))


def varlen(torch):
    """A transformer whose sequences have another length each step."""
    model, _ = transformer(torch)

    def batch(step):
        length = 32 + (step * 97) % 480
        return torch.randn(32, length, 512, device="cuda"), torch.randn(32, length, 512, device="cuda")
    return model, batch


def varbatch(torch):
    """A CNN whose pictures and batches change."""
    model, _ = cnn(torch)

    def batch(step):
        count, side = 8 + (step * 13) % 56, 96 + 32 * ((step * 7) % 6)
        return torch.randn(count, 3, side, side, device="cuda"), torch.randn(count, 512, device="cuda")
    return model, batch


def varwidth(torch):
    """Layers fed with tables of changing height, through wide temporary results."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 512)).cuda()

    def batch(step):
        rows = 1000 + (step * 7919) % 30000
        return torch.randn(rows, 256, device="cuda"), torch.randn(rows, 512, device="cuda")
    return model, batch


def train(torch, build, steps=50):
    torch.manual_seed(1)
    losses, times = [], []
    model, batch = build(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        begin = time.perf_counter()
        x, y = batch(step)
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - begin)
    return {"losses": losses, "step_ms": 1e3 * statistics.median(times[5:])}


def train_all(way, library, jobs):
    """whole_patient: allocations may wait longer for the device before the pool grows. Each job with the allocator as it is at first: what the one before it held is given back."""
    if way == "expandable":
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    if way == "whole_patient":
        os.environ["OPENNUMA_CONF"] = "pool.wait:200ms"
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    import torch
    # The same sums in the same order on every run, or losses could not be compared.
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.use_deterministic_algorithms(True, warn_only=True)
    allocator = Allocator(way, library, torch)
    result = {}
    for job in jobs:
        allocator.start_again()
        with allocator.within():
            result[job] = train(torch, JOBS[job])
        gc.collect()
        result[job]["peak_reserved"] = allocator.peak()
    return result


# ------------------------------------------------------------------- alloc and free alone

def build_churn(folder):
    """churn.cc against this PyTorch; the path of the library."""
    import torch
    from torch.utils import cpp_extension
    out = os.path.join(folder, "churn.so")
    here = os.path.dirname(os.path.abspath(__file__))
    includes = [f"-I{path}" for path in cpp_extension.include_paths()] + ["-I" + os.path.join(cpp_extension.CUDA_HOME or "/usr/local/cuda", "include")]
    libraries = os.path.join(os.path.dirname(torch.__file__), "lib")
    subprocess.run(["g++", "-O2", "-std=c++17", "-shared", "-fPIC", *includes, os.path.join(here, "churn.cc"), "-L" + libraries, "-lc10", "-lc10_cuda", "-o", out],
                   check=True)
    return out


def churn(library):
    """Nanoseconds for a pair of allocation and free, by number of threads: PyTorch's own allocator and the callbacks, turn by
    turn in one process."""
    import torch
    torch.zeros(1, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        lib, ours = ctypes.CDLL(build_churn(folder)), ctypes.CDLL(library)
        lib.churn_torch.restype = lib.churn_callbacks.restype = ctypes.c_double
        result = {}
        for threads in (1, 2, 4, 8, 16):
            native, callbacks = [], []
            for _ in range(5):
                native.append(lib.churn_torch(threads, 20000))
                callbacks.append(lib.churn_callbacks(threads, 20000, ours.onuma_torch_cuda_alloc, ours.onuma_torch_cuda_free))
            result[threads] = {"native_ns": statistics.median(native), "callbacks_ns": statistics.median(callbacks), "native_all": native, "callbacks_all": callbacks}
        return result


# --------------------------------------------------------------------------------- others

def capture(way, library):
    """A graph that allocates and frees inside gives the right results on each replay."""
    import torch
    allocator, wrong = Allocator(way, library, torch), 0
    allocator.start_again()
    with allocator.within():
        x = torch.zeros(1 << 20, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                y = ((x + 1) * 2).sum()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            a = x + 1
            b = a * 2
            del a
            c = b - 1
            del b
            y = c.sum()
        for value in range(10):
            x.fill_(value)
            graph.replay()
            wrong += y.item() != (2 * value + 1) * (1 << 20)
    return {"wrong": wrong}


def streams(way, library):
    """Tensors that another stream uses, recorded, and freed at once: nobody's bytes are overwritten."""
    import torch
    Allocator(way, library, torch)
    side, wrong = torch.cuda.Stream(), 0
    for i in range(200):
        x = torch.full((1 << 20,), float(i), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(200000)
            y = x.clone()
        x.record_stream(side)
        del x
        torch.full((1 << 20,), -1.0, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        wrong += int((y != i).sum().item() != 0)
    return {"wrong": wrong}


JOBS = {"transformer": transformer, "cnn": cnn, "varlen": varlen, "varbatch": varbatch, "varwidth": varwidth}


FIXED, CHANGING = ("transformer", "cnn"), ("varlen", "varbatch", "varwidth")
TRAINED = {"native": FIXED + CHANGING, "expandable": CHANGING, "mempool": FIXED, "whole": CHANGING, "whole_patient": CHANGING}


def one(job, way, library):
    return {"train": lambda: train_all(way, library, TRAINED[way]), "churn": lambda: churn(library), "capture": lambda: capture(way, library),
            "streams": lambda: streams(way, library)}[job]()


def run(job, way, library):
    done = subprocess.run([sys.executable, __file__, "--one", job, way, library], capture_output=True, text=True)
    if done.returncode:
        print(f"torch: {job} {way}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def compare(library, rounds, failures):
    """Turn by turn; of each way the median of its rounds, and its step time against that of native in the same round."""
    seen = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            result = run("train", way, library)
            if result is None:
                failures.append(f"{way}: training failed")
                return None
            seen[way].append(result)
    table = {}
    for job in FIXED + CHANGING:
        native = [result[job] for result in seen["native"]]
        for way in (way for way in WAYS if job in TRAINED[way]):
            ours = [result[job] for result in seen[way]]
            row = table.setdefault(job, {})[way] = {
                "step_ms": statistics.median(r["step_ms"] for r in ours),
                "of_native": statistics.median(r["step_ms"] / n["step_ms"] for r, n in zip(ours, native)),
                "of_native_all": [r["step_ms"] / n["step_ms"] for r, n in zip(ours, native)],
                "peak_reserved": max(r["peak_reserved"] for r in ours),
                "same_losses": all(r["losses"] == native[0]["losses"] for r in ours),
            }
            print(f"torch: {job:12} {way:13} step {row['step_ms']:8.3f} ms, {row['of_native']:.3f} of native; peak reserved {row['peak_reserved'] / 2**20:9.1f} MiB; "
                  f"losses {'the same' if row['same_losses'] else 'OTHER'}")
            if not row["same_losses"]:
                failures.append(f"{job} {way}: other losses than native")
    return table


def main(library, out, rounds=3):
    failures, results = [], {}
    for job in ("capture", "streams"):
        for way in ("mempool", "whole") if job == "capture" else ("whole",):
            seen = run(job, way, library)
            results[f"{job}_{way}"] = seen
            print(f"torch: {job} {way}: {seen}")
            if seen is None or seen["wrong"]:
                failures.append(f"{job} {way}: wrong")
    results["churn"] = run("churn", "native", library)
    for threads, row in (results["churn"] or {}).items():
        print(f"torch: allocation and free, {threads:>2} threads: native {row['native_ns']:8.1f} ns, callbacks {row['callbacks_ns']:8.1f} ns")
        if row["callbacks_ns"] >= row["native_ns"]:
            failures.append(f"churn, {threads} threads: not faster than native")
    if results["churn"] is None:
        failures.append("churn: failed")
    results["training"] = compare(library, rounds, failures)
    with open(out, "w") as file:
        json.dump(results, file, indent=1)
    for failure in failures:
        print(f"torch: FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(json.dumps(one(*sys.argv[2:])))
    else:
        sys.exit(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
