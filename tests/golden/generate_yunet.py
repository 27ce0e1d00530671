"""Golden of models/face/yunet.c: a narrow YuNet of random weights as an ONNX graph, run by onnxruntime, boxes and points
decoded in float64, overlaps by ONNX's NonMaxSuppression. Layers, names and order are those of ShiqiYu's
libfacedetection.train (YuNetBackbone, TFPN, YuNet_Head). Run: python generate_yunet.py"""

import json
import pathlib
import struct

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEIGHT = 90, 61  # not whole cells
CHANNELS = {"stem": 5, "first": 6, "narrow": 7, "wide": 9, "head": 8}
HEADS = [("cls", 1), ("bbox", 4), ("obj", 1), ("kps", 10)]
DATA = pathlib.Path(__file__).parent / "data/yunet"
rng = np.random.default_rng(32)
weights, nodes, initializers, count = {}, [], [], [0]


def constant(value):
    name = f"c{len(initializers)}"
    initializers.append(numpy_helper.from_array(value, name))
    return name


def node(kind, *inputs, **attributes):
    count[0] += 1
    nodes.append(helper.make_node(kind, list(inputs), [f"t{count[0]}"], **attributes))
    return f"t{count[0]}"


def conv(x, name, n_in, n_out, side, group=1, stride=1, gain=1.25):
    w = rng.normal(0, gain / np.sqrt(n_in // group * side * side), (n_out, n_in // group, side, side))
    weights[name + ".weight"] = w.astype(np.float32)
    weights[name + ".bias"] = rng.normal(0, 0.3, n_out).astype(np.float32)
    made = [constant(weights[name + part]) for part in (".weight", ".bias")]
    pad = side // 2
    return node("Conv", x, *made, kernel_shape=[side] * 2, pads=[pad] * 4, strides=[stride] * 2, group=group)


def norm(x, name, n, like=1.0):
    parts = {"weight": 1 + rng.normal(0, 0.2, n), "bias": rng.normal(0, 0.3, n),
             "running_mean": rng.normal(0, 0.3, n) * like, "running_var": rng.uniform(0.5, 2, n) * like**2}
    for part, value in parts.items():
        weights[f"{name}.{part}"] = value.astype(np.float32)
    return node("Relu", node("BatchNormalization", x, *[constant(weights[f"{name}.{p}"]) for p in parts], epsilon=1e-5))


def unit(x, name, n_in, n_out, normed=True):
    x = conv(x, name + ".conv1", n_in, n_out, 1)
    x = conv(x, name + ".conv2", n_out, n_out, 3, group=n_out, gain=1.25 if normed else 0.35)
    return norm(x, name + ".bn", n_out) if normed else x


def pool(x):
    return node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])


