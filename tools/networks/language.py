"""Language and speech networks of transformers, from configurations with random weights; electra_small and llama_small have four layers."""
import torch

from .exporters import dynamo

IDS = {0: "batch", 1: "sequence"}


class Encoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]


class Decoder(Encoder):
    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


def text(wrapper, kind, model, output="last_hidden_state", **sizes):
    import transformers

    config = getattr(transformers, f"{kind}Config")(**sizes)
    net = wrapper(getattr(transformers, model)(config))
    ids = torch.randint(3, 1000, (2, 9))
    names = ["input_ids", "attention_mask"]
    return dynamo(net, (ids, torch.ones_like(ids)), (IDS, IDS), names, [output])


class CachedStep(torch.nn.Module):
    """One decoding step of a llama-like model: new tokens, keys and values of those before as inputs, the longer ones as outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, *past):
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        present = []
        for layer in result.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (result.logits, *present)


def cached_step():
    from torch.export import Dim
    from transformers import LlamaConfig, LlamaForCausalLM

    layers, heads, width = 6, 4, 64
    config = LlamaConfig(vocab_size=32000, hidden_size=512, intermediate_size=1376, num_hidden_layers=layers, num_attention_heads=8,
                         num_key_value_heads=heads, head_dim=width)
    past = [torch.randn(2, heads, 7, width) for _ in range(2 * layers)]
    names = [f"past_{kind}_{layer}" for layer in range(layers) for kind in ("key", "value")]
    outputs = ["logits", *(name.replace("past", "present") for name in names)]
    batch, before = Dim("batch"), Dim("past")
    dynamic = ({0: batch}, {0: batch, 1: before + 1}, tuple({0: batch, 2: before} for _ in past))
    example = (torch.randint(3, 1000, (2, 1)), torch.ones(2, 8, dtype=torch.int64), *past)
    program = torch.onnx.export(CachedStep(LlamaForCausalLM(config)).eval(), example, dynamo=True, opset_version=20, dynamic_shapes=dynamic,
                                input_names=["input_ids", "attention_mask", *names], output_names=outputs)
    return program.model_proto


class WhisperEncoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import WhisperConfig, WhisperModel

        config = WhisperConfig(d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6, decoder_attention_heads=6,
                               encoder_ffn_dim=1536, decoder_ffn_dim=1536)
        self.encoder = WhisperModel(config).encoder

    def forward(self, mel):
        return self.encoder(mel)[0]


def whisper():
    return dynamo(WhisperEncoder(), (torch.randn(2, 80, 3000),), ({0: "batch"},), ["mel"], ["last_hidden_state"])


LLAMA = {"vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 9,
         "num_key_value_heads": 3}

NETWORKS = {
    "distilbert": lambda: text(Encoder, "DistilBert", "DistilBertModel"),
    "roberta_base": lambda: text(Encoder, "Roberta", "RobertaModel"),
    "electra_small": lambda: text(Encoder, "Electra", "ElectraModel", num_hidden_layers=4),
    "llama_small": lambda: text(Decoder, "Llama", "LlamaForCausalLM", output="logits", **LLAMA),
    "llama_step": cached_step,
    "whisper_tiny_encoder": whisper,
}
