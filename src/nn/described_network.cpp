#include "nn/described_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "data/safetensors.h"

namespace mayfly {
namespace {

using torch::Tensor;

class DescribedNetwork final : public Network {
 public:
  DescribedNetwork(std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers)
      : parameters_(std::move(parameters)), buffers_(std::move(buffers)) {}

  Tensor forward(const Tensor& /*inputs*/) override {
    MAYFLY_CHECK(false, "a network that is only described computes nothing");
    return {};
  }
  std::vector<NamedTensor> parameters() override { return parameters_; }
  std::vector<NamedTensor> buffers() override { return buffers_; }
  void set_training(bool /*training*/) override {}
  void move_to(torch::Device device) override { MAYFLY_CHECK(device.is_cpu(), "servers keep parameters in memory"); }

 private:
  std::vector<NamedTensor> parameters_, buffers_;
};

/// The names of one kind, in the order of the flat layout.
Result<std::vector<std::string>> names_of(const TensorFile& content, const std::string& kind, const std::string& file) {
  const auto note = content.notes.find(kind);
  const Json list = note == content.notes.end() ? Json() : Json::parse(note->second, nullptr, false);
  if (!list.is_array()) return fail("{}: no description of a network: want a list of names in '{}'", file, kind);
  std::vector<std::string> names;
  for (const Json& name : list) {
    if (!name.is_string() || content.find(name.get<std::string>()) == nullptr)
      return fail("{}: '{}' names a tensor that is not there", file, kind);
    names.push_back(name.get<std::string>());
  }
  return names;
}

Result<NamedTensor> tensor_of(const TensorView& view, const std::string& file) {
  if (view.dtype != "F32" && view.dtype != "I64")
    return fail("{}: {} holds {}, want F32 or I64: servers hold no others", file, view.name, view.dtype);
  auto tensor = torch::empty(view.shape, view.dtype == "F32" ? torch::kFloat : torch::kInt64);
  std::copy(view.bytes.begin(), view.bytes.end(), static_cast<std::byte*>(tensor.data_ptr()));
  return NamedTensor{.name = view.name, .tensor = std::move(tensor)};
}

}  // namespace

Result<std::unique_ptr<Network>> load_described_network(const std::filesystem::path& file) {
  const auto content = load_safetensors(file);
  if (!content) return unexpected(content.error());
  const auto trained = names_of(*content, "trained", file.string());
  if (!trained) return unexpected(trained.error());
  const auto held = names_of(*content, "buffers", file.string());
  if (!held) return unexpected(held.error());
  std::vector<NamedTensor> parameters, frozen, buffers;
  for (const auto* names : {&*trained, &*held}) {
    for (const std::string& name : *names) {
      auto tensor = tensor_of(*content->find(name), file.string());
      if (!tensor) return unexpected(tensor.error());
      if (names == &*trained) tensor->tensor.set_requires_grad(true);
      (names == &*trained ? parameters : buffers).push_back(*std::move(tensor));
    }
  }
  for (const TensorView& view : content->tensors) {
    const auto is_named = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), view.name) != names.end();
    };
    if (is_named(*trained) || is_named(*held)) continue;
    auto tensor = tensor_of(view, file.string());
    if (!tensor) return unexpected(tensor.error());
    frozen.push_back(*std::move(tensor));
  }
  parameters.insert(parameters.end(), frozen.begin(), frozen.end());
  return std::make_unique<DescribedNetwork>(std::move(parameters), std::move(buffers));
}

}  // namespace mayfly
