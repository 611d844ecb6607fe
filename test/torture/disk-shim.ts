/** Compiles the disk that records or fails (disk-shim.c) and preloads it into programs. */
import { spawnSync } from 'node:child_process';
import { realpathSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findProgram } from '../harness/processes/missing-program.ts';

/** `disk-shim.c`'s operations and errors. */
export type DiskFault = {
  readonly operation: 'open' | 'read' | 'write' | 'sync' | 'truncate' | 'name' | 'look' | 'list' | 'change';
  readonly error: 'ENOSPC' | 'EDQUOT' | 'EIO' | 'EROFS' | 'EACCES' | 'EMFILE' | 'ENFILE' | 'WAIT' | 'SLOW';
  /** Matched with the path inside the folder (fnmatch): `*` for all, `vault.db*` for the database with its log. */
  readonly pattern: string;
  /** The number of matches of each process that succeed first. */
  readonly skip?: number;
  /** The number of matches that then fail; by default all. */
  readonly times?: number;
};

export type DiskShim = {
  /** The environment that preloads it, for `serve` and `vault` of test/harness/processes/vault-process.ts. */
  readonly environment: Readonly<Record<string, string>>;
  /** Replaces the faults, from the next operation on. */
  readonly fail: (...faults: readonly DiskFault[]) => void;
};

/**
 * Prepares the disk for files under `root`. `scratch` is a folder outside of it for the compiled shim and its control
 * file. With `log`, a file outside of `root`, all changes are recorded there; with `seen`, what was done with which
 * file.
 */
export function diskShim(
  scratch: string,
  root: string,
  { log, seen }: { readonly log?: string; readonly seen?: string } = {},
): DiskShim {
  const control = join(scratch, 'disk-faults');
  if (log !== undefined) writeFileSync(log, '');
  return {
    environment: {
      LD_PRELOAD: sharedLibrary(join(import.meta.dirname, 'disk-shim.c'), scratch),
      VAULT_DISK_ROOT: realpathSync(root),
      VAULT_DISK_FAULTS: control,
      // io_uring would bypass the C library.
      UV_USE_IO_URING: '0',
      ...(log !== undefined && { VAULT_DISK_LOG: log }),
      ...(seen !== undefined && { VAULT_DISK_SEEN: seen }),
    },
    fail: (...faults) => {
      writeFileSync(`${control}.new`, faults.map(lineOf).join(''));
      renameSync(`${control}.new`, control);
    },
  };
}

function lineOf({ operation, error, pattern, skip, times }: DiskFault): string {
  const limits = [skip !== undefined && ` skip=${skip}`, times !== undefined && ` times=${times}`];
  return `${operation} ${error} ${pattern}${limits.filter(Boolean).join('')}\n`;
}

/** The path of the C compiler. */
export function findCompiler(): string | undefined {
  return findProgram('cc') ?? findProgram('gcc');
}

/** Compiles this C file into a library in `folder`, to be preloaded, and returns the path of the library. */
export function sharedLibrary(source: string, folder: string): string {
  const shim = join(folder, `${basename(source, '.c')}.so`);
  const compiler = findCompiler();
  if (compiler === undefined) throw new Error('a C compiler is needed: cc or gcc');
  const args = [
    '-Wall',
    '-Wextra',
    '-Werror',
    '-O2',
    '-shared',
    '-fPIC',
    '-o',
    shim,
    source,
    '-ldl',
    '-lpthread',
  ];
  const { status, stderr } = spawnSync(compiler, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${compiler}: ${stderr}`);
  return shim;
}
