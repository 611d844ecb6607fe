/*
 * A disk that records all changes to one folder, or fails on demand. It is preloaded (LD_PRELOAD) into the executable and
 * its child processes. test/torture/disk-shim.ts compiles it and writes its control file; disk-log.ts reads its log.
 *
 * VAULT_DISK_ROOT    the folder: an absolute path without symbolic links. Other files are not affected.
 * VAULT_DISK_LOG     a file outside the folder that records each change under it with its content: everything that a power
 *                    cut could lose, and what was made durable (fsync, fdatasync, also of directories). Several processes
 *                    share a log, in the order of the operations.
 * VAULT_DISK_FAULTS  a control file outside the folder, read before each operation, so that faults can begin and end while
 *                    a program runs. It may be missing. Each line is a fault:
 *
 *                        OPERATION ERROR PATTERN [skip=N] [times=N]
 *
 *                    OPERATION is open, read, write, sync, truncate, name (rename, link, unlink, mkdir, rmdir), look (stat,
 *                    access, readlink, statfs), list (of a directory), or change (write, truncate, name, and open if it
 *                    creates or may change a file). ERROR is ENOSPC, EDQUOT, EIO, EROFS, EACCES, EMFILE or ENFILE; or
 *                    WAIT: then the operation waits until the fault is gone; or SLOW: then it takes half a second. PATTERN
 *                    (fnmatch) is matched with the path inside the folder; `*` matches everything, including subfolders.
 *                    The first N matches of each process succeed (skip), and N more fail (times), if given. Replace the
 *                    file by a rename, so that no process reads half of it.
 * VAULT_DISK_SEEN    a file outside the folder to which each process appends every operation and path that it has not
 *                    named before, as a line with a tab: what a program does with which file. Replace the file by a rename to
 *                    begin again.
 *
 * Memory-mapped writes are not recorded. In a vault that is only SQLite's -shm, which is rebuilt from the log.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define WATCHED_FDS 65536
#define MAX_FAULTS 32

/* An open file under the folder. Never freed, because another thread may still use it, and there are few. */
struct watched {
  char path[PATH_MAX];
  uint64_t inode;
  dev_t device;
};

/* No error of the system has these numbers. */
#define WAIT (-1)
#define SLOW (-2)

struct fault {
  char operation[16];
  int error;
  char pattern[256];
  long skip;
  long times;
};

static struct watched *watched[WATCHED_FDS];
static char root[PATH_MAX];
static size_t root_length;
static const char *log_path;
static int log_fd = -1;
static pid_t log_owner;
static const char *faults_path;
static struct timespec faults_time;
static ino_t faults_inode;
static struct fault faults[MAX_FAULTS];
static int fault_count;
static const char *seen_path;
static uint64_t seen[8192];
static ino_t seen_inode;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    static const char said[] = "disk-shim: the C library lacks a function\n";
    (void)!REAL(write)(2, said, sizeof said - 1);
    abort();
  }
  return found;
}

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("VAULT_DISK_ROOT");
  log_path = getenv("VAULT_DISK_LOG");
  faults_path = getenv("VAULT_DISK_FAULTS");
  seen_path = getenv("VAULT_DISK_SEEN");
  if (folder == NULL || strlen(folder) >= sizeof root) return;
  strcpy(root, folder);
  root_length = strlen(root);
}

/* The path inside the folder, in `inside` (PATH_MAX); "" for the folder itself. Returns whether it is there at all. */
static int is_inside(int directory, const char *path, char *inside) {
  char whole[2 * PATH_MAX];
  if (root_length == 0 || path == NULL) return 0;
  if (path[0] == '/') {
    if (strlen(path) >= PATH_MAX) return 0;
    strcpy(whole, path);
  } else {
    char base[PATH_MAX] = "";
    if (directory == AT_FDCWD) {
      if (getcwd(base, sizeof base) == NULL) return 0;
    } else {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
      ssize_t length = readlink(link, base, sizeof base - 1);
      if (length < 0) return 0;
      base[length] = 0;
    }
    snprintf(whole, sizeof whole, "%s/%s", base, path);
  }
  if (strncmp(whole, root, root_length) != 0) return 0;
  if (whole[root_length] != 0 && whole[root_length] != '/') return 0;
  const char *rest = whole + root_length;
  while (*rest == '/') rest++;
  if (strlen(rest) >= PATH_MAX) return 0;
  strcpy(inside, rest);
  size_t length = strlen(inside);
  while (length > 0 && inside[length - 1] == '/') inside[--length] = 0;
  return 1;
}

