// Preloaded into a program: each call that changes a file or a name below POWERLOSS_ROOT goes into the log at POWERLOSS_LOG,
// once it returned. It knows a file by its descriptor at the moment of the call, so it does not matter how a process came by it:
// opened, duplicated or inherited. Not seen: writes through a mapping, and calls that do not go through the C library.
//   cc -shared -fPIC -O2 -o calls.so calls-of-processes.c -ldl -lpthread
#include "call-record.h"
#include <dlfcn.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static char root[PATH_MAX];
static size_t root_bytes;
static pthread_mutex_t names = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
  const char *below = getenv("POWERLOSS_ROOT"), *log = getenv("POWERLOSS_LOG");
  if (below == NULL || log == NULL || realpath(below, root) == NULL) return;
  root_bytes = strlen(root);
  record_open(log);
}

/** A path that only begins with the same letters is not below it. */
static int is_below(const char *path) {
  return record_log >= 0 && strncmp(path, root, root_bytes) == 0 && (path[root_bytes] == '/' || path[root_bytes] == 0);
}

/** The path of an open file or folder, or 0. Whoever removed its name meanwhile leaves " (deleted)" at the end. */
static int path_of(int fd, char *path) {
  if (record_log < 0 || fd < 0) return 0;
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, PATH_MAX - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return is_below(path);
}

/** The same for a plain file only. */
static int file_of(int fd, char *path) {
  int saved = errno;
  struct stat found;
  int ours = record_log >= 0 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && path_of(fd, path);
  errno = saved;
  return ours;
}

/** The full path that a name has, or will have: its folder is there. */
static int full_path(int dir, const char *name, char *path) {
  if (record_log < 0) return 0;
  int saved = errno, ours = 0;
  char given[PATH_MAX], folder[PATH_MAX], from[PATH_MAX] = ".";
  if (name[0] != '/' && dir != AT_FDCWD) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t n = readlink(link, from, PATH_MAX - 1);
    from[n < 0 ? 0 : n] = 0;
  }
  size_t length = strlen(name);
  while (length > 1 && name[length - 1] == '/') length -= 1;
  if (name[0] == '/') snprintf(given, sizeof given, "%.*s", (int)length, name);
  else snprintf(given, sizeof given, "%s/%.*s", from, (int)length, name);
  char *slash = strrchr(given, '/');
  if (slash != NULL) {
    char last[NAME_MAX + 1];
    snprintf(last, sizeof last, "%s", slash + 1);
    *(slash == given ? slash + 1 : slash) = 0;
    if (realpath(given, folder) != NULL) {
      snprintf(path, PATH_MAX, "%s/%s", folder, last);
      ours = is_below(path);
    }
  }
  errno = saved;
  return ours;
}

/** Names change one at a time, over all processes: the log has them in the order in which they came about. */
static void hold_names(void) {
  pthread_mutex_lock(&names);
  if (record_log >= 0) flock(record_log, LOCK_EX);
}
static void free_names(void) {
  int saved = errno;
  if (record_log >= 0) flock(record_log, LOCK_UN);
  pthread_mutex_unlock(&names);
  errno = saved;
}

static void opened(int fd, int flags) {
  char path[PATH_MAX];
  if (fd < 0 || !(flags & (O_CREAT | O_TRUNC)) || !file_of(fd, path)) return;
  uint64_t file = record_file_number(fd);
  if (flags & O_CREAT) record(RECORD_NAME, file, 0, path, NULL, 0);
  if (flags & O_TRUNC) record(RECORD_SIZE, file, 0, path, NULL, 0);
}

#define OPEN(name, parameters, call)                 \
  int name parameters {                              \
    mode_t mode = 0;                                 \
    if (flags & (O_CREAT | O_TMPFILE)) {             \
      va_list rest;                                  \
      va_start(rest, flags);                         \
      mode = va_arg(rest, mode_t);                   \
      va_end(rest);                                  \
    }                                                \
    if (!(flags & O_CREAT)) {                        \
      int fd = REAL(name) call;                      \
      opened(fd, flags);                             \
      return fd;                                     \
    }                                                \
    hold_names();                                    \
    int fd = REAL(name) call;                        \
    opened(fd, flags);                               \
    free_names();                                    \
    return fd;                                       \
  }
OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }

/** A file that was opened with O_SYNC or O_DSYNC is on the disk when the write returns. */
static void wrote(int fd, const char *path, int64_t at, const void *data, size_t bytes) {
  uint64_t file = record_file_number(fd);
  record(RECORD_WRITE, file, at, path, data, bytes);
  if ((fcntl(fd, F_GETFL) & O_DSYNC) == 0) return;
  record(RECORD_SYNC_BEGIN, file, 0, path, NULL, 0);
  record(RECORD_SYNC_END, file, 0, path, NULL, 0);
}

/** Where the last write to this descriptor began. */
static int64_t begin_of(int fd, ssize_t bytes) { return lseek(fd, 0, SEEK_CUR) - bytes; }

