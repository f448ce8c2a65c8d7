# limit 280
# where optimize --no-tune spends its time, cold and warm
# needs thrice zoo
python3 bench/phases.py --thrice "$THRICE_EXECUTABLE" --zoo "$CARD/data/zoo" --device cuda:0 --limit 60 --work "$WORK" --output "$OUT/phases.json"
