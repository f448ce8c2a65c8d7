"""Text pictures for the demo, in the form that PP-OCRv4's recognition model takes, and the way back from its scores to words."""
import pathlib

import numpy
from PIL import Image, ImageDraw, ImageFont

HEIGHT = 48  # pixels: the model's fixed input height
FONT_SIZE = 33
MARGIN = 10  # pixels left and right of the text
# (words, font): short to long, so that a dozen different widths reach the model.
LINES = [
    ("Hello", "DejaVuSans"),
    ("OpenCL 1.2", "LiberationSans-Regular"),
    ("three times faster", "DejaVuSans"),
    ("Invoice No. 2026-1130", "LiberationSans-Regular"),
    ("measure, check, then believe", "DejaVuSans"),
    ("Total 1,284.50 EUR due in 14 days", "LiberationSans-Regular"),
    ("The quick brown fox jumps over the lazy dog", "DejaVuSans"),
    ("Kernels are generated for the device at hand, once", "LiberationSans-Regular"),
]
FONT_FOLDERS = ("/usr/share/fonts/truetype", "/usr/share/fonts")


def find_font(name: str) -> str:
    for folder in FONT_FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob(f"{name}.ttf")):
            return str(path)
    raise SystemExit(f"demo: the font {name}.ttf is not installed; run tools/setup.sh --demo")


def draw(words: str, font: str) -> Image.Image:
    """Black words on white, HEIGHT pixels high and as wide as the words need."""
    face = ImageFont.truetype(find_font(font), FONT_SIZE)
    left, _, right, _ = face.getbbox(words)
    picture = Image.new("RGB", (right - left + 2 * MARGIN, HEIGHT), "white")
    ImageDraw.Draw(picture).text((MARGIN - left, HEIGHT / 2), words, font=face, fill="black", anchor="lm")
    return picture


def model_input(picture: Image.Image) -> numpy.ndarray:
    """[1, 3, HEIGHT, width] float32 in [-1, 1], channels blue, green, red."""
    pixels = numpy.asarray(picture, numpy.float32)[:, :, ::-1] / 255
    return numpy.ascontiguousarray((pixels.transpose(2, 0, 1)[None] - 0.5) / 0.5)


def letters_of(metadata: dict[str, str]) -> list[str]:
    """Class index -> letter: 0 is the blank, the last one the space; between them the letters in the model's own metadata."""
    return ["", *metadata["character"].splitlines(), " "]


def words_of(scores: numpy.ndarray, letters: list[str]) -> str:
    """Greedy CTC reading of [1, steps, classes]: best class a step, repeats joined, blanks dropped, margins trimmed."""
    best = scores[0].argmax(1)
    changed = numpy.concatenate(([True], best[1:] != best[:-1]))
    return "".join(letters[index] for index in best[changed] if index).strip()
