# limit 280
# the planners greedy and dp on the same networks
# needs thrice zoo
python3 bench/planners.py --device cuda:0 --zoo "$CARD/data/zoo" --rounds 3 --output "$OUT/planners.json"
