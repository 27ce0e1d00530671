"""likeness from Python: image editing and text-to-image models on the CPU or a GPU, seeds that repeat bit for bit.

    import likeness

    with likeness.Model("black-forest-labs/FLUX.2-dev", device="cuda") as model:
        picture = model("Add a red hat", images="portrait.jpg", seed=42, num_inference_steps=50)
    picture.save("out.png")      # the bytes that `likeness edit` writes, recipe and all
    picture.pixels               # numpy [height, width, 3], uint8

Arguments have the names of the command line's options with underscores: `likeness help edit` explains them. A refused value raises
likeness.Error, whose `code` is the command line's exit code. The package is a layer over liblikeness.so (models/session.h).
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import subprocess
import threading
from typing import Any, Callable, Iterable, Iterator, List, Optional, Union

__all__ = ["Error", "Interrupted", "Model", "Picture", "Study", "program", "query", "run"]

_HERE = pathlib.Path(__file__).resolve().parent


class Error(RuntimeError):
    """What the library refuses, in its own words."""

    def __init__(self, text: str, code: int):
        super().__init__(text)
        self.code = code


class Interrupted(Error):
    """The progress function asked to stop."""


def _find(environment: str, names: Iterable[str]) -> str:
    given = os.environ.get(environment)
    if given:
        return given
    for name in names:
        for folder in (_HERE, _HERE.parent.parent.parent, _HERE.parent.parent.parent.parent):
            if (folder / name).is_file():
                return str(folder / name)
    raise Error(f"likeness: none of {', '.join(names)} beside the package; name the file with {environment}", 3)


def _load() -> ctypes.CDLL:
    lib = ctypes.CDLL(_find("LIKENESS_LIBRARY", ("liblikeness.so", "lib/liblikeness.so")))
    text, pointer, integer = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
    number = ctypes.POINTER(ctypes.c_int)
    for name, result, arguments in (
        ("lk_session_open", integer, (ctypes.POINTER(pointer), text, ctypes.POINTER(text))),
        ("lk_session_close", None, (pointer,)),
        ("lk_session_family", text, (pointer,)),
        ("lk_session_device", text, (pointer,)),
        ("lk_session_set", integer, (pointer, text, text)),
        ("lk_session_image_file", integer, (pointer, text)),
        ("lk_session_image", integer, (pointer, text, integer, integer, integer)),
        ("lk_session_clear", None, (pointer,)),
        ("lk_session_run", integer, (pointer, _PROGRESS, pointer)),
        ("lk_session_preview", None, (pointer, _PREVIEW, pointer)),
        ("lk_session_pixels", pointer, (pointer, number, number)),
        ("lk_session_recipe", text, (pointer,)),
        ("lk_session_encode", pointer, (pointer, ctypes.POINTER(ctypes.c_size_t))),
        ("lk_recipe_write_as", integer, (text, text, ctypes.c_size_t, integer)),
        ("lk_error_text", text, ()),
        ("lk_exit_code", integer, (integer,)),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int)
_PREVIEW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int] * 4)
_library: Optional[ctypes.CDLL] = None


def _lib() -> ctypes.CDLL:
    global _library
    if _library is None:
        _library = _load()
    return _library


def _check(code: int) -> None:
    if code:
        text = _lib().lk_error_text().decode("utf-8", "replace")
        exit_code = _lib().lk_exit_code(code)
        raise (Interrupted if exit_code == 130 else Error)(text, exit_code)


def _word(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return os.fspath(value) if isinstance(value, os.PathLike) else repr(value) if isinstance(value, float) else str(value)


def _pairs(given: dict) -> list:
    pairs = []
    for name, value in given.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name.encode(), _word(one).encode()))
    return pairs


class Picture:
    """A result: pixels, recipe and the PNG that holds both."""

    def __init__(self, data: bytes, width: int, height: int, png: bytes, recipe: str):
        self.data, self.width, self.height, self.png = data, width, height, png
        self.recipe: dict = json.loads(recipe)

    @property
    def pixels(self):
        """numpy array [height, width, 3] of uint8."""
        import numpy

        return numpy.frombuffer(self.data, numpy.uint8).reshape(self.height, self.width, 3)

    def save(self, path: Union[str, os.PathLike], quality: int = 95) -> None:
        """PNG, JPEG or WebP by the path's ending, with the recipe: `likeness show` prints it, `likeness rerun` makes the
        picture again. quality: of JPEG and WebP; 100 in WebP loses nothing."""
        if pathlib.Path(path).suffix.lower() in (".jpg", ".jpeg", ".webp"):
            _check(_lib().lk_recipe_write_as(os.fspath(path).encode(), self.png, len(self.png), quality))
        else:
            pathlib.Path(path).write_bytes(self.png)

    def _repr_png_(self) -> bytes:  # notebooks
        return self.png

    def __repr__(self) -> str:
        return f"<likeness.Picture {self.width}x{self.height}, seed {self.recipe.get('seed')}>"


class Model:
    """A model with its weights on one device. Options are those of a run: device, dtype, threads, quantize, lora, vram, ..."""

    def __init__(self, model: Union[str, os.PathLike], **options: Any):
        pairs = [word for pair in _pairs(options) for word in pair]
        self._session: Optional[ctypes.c_void_p] = ctypes.c_void_p()
        self._lock = threading.Lock()
        words = (ctypes.c_char_p * (len(pairs) + 1))(*pairs, None)
        try:
            _check(_lib().lk_session_open(ctypes.byref(self._session), os.fspath(model).encode(), words))
        except BaseException:
            self._session = None
            raise

    @property
    def family(self) -> str:
        return _lib().lk_session_family(self._open()).decode()

    @property
    def device(self) -> str:
        return _lib().lk_session_device(self._open()).decode()

    def _open(self) -> ctypes.c_void_p:
        if self._session is None:
            raise Error("the model is closed", 2)
        return self._session

    def _add_image(self, image: Any) -> None:
        if isinstance(image, (str, os.PathLike)):
            _check(_lib().lk_session_image_file(self._open(), os.fspath(image).encode()))
            return
        if hasattr(image, "convert"):  # Pillow's
            import numpy

            image = numpy.asarray(image.convert("RGB"))
        try:
            view = memoryview(image)
        except TypeError:
            raise Error(f"images: expected a path, a picture of Pillow's or an array, got {type(image).__name__}", 2) from None
        if view.format != "B" or view.ndim not in (2, 3):
            raise Error(f"images: expected a path or uint8 of [height, width, channels], got {view.format} of {view.shape}", 2)
        height, width, channels = (*view.shape, 1)[:3]
        _check(_lib().lk_session_image(self._open(), view.tobytes(), width, height, channels))

    def __call__(
        self,
        prompt: Optional[str] = None,
        images: Any = None,
        progress: Optional[Callable[[str, int, int], Any]] = None,
        preview: Optional[Callable[[Any, int, int], Any]] = None,
        **parameters: Any,
    ) -> Picture:
        """A picture. images (or image, as diffusers has it): a path, an array, or a list of them. progress(stage, step, n_steps) is
        called before each step, preview(pixels, step, n_steps) after it with a small, rough picture [height, width, 3] of what it is on
        the way to; what is true stops with Interrupted, and so does an exception in it, which is raised again. Parameters have the
        names of diffusers: num_inference_steps, guidance_scale, true_cfg_scale, negative_prompt, seed, width, height, ..."""
        if images is None:
            images = parameters.pop("image", None)
        raised: list = []

        def tell(_context: Any, stage: bytes, step: int, n_steps: int) -> int:
            try:
                return 1 if progress and progress(stage.decode(), step, n_steps) else 0
            except BaseException as error:  # noqa: B902: it may not pass through C
                raised.append(error)
                return 1

        def show(_context: Any, rgb: int, width: int, height: int, step: int, n_steps: int) -> int:
            try:
                import numpy

                data = numpy.frombuffer(ctypes.string_at(rgb, 3 * width * height), numpy.uint8)
                return 1 if preview(data.reshape(height, width, 3), step, n_steps) else 0  # type: ignore[misc]
            except BaseException as error:  # noqa: B902: it may not pass through C
                raised.append(error)
                return 1

        shown = _PREVIEW(show) if preview else _PREVIEW()
        with self._lock:
            lib, session = _lib(), self._open()
            lib.lk_session_clear(session)
            for name, value in _pairs({"prompt": prompt, **parameters}):
                _check(lib.lk_session_set(session, name, value))
            for image in images if isinstance(images, (list, tuple)) else [] if images is None else [images]:
                self._add_image(image)
            lib.lk_session_preview(session, shown, None)
            code = lib.lk_session_run(session, _PROGRESS(tell), None)
            if raised:
                raise raised[0]
            _check(code)
            return self._picture(session)

    def _picture(self, session: ctypes.c_void_p) -> Picture:
        width, height, n = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
        pixels = _lib().lk_session_pixels(session, ctypes.byref(width), ctypes.byref(height))
        data = ctypes.string_at(pixels, 3 * width.value * height.value)
        encoded = _lib().lk_session_encode(session, ctypes.byref(n))
        recipe = _lib().lk_session_recipe(session)
        if not encoded or recipe is None:
            raise Error(_lib().lk_error_text().decode("utf-8", "replace"), 4)
        picture = Picture(data, width.value, height.value, ctypes.string_at(encoded, n.value), recipe.decode())
        _lib().lk_session_clear(session)
        return picture

    def close(self) -> None:
        with self._lock:
            if self._session is not None:
                _lib().lk_session_close(self._session)
            self._session = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass


def program() -> str:
    """Where the command line is."""
    return _find("LIKENESS_PROGRAM", ("bin/likeness",))


def run(*words: Any, check: bool = True) -> str:
    """The command line with these words, and what it prints: run("study", "check", "study.json")."""
    done = subprocess.run([program(), *map(_word, words)], capture_output=True, text=True)
    if check and done.returncode:
        raise Error(done.stderr.strip() or f"likeness {words[0]}: exit code {done.returncode}", done.returncode)
    return done.stdout


def query(folder: Union[str, os.PathLike], sql: str):
    """Rows of a run's store as a pandas frame: query("run", "SELECT model, avg(value) AS rate FROM measured GROUP BY model")."""
    import pandas

    table = json.loads(run("report", "--from", folder, "--json", "--query", sql))
    rows = [[cell.get("value") if isinstance(cell, dict) else cell for cell in row] for row in table["rows"]]
    return pandas.DataFrame(rows, columns=[column["name"] for column in table["columns"]])


