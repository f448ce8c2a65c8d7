# limit 400
# whole networks beside PyTorch eager and torch.compile, rule-chosen schedules
# needs thrice
python3 bench/side_by_side.py --no-tune --rounds 15 --work "$WORK" --output "$OUT/skeleton.json"
