# limit 240
# agents that tune live: final speed and time to it
# needs bench_live_agents
bench_live_agents --device cuda:0 --limit 220 --folder "$WORK" --out "$OUT/live_agents.json"
