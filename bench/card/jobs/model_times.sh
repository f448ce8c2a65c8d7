# limit 300
# whole networks at other batches and in bf16, by thrice alone
# needs thrice zoo
python3 bench/model_times.py --zoo "$CARD/data/zoo" --work "$WORK" --output "$OUT/models.json"
