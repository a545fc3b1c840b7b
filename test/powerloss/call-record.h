// How one call on a file is written into the log of calls: by calls-of-processes.c and by calls-of-disk.c, read by call-log.ts.
// A record is this head, then the path, then the data, in the byte order of the machine. Each is appended by one write, so
// several processes may share the log.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RECORD_MAGIC 0x31434c54u

// The numbers are those of KINDS in call-log.ts.
enum {
  RECORD_NAME = 1,     // this path is a name of this file
  RECORD_WRITE,        // data at an offset
  RECORD_SIZE,         // the offset is the new size of the file
  RECORD_SYNC_BEGIN,   // what comes after this is not part of the sync
  RECORD_SYNC_END,     // what came before the begin is on the disk
  RECORD_FOLDER_SYNC,  // the names in this folder are on the disk
  RECORD_RENAME,       // the data is the new path
  RECORD_REMOVE,       // this path is no name any more
  RECORD_FOLDER,       // a folder was made
  RECORD_GROW,         // the file is at least as long as the offset
  RECORD_UNKNOWN,      // a call that changes a file and is not understood; the path says which
};

struct record_head {
  uint32_t magic;
  uint32_t kind;
  uint32_t process;
  uint32_t path_bytes;
  uint64_t data_bytes;
  uint64_t file;
  int64_t offset;
};

/** Where the log is; -1 when nothing is recorded. */
static int record_log = -1;

static void record_open(const char *file) {
  record_log = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void record(uint32_t kind, uint64_t file, int64_t offset, const char *path, const void *data, size_t bytes) {
  if (record_log < 0) return;
  int saved = errno;
  struct record_head head = {RECORD_MAGIC, kind, (uint32_t)getpid(), (uint32_t)strlen(path), bytes, file, offset};
  size_t all = sizeof head + head.path_bytes + bytes;
  char *text = malloc(all);
  if (text == NULL) abort();
  memcpy(text, &head, sizeof head);
  memcpy(text + sizeof head, path, head.path_bytes);
  if (bytes > 0) memcpy(text + sizeof head + head.path_bytes, data, bytes);
  // A log with a hole would be believed: rather end the program that is recorded.
  if (syscall(SYS_write, record_log, text, all) != (long)all) abort();
  free(text);
  errno = saved;
}

/** A number is used again once its file is gone, so the time of birth belongs to it. `fileNumber` in call-log.ts does the same. */
static uint64_t record_file_number(int fd) {
  struct statx found;
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &found) != 0) return 0;
  return found.stx_ino * 1000003u ^ ((uint64_t)found.stx_btime.tv_sec * 1000000000u + found.stx_btime.tv_nsec);
}
