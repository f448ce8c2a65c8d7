# limit 300
# two runs of optimize from cold: how equal they chose, what differs timed against each other
# needs thrice bench_choices zoo
model=$CARD/data/zoo/resnet50.onnx
for run in a b; do
  thrice optimize "$model" --dims batch=1 --random-weights 1 --trials 1500 --budget 140s --device cuda:0 --json --quiet --cache "$WORK/$run" \
    --store "$WORK/$run.sqlite" --record "$WORK/$run.csv" --output "$WORK/$run.thrice" >"$WORK/$run.json"
done
python3 bench/same_choices.py "$WORK/a.json" "$WORK/b.json" --records "$WORK/a.csv" "$WORK/b.csv" --out "$OUT/same_choices.json"
bench_choices "$model" "$WORK/a.json" "$WORK/b.json" --device cuda:0 --dims batch=1 --out "$OUT/choices.json"
