// A file system that passes every call through to a folder and notes in the log of calls what changes a file or a name.
// It answers one call at a time, so the log is the order of what happened. It ends when its standard input does.
//   cc -O2 -o disk calls-of-disk.c $(pkg-config --cflags --libs fuse3) -lpthread
//   ./disk FOLDER MOUNTPOINT LOG
#define FUSE_USE_VERSION 31
#include "call-record.h"
#include <dirent.h>
#include <fuse3/fuse.h>
#include <fuse3/fuse_lowlevel.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/statvfs.h>

static char folder[PATH_MAX];

/** The path behind a path of this file system. One is enough at a time, two for a rename. */
static const char *behind(const char *path) {
  static char full[2][PATH_MAX * 2];
  static int turn = 0;
  turn = 1 - turn;
  snprintf(full[turn], sizeof full[turn], "%s%s", folder, path);
  return full[turn];
}
/** The path behind an open file, which may have lost its name. */
static const char *path_of(int fd) {
  static char path[PATH_MAX];
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n < 0 ? 0 : n] = 0;
  return path;
}
static int result_of(long result) { return result < 0 ? -errno : 0; }

/** What is made belongs to whoever asked. */
static void give(const char *path) {
  struct fuse_context *who = fuse_get_context();
  if (geteuid() == 0 && lchown(behind(path), who->uid, who->gid) != 0) abort();
}

static void *started(struct fuse_conn_info *connection, struct fuse_config *config) {
  (void)connection;
  config->use_ino = 1;
  config->hard_remove = 1;
  config->nullpath_ok = 1;
  config->entry_timeout = config->attr_timeout = 60;
  config->negative_timeout = 0;
  return NULL;
}

