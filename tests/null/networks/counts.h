// What the greedy plan of each exported network holds at most: regions it launches, and stops for the host. A
// better planner lowers them; tests/null/networks/import_and_plan.cc prints a network's line when they
// change.
#pragma once
#include <map>
#include <string>

namespace thrice::test {

struct Counts {
  int regions = 0, host = 0;
};

// clang-format off
inline const std::map<std::string, Counts> kKnownCounts = {
    {"alexnet", {12, 0}},
    {"bert_base", {201, 0}},
    {"conformer_ctc", {110, 0}},
    {"conv_tasnet", {91, 0}},
    {"convnext_tiny", {87, 0}},
    {"deeplabv3_mobilenet", {90, 0}},
    {"densenet121", {187, 0}},
    {"distilbert", {103, 0}},
    {"dlrm", {17, 0}},
    {"efficientnet_b0", {115, 0}},
    {"efficientnet_v2_s", {232, 0}},
    {"electra_small", {72, 0}},
    {"fcn_resnet50", {57, 0}},
    {"fcos_resnet50", {217, 0}},
    {"googlenet", {80, 0}},
    {"gpt2", {225, 0}},
    {"inception_v3", {119, 0}},
    {"llama_small", {85, 0}},
    {"llama_step", {123, 2}},
    {"lraspp_mobilenet", {85, 0}},
    {"minilm_l6", {106, 0}},
    {"mnasnet1_0", {54, 0}},
    {"mobilenet_v2", {54, 0}},
    {"mobilenet_v3_large", {81, 0}},
    {"mobilenet_v3_small", {73, 0}},
    {"quantised_cnn", {7, 0}},
    {"regnet_y_400mf", {119, 0}},
    {"resnet101", {107, 0}},
    {"resnet18", {23, 0}},
    {"resnet50", {56, 0}},
    {"resnext50_32x4d", {56, 0}},
    {"retinanet_resnet50", {126, 0}},
    {"roberta_base", {201, 0}},
    {"shufflenet_v2_x1_0", {104, 0}},
    {"squeezenet1_1", {38, 0}},
    {"ssdlite320_mobilenet", {128, 0}},
    {"super_resolution", {4, 0}},
    {"train_cnn", {31, 0}},
    {"train_mlp", {22, 0}},
    {"train_transformer", {76, 0}},
    {"two_towers", {11, 0}},
    {"unet", {31, 0}},
    {"vgg16", {22, 0}},
    {"vit_b_16", {232, 0}},
    {"voice_gru", {5, 1}},
    {"voice_gru_fixed", {16, 0}},
    {"voice_lstm", {5, 1}},
    {"voice_lstm_fixed", {16, 0}},
    {"whisper_tiny_encoder", {63, 0}},
    {"wide_and_deep", {7, 0}},
    {"wide_resnet50_2", {56, 0}},
};
// clang-format on

}  // namespace thrice::test