#define WRITE(name, parameters, call, at)                             \
  ssize_t name parameters {                                           \
    ssize_t done = REAL(name) call;                                   \
    char path[PATH_MAX];                                              \
    int saved = errno;                                                \
    if (done > 0 && file_of(fd, path)) wrote(fd, path, at, data, (size_t)done); \
    errno = saved;                                                    \
    return done;                                                      \
  }
WRITE(write, (int fd, const void *data, size_t n), (fd, data, n), begin_of(fd, done))
WRITE(pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), at)
WRITE(pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at), at)

/** In one piece, as the file has it. */
static void wrote_parts(int fd, const char *path, int64_t at, const struct iovec *parts, size_t bytes) {
  char *data = malloc(bytes);
  if (data == NULL) abort();
  for (size_t done = 0, i = 0; done < bytes; i++) {
    size_t n = parts[i].iov_len < bytes - done ? parts[i].iov_len : bytes - done;
    memcpy(data + done, parts[i].iov_base, n);
    done += n;
  }
  wrote(fd, path, at, data, bytes);
  free(data);
}
#define WRITE_PARTS(name, parameters, call, at)                                       \
  ssize_t name parameters {                                                           \
    ssize_t done = REAL(name) call;                                                   \
    char path[PATH_MAX];                                                              \
    int saved = errno;                                                                \
    if (done > 0 && file_of(fd, path)) wrote_parts(fd, path, at, parts, (size_t)done); \
    errno = saved;                                                                    \
    return done;                                                                      \
  }
#define AT_OR_HERE (at == -1 ? begin_of(fd, done) : at)
WRITE_PARTS(writev, (int fd, const struct iovec *parts, int n), (fd, parts, n), begin_of(fd, done))
WRITE_PARTS(pwritev, (int fd, const struct iovec *parts, int n, off_t at), (fd, parts, n, at), at)
WRITE_PARTS(pwritev64, (int fd, const struct iovec *parts, int n, off64_t at), (fd, parts, n, at), at)
WRITE_PARTS(pwritev2, (int fd, const struct iovec *parts, int n, off_t at, int flags), (fd, parts, n, at, flags), AT_OR_HERE)
WRITE_PARTS(pwritev64v2, (int fd, const struct iovec *parts, int n, off64_t at, int flags), (fd, parts, n, at, flags), AT_OR_HERE)

/** What the system itself moved into a file is read back from it. */
static void moved(int fd, int64_t at, size_t bytes) {
  char path[PATH_MAX];
  if (!file_of(fd, path)) return;
  char again[64], *data = malloc(bytes);
  if (data == NULL) abort();
  // The descriptor may be for writing only.
  snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
  int reader = (int)syscall(SYS_openat, AT_FDCWD, again, O_RDONLY | O_CLOEXEC, 0);
  ssize_t got = pread(reader, data, bytes, at);
  if (got > 0) wrote(fd, path, at, data, (size_t)got);
  syscall(SYS_close, reader);
  free(data);
}
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags) {
  ssize_t done = REAL(copy_file_range)(from, from_at, to, to_at, n, flags);
  int saved = errno;
  if (done > 0) moved(to, to_at == NULL ? begin_of(to, done) : *to_at - done, (size_t)done);
  errno = saved;
  return done;
}
#define SENDFILE(name, offset)                                     \
  ssize_t name(int to, int from, offset *at, size_t n) {           \
    ssize_t done = REAL(name)(to, from, at, n);                    \
    int saved = errno;                                             \
    struct stat found;                                             \
    if (done > 0 && fstat(to, &found) == 0 && S_ISREG(found.st_mode)) moved(to, begin_of(to, done), (size_t)done); \
    errno = saved;                                                 \
    return done;                                                   \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)
int ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  int result = REAL(ioctl)(fd, request, argument);
  int saved = errno;
  struct stat found;
  if (result == 0 && request == FICLONE && fstat(fd, &found) == 0) moved(fd, 0, (size_t)found.st_size);
  errno = saved;
  return result;
}
/** Node asks for this one without the library's function. */
long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_copy_file_range)
    return copy_file_range((int)a[0], (off64_t *)a[1], (int)a[2], (off64_t *)a[3], (size_t)a[4], (unsigned)a[5]);
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int sized(int result, int fd, uint32_t kind, int64_t size) {
  char path[PATH_MAX];
  if (result == 0 && file_of(fd, path)) record(kind, record_file_number(fd), size, path, NULL, 0);
  return result;
}
int ftruncate(int fd, off_t size) { return sized(REAL(ftruncate)(fd, size), fd, RECORD_SIZE, size); }
int ftruncate64(int fd, off64_t size) { return sized(REAL(ftruncate64)(fd, size), fd, RECORD_SIZE, size); }
int posix_fallocate(int fd, off_t at, off_t n) { return sized(REAL(posix_fallocate)(fd, at, n), fd, RECORD_GROW, at + n); }
int posix_fallocate64(int fd, off64_t at, off64_t n) { return sized(REAL(posix_fallocate64)(fd, at, n), fd, RECORD_GROW, at + n); }

