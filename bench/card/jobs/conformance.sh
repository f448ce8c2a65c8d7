# limit 240
# kernel families against the interpreter, kernels that cheat, and what is marked as a test of a card
# needs test_cross_families test_cross_heavy test_fault_cheats
export THRICE_TEST_DEVICE=cuda:0
failed=0
for test in test_cross_families test_cross_heavy test_fault_cheats; do "$test" --gtest_brief=1 || failed=1; done
exit $failed
