#pragma once

namespace mayfly {

/// One call for each alternative of a variant: std::visit does not compile while one is missing.
template <class... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};
template <class... Calls>
Overloaded(Calls...) -> Overloaded<Calls...>;

template <class Answer, class Unused>
struct IgnoringOne {
  Answer operator()(const Unused& /*ignored*/) const { return Answer(); }
};
/// The calls for alternatives that their receiver has no use for, by name: among those of an Overloaded.
template <class Answer, class... Unused>
struct Ignoring : IgnoringOne<Answer, Unused>... {
  using IgnoringOne<Answer, Unused>::operator()...;
};

}  // namespace mayfly
