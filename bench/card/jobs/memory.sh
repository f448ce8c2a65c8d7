# limit 200
# device memory of whole networks beside PyTorch eager
# needs thrice
python3 bench/side_by_side.py --no-tune --only vit_b_16,bert_base,resnet50,mobilenet_v2 --rivals torch_eager --rounds 3 --work "$WORK" --output "$OUT/memory.json"
