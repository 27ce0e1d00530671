"""Runs the cells of a notebook by plain Python, in the current folder: run_notebook.py FILE. 77: a package that it imports is missing."""

import ast
import importlib.util
import json
import pathlib
import sys

book = json.loads(pathlib.Path(sys.argv[1]).read_text())
cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
assert book["nbformat"] == 4 and cells and not any(cell.get("outputs") for cell in book["cells"])
for name in {a.name for cell in cells for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Import) for a in node.names}:
    if not importlib.util.find_spec(name):
        print(f"SKIP: {pathlib.Path(sys.argv[1]).name}: no {name} here")
        sys.exit(77)
variables = {"__name__": "__main__"}
for number, cell in enumerate(cells, 1):
    exec(compile(cell, f"{sys.argv[1]}, cell {number}", "exec"), variables)
