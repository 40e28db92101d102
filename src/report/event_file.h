#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

// A run as TensorBoard reads it: an event file, `events.out.tfevents.*` in a folder of its own.
//
//   file    = record*
//   record  = length(8) checksum(length)(4) data(length) checksum(data)(4)       all little-endian
//   data    = a protobuf message Event: the version first, then one scalar in each
//
// Checksums are CRC-32C, masked: rotated right by 15 bits and 0xa282ead8 added, so that a checksum of data that holds
// checksums is no special case. Protobuf is written by hand: it is two small messages with six fields, against a
// dependency on protobuf, its compiler and TensorFlow's .proto files. Their numbers cannot change, as files of every
// year are read: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
namespace mayfly {

/// The event file of a `mayfly-view/1`. Scalars: loss/training, loss/validation, accuracy/validation, progress/samples,
/// machines/held, machines/training, money/usd; those that the view does not have are left out, and so are points that
/// are no finite numbers.
///
/// Events ascend in time. `start_unix`: seconds since 1970 at which the run's time is 0; not finite counts as 0. An
/// event's step is the number of samples trained by then, interpolated between the points of the view's progress. It
/// never falls, also where work was lost: TensorBoard draws over steps, and a line that goes back would be two.
/// Values beyond a 32-bit float are left out, as the format has no room for them.
std::string event_file(const Json& view, double start_unix);

/// CRC-32C (Castagnoli, reflected), as in iSCSI: RFC 3720. Of "123456789" it is 0xE3069283.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace mayfly
