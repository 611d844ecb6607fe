/** Runs a program that changes DNS records, for the types of providers that are one. Never run through a shell. */
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { second } from '../../base/duration.ts';
import { hookFailure } from '../../net/hook-failure.ts';
import { runHook } from '../../net/hook-process.ts';
import { type DnsContext, DnsProviderError, type TxtRecord } from '../dns-provider.ts';

/** `timeout` in seconds; `concurrency`: how many programs run at once, never two for one name. */
export const hookSettings = {
  environment: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().regex(/^[^\0]*$/))
    .default({}),
  timeout: z.int().min(1).max(3600).default(120),
  concurrency: z.int().min(1).max(32).default(4),
};

/** The path of a program. */
export const programPath = z
  .string()
  .refine(isAbsolute, 'must be an absolute path (PATH is not searched)')
  .refine((path) => !path.includes('\0'), 'must not contain a NUL character');

export type HookCall = {
  /** The program and its arguments, which every user of the machine can see. */
  readonly words: readonly string[];
  /** Files that the program reads as code. */
  readonly scripts?: readonly string[];
  /** Credentials, among others: they are hidden in error messages. */
  readonly secrets: Readonly<Record<string, string>>;
  /** More variables, shown as they are. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** In seconds. */
  readonly timeout: number;
};

/** Runs the program until it exits. Throws DnsProviderError with the end of its output if it fails. */
export async function callHook(
  { world, log }: Pick<DnsContext, 'world' | 'log'>,
  { words, scripts, secrets, environment, timeout }: HookCall,
  { verb, record }: { readonly verb: string; readonly record: TxtRecord },
  signal: AbortSignal,
): Promise<void> {
  const [program = '', ...args] = words;
  const run = {
    program,
    args,
    ...(scripts && { scripts }),
    environment: { ...secrets, ...environment },
    timeoutMs: timeout * second,
  };
  const end = await runHook(world, run, signal);
  const failure = hookFailure(run, end, Object.values(secrets));
  if (failure !== undefined) throw new DnsProviderError(failure);
  log.debug({ program, name: record.name }, `hook succeeded: ${verb}`);
}
