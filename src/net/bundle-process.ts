/**
 * Imported files are read in a process of their own, which the system ends when it takes too much time or memory: a file
 * decides itself how long OpenSSL works on it, and nothing within a process can stop that, not even the end of a thread.
 */
import { type ChildProcessByStdio, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { second } from '../base/duration.ts';
import { Problem } from '../base/problem.ts';
import type { Secret } from '../base/secret.ts';
import type { World } from '../base/world.ts';
import { bundleIn, bundleRequest } from '../crypto/bundle-transfer.ts';
import type { BundleSource, CertificateBundle } from '../crypto/certificate-bundle.ts';
import { asArgument, looksLikePkcs12 } from '../crypto/pkcs12.ts';
import { ownProgram } from './own-program.ts';

/** The command of this program that reads a request and ends; no person needs it. */
export const bundleReader = 'internal-bundle-reader';

/** Of processor time. A million rounds of password hashing, which no usual file asks for, take up to one. */
const processorSeconds = 5;
/** A wall-clock limit for a busy machine; the kernel enforces the CPU limit. */
const patience = 30 * second;
/** Of 1024 bytes: a gigabyte, of which Node reserves more than half and uses little. */
const memoryBlocks = 1024 * 1024;
/** An answer is never larger than what was sent. */
const largestAnswer = 16 * 1024 * 1024;
const shell = '/bin/sh';
/** Where limits are set already that are lower, they stay. */
const limited = `ulimit -t ${processorSeconds} || :; ulimit -d ${memoryBlocks} || :; ulimit -c 0 || :; exec /proc/self/fd/3 "$@"`;

const atOnce = 2;
const mostWaiting = 16;
const waiting: (() => void)[] = [];
let running = 0;

export type ImportedFiles = {
  readonly sources: readonly BundleSource[];
  /** Opens PKCS#12. */
  readonly password?: Secret<string> | undefined;
};

/**
 * As `readCertificateBundle`, in a process of its own. Throws also `invalid_request` where the files take more than five
 * seconds or a gigabyte to read, and `rate_limited` where too many wait for their turn or no process can be started.
 */
export async function readBundleApart(
  world: Pick<World, 'now'>,
  { sources, password }: ImportedFiles,
): Promise<CertificateBundle> {
  const request = bundleRequest({ sources: [...sources], now: world.now(), ...(password && { password }) });
  const answer = await inTurn(() => ask(request));
  if (answer === undefined) throw tooMuch(sources);
  return bundleIn(answer);
}

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running < atOnce) running += 1;
  else await turn();
  try {
    return await work();
  } finally {
    // The next waiter takes over the slot, so that a new caller cannot get ahead of it.
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

async function turn(): Promise<void> {
  if (waiting.length >= mostWaiting) {
    throw new Problem('rate_limited', {
      detail: 'Too many imports are waiting; retry in a moment.',
      retryAfter: 5,
    });
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push(resolve);
  await promise;
}

/** The answer's text, or undefined where the process came to its limits. */
async function ask(request: Secret): Promise<string | undefined> {
  const child = start();
  child.stdin.on('error', () => {
    // It ended before it read that; how it ended says why.
  });
  child.stdin.end(request.expose());
  const ended = once(child, 'close').catch((error: unknown) => {
    throw new Problem('rate_limited', {
      detail: 'Failed to start the process that reads imported files; retry in a moment.',
      retryAfter: 5,
      cause: error,
    });
  });
  const [text, [code, signal]] = await Promise.all([textOf(child), ended]);
  if (signal !== null) return undefined;
  if (code !== 0) throw new Error(`the process that reads imported files exited with code ${code}`);
  return text;
}

type Reader = ChildProcessByStdio<Writable, Readable, null>;

function start(): Reader {
  const { path, script } = ownProgram();
  const args = [...script, bundleReader];
  const options = { cwd: '/', env: {}, timeout: patience, killSignal: 'SIGKILL' } as const;
  if (!path.startsWith('/proc/') || !existsSync(shell)) {
    return spawn(path, args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] });
  }
  // The shell's own /proc/self/exe is the shell.
  const program = openSync(path, 'r');
  try {
    const stdio: StdioOptions = ['pipe', 'pipe', 'ignore', program];
    const child = spawn(shell, ['-c', limited, 'vault', ...args], { ...options, stdio });
    return child as unknown as Reader;
  } finally {
    closeSync(program);
  }
}

async function textOf(child: Reader): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > largestAnswer) child.kill('SIGKILL');
    else chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function tooMuch(sources: readonly BundleSource[]): Problem {
  const [file] = sources.filter(({ bytes }) => looksLikePkcs12(bytes));
  const names = sources.map(({ name }) => name).join(' and ');
  const convert = `Convert it to PEM with \`openssl pkcs12 -legacy -in ${asArgument(file?.name ?? '')} -nodes -out converted.pem\` and import converted.pem instead.`;
  return new Problem('invalid_request', {
    detail: `${file?.name ?? names} takes more than ${processorSeconds} seconds or too much memory to read; the file is not usable.`,
    hint: file === undefined ? 'Request new files from the issuer.' : convert,
  });
}
