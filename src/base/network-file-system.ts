/**
 * Detects whether a path is on a network file system. On Linux, /proc/self/mountinfo names the type of each mount;
 * elsewhere, or if that cannot be read, the type number from statfs is used.
 */
import { readFileSync, realpathSync, statfsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** As the kernel and FUSE programs call them. */
const networkTypes = new Set([
  ...['nfs', 'nfs4', 'cifs', 'smb3', 'smbfs', 'ncpfs', '9p', 'ceph', 'afs', 'coda', 'lustre', 'beegfs'],
  ...['orangefs', 'pvfs2', 'glusterfs', 'davfs', 'vboxsf', 'prl_fs'],
  ...['sshfs', 'glusterfs', 'ceph', 'ceph-fuse', 's3fs', 'rclone', 'gcsfuse', 'goofys', 'mountpoint-s3'].map(
    fuse,
  ),
  ...['davfs', 'davfs2', 'curlftpfs', 'juicefs', 'JuiceFS', 'seaweedfs', 'blobfuse', 'blobfuse2'].map(fuse),
  ...['moosefs', 'mfs', 'lizardfs', 'vmhgfs-fuse', 'grpcfuse', 'osxfs'].map(fuse),
]);

/** f_type of statfs(2) on Linux. */
const networkNumbers: ReadonlyMap<number, string> = new Map([
  [0x6969, 'nfs'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x517b, 'smb'],
  [0x01021997, '9p'],
  [0x00c36400, 'ceph'],
  [0x5346414f, 'afs'],
  [0x73757245, 'coda'],
  [0x564c, 'ncp'],
  [0x0bd00bd0, 'lustre'],
]);

/** The type of the network file system that contains `path` or will contain it; undefined on a local one. */
export function networkFileSystem(path: string): string | undefined {
  const there = nearest(resolve(path));
  const type = typeOfMount(mounts(), there);
  if (type !== undefined) return networkTypes.has(type) ? type : undefined;
  try {
    return networkNumbers.get(statfsSync(there).type >>> 0);
  } catch {
    // Opening the path reports what is wrong with it.
    return undefined;
  }
}

/**
 * The type of the mount that contains the absolute path, from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
 * If several mounts share a directory, the last one is visible.
 */
export function typeOfMount(mountinfo: string, path: string): string | undefined {
  let longest = -1;
  let found: string | undefined;
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ', 2);
    const [type] = after.split(' ');
    const point = unescaped(before.split(' ')[4] ?? '');
    const holds = path === point || path.startsWith(point.endsWith('/') ? point : `${point}/`);
    if (point === '' || type === undefined || !holds || point.length < longest) continue;
    longest = point.length;
    found = type;
  }
  return found;
}

function fuse(name: string): string {
  return `fuse.${name}`;
}

function mounts(): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    // Not Linux, or no /proc: use the type number from statfs.
    return '';
  }
}

/** The kernel writes spaces and backslashes as three octal digits. */
function unescaped(point: string): string {
  return point.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/** The path itself, or its closest existing parent directory; without symbolic links. */
function nearest(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : nearest(above);
  }
}
