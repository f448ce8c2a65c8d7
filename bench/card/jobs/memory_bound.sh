# limit 300
# operators that memory bounds beside a copy, PyTorch eager and compiled
# needs thrice
python3 bench/memory_bound.py --seconds 270 --work "$WORK" --output "$OUT/memory_bound.json"
