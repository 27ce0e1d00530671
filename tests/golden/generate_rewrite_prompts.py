"""The authors' texts for rewriting prompts, taken out of their source, of which nothing is run.

    python tests/golden/generate_rewrite_prompts.py --qwen QWEN_IMAGE > qwen-edit-2511.json
    python tests/golden/generate_rewrite_prompts.py --flux2 FLUX2 > flux2.json

QWEN_IMAGE is a checkout of QwenLM/Qwen-Image, FLUX2 one of black-forest-labs/flux2, or the word diffusers for the
installed package, which has the same texts. The files are what --rewrite-prompts takes; the program knows by their
digests which version they are of (models/rewrite/texts.h).
"""

import argparse
import ast
import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

STYLES = {"f28c7895c479ad7c": "qwen-edit-2511", "925b9e334f9acbd3": "qwen-edit-2509"}


def literal(function, name):
    """The text that is assigned to a name in a function."""
    return next(
        node.value.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.targets[0].id == name and isinstance(node.value, ast.Constant)
    )


def qwen(source):
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    polish = functions["polish_edit_prompt"]
    values = {"EDIT_SYSTEM_PROMPT": literal(polish, "EDIT_SYSTEM_PROMPT"), "prompt": "{prompt}"}
    joined = next(
        node.value
        for node in ast.walk(polish)
        if isinstance(node, ast.Assign) and node.targets[0].id == "prompt" and isinstance(node.value, ast.JoinedStr)
    )
    user = "".join(part.value if isinstance(part, ast.Constant) else values[part.value.id] for part in joined.values)
    digest = hashlib.sha256(user.encode()).hexdigest()[:16]
    return {
        "style": STYLES.get(digest, "custom:qwen-" + digest),
        "system": literal(functions["edit_api"], "sys_promot"),
        "user": user,
        "reply": "json:Rewritten",
    }


def flux2(source):
    texts = {
        node.targets[0].id: node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    return {
        "style": "flux2",
        "system_t2i": texts["SYSTEM_MESSAGE_UPSAMPLING_T2I"],
        "system_i2i": texts["SYSTEM_MESSAGE_UPSAMPLING_I2I"],
        "user": "{prompt}",
        "reply": "text",
    }


def commit_of(folder):
    done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--qwen", metavar="QWEN_IMAGE")
    which.add_argument("--flux2", metavar="FLUX2")
    arguments = parser.parse_args()
    if arguments.qwen:
        source = (Path(arguments.qwen) / "src/examples/tools/prompt_utils.py").read_text()
        out = qwen(source) | {"source": "QwenLM/Qwen-Image@" + commit_of(arguments.qwen)}
    elif arguments.flux2 == "diffusers":
        from importlib.metadata import version

        folder = Path(importlib.util.find_spec("diffusers").origin).parent
        out = flux2((folder / "pipelines/flux2/system_messages.py").read_text())
        out["source"] = "diffusers " + version("diffusers")
    else:
        source = (Path(arguments.flux2) / "src/flux2/system_messages.py").read_text()
        out = flux2(source) | {"source": "black-forest-labs/flux2@" + commit_of(arguments.flux2)}
    json.dump(out, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
