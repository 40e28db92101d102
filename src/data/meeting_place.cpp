#include "data/meeting_place.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstring>
#include <new>
#include <thread>

#include "base/check.h"

namespace mayfly {

/// At the beginning of the memory.
struct MeetingPlace::Head {
  static constexpr std::uint64_t kMagic = 0x3154'454d'4c46'594d;  // "MYFLMET1"
  std::uint64_t magic = 0;
  std::uint64_t key = 0;
  std::uint64_t common_bytes = 0;
  std::uint64_t own_bytes = 0;
  pthread_mutex_t mutex{};
  std::atomic<std::uint32_t> changes = 0;
};

namespace {

constexpr std::size_t kPage = 4096;
constexpr Seconds kAskAgain{0.02};  ///< for the lock
constexpr off_t kDoor = 0;          ///< the byte of the file whose lock is the door's; member m's is 1 + m

std::size_t rounded(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// A lock of an open file goes with its process, however that ends, and never becomes another process's, as a process
// number may.
struct flock byte_lock(off_t byte, off_t count = 1) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = count;
  return lock;
}
bool take_byte(int file, off_t byte) {
  auto lock = byte_lock(byte);
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}
void give_byte(int file, off_t byte) {
  auto lock = byte_lock(byte);
  lock.l_type = F_UNLCK;
  ::fcntl(file, F_OFD_SETLK, &lock);
}
/// By another process.
bool byte_taken(int file, off_t byte, off_t count = 1) {
  auto lock = byte_lock(byte, count);
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool can_lock(int file) {
  auto lock = byte_lock(kDoor);
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0;
}

bool take_door(int file, Seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!take_byte(file, kDoor)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool fit_for_a_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

timespec time_of(Seconds seconds) {
  const double whole = std::floor(seconds.count());
  return {.tv_sec = static_cast<time_t>(whole), .tv_nsec = static_cast<long>((seconds.count() - whole) * 1e9)};
}

void make_mutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&mutex, &kind);
  ::pthread_mutexattr_destroy(&kind);
}

}  // namespace

MeetingPlace::MeetingPlace(std::string path, int file, const Options& options)
    : path_(std::move(path)),
      file_(file),
      common_bytes_(rounded(options.common_bytes)),
      own_bytes_(rounded(options.own_bytes)),
      patience_(options.patience) {}

MeetingPlace::~MeetingPlace() {
  if (self_ >= 0 && take_door(file_, patience_)) {
    if (only_member()) abandon();
  }
  if (memory_ != nullptr) ::munmap(memory_, rounded(sizeof(Head)) + common_bytes_ + kMembers * own_bytes_);
  ::close(file_);
}

Result<std::unique_ptr<MeetingPlace>> MeetingPlace::enter(const Options& options) {
  if (!fit_for_a_name(options.name))
    return fail("'{}' is no name to share by, want up to 64 letters, digits, '-', '_' and '.'",
                options.name.substr(0, 80));
  const auto path = fmt::format("/dev/shm/mayfly-{}-{}", ::geteuid(), options.name);
  // Each turn finds that the file was removed by the last to leave, or removes one whose door is held for ever.
  for (int turn = 0; turn < 20; ++turn) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return fail("{}: {}", path, std::strerror(errno));
    std::unique_ptr<MeetingPlace> place(new MeetingPlace(path, file, options));
    struct stat status{};
    if (::fstat(file, &status) != 0 || status.st_uid != ::geteuid()) return fail("{}: it is another user's", path);
    if (!can_lock(file)) return fail("{}: locks: {}", path, std::strerror(errno));
    if (!take_door(file, options.patience)) {
      place->abandon();
      continue;
    }
    if (!place->has_name()) continue;
    auto inside = place->come_in(options);
    if (!inside && place->self_ < 0 && place->only_member()) place->abandon();
    give_byte(file, kDoor);
    if (!inside) return fail("{}: {}", path, inside.error().message);
    return place;
  }
  return fail("{}: nobody gets in", path);
}

