# limit 200
# attention, packed too, against the interpreter: rules, wgmma as a tactic, mma with windows
# needs test_cross_heavy
THRICE_TEST_DEVICE=cuda:0 test_cross_heavy --gtest_filter='*Attention*:*Packed*'
