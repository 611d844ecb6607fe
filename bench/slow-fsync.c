/*
 * A slow disk: preloaded into a program (LD_PRELOAD), it delays each fsync and fdatasync by SLOW_FSYNC_MS milliseconds, as
 * cloud volumes and spinning disks do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long milliseconds;

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("SLOW_FSYNC_MS");
  milliseconds = text == NULL ? 0 : atol(text);
}

static int slowly(long sync, int fd) {
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (milliseconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) continue;
  return (int)syscall(sync, fd);
}

int fsync(int fd) { return slowly(SYS_fsync, fd); }
int fdatasync(int fd) { return slowly(SYS_fdatasync, fd); }