def build():
    c = CHANNELS
    x = norm(conv("picture", "backbone.model0.conv1", 3, c["stem"], 3, stride=2), "backbone.model0.bn1", c["stem"], 150)
    x = pool(unit(x, "backbone.model0.conv2", c["stem"], c["first"]))
    stages = [(c["first"], c["narrow"])] + [(c["narrow"], c["wide"])] + [(c["wide"], c["wide"])] * 3
    level = []
    for i, (n_in, n_out) in enumerate(stages, 1):
        x = unit(x, f"backbone.model{i}.conv1", n_in, n_in)
        x = unit(x, f"backbone.model{i}.conv2", n_in, n_out)
        if i >= 3:
            level.append(x)
        if i in (2, 3, 4):
            x = pool(x)
    for i in (2, 1, 0):
        level[i] = unit(level[i], f"neck.lateral_convs.{i}", c["wide"], c["wide"])
        if i:
            scales = constant(np.array([1, 1, 2, 2], np.float32))
            up = node("Resize", level[i], "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                      nearest_mode="floor")
            level[i - 1] = node("Add", level[i - 1], up)
    shared = [unit(f, f"bbox_head.multi_level_share_convs.{i}.0", c["wide"], c["head"]) for i, f in enumerate(level)]
    out = []
    for i, f in enumerate(shared):
        for name, n in HEADS:
            y = unit(f, f"bbox_head.multi_level_{name}.{i}", c["head"], n, normed=False)
            out.append(node("Sigmoid", y) if name in ("cls", "obj") else y)
    return out


def run(nodes_, initializers_, inputs, outputs, feed):
    graph = helper.make_graph(nodes_, "yunet", inputs, outputs, initializers_)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def picture():
    """[HEIGHT, WIDTH, 3], red first; tests/golden/test_yunet.c makes the same."""
    y, x, c = np.mgrid[0:HEIGHT, 0:WIDTH, 0:3]
    return ((x * 7 + y * 13 + c * 29 + x * y // 5) % 256).astype(np.uint8)


def decode(values):
    """Rows x, y, width, height, score, points; of every cell."""
    rows = []
    for i in range(3):
        cls, box, obj, kps = (v[0].astype(np.float64) for v in values[4 * i : 4 * i + 4])
        stride = 8 << i
        for r in range(cls.shape[1]):
            for col in range(cls.shape[2]):
                dx, dy, dw, dh = box[:, r, col]
                w, h = np.exp(dw) * stride, np.exp(dh) * stride
                points = [(kps[k, r, col] + (r if k % 2 else col)) * stride for k in range(10)]
                score = np.sqrt(min(max(cls[0, r, col], 0), 1) * min(max(obj[0, r, col], 0), 1))
                rows.append([(col + dx) * stride - w / 2, (r + dy) * stride - h / 2, w, h, score, *points])
    return np.array(rows)


def suppressed(rows, least, most):
    """What ONNX's operator keeps, surest first."""
    boxes = np.stack([rows[:, 1], rows[:, 0], rows[:, 1] + rows[:, 3], rows[:, 0] + rows[:, 2]], 1)
    values = [boxes[None].astype(np.float32), rows[None, None, :, 4].astype(np.float32), np.array([10000], np.int64),
              np.array([most], np.float32), np.array([least], np.float32)]
    names = ["boxes", "scores", "count", "most", "least"]
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
              for n, v in zip(names, values)]
    kept = helper.make_tensor_value_info("kept", TensorProto.INT64, [None, 3])
    got = run([helper.make_node("NonMaxSuppression", names, ["kept"])], [], inputs, [kept], dict(zip(names, values)))
    return rows[got[0][:, 2]]


def write_safetensors(path):
    header, blob = {"__metadata__": {"made_by": f"onnxruntime {ort.__version__}, onnx {onnx.__version__}, numpy {np.__version__}"}}, b""
    for name, value in weights.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(blob), len(blob) + value.nbytes]}
        blob += value.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def main():
    outputs = build()
    padded = np.zeros((1, 3, -(-HEIGHT // 32) * 32, -(-WIDTH // 32) * 32), np.float32)
    padded[0, :, :HEIGHT, :WIDTH] = picture()[:, :, ::-1].transpose(2, 0, 1)
    inputs = [helper.make_tensor_value_info("picture", TensorProto.FLOAT, padded.shape)]
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 4) for n in outputs]
    rows = decode(run(nodes, initializers, inputs, made, {"picture": padded}))
    rows = rows[np.argsort(-rows[:, 4], kind="stable")]
    gap = np.min(-np.diff(rows[:, 4]))
    kept = suppressed(rows, 0.35, 0.3)
    assert gap > 2e-6, gap
    assert 3 < len(kept) < np.sum(rows[:, 4] >= 0.35) - 10, len(kept)
    print(len(rows), "cells, of", np.sum(rows[:, 4] >= 0.35), "kept", len(kept), "least gap", gap, "largest", np.abs(rows).max())
    print("scores", rows[:, 4].min(), rows[:, 4].max(), "sizes", rows[:, 2].min(), rows[:, 2].max())
    DATA.mkdir(parents=True, exist_ok=True)
    write_safetensors(DATA / "tiny.safetensors")
    with open(DATA / "faces.txt", "w") as f:
        f.write(f"{len(rows)} {len(kept)}\n")
        for row in np.concatenate([rows, kept]):
            f.write(" ".join(f"{v:.8g}" for v in row) + "\n")


main()