static int allocated(int result, int fd, int how, int64_t end) {
  char path[PATH_MAX];
  // With FALLOC_FL_KEEP_SIZE alone nothing is to be seen of it.
  if (result != 0 || how == 1 || !file_of(fd, path)) return result;
  if (how == 0) return sized(result, fd, RECORD_GROW, end);
  record(RECORD_UNKNOWN, 0, how, "fallocate", NULL, 0);
  return result;
}
int fallocate(int fd, int how, off_t at, off_t n) { return allocated(REAL(fallocate)(fd, how, at, n), fd, how, at + n); }
int fallocate64(int fd, int how, off64_t at, off64_t n) { return allocated(REAL(fallocate64)(fd, how, at, n), fd, how, at + n); }
static int cut_by_path(int result, const char *name) {
  char path[PATH_MAX];
  if (result == 0 && full_path(AT_FDCWD, name, path)) record(RECORD_UNKNOWN, 0, 0, "truncate", NULL, 0);
  return result;
}
int truncate(const char *path, off_t size) { return cut_by_path(REAL(truncate)(path, size), path); }
int truncate64(const char *path, off64_t size) { return cut_by_path(REAL(truncate64)(path, size), path); }

/** Only what was written before the sync began is surely on the disk when it ends. */
static int synced(int (*sync)(int), int fd) {
  char path[PATH_MAX];
  struct stat found;
  int ours = record_log >= 0 && fstat(fd, &found) == 0 && path_of(fd, path);
  if (!ours) return sync(fd);
  uint64_t file = record_file_number(fd);
  if (!S_ISDIR(found.st_mode)) {
    record(RECORD_SYNC_BEGIN, file, 0, path, NULL, 0);
    int result = sync(fd);
    if (result == 0) record(RECORD_SYNC_END, file, 0, path, NULL, 0);
    return result;
  }
  hold_names();
  int result = sync(fd);
  if (result == 0) record(RECORD_FOLDER_SYNC, 0, 0, path, NULL, 0);
  free_names();
  return result;
}
int fsync(int fd) { return synced(REAL(fsync), fd); }
int fdatasync(int fd) { return synced(REAL(fdatasync), fd); }

static int moved_name(int result, int ours, const char *from, const char *to) {
  if (result == 0 && ours) record(RECORD_RENAME, 0, 0, from, to, strlen(to));
  return result;
}
#define RENAME(name, parameters, call, from_dir, to_dir)                                      \
  int name parameters {                                                                       \
    char before[PATH_MAX], after[PATH_MAX];                                                   \
    int ours = full_path(from_dir, from, before) && full_path(to_dir, to, after);             \
    hold_names();                                                                             \
    int result = moved_name(REAL(name) call, ours, before, after);                            \
    free_names();                                                                             \
    return result;                                                                            \
  }
RENAME(rename, (const char *from, const char *to), (from, to), AT_FDCWD, AT_FDCWD)
RENAME(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), a, b)
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  if ((flags & ~1u) == 0) {
    char before[PATH_MAX], after[PATH_MAX];
    int ours = full_path(a, from, before) && full_path(b, to, after);
    hold_names();
    int result = moved_name(REAL(renameat2)(a, from, b, to, flags), ours, before, after);
    free_names();
    return result;
  }
  record(RECORD_UNKNOWN, 0, flags, "renameat2", NULL, 0);
  return REAL(renameat2)(a, from, b, to, flags);
}

#define NAMED(name, parameters, call, dir, file, kind)                  \
  int name parameters {                                                 \
    char path[PATH_MAX];                                                \
    int ours = full_path(dir, file, path);                              \
    hold_names();                                                       \
    int result = REAL(name) call;                                       \
    if (result == 0 && ours) record(kind, 0, 0, path, NULL, 0);         \
    free_names();                                                       \
    return result;                                                      \
  }
NAMED(unlink, (const char *file), (file), AT_FDCWD, file, RECORD_REMOVE)
NAMED(unlinkat, (int dir, const char *file, int flags), (dir, file, flags), dir, file, RECORD_REMOVE)
NAMED(rmdir, (const char *file), (file), AT_FDCWD, file, RECORD_REMOVE)
NAMED(remove, (const char *file), (file), AT_FDCWD, file, RECORD_REMOVE)
NAMED(mkdir, (const char *file, mode_t mode), (file, mode), AT_FDCWD, file, RECORD_FOLDER)
NAMED(mkdirat, (int dir, const char *file, mode_t mode), (dir, file, mode), dir, file, RECORD_FOLDER)
NAMED(symlink, (const char *to, const char *file), (to, file), AT_FDCWD, file, RECORD_UNKNOWN)

static int linked(int result, const char *path) {
  if (result != 0) return result;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) return result;
  record(RECORD_NAME, record_file_number(fd), 0, path, NULL, 0);
  syscall(SYS_close, fd);
  return result;
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
  char path[PATH_MAX];
  int ours = full_path(b, to, path);
  hold_names();
  int result = REAL(linkat)(a, from, b, to, flags);
  if (ours) linked(result, path);
  free_names();
  return result;
}
int link(const char *from, const char *to) {
  char path[PATH_MAX];
  int ours = full_path(AT_FDCWD, to, path);
  hold_names();
  int result = REAL(link)(from, to);
  if (ours) linked(result, path);
  free_names();
  return result;
}
