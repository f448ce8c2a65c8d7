# limit 180
# requests of random length: buckets, one schedule, padded
# needs thrice ocr
python3 bench/lengths.py --thrice "$THRICE_EXECUTABLE" "$(ls "$CARD"/data/ocr/*rec*.onnx)" --shape x=1,3,48,width --symbol width \
  --lengths uniform:100-960 --budget 40s --device cuda:0 --output "$OUT/lengths.json"
