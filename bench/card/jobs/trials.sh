# limit 120
# trials a second in a machine's first process, and later
# needs bench_trials
bench_trials --device cuda:0 --shape 1024x1024x1024 --trials 96 --passes 2 --where worker --out "$OUT/trials.json"