/* libuv closes with the raw system call, so a descriptor may have been reused by another file. */
static struct watched *file_of(int fd) {
  struct watched *file = fd < 0 || fd >= WATCHED_FDS ? NULL : __atomic_load_n(&watched[fd], __ATOMIC_ACQUIRE);
  struct stat status;
  int kept = errno;
  if (file != NULL && (fstat(fd, &status) != 0 || status.st_ino != file->inode || status.st_dev != file->device)) {
    __atomic_store_n(&watched[fd], NULL, __ATOMIC_RELEASE);
    file = NULL;
  }
  errno = kept;
  return file;
}

static void watch(int fd, const char *path) {
  struct stat status;
  if (fd >= WATCHED_FDS || fstat(fd, &status) != 0) return;
  struct watched *file = malloc(sizeof *file);
  if (file == NULL) return;
  strcpy(file->path, path);
  file->inode = status.st_ino;
  file->device = status.st_dev;
  __atomic_store_n(&watched[fd], file, __ATOMIC_RELEASE);
}

/* Faults */

static int error_named(const char *name) {
  static const struct { const char *name; int error; } known[] = {
    {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EIO", EIO},       {"EROFS", EROFS},
    {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"WAIT", WAIT},
    {"SLOW", SLOW},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(name, known[i].name) == 0) return known[i].error;
  return EIO;
}

static void read_faults(void) {
  struct stat status;
  if (stat(faults_path, &status) != 0) {
    fault_count = 0;
    faults_inode = 0;
    return;
  }
  if (status.st_ino == faults_inode && status.st_mtim.tv_sec == faults_time.tv_sec &&
      status.st_mtim.tv_nsec == faults_time.tv_nsec)
    return;
  faults_inode = status.st_ino;
  faults_time = status.st_mtim;
  fault_count = 0;
  int fd = REAL(open)(faults_path, O_RDONLY | O_CLOEXEC);
  char text[8192] = "";
  ssize_t length = fd < 0 ? 0 : REAL(read)(fd, text, sizeof text - 1);
  if (fd >= 0) REAL(close)(fd);
  text[length < 0 ? 0 : length] = 0;
  char *rest = text;
  for (char *line; (line = strsep(&rest, "\n")) != NULL && fault_count < MAX_FAULTS;) {
    struct fault *fault = &faults[fault_count];
    char error[16];
    if (sscanf(line, "%15s %15s %255s", fault->operation, error, fault->pattern) != 3) continue;
    fault->error = error_named(error);
    const char *skip = strstr(line, " skip="), *times = strstr(line, " times=");
    fault->skip = skip == NULL ? 0 : atol(skip + 6);
    fault->times = times == NULL ? LONG_MAX : atol(times + 7);
    fault_count++;
  }
}

/* The error for this operation, or 0, or WAIT. */
static int fault_now(const char *operation, int changes, const char *path) {
  if (faults_path == NULL) return 0;
  int kept = errno, error = 0;
  pthread_mutex_lock(&lock);
  read_faults();
  for (int i = 0; i < fault_count && error == 0; i++) {
    struct fault *fault = &faults[i];
    int meant = strcmp(fault->operation, operation) == 0 || (changes && strcmp(fault->operation, "change") == 0);
    if (!meant || fnmatch(fault->pattern, path, 0) != 0) continue;
    if (fault->skip > 0) fault->skip--;
    else if (fault->times > 0) {
      if (fault->error != WAIT) fault->times--;
      error = fault->error;
    }
  }
  pthread_mutex_unlock(&lock);
  errno = kept;
  return error;
}

/* Tells once what is done with a path. Of more than half of the table, the rest is told again and again. */
static void tell(const char *operation, const char *path) {
  if (seen_path == NULL) return;
  char line[PATH_MAX + 32];
  int length = snprintf(line, sizeof line, "%s\t%s\n", operation, path);
  uint64_t hash = 1469598103934665603u;
  for (int i = 0; i < length; i++) hash = (hash ^ (unsigned char)line[i]) * 1099511628211u;
  const size_t places = sizeof seen / sizeof *seen;
  int kept = errno;
  struct stat status;
  pthread_mutex_lock(&lock);
  if (REAL(stat)(seen_path, &status) == 0 && status.st_ino != seen_inode) {
    memset(seen, 0, sizeof seen);
    seen_inode = status.st_ino;
  }
  size_t place = hash % places, tried = 0;
  while (seen[place] != 0 && seen[place] != hash && tried++ < places / 2) place = (place + 1) % places;
  if (seen[place] != hash) {
    if (seen[place] == 0) seen[place] = hash;
    int fd = REAL(open)(seen_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
      (void)!REAL(write)(fd, line, length);
      REAL(close)(fd);
    }
  }
  pthread_mutex_unlock(&lock);
  errno = kept;
}

/* The error for this operation, or 0. */
static int fault_for(const char *operation, int changes, const char *path) {
  tell(operation, path);
  for (;;) {
    int error = fault_now(operation, changes, path);
    if (error == SLOW) {
      usleep(500000);
      return 0;
    }
    if (error != WAIT) return error;
    usleep(2000);
  }
}

#define FAIL_IF_DUE(operation, changes, path)                \
  do {                                                       \
    int due = fault_for(operation, changes, path);           \
    if (due != 0) {                                          \
      errno = due;                                           \
      return -1;                                             \
    }                                                        \
  } while (0)

/* The log. Each record is one append, written while the operation still holds the lock. */

struct record {
  uint32_t size; /* of all of it */
  uint16_t path_size, other_size;
  uint64_t inode;
  int64_t offset;
  char type;
  char pad[7];
};

static void take_turn(void) {
  if (log_path == NULL) return;
  pthread_mutex_lock(&lock);
  if (log_fd < 0 || log_owner != getpid()) {
    int fd = REAL(open)(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    log_fd = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 500);
    if (log_fd >= 0) REAL(close)(fd);
    else log_fd = fd;
    log_owner = getpid();
  }
  while (flock(log_fd, LOCK_EX) != 0 && errno == EINTR) continue;
}

static void end_turn(void) {
  if (log_path == NULL) return;
  int kept = errno;
  flock(log_fd, LOCK_UN);
  pthread_mutex_unlock(&lock);
  errno = kept;
}

static void note(char type, const char *path, const char *other, uint64_t inode, int64_t offset,
                 const struct iovec *data, int count, size_t length) {
  if (log_path == NULL) return;
  int kept = errno;
  struct record record = {.type = type, .inode = inode, .offset = offset};
  struct iovec parts[3 + 64] = {{&record, sizeof record}};
  int used = 1;
  record.path_size = path == NULL ? 0 : strlen(path);
  record.other_size = other == NULL ? 0 : strlen(other);
  if (record.path_size > 0) parts[used++] = (struct iovec){(void *)path, record.path_size};
  if (record.other_size > 0) parts[used++] = (struct iovec){(void *)other, record.other_size};
  size_t total = sizeof record + record.path_size + record.other_size + length;
  for (int i = 0; i < count && length > 0; i++) {
    if (used == sizeof parts / sizeof *parts) abort();
    size_t size = data[i].iov_len < length ? data[i].iov_len : length;
    parts[used++] = (struct iovec){data[i].iov_base, size};
    length -= size;
  }
  record.size = total;
  if (REAL(writev)(log_fd, parts, used) != (ssize_t)total) {
    static const char said[] = "disk-shim: the log cannot be written\n";
    (void)!REAL(write)(2, said, sizeof said - 1);
    abort();
  }
  errno = kept;
}

/* Opening and closing */

static int opened(int directory, const char *path, int flags, mode_t mode) {
  char inside[PATH_MAX];
  if (!is_inside(directory, path, inside)) return REAL(openat)(directory, path, flags, mode);
  int changes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  FAIL_IF_DUE("open", changes, inside);
  take_turn();
  int fd = REAL(openat)(directory, path, flags, mode);
  if (fd >= 0) {
    watch(fd, inside);
    struct watched *file = file_of(fd);
    if (file != NULL && (flags & O_CREAT) != 0) note('C', inside, NULL, file->inode, 0, NULL, 0, 0);
    if (file != NULL && (flags & O_TRUNC) != 0) note('T', inside, NULL, file->inode, 0, NULL, 0, 0);
  }
  end_turn();
  return fd;
}

#define MODE_OF(flags)                                       \
  mode_t mode = 0;                                           \
  if ((flags) & (O_CREAT | O_TMPFILE)) {                     \
    va_list more;                                            \
    va_start(more, flags);                                   \
    mode = va_arg(more, mode_t);                             \
    va_end(more);                                            \
  }

int open(const char *path, int flags, ...) { MODE_OF(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE_OF(flags) return opened(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE_OF(flags) return opened(dir, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int close(int fd) {
  if (file_of(fd) != NULL) __atomic_store_n(&watched[fd], NULL, __ATOMIC_RELEASE);
  return REAL(close)(fd);
}

/* Reading */

#define READING(type, name, fd, parameters, arguments)       \
  type name parameters {                                     \
    struct watched *file = file_of(fd);                      \
    if (file != NULL) FAIL_IF_DUE("read", 0, file->path);    \
    return REAL(name) arguments;                             \
  }

READING(ssize_t, read, fd, (int fd, void *to, size_t size), (fd, to, size))
READING(ssize_t, pread, fd, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
READING(ssize_t, pread64, fd, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
READING(ssize_t, readv, fd, (int fd, const struct iovec *to, int count), (fd, to, count))
READING(ssize_t, preadv, fd, (int fd, const struct iovec *to, int count, off_t at), (fd, to, count, at))
READING(ssize_t, preadv64, fd, (int fd, const struct iovec *to, int count, off64_t at), (fd, to, count, at))

/* Writing. `at` is -1 for the file's own position. */

static ssize_t written(int fd, const struct iovec *from, int count, off64_t at) {
  struct watched *file = file_of(fd);
  if (file == NULL) return at < 0 ? REAL(writev)(fd, from, count) : REAL(pwritev64)(fd, from, count, at);
  FAIL_IF_DUE("write", 1, file->path);
  take_turn();
  ssize_t done = at < 0 ? REAL(writev)(fd, from, count) : REAL(pwritev64)(fd, from, count, at);
  if (done > 0) {
    off64_t start = at < 0 ? lseek64(fd, 0, SEEK_CUR) - done : at;
    note('W', NULL, NULL, file->inode, start, from, count, done);
  }
  end_turn();
  return done;
}

ssize_t write(int fd, const void *from, size_t size) {
  if (file_of(fd) == NULL) return REAL(write)(fd, from, size);
  return written(fd, &(struct iovec){(void *)from, size}, 1, -1);
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
  if (file_of(fd) == NULL) return REAL(pwrite64)(fd, from, size, at);
  return written(fd, &(struct iovec){(void *)from, size}, 1, at);
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { return pwrite64(fd, from, size, at); }
ssize_t writev(int fd, const struct iovec *from, int count) {
  if (file_of(fd) == NULL) return REAL(writev)(fd, from, count);
  return written(fd, from, count, -1);
}
ssize_t pwritev64(int fd, const struct iovec *from, int count, off64_t at) { return written(fd, from, count, at); }
ssize_t pwritev(int fd, const struct iovec *from, int count, off_t at) { return written(fd, from, count, at); }

int ftruncate64(int fd, off64_t size) {
  struct watched *file = file_of(fd);
  if (file == NULL) return REAL(ftruncate64)(fd, size);
  FAIL_IF_DUE("truncate", 1, file->path);
  take_turn();
  int result = REAL(ftruncate64)(fd, size);
  if (result == 0) note('T', NULL, NULL, file->inode, size, NULL, 0, 0);
  end_turn();
  return result;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

/* Making durable. Skips the real fsync while recording, because the power cut is only simulated. */

static int synced(int fd, int (*sync)(int)) {
  struct watched *file = file_of(fd);
  if (file == NULL) return sync(fd);
  FAIL_IF_DUE("sync", 0, file->path);
  if (log_path == NULL) return sync(fd);
  take_turn();
  note('S', file->path, NULL, file->inode, 0, NULL, 0, 0);
  end_turn();
  return 0;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

/* Names */

static int named(char type, int from_dir, const char *from, int to_dir, const char *to, int flags, mode_t mode) {
  char path[PATH_MAX] = "", other[PATH_MAX] = "";
  int inside = is_inside(from_dir, from, path) | (to != NULL && is_inside(to_dir, to, other));
  if (inside) FAIL_IF_DUE("name", 1, path);
  if (inside && other[0] != 0) FAIL_IF_DUE("name", 1, other);
  if (inside) take_turn();
  int result = type == 'N'   ? REAL(renameat2)(from_dir, from, to_dir, to, flags)
               : type == 'L' ? REAL(linkat)(from_dir, from, to_dir, to, flags)
               : type == 'D' ? REAL(mkdirat)(from_dir, from, mode)
                             : REAL(unlinkat)(from_dir, from, flags);
  if (inside && result == 0) note(type, path, other, 0, 0, NULL, 0, 0);
  if (inside) end_turn();
  return result;
}

int rename(const char *from, const char *to) { return named('N', AT_FDCWD, from, AT_FDCWD, to, 0, 0); }
int renameat(int a, const char *from, int b, const char *to) { return named('N', a, from, b, to, 0, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  return named('N', a, from, b, to, flags, 0);
}
int link(const char *from, const char *to) { return named('L', AT_FDCWD, from, AT_FDCWD, to, 0, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) { return named('L', a, from, b, to, flags, 0); }
int mkdir(const char *path, mode_t mode) { return named('D', AT_FDCWD, path, 0, NULL, 0, mode); }
int mkdirat(int dir, const char *path, mode_t mode) { return named('D', dir, path, 0, NULL, 0, mode); }
int unlink(const char *path) { return named('U', AT_FDCWD, path, 0, NULL, 0, 0); }
int unlinkat(int dir, const char *path, int flags) { return named('U', dir, path, 0, NULL, flags, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
  int result = unlink(path);
  return result != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(path) : result;
}

/* Looking and listing */

/* `failed` is what the function returns with an error. */
#define FAULTY(operation, type, failed, name, directory, path, parameters, arguments) \
  type name parameters {                                                       \
    char inside[PATH_MAX];                                                     \
    if (is_inside(directory, path, inside)) {                                  \
      int due = fault_for(operation, 0, inside);                               \
      if (due != 0) {                                                          \
        errno = due;                                                           \
        return failed;                                                         \
      }                                                                        \
    }                                                                          \
    return REAL(name) arguments;                                               \
  }

#define LOOKING(type, failed, name, directory, path, parameters, arguments) \
  FAULTY("look", type, failed, name, directory, path, parameters, arguments)
#define LISTING(type, failed, name, parameters, arguments) \
  FAULTY("list", type, failed, name, AT_FDCWD, path, parameters, arguments)

LOOKING(int, -1, stat, AT_FDCWD, path, (const char *path, struct stat *to), (path, to))
LOOKING(int, -1, stat64, AT_FDCWD, path, (const char *path, struct stat64 *to), (path, to))
LOOKING(int, -1, lstat, AT_FDCWD, path, (const char *path, struct stat *to), (path, to))
LOOKING(int, -1, lstat64, AT_FDCWD, path, (const char *path, struct stat64 *to), (path, to))
LOOKING(int, -1, statx, dir, path, (int dir, const char *path, int flags, unsigned mask, struct statx *to),
        (dir, path, flags, mask, to))
LOOKING(int, -1, access, AT_FDCWD, path, (const char *path, int mode), (path, mode))
LOOKING(int, -1, statfs, AT_FDCWD, path, (const char *path, struct statfs *to), (path, to))
LOOKING(int, -1, statfs64, AT_FDCWD, path, (const char *path, struct statfs64 *to), (path, to))
LOOKING(ssize_t, -1, readlink, AT_FDCWD, path, (const char *path, char *to, size_t size), (path, to, size))
LOOKING(char *, NULL, realpath, AT_FDCWD, path, (const char *path, char *to), (path, to))

/* libuv may look by a raw system call. */
long syscall(long number, ...) {
  long of[6];
  va_list more;
  va_start(more, number);
  for (int i = 0; i < 6; i++) of[i] = va_arg(more, long);
  va_end(more);
  char inside[PATH_MAX];
  if (number == SYS_statx && is_inside((int)of[0], (const char *)of[1], inside)) FAIL_IF_DUE("look", 0, inside);
  return REAL(syscall)(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

typedef int (*chosen)(const struct dirent64 *);
typedef int (*compared)(const struct dirent64 **, const struct dirent64 **);
LISTING(DIR *, NULL, opendir, (const char *path), (path))
LISTING(int, -1, scandir64, (const char *path, struct dirent64 ***to, chosen choose, compared compare),
        (path, to, choose, compare))
