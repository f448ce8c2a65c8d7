# limit 240
# ONNX's node tests, kernel families against the interpreter, and what is marked as a test of a card
# needs test_cross_families test_cross_heavy test_fault_cheats
failed=0
for test in test_cross_families test_cross_heavy test_fault_cheats; do $test --gtest_brief=1 || failed=1; done
exit $failed
