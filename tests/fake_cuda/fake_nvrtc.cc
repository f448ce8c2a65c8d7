// Mock of libnvrtc.so.12 for the fake driver beside it: a "binary" is the source text under a first line that
// the fake driver asks for. A source with the word `does_not_build` fails.
#include <cstring>
#include <string>

struct Program {
  std::string text, log;
};

extern "C" {
int nvrtcVersion(int* major, int* minor) {
  *major = 12;
  *minor = 8;
  return 0;
}
const char* nvrtcGetErrorString(int code) {
  return code == 6 ? "NVRTC_ERROR_COMPILATION" : "said by the fake NVRTC";
}
int nvrtcCreateProgram(Program** program, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{std::string("// fake cubin\n") + text, ""};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  if (program->text.find("does_not_build") == std::string::npos) return 0;
  program->log = "kernel.cu: the fake NVRTC was told so";
  return 6;
}
int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* to) {
  std::memcpy(to, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->text.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  std::memcpy(to, program->text.data(), program->text.size());
  return 0;
}
int nvrtcGetPTXSize(Program* program, size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }
int nvrtcGetPTX(Program* program, char* to) { return nvrtcGetCUBIN(program, to); }
}
