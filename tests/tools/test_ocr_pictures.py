"""Would catch a demo that reads words wrongly by itself: repeats, blanks, channel order, value range, letter table."""
import pathlib
import sys
import unittest

import numpy
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import ocr_pictures  # noqa: E402


def scores_of(classes, count):
    scores = numpy.zeros((1, len(classes), count), numpy.float32)
    scores[0, range(len(classes)), classes] = 1
    return scores


class OcrPictures(unittest.TestCase):
    def test_repeats_and_blanks(self):
        letters = ocr_pictures.letters_of({"character": "a\nb\nc"})
        self.assertEqual(letters, ["", "a", "b", "c", " "])
        self.assertEqual(ocr_pictures.words_of(scores_of([4, 1, 1, 0, 1, 2, 4, 3, 3, 0, 4], 5), letters), "aab c")

    def test_model_input(self):
        picture = Image.new("RGB", (7, ocr_pictures.HEIGHT), (255, 0, 128))
        tensor = ocr_pictures.model_input(picture)
        self.assertEqual((tensor.shape, tensor.dtype), ((1, 3, ocr_pictures.HEIGHT, 7), numpy.float32))
        # 128/255 is rounded to float32 near one half, then the half is taken away and the rest doubled: at most 2^-23 in all.
        numpy.testing.assert_allclose(tensor[0, :, 0, 0], [128 / 255 * 2 - 1, -1, 1], rtol=0, atol=2.0**-23)

    def test_pictures_have_many_widths(self):
        widths = {ocr_pictures.draw(words, font).size for words, font in ocr_pictures.LINES}
        self.assertGreaterEqual(len(widths), 6)
        self.assertTrue(all(height == ocr_pictures.HEIGHT for _, height in widths))


if __name__ == "__main__":
    unittest.main()
