/* Preloaded into a process: counts what it does to the files below a folder, and from a given
 * operation on lets all of them fail with an errno, or kills the process, a write being half done.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char below[PATH_MAX];
static int at = -1, code, count, lock_code;
static char log_text[1 << 16];

void disk_fault(const char *folder, int from, int error) {
  snprintf(below, sizeof below, "%s", folder);
  at = from;
  code = error;
  count = 0;
  log_text[0] = 0;
}

/* From now on no file is locked. */
void disk_without_locks(int error) { lock_code = error; }

const char *disk_log(void) { return log_text; }

static int ours(const char *path) {
  size_t size = strlen(below);
  return at >= 0 && strncmp(path, below, size) == 0 && (path[size] == '/' || !path[size]);
}

/* Whether operation `name` on `path` is to fail; one that ends the process is begun by `half`. */
static int fails(const char *name, const char *path, int fd, const void *data, size_t size, off_t where) {
  if (!ours(path)) return 0;
  const char *plain = strrchr(path, '/');
  size_t used = strlen(log_text);
  snprintf(log_text + used, sizeof log_text - used, "%s %s\n", name, plain ? plain + 1 : path);
  if (count++ < at) return 0;
  if (code == 0) {
    if (data) {
      ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
      (void)!real(fd, data, size / 2, where);
    }
    kill(getpid(), SIGKILL);
  }
  errno = code;
  return 1;
}

static const char *path_of(int fd) {
  static char path[PATH_MAX];
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  path[size < 0 ? 0 : size] = 0;
  return path;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t where) {
  if (at >= 0 && fails("write", path_of(fd), fd, data, size, where)) return -1;
  return REAL(pwrite64)(fd, data, size, where);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t where) {
  if (at >= 0 && fails("write", path_of(fd), fd, data, size, where)) return -1;
  return REAL(pwrite)(fd, data, size, where);
}

ssize_t write(int fd, const void *data, size_t size) {
  if (at >= 0 && fails("write", path_of(fd), fd, data, size, lseek(fd, 0, SEEK_CUR))) return -1;
  return REAL(write)(fd, data, size);
}

int fsync(int fd) {
  if (at >= 0 && fails("sync", path_of(fd), fd, NULL, 0, 0)) return -1;
  return REAL(fsync)(fd);
}

int fdatasync(int fd) {
  if (at >= 0 && fails("sync", path_of(fd), fd, NULL, 0, 0)) return -1;
  return REAL(fdatasync)(fd);
}

int ftruncate64(int fd, off64_t size) {
  if (at >= 0 && fails("cut", path_of(fd), fd, NULL, 0, 0)) return -1;
  return REAL(ftruncate64)(fd, size);
}

int ftruncate(int fd, off_t size) {
  if (at >= 0 && fails("cut", path_of(fd), fd, NULL, 0, 0)) return -1;
  return REAL(ftruncate)(fd, size);
}

int unlink(const char *path) {
  if (at >= 0 && fails("unlink", path, -1, NULL, 0, 0)) return -1;
  return REAL(unlink)(path);
}

int mkdir(const char *path, mode_t mode) {
  if (at >= 0 && fails("mkdir", path, -1, NULL, 0, 0)) return -1;
  return REAL(mkdir)(path, mode);
}

static int locks(const char *name, int fd, int cmd, void *argument) {
  int asks = cmd == F_SETLK || cmd == F_SETLKW;
  if (lock_code && asks && ((struct flock *)argument)->l_type != F_UNLCK) {
    errno = lock_code;
    return -1;
  }
  int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
  return real(fd, cmd, argument);
}

int fcntl(int fd, int cmd, ...) {
  va_list rest;
  va_start(rest, cmd);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  return locks("fcntl", fd, cmd, argument);
}

int fcntl64(int fd, int cmd, ...) {
  va_list rest;
  va_start(rest, cmd);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  return locks("fcntl64", fd, cmd, argument);
}

static int opens(const char *name, const char *path, int flags, mode_t mode) {
  if (at >= 0 && (flags & (O_CREAT | O_TRUNC)) && fails("open", path, -1, NULL, 0, 0)) return -1;
  int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, name);
  return real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opens("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opens("open64", path, flags, mode);
}