def _options(options: dict) -> Iterator[Any]:
    """Words of the command line: resamples=2000 is --resamples 2000, and what is True an option without a value."""
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None and one is not False:
                yield from ["--" + name.replace("_", "-"), *([] if one is True else [one])]


class Study:
    """A study file and the folder of its run. Options are those of the commands `study run` and `report`, with underscores."""

    def __init__(self, file: Union[str, os.PathLike], folder: Union[str, os.PathLike]):
        self.file, self.folder = os.fspath(file), os.fspath(folder)

    def check(self) -> str:
        """What the file comes to; raises Error with all that is wrong in it."""
        return run("study", "check", self.file)

    def jobs(self) -> List[str]:
        return run("study", "jobs", self.file).split()

    def run(self, **options: Any) -> str:
        """Makes the pictures that are not there yet, and says how many there are of each model."""
        run("study", "run", self.file, "-o", self.folder, *_options({"quiet": True, **options}))
        return run("study", "status", self.folder)

    def query(self, sql: str):
        """Rows of the run's store as a pandas frame."""
        return query(self.folder, sql)

    def report(self, output: Union[str, os.PathLike], **options: Any) -> dict:
        """Writes the report into a folder; its tables as pandas frames, by name."""
        import pandas

        run("report", "--from", self.folder, "-o", output, *_options(options))
        return {path.stem: pandas.read_csv(path) for path in sorted(pathlib.Path(output).rglob("*.csv"))}


def main() -> None:
    """The command `likeness` of the wheel."""
    import sys

    if sys.argv[1:2] == ["demo"]:
        from .demo import main as demo

        sys.exit(demo(sys.argv[2:]))
    os.execv(program(), ["likeness", *sys.argv[1:]])
