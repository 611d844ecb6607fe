/**
 * Reads imported and inspected files in a separate process that the system kills when it exceeds its time or memory
 * limit. A file determines how long OpenSSL works on it, and nothing within a process can stop that, not even
 * terminating a thread.
 */
import { type ChildProcessByStdio, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, type FileHandle, open } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { second } from '../base/duration.ts';
import { Problem } from '../base/problem.ts';
import type { Secret } from '../base/secret.ts';
import type { World } from '../base/world.ts';
import { bundleIn, bundleRequest } from '../crypto/bundles/bundle-transfer.ts';
import type { BundleSource, CertificateBundle } from '../crypto/bundles/certificate-bundle.ts';
import type { Inspection, InspectionInput } from '../crypto/bundles/inspection.ts';
import { inspectionIn, inspectionRequest } from '../crypto/bundles/inspection-transfer.ts';
import { asArgument, looksLikePkcs12 } from '../crypto/bundles/pkcs12.ts';
import { ownProgram } from './own-program.ts';

/** The command of this program that reads one request and exits; for internal use only. */
export const bundleReader = 'internal-bundle-reader';
/** The command that describes one file; for internal use only. */
export const inspector = 'internal-inspector';

/** CPU seconds. A million rounds of password hashing, far more than usual files need, take at most one. */
const processorSeconds = 5;
/** A wall-clock limit for a busy machine; the kernel enforces the CPU limit. */
const patience = 30 * second;
/** In KiB: one gigabyte, of which Node reserves more than half and uses little. */
const memoryBlocks = 1024 * 1024;
/** The response is never larger than the request. */
const largestAnswer = 16 * 1024 * 1024;
const shell = '/bin/sh';
/** Lower limits that are already set are kept. */
const limited = `ulimit -t ${processorSeconds} || :; ulimit -d ${memoryBlocks} || :; ulimit -c 0 || :; exec /proc/self/fd/3 "$@"`;

const atOnce = 2;
const maxWaiting = 16;
const waiting: (() => void)[] = [];
let running = 0;

export type ImportedFiles = {
  readonly sources: readonly BundleSource[];
  /** The password of a PKCS#12 file. */
  readonly password?: Secret<string> | undefined;
  /** Whether the certificate may be that of a CA, as plain `openssl req -x509` creates it. */
  readonly allowCa?: boolean | undefined;
};

/**
 * Like `readCertificateBundle`, in a separate process. Also throws `invalid_request` if the files take more than five
 * CPU seconds or a gigabyte to read, and `rate_limited` if too many requests are waiting or no process can be started.
 */
export async function readBundleApart(
  world: Pick<World, 'now'>,
  { sources, password, allowCa }: ImportedFiles,
): Promise<CertificateBundle> {
  const authorities = allowCa === true ? 'taken' : 'refused';
  const request = bundleRequest({
    sources: [...sources],
    now: world.now(),
    authorities,
    ...(password && { password }),
  });
  const answer = await askApart(bundleReader, request);
  if (answer === undefined) throw tooMuch(sources);
  return bundleIn(answer);
}

/** Like `inspect`, in a separate process. Also throws `invalid_request` if that exceeds its time or memory. */
export async function inspectApart(input: InspectionInput): Promise<Inspection> {
  const answer = await askApart(inspector, inspectionRequest(input));
  if (answer !== undefined) return inspectionIn(answer);
  throw new Problem('invalid_request', {
    detail: `${input.source.name} takes more than ${processorSeconds} seconds or too much memory to read.`,
    hint: 'No program should use this file. Request a new one from its source.',
  });
}

/** Sends the request to a process of this program that runs `command`. Undefined if the process exceeded its limits. */
function askApart(command: string, request: Secret): Promise<string | undefined> {
  return withSlot(() => ask(command, request));
}

async function withSlot<T>(work: () => Promise<T>): Promise<T> {
  if (running < atOnce) running += 1;
  else await acquireSlot();
  try {
    return await work();
  } finally {
    // The next waiter takes over the slot, so that a new caller cannot get ahead of it.
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

async function acquireSlot(): Promise<void> {
  if (waiting.length >= maxWaiting) {
    throw new Problem('rate_limited', {
      detail: 'Too many imports are waiting; retry in a moment.',
      retryAfter: 5,
    });
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push(resolve);
  await promise;
}

/** The text of the response, or undefined if the process exceeded its limits. */
async function ask(command: string, request: Secret): Promise<string | undefined> {
  const opened = await openForShell();
  try {
    return await answerOf(start(command, opened), request);
  } finally {
    await opened?.close();
  }
}

async function answerOf(child: Reader, request: Secret): Promise<string | undefined> {
  child.stdin.on('error', () => {
    // The process exited before it read the request; its exit status says why.
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

/** `opened`: this executable, where a shell can limit the process. */
function start(command: string, opened: FileHandle | undefined): Reader {
  const { path, script } = ownProgram();
  const args = [...script, command];
  const options = { cwd: '/', env: {}, timeout: patience, killSignal: 'SIGKILL' } as const;
  if (opened === undefined) return spawn(path, args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] });
  const stdio: StdioOptions = ['pipe', 'pipe', 'ignore', opened.fd];
  return spawn(shell, ['-c', limited, 'vault', ...args], { ...options, stdio }) as unknown as Reader;
}

/** In the shell, /proc/self/exe is the shell itself: it receives the open file. */
async function openForShell(): Promise<FileHandle | undefined> {
  const { path } = ownProgram();
  if (!path.startsWith('/proc/')) return undefined;
  try {
    await access(shell);
  } catch {
    return undefined;
  }
  return open(path, 'r');
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
