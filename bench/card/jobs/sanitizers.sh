# limit 300
# compute-sanitizer over kernels' tests: memcheck, synccheck, racecheck, initcheck
# needs test_cross_heavy test_cross_families
export THRICE_TEST_DEVICE=cuda:0
run() { echo "== $1 $2 $3"; timeout 120 compute-sanitizer --tool "$1" --report-api-errors no "$CARD/bin/$2" --gtest_brief=1 --gtest_filter="$3" 2>&1 | tail -n 4; }
run memcheck test_cross_heavy 'Attention.*:Wgmma16.*' &
run memcheck test_cross_heavy 'Mma.*:Wgmma.*' &
run memcheck test_cross_families '*' &
run synccheck test_cross_heavy 'Attention.*:Wgmma16.*' &
run racecheck test_cross_heavy 'Attention.AtEveryLength:Mma.Shares*' &
run initcheck test_cross_heavy 'Attention.AtEveryLength:Mma.Shares*:Wgmma.EveryTile' &
wait
