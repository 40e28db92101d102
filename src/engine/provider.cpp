#include "engine/provider.h"

namespace mayfly {

ProgramEnd answer_to(const ProgramCall& question, Seconds patience) {
  Loop loop;
  ProgramEnd answer;
  Program program(loop, question.words, question.input, patience, [&](const ProgramEnd& end) { answer = end; });
  program.wait(patience);
  return answer;
}

}  // namespace mayfly
