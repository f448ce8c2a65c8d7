# limit 280
# bf16 products beside all of cuBLASLt's answers
# needs bench_matrix
bench_matrix --dtype bf16 --seconds 250 --finalists 3 --out "$OUT/matrix16.json"
