/**
 * Which paths other users can change: trees of directories and links that root builds, walked as root and as another
 * user.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { walk } from '../../../src/base/paths/walk.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const vaultUser = 12_345;
const stranger = 54_321;

type Tree = {
  readonly title: string;
  /** Builds the tree below `root`, which belongs to root with mode 0755. Returns the path to walk. */
  readonly build: (root: string) => string;
  /** Faults as `directory d others`, relative to the root; `!` after the component that the path leads to. */
  readonly faults?: readonly string[];
  readonly code?: string;
  /** Where the path leads, relative to the root; not given where it leads nowhere. */
  readonly real?: string;
  readonly trusted?: string;
};

function directory(root: string, name: string, mode = 0o755, uid = 0): string {
  const path = join(root, name);
  fs.mkdirSync(path);
  fs.chownSync(path, uid, uid);
  fs.chmodSync(path, mode);
  return path;
}

function file(root: string, name: string, mode = 0o755, uid = 0): string {
  const path = join(root, name);
  fs.writeFileSync(path, '');
  fs.chownSync(path, uid, uid);
  fs.chmodSync(path, mode);
  return path;
}

function link(root: string, name: string, target: string, uid = 0): string {
  const path = join(root, name);
  fs.symlinkSync(target, path);
  fs.lchownSync(path, uid, uid);
  return path;
}

const trees: readonly Tree[] = [
  { title: 'a file of root', build: (root) => file(root, 'f'), real: 'f' },
  {
    title: "a file in a directory of the vault's user",
    build: (root) => file(directory(root, 'd', 0o700, vaultUser), 'f', 0o600, vaultUser),
    real: 'd/f',
  },
  {
    title: 'a directory that everyone can write to, on the way',
    build: (root) => file(directory(root, 'd', 0o777), 'f'),
    faults: ['directory d others'],
    real: 'd/f',
  },
  {
    title: 'a directory that everyone can write to, as the target',
    build: (root) => directory(root, 'd', 0o757),
    faults: ['directory d others!'],
    real: 'd',
  },
  {
    title: 'a directory that its group can write to',
    build: (root) => file(directory(root, 'd', 0o775), 'f'),
    faults: ['directory d group'],
    real: 'd/f',
  },
  {
    title: 'a sticky directory, on the way',
    build: (root) => file(directory(root, 'd', 0o1777), 'f'),
    real: 'd/f',
  },
  {
    title: 'a sticky directory, as the target',
    build: (root) => directory(root, 'd', 0o1777),
    faults: ['directory d others!'],
    real: 'd',
  },
  {
    title: 'a file of another user in a sticky directory',
    build: (root) => file(directory(root, 'd', 0o1777), 'f', 0o755, stranger),
    faults: ['file d/f owner!'],
    real: 'd/f',
  },
  {
    title: 'a link of another user in a sticky directory',
    build: (root) => link(directory(root, 'd', 0o1777), 'l', file(root, 'f'), stranger),
    faults: ['link d/l owner'],
    real: 'f',
  },
  {
    title: 'a sticky directory of another user',
    build: (root) => file(directory(root, 'd', 0o1777, stranger), 'f'),
    faults: ['directory d owner'],
    real: 'd/f',
  },
  {
    title: 'a directory that only another user can write to',
    build: (root) => file(directory(directory(root, 'd', 0o755, stranger), 'e'), 'f'),
    faults: ['directory d owner'],
    real: 'd/e/f',
  },
  {
    title: 'a file that another user owns and everyone can write to',
    build: (root) => file(root, 'f', 0o777, stranger),
    faults: ['file f owner!', 'file f others!'],
    real: 'f',
  },
  {
    title: 'a file that its group can write to',
    build: (root) => file(root, 'f', 0o775),
    faults: ['file f group!'],
    real: 'f',
  },
  {
    title: 'a chain of links through a directory that everyone can write to',
    build: (root) => {
      file(root, 'f');
      link(directory(root, 'd', 0o777), 'second', '../f');
      return link(root, 'first', 'd/second');
    },
    faults: ['directory d others'],
    real: 'f',
  },
  {
    title: 'a link to a directory, with a relative target and two dots after it',
    build: (root) => {
      file(directory(root, 'd'), 'f');
      directory(join(root, 'd'), 'e');
      link(root, 'l', './d//e');
      return `${root}/l/../f`;
    },
    real: 'd/f',
  },
  {
    title: 'a loop of links',
    build: (root) => {
      link(root, 'a', 'b');
      return link(root, 'b', 'a');
    },
    code: 'ELOOP',
  },
  {
    title: 'a component that is a file',
    build: (root) => join(file(root, 'f'), 'g'),
    code: 'ENOTDIR',
  },
  { title: 'a file with a slash after it', build: (root) => `${file(root, 'f')}/`, code: 'ENOTDIR' },
  {
    title: 'a pipe that everyone can write to',
    build: (root) => {
      const path = join(root, 'p');
      execFileSync('mkfifo', ['-m', '666', path]);
      return path;
    },
    real: 'p',
  },
  { title: 'a missing file', build: (root) => join(directory(root, 'd'), 'none', 'f'), code: 'ENOENT' },
  {
    title: 'a missing file in a directory that everyone can write to',
    build: (root) => join(directory(root, 'd', 0o777), 'f'),
    faults: ['directory d others'],
    code: 'ENOENT',
  },
  {
    title: 'a dangling link',
    build: (root) => link(root, 'l', 'none'),
    code: 'ENOENT',
  },
  {
    title: 'writable directories above a trusted directory',
    build: (root) => {
      const data = directory(directory(root, 'open', 0o777), 'data', 0o700, vaultUser);
      return file(data, 'f');
    },
    trusted: 'open/data',
    real: 'open/data/f',
  },
  {
    title: 'a link that leads out of a trusted directory',
    build: (root) => {
      file(directory(root, 'open', 0o777), 'f');
      return link(directory(root, 'data', 0o700, vaultUser), 'l', '../open/f', vaultUser);
    },
    trusted: 'data',
    faults: ['directory open others'],
    real: 'open/f',
  },
];

const isRoot = process.getuid?.() === 0;

suite('walk', isRoot ? {} : { skip: 'only root can give files to another user' }, () => {
  for (const { title, build, faults = [], code, real, trusted } of trees) {
    test(`finds ${faults.length === 0 ? 'no fault' : faults.join(', ')} on ${title}`, async (t) => {
      const root = fs.realpathSync(tempDir(t));
      fs.chmodSync(root, 0o755);
      const path = build(root);
      const walked = await walk(path, {
        uid: vaultUser,
        ...(trusted !== undefined && { trusted: join(root, trusted) }),
      });
      const found = walked.faults.map(
        ({ path, kind, by, isTarget }) =>
          `${kind} ${path.slice(root.length + 1)} ${by}${isTarget ? '!' : ''}`,
      );
      assert.deepEqual(found, faults);
      assert.equal(walked.code, code);
      assert.equal(walked.target !== undefined, real !== undefined);
      if (real !== undefined) assert.equal(walked.real, join(root, real));
    });
  }

  test('with uid 0 reports a directory of another user', async (t) => {
    const root = tempDir(t);
    fs.chmodSync(root, 0o755);
    const path = file(directory(root, 'd', 0o755, vaultUser), 'f');
    assert.deepEqual(
      (await walk(path, { uid: 0 })).faults.map(({ kind, by }) => [kind, by]),
      [['directory', 'owner']],
    );
  });
});
