/** Archives that the system's tar reads. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { tar } from '../../src/base/tar.ts';
import { needs } from '../harness/processes/missing-program.ts';

const files = [
  { name: 'empty', content: Buffer.alloc(0), mode: 0o644 },
  { name: 'one-record', content: Buffer.alloc(512, 'a'), mode: 0o600 },
  { name: 'more', content: Buffer.from('ü\0'.repeat(300)), mode: 0o640 },
];

test(
  "the system's tar lists names, modes, times and sizes, and extracts the same bytes",
  needs('tar'),
  () => {
    const input = tar(files, Date.UTC(2026, 10, 23, 12, 30, 1, 999));
    const options = { input, env: { ...process.env, TZ: 'UTC', LC_ALL: 'C' } };
    const listed = execFileSync('tar', ['--list', '--verbose', '--full-time', '--numeric-owner'], options);
    assert.deepEqual(
      listed
        .toString()
        .trim()
        .split('\n')
        .map((line) => line.split(/\s+/).join(' ')),
      [
        '-rw-r--r-- 0/0 0 2026-11-23 12:30:01 empty',
        '-rw------- 0/0 512 2026-11-23 12:30:01 one-record',
        '-rw-r----- 0/0 900 2026-11-23 12:30:01 more',
      ],
    );
    for (const { name, content } of files) {
      assert(execFileSync('tar', ['--extract', '--to-stdout', name], options).equals(content));
    }
  },
);
