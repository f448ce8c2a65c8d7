# limit 150
# padded batches served packed beside padded ones
# needs thrice zoo
python3 bench/packed.py --model "$CARD/data/zoo/minilm_l6.onnx" --device cuda:0 --batches 8,32,64 --work "$WORK" --output "$OUT/packed.json"
