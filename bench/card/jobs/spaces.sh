# limit 300
# configurations of float32 and bf16 products, recorded for the agents
# needs bench_record_spaces
bench_record_spaces --folder "$OUT" --device cuda:0 --cases matmul --limit 280
