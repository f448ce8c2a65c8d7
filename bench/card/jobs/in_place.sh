# limit 200
# one network with and without results in place of operands, rule-chosen schedules: times and memory of both
# needs thrice zoo
for mode in off on; do
  thrice optimize "$CARD/data/zoo/resnet50.onnx" --dims batch=32 --random-weights 1 --no-tune --in-place $mode --device cuda:0 --json --quiet \
    --cache "$WORK/cache" --store "$WORK/store.sqlite" --output "$WORK/$mode.thrice" >"$OUT/in_place_$mode.json"
done
