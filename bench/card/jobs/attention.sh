# limit 240
# attention through the product beside PyTorch's back ends: 16 bits, float32, and steps of a decoder
# needs thrice
python3 bench/attention.py --work "$WORK" --output "$OUT/attention.json"
