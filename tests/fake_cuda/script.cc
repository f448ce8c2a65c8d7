#include "script.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace fake_cuda {
namespace {

void read_uuid(const std::string& text, Card& card) {
  std::string digits;
  for (const char c : text)
    if (c != '-') digits += c;
  digits.resize(32, '0');
  for (size_t i = 0; i < 16; ++i)
    card.uuid[i] = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
}

void read_line(const std::string& line, Script& script, size_t& at) {
  std::istringstream words(line);
  std::string key, text;
  if (!(words >> key) || key[0] == '#') return;
  std::getline(words >> std::ws, text);
  std::istringstream values(text);
  const auto card = [&]() -> Card& { return script.cards.at(at); };
  if (key == "driver") {
    script.driver = std::stoi(text);
  } else if (key == "init") {
    script.init = std::stoi(text);
  } else if (key == "cards") {
    script.cards.resize(std::stoul(text));
  } else if (key == "card") {
    at = std::stoul(text);
  } else if (key == "name") {
    card().name = text;
  } else if (key == "uuid") {
    read_uuid(text, card());
  } else if (key == "memory") {
    card().memory = std::stoull(text);
  } else if (key == "sm") {
    values >> card().major >> card().minor;
  } else if (key == "units") {
    card().units = std::stoi(text);
  } else if (key == "fail") {
    Failure f;
    if (!(values >> f.function >> f.from >> f.code)) throw std::invalid_argument(line);
    values >> f.count;
    script.failures.push_back(f);
  } else {
    throw std::invalid_argument("fake_cuda: " + line);
  }
}

}  // namespace

Script parse(const std::string& text) {
  Script script;
  size_t card = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) read_line(line, script, card);
  return script;
}

}  // namespace fake_cuda
