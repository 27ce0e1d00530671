"""What tests/cli/test_python.sh runs, in a folder with a tiny model, a portrait and the program's picture of it."""

import pathlib
import threading
import unittest

import likeness

EDIT = dict(images="face.jpg", seed=42, num_inference_steps=2)


def resident():
    """Bytes of the process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Edits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = likeness.Model("tiny", device="cpu", threads=1)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def refused(self, text, code, *arguments, **parameters):
        with self.assertRaises(likeness.Error) as caught:
            self.model(*arguments, **parameters)
        self.assertIn(text, str(caught.exception))
        self.assertEqual(caught.exception.code, code)

    def test_bytes_of_the_program(self):
        steps = []
        picture = self.model("red hair", progress=lambda *step: steps.append(step), **EDIT)
        self.assertEqual(picture.png, pathlib.Path("program.png").read_bytes())
        self.assertEqual([s for s in steps if s[0] == "transformer"], [("transformer", i, 2) for i in range(3)])
        self.assertEqual((picture.width, picture.height, len(picture.data)), (64, 80, 3 * 64 * 80))
        self.assertEqual(picture.recipe["seed"], 42)
        picture.save("saved.png")
        likeness.run("rerun", "saved.png", "-m", "tiny", "-r", "face.jpg", "-t", 1, "-q", "-o", "again.png")
        self.assertEqual(pathlib.Path("again.png").read_bytes(), picture.png)
        picture.save("saved.jpg")
        likeness.run("rerun", "saved.jpg", "-m", "tiny", "-r", "face.jpg", "-t", 1, "-q", "-o", "again.jpg")
        self.assertEqual(pathlib.Path("again.jpg").read_bytes(), pathlib.Path("saved.jpg").read_bytes())

    def test_previews(self):
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("no numpy here")
        shown = []
        picture = self.model("red hair", image="face.jpg", preview=lambda *s: shown.append(s) and None, seed=42, num_inference_steps=2)
        self.assertEqual(picture.png, pathlib.Path("program.png").read_bytes())
        self.assertEqual([(p.shape, *s) for p, *s in shown], [((10, 8, 3), 1, 2), ((10, 8, 3), 2, 2)])
        with self.assertRaises(ZeroDivisionError):
            self.model("red hair", preview=lambda *s: 1 / 0, **EDIT)

    def test_nothing_stays_from_a_run(self):
        self.model("blue hair", images=["face.jpg", "face.jpg"], seed=7, num_inference_steps=1, guidance_scale=2.5)
        picture = self.model("red hair", **EDIT)
        self.assertEqual(picture.png, pathlib.Path("program.png").read_bytes())

    def test_pixels_in(self):
        grey = memoryview(bytes(range(256)) * 20).cast("B", (80, 64))
        colour = memoryview(bytes(3 * 64 * 80)).cast("B", (80, 64, 3))
        for image, n in ((grey, 1), (colour, 1), ([grey, "face.jpg"], 2)):
            picture = self.model("red hair", images=image, seed=1, num_inference_steps=1)
            self.assertEqual(len(picture.recipe["images"]), n)
            self.assertEqual(picture.recipe["images"][0]["file"], "pixels")
        self.refused("uint8", 2, "x", images=memoryview(bytes(8 * 64)).cast("d"))

    def test_refusals(self):
        self.refused('"nonsense": no such parameter', 2, "x", nonsense=3)
        self.refused("it is given when the session is opened", 2, "x", dtype="f32")
        self.refused("num_inference_steps", 2, "x", images="face.jpg", num_inference_steps=0)
        self.refused("nowhere.jpg", 3, "x", images="nowhere.jpg")
        self.refused("at most 10", 2, "x", images=["face.jpg"] * 11)
        for options, text in ((dict(prompt="x"), "set for each run"), (dict(device="gpu"), "gpu"), (dict(weights="sharded"), "one device")):
            with self.assertRaises(likeness.Error) as caught:
                likeness.Model("tiny", **options)
            self.assertIn(text, str(caught.exception))
        with self.assertRaises(likeness.Error):
            likeness.run("edit", "-m", "nowhere")

    def test_stops(self):
        with self.assertRaises(likeness.Interrupted) as caught:
            self.model("x", images="face.jpg", num_inference_steps=9, progress=lambda stage, step, n: step == 2)
        self.assertEqual(caught.exception.code, 130)

        def broken(*step):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            self.model("x", images="face.jpg", progress=broken)
        self.assertEqual(self.model("red hair", **EDIT).png, pathlib.Path("program.png").read_bytes())

    def test_threads_take_turns(self):
        pictures = []
        ask = threading.Thread(target=lambda: pictures.append(self.model("red hair", **EDIT).png))
        ask.start()
        pictures.append(self.model("red hair", **EDIT).png)
        ask.join()
        self.assertEqual(pictures, [pathlib.Path("program.png").read_bytes()] * 2)

    def test_memory_is_given_back(self):
        def once():
            with likeness.Model("tiny", threads=1) as model:
                model("red hair", images="face.jpg", seed=1, num_inference_steps=1)

        for _ in range(3):
            once()
        before = resident()
        for _ in range(10):
            once()
        self.assertLess(resident() - before, 8 << 20)
        closed = likeness.Model("tiny", threads=1)
        closed.close()
        closed.close()
        with self.assertRaises(likeness.Error):
            closed("x")


unittest.main()
