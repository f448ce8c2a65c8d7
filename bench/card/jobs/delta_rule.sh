# limit 120
# linear attention with a gated delta rule: checked token by token, then timed
# needs thrice
nvcc -O2 -std=c++17 -I kernels -gencode=arch=compute_90a,code=sm_90a -o "$WORK/bench_delta_rule" bench/delta_rule.cu
"$WORK/bench_delta_rule" check
"$WORK/bench_delta_rule" json "$OUT/delta_rule.json"