static int on_getattr(const char *path, struct stat *found, struct fuse_file_info *open) {
  return result_of(open ? fstat((int)open->fh, found) : lstat(behind(path), found));
}
static int on_readlink(const char *path, char *to, size_t size) {
  ssize_t n = readlink(behind(path), to, size - 1);
  if (n < 0) return -errno;
  to[n] = 0;
  return 0;
}
static int on_mkdir(const char *path, mode_t mode) {
  if (mkdir(behind(path), mode) != 0) return -errno;
  give(path);
  record(RECORD_FOLDER, 0, 0, behind(path), NULL, 0);
  return 0;
}
static int removed(const char *path, int result) {
  if (result != 0) return -errno;
  record(RECORD_REMOVE, 0, 0, behind(path), NULL, 0);
  return 0;
}
static int on_unlink(const char *path) { return removed(path, unlink(behind(path))); }
static int on_rmdir(const char *path) { return removed(path, rmdir(behind(path))); }
static int on_symlink(const char *to, const char *path) {
  if (symlink(to, behind(path)) != 0) return -errno;
  record(RECORD_UNKNOWN, 0, 0, "symlink", NULL, 0);
  return 0;
}
static int on_rename(const char *from, const char *to, unsigned flags) {
  const char *before = behind(from), *after = behind(to);
  if (renameat2(AT_FDCWD, before, AT_FDCWD, after, flags) != 0) return -errno;
  if ((flags & ~1u) != 0) record(RECORD_UNKNOWN, 0, flags, "renameat2", NULL, 0);
  else record(RECORD_RENAME, 0, 0, before, after, strlen(after));
  return 0;
}
static void named(int fd, const char *path) {
  record(RECORD_NAME, record_file_number(fd), 0, behind(path), NULL, 0);
}
static int on_link(const char *from, const char *to) {
  const char *before = behind(from), *after = behind(to);
  if (link(before, after) != 0) return -errno;
  int fd = open(after, O_PATH | O_NOFOLLOW);
  if (fd < 0) return -errno;
  named(fd, to);
  close(fd);
  return 0;
}
static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *open) {
  return result_of(open ? fchmod((int)open->fh, mode) : chmod(behind(path), mode));
}
static int on_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *open) {
  return result_of(open ? fchown((int)open->fh, uid, gid) : lchown(behind(path), uid, gid));
}
static int on_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *open) {
  return result_of(open ? futimens((int)open->fh, times) : utimensat(AT_FDCWD, behind(path), times, AT_SYMLINK_NOFOLLOW));
}
static int on_truncate(const char *path, off_t size, struct fuse_file_info *held) {
  int fd = held ? (int)held->fh : open(behind(path), O_WRONLY);
  if (fd < 0) return -errno;
  int result = result_of(ftruncate(fd, size));
  if (result == 0) record(RECORD_SIZE, record_file_number(fd), size, path_of(fd), NULL, 0);
  if (!held) close(fd);
  return result;
}
/** The system says itself where an appending write begins, and a write may need to read. */
static int flags_of(const struct fuse_file_info *file) {
  int flags = file->flags & ~(O_APPEND | O_EXCL | O_NOFOLLOW);
  return (flags & O_ACCMODE) == O_WRONLY ? (flags & ~O_ACCMODE) | O_RDWR : flags;
}
static int on_open(const char *path, struct fuse_file_info *file) {
  int fd = open(behind(path), flags_of(file) & ~O_CREAT);
  if (fd < 0) return -errno;
  if (file->flags & O_TRUNC) record(RECORD_SIZE, record_file_number(fd), 0, behind(path), NULL, 0);
  file->fh = (uint64_t)fd;
  return 0;
}
static int on_create(const char *path, mode_t mode, struct fuse_file_info *file) {
  int fd = open(behind(path), flags_of(file) | O_CREAT, mode);
  if (fd < 0) return -errno;
  give(path);
  named(fd, path);
  if (file->flags & O_TRUNC) record(RECORD_SIZE, record_file_number(fd), 0, behind(path), NULL, 0);
  file->fh = (uint64_t)fd;
  return 0;
}
static int on_read(const char *path, char *data, size_t n, off_t at, struct fuse_file_info *file) {
  (void)path;
  ssize_t got = pread((int)file->fh, data, n, at);
  return got < 0 ? -errno : (int)got;
}
static int on_write(const char *path, const char *data, size_t n, off_t at, struct fuse_file_info *file) {
  (void)path;
  int fd = (int)file->fh;
  ssize_t done = pwrite(fd, data, n, at);
  if (done < 0) return -errno;
  uint64_t number = record_file_number(fd);
  record(RECORD_WRITE, number, at, path_of(fd), data, (size_t)done);
  if (file->flags & O_DSYNC) {
    record(RECORD_SYNC_BEGIN, number, 0, "", NULL, 0);
    record(RECORD_SYNC_END, number, 0, "", NULL, 0);
  }
  return (int)done;
}
static int on_statfs(const char *path, struct statvfs *found) {
  (void)path;
  return result_of(statvfs(folder, found));
}
static int on_release(const char *path, struct fuse_file_info *file) {
  (void)path;
  return result_of(close((int)file->fh));
}
/** The log says what is on the disk. The real one need not have it. */
static int on_fsync(const char *path, int data_only, struct fuse_file_info *file) {
  (void)path, (void)data_only;
  int fd = (int)file->fh;
  uint64_t number = record_file_number(fd);
  record(RECORD_SYNC_BEGIN, number, 0, path_of(fd), NULL, 0);
  record(RECORD_SYNC_END, number, 0, path_of(fd), NULL, 0);
  return 0;
}
static int on_fallocate(const char *path, int how, off_t at, off_t n, struct fuse_file_info *file) {
  (void)path;
  int fd = (int)file->fh;
  if (fallocate(fd, how, at, n) != 0) return -errno;
  if (how == 0) record(RECORD_GROW, record_file_number(fd), at + n, path_of(fd), NULL, 0);
  else if (how != 1) record(RECORD_UNKNOWN, 0, how, "fallocate", NULL, 0);
  return 0;
}
static int on_opendir(const char *path, struct fuse_file_info *file) {
  int fd = open(behind(path), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return -errno;
  file->fh = (uint64_t)fd;
  return 0;
}
static int on_readdir(const char *path, void *list, fuse_fill_dir_t add, off_t at, struct fuse_file_info *file,
                      enum fuse_readdir_flags flags) {
  (void)path, (void)at, (void)flags;
  DIR *all = fdopendir(openat((int)file->fh, ".", O_RDONLY | O_DIRECTORY));
  if (all == NULL) return -errno;
  for (struct dirent *each; (each = readdir(all)) != NULL;) add(list, each->d_name, NULL, 0, 0);
  closedir(all);
  return 0;
}
static int on_fsyncdir(const char *path, int data_only, struct fuse_file_info *file) {
  (void)path, (void)data_only;
  record(RECORD_FOLDER_SYNC, 0, 0, path_of((int)file->fh), NULL, 0);
  return 0;
}

static const struct fuse_operations operations = {
  .init = started, .getattr = on_getattr, .readlink = on_readlink, .mkdir = on_mkdir, .unlink = on_unlink,
  .rmdir = on_rmdir, .symlink = on_symlink, .rename = on_rename, .link = on_link, .chmod = on_chmod, .chown = on_chown,
  .utimens = on_utimens, .truncate = on_truncate, .open = on_open, .create = on_create, .read = on_read,
  .write = on_write, .statfs = on_statfs, .release = on_release, .fsync = on_fsync, .fallocate = on_fallocate,
  .opendir = on_opendir, .readdir = on_readdir, .releasedir = on_release, .fsyncdir = on_fsyncdir,
};

/** Whoever started this is gone, or wants it to end. */
static void *until_told(void *session) {
  char byte;
  while (read(0, &byte, 1) > 0) {}
  fuse_session_exit(session);
  fuse_session_unmount(session);
  return NULL;
}

int main(int count, char **given) {
  if (count != 4 || realpath(given[1], folder) == NULL) return 2;
  umask(0);
  record_open(given[3]);
  char *words[] = {given[0], "-o", geteuid() == 0 ? "allow_other,default_permissions" : "default_permissions", NULL};
  struct fuse_args args = FUSE_ARGS_INIT(3, words);
  struct fuse *disk = fuse_new(&args, &operations, sizeof operations, NULL);
  if (disk == NULL || record_log < 0) return 2;
  if (fuse_mount(disk, given[2]) != 0) return 3;
  pthread_t waiter;
  if (pthread_create(&waiter, NULL, until_told, fuse_get_session(disk)) != 0) return 2;
  puts("mounted");
  fflush(stdout);
  fuse_loop(disk);
  fuse_destroy(disk);
  return 0;
}
