# limit 200
# the three OCR models at five sizes each beside their original plans
# needs thrice ocr
python3 bench/ocr_sizes.py --thrice "$THRICE_EXECUTABLE" --models "$CARD/data/ocr" --budget 8s --device cuda:0 --output "$OUT/ocr.json"
