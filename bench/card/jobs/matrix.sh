# limit 280
# float32 products beside cuBLASLt in both layouts, with bursts and lasting load
# needs bench_matrix
bench_matrix --seconds 250 --finalists 3 --out "$OUT/matrix.json"
