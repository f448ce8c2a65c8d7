// The text form of trained agents.
#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "tune/prior.h"
#include "tune/shipped.h"

namespace thrice::tune {
namespace {

constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kLineNumbers = 48;  // 96 bytes, 128 letters

// IEEE half, to nearest; what is too small becomes zero.
uint16_t half_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const int exponent = static_cast<int>(bits >> 23 & 255) - 127 + 15;
  if (exponent <= 0) return sign;
  if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7bff);
  const uint32_t rounded = (static_cast<uint32_t>(exponent) << 10 | (bits >> 13 & 1023)) + (bits >> 12 & 1);
  return static_cast<uint16_t>(sign | std::min<uint32_t>(rounded, 0x7bff));
}
float float_of(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const float magnitude =
      exponent ? std::ldexp(1.0f + static_cast<float>(half & 1023) / 1024, exponent - 15) : 0.0f;
  return half & 0x8000 ? -magnitude : magnitude;
}

std::string encoded(const std::vector<float>& values) {
  std::string text;
  for (size_t begin = 0; begin < values.size(); begin += kLineNumbers) {
    uint32_t buffer = 0;
    int bits = 0;
    const auto push = [&](uint32_t byte) {
      buffer = buffer << 8 | byte;
      for (bits += 8; bits >= 6; bits -= 6) text += kDigits[buffer >> (bits - 6) & 63];
    };
    for (size_t i = begin; i < std::min(values.size(), begin + kLineNumbers); ++i) {
      const uint16_t half = half_of(values[i]);
      push(half & 255);
      push(half >> 8);
    }
    if (bits > 0) text += kDigits[buffer << (6 - bits) & 63];
    text += '\n';
  }
  return text;
}

struct Reader {
  const std::vector<std::string>& lines;
  size_t& at;
  [[noreturn]] void corrupt(const char* what) const {
    throw Error(Code::kCorrupt, fmt::format("line {} of the agent file: {}", at, what));
  }
  const std::string& next() {
    if (at >= lines.size()) corrupt("the file ends early");
    return lines[at++];
  }
  std::vector<float> numbers(size_t count) {
    std::vector<float> values;
    while (values.size() < count) {
      uint32_t buffer = 0;
      int bits = 0;
      std::vector<uint8_t> bytes;
      for (const char c : next()) {
        const char* digit = std::strchr(kDigits, c);
        if (!c || !digit) corrupt("a letter that is no digit of base64");
        buffer = buffer << 6 | static_cast<uint32_t>(digit - kDigits);
        if ((bits += 6) >= 8) bytes.push_back(static_cast<uint8_t>(buffer >> (bits -= 8) & 255));
      }
      if (bytes.size() < 2) corrupt("numbers are missing");
      for (size_t i = 0; i + 1 < bytes.size(); i += 2)
        values.push_back(float_of(static_cast<uint16_t>(bytes[i] | bytes[i + 1] << 8)));
    }
    if (values.size() != count) corrupt("too many numbers");
    return values;
  }
};

}  // namespace

std::string context_text(const Context& context) {
  std::string text;
  for (const auto& [name, value] : context)
    text += fmt::format("{}{}={:.4f}", text.empty() ? "" : " ", name, value);
  return text;
}

Context parse_context(const std::string& text) {
  Context context;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    if (const size_t is = word.find('='); is != std::string::npos) {
      char* end = nullptr;
      const double value = std::strtod(word.c_str() + is + 1, &end);
      if (!*end && std::isfinite(value)) context[word.substr(0, is)] = value;
    }
  return context;
}

std::string GroupNet::str() const {
  std::string text = fmt::format("group {}\ntrained {} {}\n", group_, tasks_, samples_);
  for (const Example& example : examples_) {
    text += fmt::format("task {}\n", context_text(example.context));
    for (const artifact::Schedule& schedule : example.best) text += fmt::format("best {}\n", schedule.str());
  }
  text += fmt::format("inputs {}\n", inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i)
    text += fmt::format("{} {:.6g} {:.6g}\n", inputs_[i], mean_[i], scale_[i]);
  text += fmt::format("members {}\n", members_.size());
  for (const Mlp& member : members_) text += encoded(member.parameters());
  return text;
}

GroupNet GroupNet::parse(const std::vector<std::string>& lines, size_t& at) {
  Reader reader{lines, at};
  GroupNet net;
  const std::string head = reader.next();
  if (head.rfind("group ", 0) != 0) reader.corrupt("'group NAME' expected");
  net.group_ = head.substr(6);
  std::string word;
  size_t count = 0;
  std::istringstream(reader.next()) >> word >> net.tasks_ >> net.samples_;
  if (word != "trained") reader.corrupt("'trained TASKS SAMPLES' expected");
  std::string line = reader.next();
  for (; line.rfind("task", 0) == 0 || line.rfind("best ", 0) == 0; line = reader.next())
    if (line[0] == 't')
      net.examples_.push_back({parse_context(line.substr(4)), {}});
    else if (net.examples_.empty())
      reader.corrupt("'task FACTS' expected");
    else
      net.examples_.back().best.push_back(artifact::Schedule::parse(line.substr(5)));
  std::istringstream(line) >> word >> count;
  if (word != "inputs" || count == 0 || count > 1000) reader.corrupt("'inputs N' expected");
  for (size_t i = 0; i < count; ++i) {
    std::string name;
    float mean = 0, scale = std::numeric_limits<float>::quiet_NaN();
    std::istringstream(reader.next()) >> name >> mean >> scale;
    if (name.size() < 3 || name[1] != ':' || std::isnan(scale))
      reader.corrupt("an input is 'p:NAME mean scale'");
    net.inputs_.push_back(name);
    net.mean_.push_back(mean);
    net.scale_.push_back(scale);
  }
  std::istringstream(reader.next()) >> word >> count;
  if (word != "members" || count == 0 || count > 16) reader.corrupt("'members N' expected");
  Rng rng(1);
  for (size_t m = 0; m < count; ++m) {
    Mlp& member = net.members_.emplace_back(net.inputs_.size(), 64, rng);
    member.set_parameters(reader.numbers(member.parameters().size()));
  }
  return net;
}

std::string Knowledge::str() const {
  std::string text = fmt::format("thrice agent\nfeatures {}\n", kFeatureVersion);
  for (const auto& net : nets) text += net->str();
  return text;
}

Knowledge Knowledge::parse(const std::string& text, const std::string& name) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.size() < 2 || lines[0] != "thrice agent")
    throw Error(Code::kCorrupt,
                fmt::format("'{}' is no agent file: its first line is not 'thrice agent'", name));
  if (lines[1] != fmt::format("features {}", kFeatureVersion))
    throw Error(Code::kUnsupported,
                fmt::format("'{}' was trained with other features ('{}', this thrice has {}): train it again",
                            name, lines[1], kFeatureVersion));
  Knowledge knowledge;
  try {
    for (size_t at = 2; at < lines.size();)
      knowledge.nets.push_back(std::make_shared<GroupNet>(GroupNet::parse(lines, at)));
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("'{}': {}", name, e.what()));
  }
  return knowledge;
}

const Knowledge& Knowledge::shipped() {
  static const Knowledge kShipped = parse(shipped_agent(), "the agent in this program");
  return kShipped;
}

}  // namespace thrice::tune