Result<void> MeetingPlace::come_in(const Options& options) {
  const auto size = rounded(sizeof(Head)) + common_bytes_ + kMembers * own_bytes_;
  const bool empty = only_member();
  if (empty && (::ftruncate(file_, 0) != 0 || ::ftruncate(file_, static_cast<off_t>(size)) != 0 ||
                ::posix_fallocate(file_, 0, static_cast<off_t>(rounded(sizeof(Head)) + common_bytes_)) != 0))
    return fail("no memory for {} bytes: {}", common_bytes_, std::strerror(errno));
  struct stat status{};
  if (::fstat(file_, &status) != 0 || status.st_size < static_cast<off_t>(rounded(sizeof(Head))))
    return fail("what others share there is of another kind");
  // Of a place that others made in other sizes only the head is looked at.
  auto* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) return fail("mapping {} bytes: {}", size, std::strerror(errno));
  memory_ = static_cast<std::byte*>(memory);
  if (empty) {
    auto* fresh = new (memory_)
        Head{.magic = Head::kMagic, .key = options.key, .common_bytes = common_bytes_, .own_bytes = own_bytes_};
    make_mutex(fresh->mutex);
  }
  const auto& there = head();
  if (there.magic != Head::kMagic || there.key != options.key || there.common_bytes != common_bytes_ ||
      there.own_bytes != own_bytes_)
    return fail("what others share there is of another kind");
  return take_seat();
}

Result<void> MeetingPlace::take_seat() {
  for (int member = 0; member < kMembers && self_ < 0; ++member) {
    if (take_byte(file_, 1 + member)) self_ = member;
  }
  if (self_ < 0) return fail("{} share it already", kMembers);
  const auto own = static_cast<off_t>(part(self_).data() - memory_);
  // Memory that is not there would end the process at its first use.
  if (const int error = ::posix_fallocate(file_, own, static_cast<off_t>(own_bytes_)); error != 0)
    return fail("{} bytes of shared memory: {}", own_bytes_, std::strerror(error));
  return {};
}

bool MeetingPlace::only_member() const { return !byte_taken(file_, 1, kMembers); }

bool MeetingPlace::has_name() const {
  struct stat own{}, named{};
  return ::fstat(file_, &own) == 0 && ::stat(path_.c_str(), &named) == 0 && own.st_ino == named.st_ino &&
         own.st_dev == named.st_dev;
}

void MeetingPlace::abandon() {
  if (has_name()) ::unlink(path_.c_str());
}

MeetingPlace::Head& MeetingPlace::head() const { return *reinterpret_cast<Head*>(memory_); }

bool MeetingPlace::alive(int member) const { return member == self_ || byte_taken(file_, 1 + member); }

std::span<std::byte> MeetingPlace::common() const { return {memory_ + rounded(sizeof(Head)), common_bytes_}; }

std::span<std::byte> MeetingPlace::part(int member) const {
  return {memory_ + rounded(sizeof(Head)) + common_bytes_ + static_cast<std::size_t>(member) * own_bytes_, own_bytes_};
}

// Asks again every little while: a waiter that is killed in the moment it is woken takes the waking with it, and
// neither the kernel nor the C library tells the next (no process has the lock then, or it was taken by one that saw no
// waiters).
bool MeetingPlace::lock() {
  const auto end = std::chrono::steady_clock::now() + patience_;
  int error = ETIMEDOUT;
  while (error == ETIMEDOUT) {
    const auto now = std::chrono::steady_clock::now();
    if (now > end) return false;
    const auto until = time_of(Seconds(now.time_since_epoch()) + kAskAgain);
    error = ::pthread_mutex_clocklock(&head().mutex, CLOCK_MONOTONIC, &until);
  }
  if (error == EOWNERDEAD) ::pthread_mutex_consistent(&head().mutex);
  MAYFLY_CHECK(error == 0 || error == EOWNERDEAD, "a mutex that can be locked");
  return true;
}

void MeetingPlace::unlock(bool changed) {
  if (changed) head().changes.fetch_add(1);
  ::pthread_mutex_unlock(&head().mutex);
  if (changed) ::syscall(SYS_futex, &head().changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint32_t MeetingPlace::changes() const { return head().changes.load(); }

// Not a condition variable: a waiter that is killed leaves one of those in a state in which its signaller may hang.
void MeetingPlace::await_change(std::uint32_t since, Seconds limit) const {
  const auto time = time_of(limit);
  ::syscall(SYS_futex, &head().changes, FUTEX_WAIT, since, &time, nullptr, 0);
}

}  // namespace mayfly
